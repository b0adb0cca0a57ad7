/*
 * kineto_rig.h - PyTorch processes on an engine_rig: they ask, and the drivers of
 * sockets and files are played here.
 *
 * Header only; for test programs, which include cmocka first. Process n has the pid
 * 100 + n and is of user 7, who is allowed.
 */
#ifndef TP_SUPPORT_KINETO_RIG_H
#define TP_SUPPORT_KINETO_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/engine_rig.h"
#include "support/kineto_bytes.h"

#define IDLE 2
#define BUSY 0
#define ALWAYS 3 /* of a client that never says that it is busy */

static const struct tp_kineto_opts opts = {
    .trace_dir = "/tmp/tp", .root_dir = "/tmp", .uids = {7}, .n_uids = 1};

static inline int set_up(void **state)
{
    struct rig *r = test_calloc(1, sizeof(*r));

    rig_init(r);
    r->kineto = &opts;
    *state = r;
    return rig_start(r);
}

static inline int tear_down(void **state)
{
    rig_fini(*state);
    test_free(*state);
    return 0;
}

/* Process n asks; its answer's text, "" when there is none. Valid until the next. */
static inline const char *ask_as(struct rig *r, unsigned n, uint32_t uid, int32_t type)
{
    static char text[8192];
    struct tp_kineto_peer peer = {.pid = (int32_t)(100 + n), .uid = uid};
    const int32_t pids[] = {(int32_t)n};
    char bytes[KINETO_BYTES_MAX];
    size_t len = kineto_request(bytes, type, 0, pids, 1);
    struct tp_kineto_reply reply;

    peer.address_bytes =
        (uint8_t)(1 + snprintf(peer.address + 1, sizeof(peer.address) - 1, "c%u", n));
    reply = tp_engine_kineto_receive(r->engine, &peer, bytes, len, 0, r->now);
    assert_true(reply.bytes.len >= 40);
    snprintf(text, sizeof(text), "%.*s", (int)reply.bytes.len - 40,
             reply.bytes.ptr + 40);
    return text;
}

static inline const char *ask(struct rig *r, unsigned n, int32_t type)
{
    return ask_as(r, n, 7, type);
}

/* The drivers: news, tasks, folders that can always be made. */
static inline void drive(struct rig *r)
{
    struct tp_kineto_task task;

    tp_engine_kineto_run(r->engine, r->now);
    while (tp_engine_kineto_next_task(r->engine, &task)) {
        struct tp_kineto_description d = {.rank = task.pid - 100, .world_size = 8};

        if (task.kind == TP_KINETO_TASK_DESCRIBE)
            tp_engine_kineto_describe(r->engine, task.target, &d, r->now, NULL);
        else /* what was made before a restart is found */
            tp_engine_kineto_report(r->engine, task.trace_id, task.producer_id,
                                    TP_KINETO_FOLDER_READY, NULL, r->now);
    }
    tp_engine_kineto_run(r->engine, r->now);
    rig_work(r);
}

static inline void wait(struct rig *r, uint64_t ns)
{
    rig_wait(r, ns);
    drive(r);
}

static inline void ask_and_drive(struct rig *r, unsigned n, int32_t type)
{
    ask(r, n, type);
    drive(r);
}

static inline const struct tp_member_view *member(const struct tp_trace_view *v,
                                                  unsigned n)
{
    for (size_t i = 0; i < v->n_members; i++) {
        if (v->members[i].who.pid == (int64_t)(100 + n))
            return &v->members[i];
    }
    fail_msg("process %u is no member", n);
    return NULL;
}

static inline void expect(struct rig *r, const char *id, unsigned n, const char *state,
                          const char *reason)
{
    struct tp_trace_view *v = rig_view(r, id);
    const struct tp_member_view *m = member(v, n);

    if (strcmp(m->state, state) != 0 || strcmp(m->reason, reason) != 0)
        fail_msg("process %u is %s (%s), not %s (%s)", n, m->state, m->reason, state,
                 reason);
    tp_trace_view_free(v);
}

/* One second of recording, no warm-up. */
static inline void create(struct rig *r, char *id)
{
    const struct tp_trace_request request = {
        .stop_duration_ms = 1000, .kineto_json = rig_str("{\"warmup_ms\":0}")};

    assert_int_equal(rig_create_from(r, &request, id), TP_OK);
    drive(r);
}

/* Make a trace of process 1, and let it take its order at its next request. */
static inline void give_order(struct rig *r, char *id, int32_t type)
{
    ask_and_drive(r, 1, type);
    create(r, id);
    wait(r, 5 * RIG_S);
    assert_int_not_equal(ask(r, 1, type)[0], '\0');
    drive(r);
}

static inline void report(struct rig *r, const char *id, unsigned n,
                          enum tp_kineto_event e, const char *text)
{
    struct tp_trace_view *v = rig_view(r, id);

    tp_engine_kineto_report(r->engine, id, member(v, n)->who.id, e, text, r->now);
    tp_trace_view_free(v);
}

/* The file of process n comes, as the driver would bring it. */
static inline void bring_file(struct rig *r, const char *id, unsigned n)
{
    struct tp_trace_view *v = rig_view(r, id);
    struct tp_upload_reply reply;

    report(r, id, n, TP_KINETO_FILE_FOUND, NULL);
    assert_int_equal(rig_file(r, id, member(v, n)->who.id, -1,
                              "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\","
                              "\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}]",
                              &reply),
                     TP_OK);
    tp_trace_view_free(v);
    report(r, id, n, TP_KINETO_FILE_TAKEN, NULL);
    rig_work(r);
}

static inline uint64_t number_in(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
