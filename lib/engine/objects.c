#include "engine/objects.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/filter.h"
#include "engine/check.h"
#include "engine/idempotency.h"
#include "engine/join.h"
#include "engine/kineto_model.h"
#include "engine/pool.h"
#include "engine/problem.h"
#include "engine/refusals.h"
#include "engine/settle.h"
#include "engine/stream_blobs.h"
#include "trace/native_tally.h"

struct tp_job *tp_job_find(struct tp_engine *e, struct tp_str name)
{
    return tp_strmap_get(&e->jobs, name.ptr, name.len);
}

int tp_job_get(struct tp_engine *e, struct tp_str name, uint64_t wall_ns,
               struct tp_job **out, struct tp_problem *problem, struct tp_err *err)
{
    struct tp_registry_options options = {.on_collision = e->opts.on_collision,
                                          .max_types = e->limits.types_per_job};
    struct tp_job *job = tp_job_find(e, name);
    int rc;

    if (job != NULL) {
        *out = job;
        return TP_OK;
    }
    if (tp_strmap_len(&e->jobs) >= e->limits.jobs)
        return tp_problem_limit(problem, "max-jobs", "jobs", e->limits.jobs,
                                tp_strmap_len(&e->jobs) + 1, err);
    assert(name.len <= TP_JOB_NAME_MAX_BYTES);
    job = calloc(1, sizeof(*job));
    if (job == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a job");
    memcpy(job->name, name.ptr, name.len);
    job->created_ns = wall_ns;
    rc = tp_registry_new(&options, &job->registry, err);
    if (rc == TP_OK)
        rc = tp_strmap_put(&e->jobs, name.ptr, name.len, job, err);
    if (rc != TP_OK) {
        tp_job_free(job);
        return rc;
    }
    *out = job;
    return TP_OK;
}

void tp_job_drop_new(struct tp_engine *e, struct tp_job *job)
{
    if (job == NULL || job->is_stored)
        return;
    tp_strmap_remove(&e->jobs, job->name, strlen(job->name));
    tp_job_free(job);
}

void tp_job_free(struct tp_job *job)
{
    if (job == NULL)
        return;
    tp_registry_free(job->registry);
    tp_strmap_fini(&job->same);
    tp_strmap_fini(&job->ranked);
    free(job);
}

int tp_trace_new(struct tp_engine *e, struct tp_job *job, struct tp_trace **out,
                 struct tp_err *err)
{
    struct tp_trace *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a trace");
    t->engine = e;
    t->job = job;
    *out = t;
    return TP_OK;
}

int tp_trace_link(struct tp_trace *t, struct tp_err *err)
{
    struct tp_engine *e = t->engine;
    int rc = tp_strmap_put(&e->traces, t->id, strlen(t->id), t, err);

    if (rc != TP_OK)
        return rc;
    t->older = e->newest;
    if (t->older != NULL)
        t->older->newer = t;
    e->newest = t;
    t->job->n_traces++;
    return TP_OK;
}

void tp_trace_unlink(struct tp_trace *t)
{
    struct tp_engine *e = t->engine;

    tp_settle_forget(t);
    tp_strmap_remove(&e->traces, t->id, strlen(t->id));
    if (t->newer != NULL)
        t->newer->older = t->older;
    else
        e->newest = t->older;
    if (t->older != NULL)
        t->older->newer = t->newer;
    t->job->n_traces--;
    t->is_deleted = true;
    if (t->refs == 0)
        tp_trace_free(t);
}

static void free_stream(struct tp_stream *s)
{
    tp_stream_blobs_close(s);
    tp_identity_fini(&s->who);
    tp_lock_fini(&s->lock);
    free(s->file_name);
    tp_refusals_free(s);
    tp_native_tally_free(s->tally);
    tp_bulk_give(&s->trace->objects, s);
}

void tp_trace_free(struct tp_trace *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->n_members; i++) {
        tp_identity_fini(&t->members[i]->who);
        tp_type_counts_fini(&t->members[i]->types);
        tp_bulk_give(&t->objects, t->members[i]);
    }
    for (size_t i = 0; i < t->n_streams; i++)
        free_stream(t->streams[i]);
    free(t->members);
    tp_strmap_fini(&t->by_producer);
    free(t->streams);
    tp_strmap_fini(&t->by_key);
    tp_filter_unref(t->filter);
    tp_typemap_unref(t->types);
    tp_spec_fini(&t->spec);
    tp_bulk_fini(&t->objects);
    free(t);
}

