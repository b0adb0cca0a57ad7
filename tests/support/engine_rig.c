#include "support/engine_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/limits.h"
#include "store/store_sqlite.h"
#include "support/blob_mem.h"
#include "support/native_rig.h"
#include "support/store_faulty.h"
#include "trace/download.h"

struct tp_str rig_str(const char *s)
{
    return tp_str_of(s);
}

/* xorshift64*: the same ids in every run. */
static void next_random(void *p, size_t n, void *arg)
{
    struct rig *r = arg;
    unsigned char *out = p;

    for (size_t i = 0; i < n; i++) {
        r->random ^= r->random >> 12;
        r->random ^= r->random << 25;
        r->random ^= r->random >> 27;
        out[i] = (unsigned char)((r->random * UINT64_C(2685821657736338717)) >> 56);
    }
}

void rig_init(struct rig *r)
{
    struct tp_store *sqlite;

    memset(r, 0, sizeof(*r));
    r->limits = calloc(1, sizeof(*r->limits));
    assert_non_null(r->limits);
    *r->limits = tp_limits_default();
    r->limits->spill_bytes = 4u << 20; /* sanitizers pay for each byte of a block */
    assert_int_equal(tp_store_sqlite_open(":memory:", false, &sqlite, &r->err), TP_OK);
    r->store = store_faulty_new(sqlite);
    r->blobs = blob_mem_new();
    r->now = (struct tp_now){RIG_START_NS, 1000 * RIG_S};
    r->random = 88172645463325252u;
}

void rig_fini(struct rig *r)
{
    tp_engine_free(r->engine);
    tp_store_close(r->store);
    blob_mem_free(r->blobs);
    free(r->limits);
}

int rig_start(struct rig *r)
{
    struct tp_engine_opts opts = {
        .limits = r->limits,
        .store = r->store,
        .blobs = r->blobs,
        .on_collision = r->on_collision,
        .random = next_random,
        .random_arg = r,
        .version = "test",
        .kineto = r->kineto,
    };

    return tp_engine_new(&opts, r->now, &r->engine, &r->recovery, &r->err);
}

int rig_restart(struct rig *r)
{
    tp_engine_free(r->engine);
    r->engine = NULL;
    return rig_start(r);
}

void rig_wait(struct rig *r, uint64_t ns)
{
    r->now.wall_ns += ns;
    r->now.mono_ns += ns;
    tp_engine_tick(r->engine, r->now);
}

void rig_work(struct rig *r)
{
    struct tp_work *work;

    tp_engine_tick(r->engine, r->now);
    while ((work = tp_engine_next_work(r->engine, r->now)) != NULL) {
        tp_work_run(work);
        tp_engine_work_done(r->engine, work, r->now);
    }
}

int rig_type(struct rig *r, const char *job, const char *plugin, const char *name,
             unsigned *id)
{
    struct tp_type_spec spec = {.plugin = rig_str(plugin), .type_name = rig_str(name)};
    struct tp_type_list *list;
    int rc = tp_engine_types_register(r->engine, rig_str(job), &spec, 1, r->now, &list,
                                      &r->problem, &r->err);

    if (rc != TP_OK)
        return rc;
    *id = list->items[0].id;
    tp_type_list_free(list);
    return TP_OK;
}

int rig_create_from(struct rig *r, const struct tp_trace_request *request, char *id)
{
    struct tp_trace_view *view;
    int rc =
        tp_engine_trace_create(r->engine, request, r->now, &view, &r->problem, &r->err);

    if (rc != TP_OK)
        return rc;
    memcpy(id, view->id, TP_TRACE_ID_BYTES);
    tp_trace_view_free(view);
    return TP_OK;
}

int rig_create(struct rig *r, const char *job, const char *include, char *id)
{
    struct tp_str name = rig_str(include);
    struct tp_trace_request request = {.job = rig_str(job)};

    if (include != NULL) {
        request.filter.lists[TP_FILTER_INCLUDE].items = &name;
        request.filter.lists[TP_FILTER_INCLUDE].n = 1;
    }
    return rig_create_from(r, &request, id);
}

