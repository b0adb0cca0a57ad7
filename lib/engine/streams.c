#include "engine/streams.h"

#include "base/err.h"
#include "engine/check.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/refusals.h"

/* A stream whose uploads were all abandoned, or NULL: its number may be used again, or
 * clients that go away would use them all up. One with a batch that was refused is not
 * abandoned: that may come again. */
static struct tp_stream *find_abandoned(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_streams && t->has_abandoned; i++) {
        struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_HIDDEN && s->n_uploads == 0 && s->member == NULL &&
            s->refusals == NULL)
            return s;
    }
    t->has_abandoned = false;
    return NULL;
}

/* Use an abandoned stream again. */
static int reuse(struct tp_stream *s, const struct tp_row_identity *who, bool is_file,
                 struct tp_str file_name, struct tp_stream **out, struct tp_err *err)
{
    int rc;

    tp_stream_unpublish(s);
    rc = tp_stream_rename(s, who, file_name, err);
    if (rc != TP_OK)
        return rc;
    s->is_file = is_file;
    s->has_seq = false;
    s->seq = 0;
    *out = s;
    return TP_OK;
}

/* A hidden stream, new or used again. */
static int get_stream(struct tp_trace *t, const struct tp_row_identity *who,
                      bool is_file, struct tp_str file_name, struct tp_stream **out,
                      struct tp_problem *problem, struct tp_err *err)
{
    struct tp_stream *s = find_abandoned(t);

    if (s == NULL)
        return tp_stream_add(t, who, is_file, file_name, out, problem, err);
    return reuse(s, who, is_file, file_name, out, err);
}

/* The same for the events of a member. */
static int get_member_stream(const struct tp_member *m,
                             const struct tp_row_identity *who, struct tp_stream **out,
                             struct tp_problem *problem, struct tp_err *err)
{
    struct tp_stream *s = find_abandoned(m->trace);

    if (s == NULL)
        return tp_stream_add_member(m, out, problem, err);
    return reuse(s, who, false, (struct tp_str){0}, out, err);
}

uint64_t tp_stream_gaps(const struct tp_stream *s)
{
    uint64_t known = s->batches + tp_refusals_len(s);

    if (s->is_file || !s->has_seq || s->member == NULL ||
        !tp_identity_is_native(&s->member->who))
        return 0;
    return s->seq > known ? s->seq - known : 0;
}

int tp_streams_for_events(struct tp_trace *t, const struct tp_row_identity *who,
                          struct tp_stream **out, struct tp_problem *problem,
                          struct tp_err *err)
{
    struct tp_stream *s = tp_stream_find(t, who->name, who->rank);
    int rc;

    if (s != NULL) {
        *out = s;
        return TP_OK;
    }
    rc = get_stream(t, who, false, (struct tp_str){0}, &s, problem, err);
    if (rc == TP_OK)
        rc = tp_stream_publish(s, err);
    if (rc == TP_OK)
        *out = s;
    return rc;
}

static void tie(struct tp_stream *s, struct tp_member *m)
{
    s->member = m;
    m->stream_no = s->no;
    m->has_new_stream = true;
    tp_member_changed(m);
}

int tp_streams_for_member(struct tp_member *m, struct tp_problem *problem,
                          struct tp_err *err)
{
    struct tp_row_identity who = tp_identity_row(&m->who);
    struct tp_stream *s = tp_stream_find(m->trace, who.name, who.rank);
    bool is_named = s != NULL;
    int rc = TP_OK;

    if (m->stream_no != 0)
        return TP_OK;
    /* One of the same name and rank came before: a process that was killed, perhaps. */
    if (s != NULL && s->member != NULL)
        s = NULL;
    if (s == NULL)
        rc = get_member_stream(m, &who, &s, problem, err);
    if (rc == TP_OK && !is_named)
        rc = tp_stream_publish(s, err);
    if (rc == TP_OK)
        tie(s, m);
    return rc;
}

/* Make streams up to that number; nobody has committed to them. */
static int fill_up(struct tp_trace *t, uint32_t no, struct tp_err *err)
{
    struct tp_row_identity nobody = {.rank = -1, .pid = -1};
    int rc = TP_OK;

    while (t->n_streams < no && rc == TP_OK) {
        struct tp_stream *s;

        rc = tp_stream_add(t, &nobody, false, (struct tp_str){0}, &s, NULL, err);
    }
    return rc;
}