void tp_trace_ref(struct tp_trace *t)
{
    t->refs++;
}

void tp_trace_unref(struct tp_trace *t)
{
    assert(t->refs > 0);
    if (--t->refs == 0 && t->is_deleted)
        tp_trace_free(t);
}

int tp_trace_find(struct tp_engine *e, struct tp_str id, struct tp_trace **out,
                  struct tp_problem *problem, struct tp_err *err)
{
    struct tp_trace *t = tp_strmap_get(&e->traces, id.ptr, id.len);

    if (t == NULL)
        return tp_problem_not_found(problem, "trace", id, err);
    *out = t;
    return TP_OK;
}

struct tp_trace *tp_trace_next_active(struct tp_engine *e, size_t *cursor)
{
    void *job;

    while (e->n_active > 0 && tp_strmap_next(&e->jobs, cursor, NULL, &job)) {
        if (((struct tp_job *)job)->active != NULL)
            return ((struct tp_job *)job)->active;
    }
    return NULL;
}

bool tp_trace_is_active(const struct tp_trace *t)
{
    return !tp_session_state_is_final(t->session.state);
}

const char *tp_trace_state_name(const struct tp_trace *t)
{
    return tp_session_state_name(t->session.state);
}

/* Make room for one more pointer; arrays grow by doubling at powers of two. */
static int grow(void **array, size_t n, struct tp_err *err)
{
    void *bigger;

    if ((n & (n - 1)) != 0)
        return TP_OK;
    bigger = realloc(*array, (n == 0 ? 1 : 2 * n) * sizeof(void *));
    if (bigger == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a trace");
    *array = bigger;
    return TP_OK;
}

int tp_member_add(struct tp_trace *t, const struct tp_row_identity *who,
                  struct tp_member **out, struct tp_err *err)
{
    void *array = t->members;
    struct tp_member *m = NULL;
    int rc = grow(&array, t->n_members, err);

    t->members = array;
    if (rc != TP_OK)
        return rc;
    m = tp_bulk_take(&t->objects, sizeof(*m));
    if (m == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a producer");
    rc = tp_identity_init_in(&t->objects, &m->who, who, err);
    if (rc == TP_OK)
        rc = tp_strmap_put(&t->by_producer, m->who.id, strlen(m->who.id), m, err);
    if (rc != TP_OK) {
        tp_identity_fini(&m->who);
        tp_bulk_give(&t->objects, m);
        return rc;
    }
    m->trace = t;
    m->is_dirty = true;
    t->members[t->n_members++] = m;
    *out = m;
    return TP_OK;
}

struct tp_member *tp_member_find(const struct tp_trace *t, const char *producer_id)
{
    return tp_strmap_get(&t->by_producer, producer_id, strlen(producer_id));
}

struct tp_member *tp_member_of_stream(const struct tp_trace *t, uint32_t no)
{
    return no == 0 || no > t->n_streams ? NULL : t->streams[no - 1]->member;
}

void tp_member_changed(struct tp_member *m)
{
    struct tp_trace *t = m->trace;
    uint64_t now_ns = t->engine->seen.mono_ns;

    m->is_dirty = true;
    if (!t->has_member_news && t->news_ns < now_ns)
        t->news_ns = now_ns + TP_NEWS_NS;
    t->has_member_news = true;
}

void tp_stream_changed(struct tp_stream *s)
{
    s->is_dirty = true;
    if (!s->trace->has_stream_news)
        s->trace->stream_news_ns = s->trace->engine->seen.mono_ns + TP_NEWS_NS;
    s->trace->has_stream_news = true;
}

struct tp_producer *tp_member_producer(const struct tp_member *m)
{
    struct tp_producer *p;

    if (m->producer != NULL || m->made_of != NULL)
        return m->producer != NULL ? m->producer : m->made_of;
    p = tp_producer_find(m->trace->engine, tp_str_of(m->who.id));
    return p != NULL && p->job == m->trace->job ? p : NULL;
}

struct tp_stream *tp_member_stream(const struct tp_member *m)
{
    const struct tp_trace *t = m->trace;

    return m->stream_no != 0 && m->stream_no <= t->n_streams
               ? t->streams[m->stream_no - 1]
               : NULL;
}

bool tp_member_has_posted(const struct tp_member *m)
{
    const struct tp_stream *s = tp_member_stream(m);

    return s != NULL && s->batches > 0;
}

void tp_member_attach(struct tp_member *m, struct tp_producer *p)
{
    m->made_of = NULL;
    m->producer = p;
    p->member = m;
    p->given = 0;
}

void tp_member_detach(struct tp_member *m)
{
    if (m->producer == NULL)
        return;
    m->producer->member = NULL;
    m->producer->given = 0;
    m->producer = NULL;
}

/* A stream of nobody that its trace does not know yet. */
static int new_stream(struct tp_trace *t, struct tp_stream **out,
                      struct tp_problem *problem, struct tp_err *err)
{
    uint64_t most = t->engine->limits.streams_per_trace;
    void *array = t->streams;
    struct tp_stream *s;
    int rc;

    if (t->n_streams >= most)
        return tp_problem_limit(problem, "max-streams-per-trace", "streams", most,
                                t->n_streams + 1, err);
    rc = grow(&array, t->n_streams, err);
    t->streams = array;
    if (rc != TP_OK)
        return rc;
    s = tp_bulk_take(&t->objects, sizeof(*s));
    if (s == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a stream");
    tp_lock_init(&s->lock);
    s->trace = t;
    s->no = (uint32_t)t->n_streams + 1;
    *out = s;
    return TP_OK;
}

int tp_stream_add(struct tp_trace *t, const struct tp_row_identity *who, bool is_file,
                  struct tp_str file_name, struct tp_stream **out,
                  struct tp_problem *problem, struct tp_err *err)
{
    struct tp_stream *s;
    int rc = new_stream(t, &s, problem, err);

    if (rc != TP_OK)
        return rc;
    s->is_file = is_file;
    rc = tp_stream_rename(s, who, file_name, err);
    if (rc != TP_OK) {
        free_stream(s);
        return rc;
    }
    t->streams[t->n_streams++] = s;
    *out = s;
    return TP_OK;
}

int tp_stream_add_member(const struct tp_member *m, struct tp_stream **out,
                         struct tp_problem *problem, struct tp_err *err)
{
    struct tp_trace *t = m->trace;
    struct tp_stream *s;
    int rc = new_stream(t, &s, problem, err);

    if (rc != TP_OK)
        return rc;
    tp_identity_borrow(&s->who, &m->who);
    t->streams[t->n_streams++] = s;
    *out = s;
    return TP_OK;
}

int tp_stream_rename(struct tp_stream *s, const struct tp_row_identity *who,
                     struct tp_str file_name, struct tp_err *err)
{
    struct tp_identity fresh = {0};
    char *name = malloc(file_name.len + 1);
    int rc;

    if (name == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a stream");
    rc = tp_identity_init(&fresh, who, err);
    if (rc != TP_OK) {
        free(name);
        return rc;
    }
    tp_check_file_name(file_name, name);
    free(s->file_name);
    s->file_name = name;
    tp_identity_fini(&s->who);
    s->who = fresh;
    return TP_OK;
}

#define KEY_BYTES 192

/* The key of a stream of events: its rank, a blank, its name. Names are at most 127
 * bytes; a longer one cannot be. */
static size_t stream_key(struct tp_str name, int64_t rank, char *out)
{
    int n = snprintf(out, KEY_BYTES, "%lld %.*s", (long long)rank, (int)name.len,
                     name.len == 0 ? "" : name.ptr);

    return n < KEY_BYTES ? (size_t)n : KEY_BYTES - 1;
}

struct tp_stream *tp_stream_find(const struct tp_trace *t, struct tp_str name,
                                 int64_t rank)
{
    char key[KEY_BYTES];
    size_t n = stream_key(name, rank, key);

    return tp_strmap_get(&t->by_key, key, n);
}

int tp_stream_publish(struct tp_stream *s, struct tp_err *err)
{
    char key[KEY_BYTES];
    size_t n = stream_key(tp_str_of(s->who.name), s->who.rank, key);

    return tp_strmap_put(&s->trace->by_key, key, n, s, err);
}

void tp_stream_unpublish(struct tp_stream *s)
{
    char key[KEY_BYTES];
    size_t n = stream_key(tp_str_of(s->who.name), s->who.rank, key);

    if (tp_strmap_get(&s->trace->by_key, key, n) == s)
        tp_strmap_remove(&s->trace->by_key, key, n);
}

/* What makes two registrations the same one: rank, process, host and name. */
static int same_key(const struct tp_row_identity *who, struct tp_buf *out,
                    struct tp_err *err)
{
    int rc = tp_buf_printf(out, err, "%lld %lld ", (long long)who->rank,
                           (long long)who->pid);

    if (rc == TP_OK)
        rc = tp_buf_append(out, who->host.ptr, who->host.len, err);
    if (rc == TP_OK)
        rc = tp_buf_append(out, "\n", 1, err);
    return rc == TP_OK ? tp_buf_append(out, who->name.ptr, who->name.len, err) : rc;
}

int tp_producer_find_same(const struct tp_job *job, const struct tp_row_identity *who,
                          struct tp_producer **out, struct tp_err *err)
{
    struct tp_buf key = {0};
    int rc = same_key(who, &key, err);

    if (rc == TP_OK)
        *out = tp_strmap_get(&job->same, key.data, key.len);
    tp_buf_fini(&key);
    return rc;
}

/* Let it be found by its key. */
static int put_same(struct tp_producer *p, struct tp_err *err)
{
    struct tp_row_identity who = tp_identity_row(&p->who);
    int rc = same_key(&who, &p->same_key, err);

    return rc == TP_OK
               ? tp_strmap_put(&p->job->same, p->same_key.data, p->same_key.len, p, err)
               : rc;
}

int tp_producer_add(struct tp_job *job, struct tp_engine *e,
                    const struct tp_row_identity *who, struct tp_str capabilities,
                    bool is_sought, struct tp_producer **out, struct tp_err *err)
{
    struct tp_producer *p = calloc(1, sizeof(*p));
    int rc;

    if (p == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a producer");
    p->job = job;
    p->silence_ns = e->limits.producer_silence_ms * TP_NS_PER_MS;
    p->capabilities = malloc(capabilities.len + 1);
    if (p->capabilities == NULL) {
        rc = tp_fail(err, TP_ENOMEM, "no memory for a producer");
        goto fail;
    }
    if (capabilities.len != 0)
        memcpy(p->capabilities, capabilities.ptr, capabilities.len);
    p->capabilities[capabilities.len] = '\0';
    rc = tp_identity_init(&p->who, who, err);
    if (rc != TP_OK)
        goto fail;
    rc = tp_strmap_put(&e->producers, p->who.id, strlen(p->who.id), p, err);
    if (rc != TP_OK)
        goto fail;
    rc = is_sought ? put_same(p, err) : TP_OK;
    if (rc != TP_OK) {
        tp_strmap_remove(&e->producers, p->who.id, strlen(p->who.id));
        goto fail;
    }
    tp_join_tell_rank(p);
    job->n_producers++;
    *out = p;
    return TP_OK;

fail:
    tp_producer_free(p);
    return rc;
}

void tp_producer_drop(struct tp_engine *e, struct tp_producer *p)
{
    tp_kineto_unlink(p);
    if (p->is_stranger)
        e->kineto->n_strangers--;
    tp_join_untell_rank(p);
    tp_strmap_remove(&e->producers, p->who.id, strlen(p->who.id));
    if (tp_strmap_get(&p->job->same, p->same_key.data, p->same_key.len) == p)
        tp_strmap_remove(&p->job->same, p->same_key.data, p->same_key.len);
    p->job->n_producers--;
    tp_producer_free(p);
}

void tp_producer_free(struct tp_producer *p)
{
    if (p == NULL)
        return;
    tp_identity_fini(&p->who);
    tp_buf_fini(&p->same_key);
    free(p->capabilities);
    free(p);
}

struct tp_producer *tp_producer_find(struct tp_engine *e, struct tp_str id)
{
    return tp_strmap_get(&e->producers, id.ptr, id.len);
}

void tp_key_free(struct tp_key *key)
{
    if (key == NULL)
        return;
    free(key->fingerprint);
    free(key);
}