int rig_stop(struct rig *r, const char *id)
{
    return tp_engine_trace_stop(r->engine, rig_str(id), (struct tp_str){0}, r->now,
                                NULL, &r->problem, &r->err);
}

static int send_body(struct rig *r, const char *id,
                     const struct tp_upload_request *request, struct tp_str body,
                     struct tp_upload_reply *reply)
{
    struct tp_upload_reply ignored;
    struct tp_upload *u;
    int rc = tp_engine_upload_begin(r->engine, rig_str(id), request, r->now, &u,
                                    &r->problem, &r->err);

    if (rc != TP_OK)
        return rc;
    rc = tp_upload_feed(u, body.ptr, body.len, &r->problem, &r->err);
    if (rc == TP_OK)
        rc = tp_upload_commit(u, r->now, reply == NULL ? &ignored : reply, &r->problem,
                              &r->err);
    tp_upload_free(u);
    return rc;
}

int rig_post(struct rig *r, const char *id, const char *producer, int64_t rank,
             int64_t seq, const char *body, struct tp_upload_reply *reply)
{
    struct tp_upload_request request = {.producer = rig_str(producer),
                                        .rank = rank,
                                        .pid = -1,
                                        .has_seq = seq >= 0,
                                        .seq = seq < 0 ? 0 : (uint64_t)seq};

    return send_body(r, id, &request, rig_str(body), reply);
}

int rig_native_batch(struct rig *r, const char *id, const char *producer, int64_t rank,
                     int64_t seq, const struct native_rig *batch)
{
    struct tp_upload_request request = {.form = TP_FORM_PERFETTO,
                                        .producer = rig_str(producer),
                                        .rank = rank,
                                        .pid = -1,
                                        .has_seq = true,
                                        .seq = (uint64_t)seq};

    return send_body(r, id, &request,
                     (struct tp_str){batch->bytes.data, batch->bytes.len}, NULL);
}

int rig_native(struct rig *r, const char *id, const char *producer, int64_t rank,
               int64_t seq, uint32_t stream_no, unsigned n)
{
    struct native_rig batch = {0};
    int rc;

    native_rig_begin(&batch, stream_no, NULL);
    for (unsigned i = 0; i < n; i++)
        native_rig_slice(&batch, "kernel", "op", i % 3,
                         (int64_t)(r->now.wall_ns + i * 1000), 500);
    native_rig_end(&batch);
    rc = rig_native_batch(r, id, producer, rank, seq, &batch);
    native_rig_fini(&batch);
    return rc;
}

int rig_file(struct rig *r, const char *id, const char *name, int64_t rank,
             const char *body, struct tp_upload_reply *reply)
{
    struct tp_upload_request request = {.kind = TP_UPLOAD_FILE,
                                        .form = TP_FORM_SNIFF,
                                        .encoding = TP_ENCODING_SNIFF,
                                        .rank = rank,
                                        .pid = -1,
                                        .file_name = rig_str(name)};

    return send_body(r, id, &request, rig_str(body), reply);
}

struct tp_trace_view *rig_view(struct rig *r, const char *id)
{
    struct tp_trace_view *view;

    assert_int_equal(tp_engine_trace_get(r->engine, rig_str(id), r->now, &view,
                                         &r->problem, &r->err),
                     TP_OK);
    return view;
}

void rig_expect_state(struct rig *r, const char *id, const char *state)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_string_equal(view->state, state);
    tp_trace_view_free(view);
}

void rig_expect_outcome(struct rig *r, const char *id, const char *outcome,
                        const char *reason)
{
    struct tp_trace_view *view = rig_view(r, id);

    assert_string_equal(view->state, "complete");
    assert_string_equal(view->outcome, outcome);
    if (reason != NULL)
        assert_string_equal(view->reason, reason);
    assert_int_equal(tp_counts_check(&view->totals, &r->err), TP_OK);
    tp_trace_view_free(view);
}