int tp_streams_restore(struct tp_member *m, struct tp_err *err)
{
    struct tp_row_identity who = tp_identity_row(&m->who);
    struct tp_stream *s;
    int rc = m->stream_no > 65535 ? TP_OK : fill_up(m->trace, m->stream_no, err);

    if (rc != TP_OK || m->stream_no == 0 || m->stream_no > 65535)
        return rc;
    s = m->trace->streams[m->stream_no - 1];
    if (s->member != NULL || (s->is_file && s->state != TP_STREAM_HIDDEN))
        return TP_OK;
    s->member = m;
    if (s->state != TP_STREAM_HIDDEN)
        return TP_OK;
    s->is_file = false;
    rc = tp_stream_rename(s, &who, (struct tp_str){0}, err);
    if (rc == TP_OK && tp_stream_find(m->trace, who.name, who.rank) == NULL)
        rc = tp_stream_publish(s, err);
    return rc;
}

int tp_streams_for_file(struct tp_trace *t, const struct tp_row_identity *who,
                        struct tp_str file_name, struct tp_stream **out,
                        struct tp_problem *problem, struct tp_err *err)
{
    return get_stream(t, who, true, file_name, out, problem, err);
}

struct tp_stream *tp_streams_find_file(const struct tp_trace *t,
                                       const struct tp_row_identity *who,
                                       struct tp_str file_name, uint64_t seq)
{
    char name[TP_FILE_NAME_BYTES + 1];

    tp_check_file_name(file_name, name);
    for (size_t i = 0; i < t->n_streams; i++) {
        struct tp_stream *s = t->streams[i];

        if (s->is_file && s->has_seq && s->seq == seq &&
            (s->state != TP_STREAM_HIDDEN || s->n_uploads > 0) &&
            (who->rank < 0 || who->rank == s->who.rank) &&
            tp_str_is(who->name, s->who.name) &&
            tp_str_is(tp_str_of(s->file_name), name))
            return s;
    }
    return NULL;
}

static bool is_meant(const struct tp_producer *p, const struct tp_row_identity *who)
{
    if (tp_str_is(who->name, p->who.id))
        return true;
    return tp_str_is(who->name, p->who.name) &&
           (who->rank < 0 || p->who.rank < 0 || who->rank == p->who.rank);
}

struct tp_producer *tp_streams_identify(struct tp_job *job, struct tp_engine *e,
                                        struct tp_row_identity *who)
{
    size_t cursor = 0;
    void *found;

    while (job->n_producers > 0 &&
           tp_strmap_next(&e->producers, &cursor, NULL, &found)) {
        struct tp_producer *p = found;
        struct tp_row_identity known;

        if (p->job != job || !is_meant(p, who))
            continue;
        known = tp_identity_row(&p->who);
        if (known.rank < 0)
            known.rank = who->rank;
        if (known.world_size == 0)
            known.world_size = who->world_size;
        if (known.host.len == 0)
            known.host = who->host;
        if (known.pid < 0)
            known.pid = who->pid;
        *who = known;
        return p;
    }
    return NULL;
}

void tp_streams_tie(struct tp_stream *s)
{
    struct tp_member *m = s->who.id[0] == '\0' ? NULL
                                               : tp_member_find(s->trace, s->who.id);

    if (m != NULL && m->stream_no == 0 && s->member == NULL)
        tie(s, m);
}

int tp_streams_reveal(struct tp_stream *s, struct tp_err *err)
{
    int rc;

    if (s->state != TP_STREAM_HIDDEN)
        return TP_OK;
    s->state = TP_STREAM_OPEN;
    rc = tp_persist_stream(s->trace->engine, s, err);
    if (rc != TP_OK)
        s->state = TP_STREAM_HIDDEN;
    else
        tp_streams_tie(s);
    return rc;
}

void tp_streams_write(struct tp_stream *s)
{
    struct tp_err ignored;
    int rc = s->state == TP_STREAM_HIDDEN
                 ? tp_streams_reveal(s, &ignored)
                 : tp_persist_stream(s->trace->engine, s, &ignored);

    if (rc != TP_OK)
        tp_stream_changed(s);
}

uint64_t tp_streams_write_news(struct tp_trace *t, struct tp_now now)
{
    if (!t->has_stream_news)
        return UINT64_MAX;
    if (now.mono_ns < t->stream_news_ns)
        return t->stream_news_ns;
    t->has_stream_news = false;
    for (size_t i = 0; i < t->n_streams; i++) {
        if (t->streams[i]->is_dirty)
            tp_streams_write(t->streams[i]);
    }
    return t->has_stream_news ? t->stream_news_ns : UINT64_MAX;
}