char *rig_download(struct rig *r, const char *id, const char *format)
{
    struct tp_engine_download_request request = {.format = rig_str(format)};
    struct tp_engine_download *d;
    size_t len = 0, cap = 1 << 16, got;
    char *out;

    if (tp_engine_download_open(r->engine, rig_str(id), &request, r->now, &d,
                                &r->problem, &r->err) != TP_OK)
        return NULL;
    out = malloc(cap);
    assert_non_null(out);
    for (;;) {
        if (cap - len < 4096) {
            cap *= 2;
            out = realloc(out, cap);
            assert_non_null(out);
        }
        assert_int_equal(tp_download_read(tp_engine_download_data(d), out + len,
                                          cap - len - 1, &got, &r->err),
                         TP_OK);
        if (got == 0)
            break;
        len += got;
    }
    out[len] = '\0';
    tp_engine_download_close(d);
    return out;
}

void rig_register(struct rig *r, const struct tp_producer_request *request, char *id)
{
    struct tp_producer_list *list;

    assert_int_equal(tp_engine_producer_register(r->engine, request, r->now, &list,
                                                 &r->problem, &r->err),
                     TP_OK);
    memcpy(id, list->items[0].id, TP_TRACE_ID_BYTES);
    tp_producer_list_free(list);
}

void rig_producer(struct rig *r, const char *job, const char *name, int64_t rank,
                  char *id)
{
    struct tp_producer_request request = {.job = rig_str(job),
                                          .name = rig_str(name),
                                          .kind = rig_str("native"),
                                          .rank = rank,
                                          .pid = 1000 + rank};

    rig_register(r, &request, id);
}

void rig_ask_for_id(struct rig *r, const char *job, const char *id, int64_t rank,
                    char *got)
{
    struct tp_producer_request request = {.job = rig_str(job),
                                          .id = rig_str(id),
                                          .kind = rig_str("native"),
                                          .rank = rank,
                                          .pid = 7};

    rig_register(r, &request, got);
}

struct tp_sync_reply rig_sync(struct rig *r, const char *producer,
                              const struct tp_sync_reply *before)
{
    struct tp_sync_ack acks[TP_SYNC_COMMANDS_MAX];
    struct tp_sync_request request = {.acks = acks};
    struct tp_sync_reply reply;

    for (size_t i = 0; before != NULL && i < before->n_commands; i++) {
        memset(&acks[i], 0, sizeof(acks[i]));
        acks[i].trace_id = rig_str(before->commands[i].trace_id);
        acks[i].command = before->commands[i].kind;
        acks[i].start_wall_ns = before->commands[i].start_wall_ns;
        request.n_acks++;
    }
    assert_int_equal(tp_engine_sync(r->engine, rig_str(producer), &request, r->now,
                                    &reply, &r->problem, &r->err),
                     TP_OK);
    return reply;
}

void rig_join(struct rig *r, const char *name, int64_t rank, char *id)
{
    struct tp_sync_reply reply;

    rig_producer(r, "j", name, rank, id);
    reply = rig_sync(r, id, NULL);
    assert_int_equal(reply.n_commands, 0);
}

char *rig_events(const char *cat, unsigned n, unsigned ts_us)
{
    size_t size = 200 * ((size_t)n + 1), len;
    char *out = malloc(size);

    assert_non_null(out);
    len = (size_t)snprintf(out, size, "[");
    for (unsigned i = 0; i < n; i++)
        len += (size_t)snprintf(out + len, size - len,
                                "%s{\"ph\":\"X\",\"name\":\"op %u\",\"cat\":\"%s\","
                                "\"ts\":%u,\"dur\":0.5,\"pid\":1,\"tid\":1}",
                                i == 0 ? "" : ",", i % 7, cat, ts_us + i);
    snprintf(out + len, size - len, "]");
    return out;
}
