/*
 * rest_producers.c - producers as JSON, and holding a sync.
 *
 * A sync that has no command to bring waits: the call keeps the time when the request
 * came, and when the engine has something to say, or the time is up, an empty sync gets
 * the commands. The state of the producer is taken in at once, before the wait.
 */
#include "api/rest_producers.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/answer.h"
#include "api/json_in.h"
#include "api/problem.h"
#include "api/service.h"
#include "api/sync_json.h"
#include "base/process_key.h"
#include "core/limits.h"
#include "engine/jobs.h"
#include "engine/problem.h"
#include "engine/producers.h"

static const char *const fields[] = {"id",      "job",        "name",         "kind",
                                     "rank",    "world_size", "host",         "pid",
                                     "backend", "device",     "capabilities", "process",
                                     NULL};

static void write_producer(struct tp_json_out *o, const struct tp_producer_view *p)
{
    tp_json_out_text(o, "id", p->id);
    tp_json_out_text(o, "job", p->job);
    tp_json_out_text(o, "name", p->name);
    tp_json_out_text(o, "kind", p->kind);
    tp_json_out_text(o, "state", p->state);
    tp_json_out_text(o, "trace_id", p->trace_id[0] == '\0' ? NULL : p->trace_id);
    if (p->rank >= 0)
        tp_json_out_i64(o, "rank", p->rank);
    if (p->world_size > 0)
        tp_json_out_u64(o, "world_size", p->world_size);
    tp_json_out_str_if(o, "host", tp_str_of(p->host));
    if (p->pid >= 0)
        tp_json_out_i64(o, "pid", p->pid);
    tp_json_out_str_if(o, "backend", tp_str_of(p->backend));
    tp_json_out_str_if(o, "device", tp_str_of(p->device));
    if (p->capabilities_json[0] != '\0')
        tp_json_out_raw(o, "capabilities", tp_str_of(p->capabilities_json));
    tp_json_out_time(o, "registered_at", (int64_t)p->registered_wall_ns);
    tp_json_out_time(o, "last_seen_at", (int64_t)p->seen_wall_ns);
    tp_json_out_u64(o, "step", p->step);
    if (p->has_clock) {
        tp_json_out_object(o, "clock");
        tp_json_out_i64(o, "offset_ns", p->clock_offset_ns);
        tp_json_out_u64(o, "error_ns", p->clock_error_ns);
        tp_json_out_close_object(o);
    }
}

/* The capabilities as JSON text, which belongs to the parsed tree. */
static struct tp_str read_capabilities(struct tp_json_in *in,
                                       struct json_object *capabilities, uint64_t most)
{
    size_t n = 0;
    const char *text = json_object_to_json_string_length(
        capabilities, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &n);

    if (text == NULL) {
        in->code = tp_fail(&in->err, TP_ENOMEM, "no memory for the request");
        in->kind = TP_FAULT_OUT_OF_MEMORY;
        return (struct tp_str){"", 0};
    }
    in->is_limit = in->code == TP_OK && n > most;
    tp_json_in_limit(in, "max-metadata-bytes", most);
    if (n > most)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "capabilities",
                        "'capabilities' has %zu bytes as JSON; %llu is the most", n,
                        (unsigned long long)most);
    return (struct tp_str){text, n};
}

static void read_producer(struct tp_json_in *in, const struct tp_limits *limits,
                          struct tp_producer_request *r)
{
    struct json_object *root = in->root;
    struct json_object *capabilities;

    tp_json_in_known(in, root, "", fields);
    r->job = tp_json_in_job(in, root, "");
    r->id = tp_json_in_str(in, root, "", "id");
    r->name = tp_json_in_str(in, root, "", "name");
    r->kind = tp_json_in_str(in, root, "", "kind");
    r->host = tp_json_in_str(in, root, "", "host");
    r->backend = tp_json_in_str(in, root, "", "backend");
    r->device = tp_json_in_str(in, root, "", "device");
    r->process = tp_json_in_str(in, root, "", "process");
    r->rank = -1;
    r->pid = -1;
    if (tp_json_in_has(root, "rank"))
        r->rank = (int64_t)tp_json_in_u64(in, root, "", "rank", 0, INT32_MAX, 0);
    if (tp_json_in_has(root, "pid"))
        r->pid = (int64_t)tp_json_in_u64(in, root, "", "pid", 0, INT64_MAX, 0);
    r->world_size =
        (uint32_t)tp_json_in_u64(in, root, "", "world_size", 1, INT32_MAX, 0);
    capabilities = tp_json_in_object(in, root, "", "capabilities");
    if (capabilities == NULL)
        return;
    r->capabilities_json = read_capabilities(in, capabilities, limits->metadata_bytes);
}

static void answer_producer(struct tp_call *call, const struct tp_producer_list *list,
                            bool is_registration)
{
    const struct tp_producer_view *p = &list->items[0];
    struct tp_json_out o;

    tp_answer_open(call, is_registration && p->is_new ? 201 : 200, &o);
    write_producer(&o, p);
    if (is_registration)
        tp_json_out_bool(&o, "created", p->is_new);
    tp_answer_close(call, &o);
}

void tp_rest_register_producer(struct tp_call *call)
{
    struct tp_producer_request request = {0};
    struct tp_producer_list *list = NULL;
    struct tp_problem problem = {0};
    char key[TP_PROCESS_KEY_BYTES];
    struct tp_json_in in = {0};
    struct tp_err err = {0};
    int rc;

    tp_json_in_parse(&in, (struct tp_str){call->body.data, call->body.len},
                     (uint32_t)call->service->limits->json_depth);
    if (in.code == TP_OK)
        read_producer(&in, call->service->limits, &request);
    if (in.code != TP_OK) {
        tp_problem_body(call, &in);
        goto out;
    }
    /* On a unix socket the kernel says who it is, whatever it says itself. */
    if (call->peer_pid > 0 && tp_process_key(call->peer_pid, key))
        request.process = tp_str_of(key);
    rc = tp_engine_producer_register(call->service->engine, &request, call->now, &list,
                                     &problem, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        goto out;
    }
    tp_call_changed(call);
    snprintf(call->subject, sizeof(call->subject), "%s", list->items[0].id);
    answer_producer(call, list, true);

out:
    tp_producer_list_free(list);
    tp_json_in_fini(&in);
}

void tp_rest_list_producers(struct tp_call *call)
{
    struct tp_producer_query query = {0};
    struct tp_producer_list *list = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    struct tp_json_out o;
    int rc;

    if (!tp_param_job(call, &query.job) ||
        !tp_param_text(call, "cursor", 64, &query.after) ||
        !tp_param_limit(call, &query.limit))
        return;
    rc = tp_engine_producers_list(call->service->engine, &query, call->now, &list,
                                  &problem, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        return;
    }
    tp_answer_open(call, 200, &o);
    tp_json_out_array(&o, "items");
    for (size_t i = 0; i < list->n; i++) {
        tp_json_out_object(&o, NULL);
        write_producer(&o, &list->items[i]);
        tp_json_out_close_object(&o);
    }
    tp_json_out_close_array(&o);
    tp_json_out_text(&o, "next_cursor",
                     list->has_more && list->n > 0 ? list->items[list->n - 1].id
                                                   : NULL);
    tp_answer_close(call, &o);
    tp_producer_list_free(list);
}

void tp_rest_get_producer(struct tp_call *call)
{
    struct tp_producer_list *list = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_producer_get(call->service->engine, call->args[0], call->now,
                                    &list, &problem, &err);

    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_producer(call, list, false);
    tp_producer_list_free(list);
}

void tp_rest_delete_producer(struct tp_call *call)
{
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_producer_delete(call->service->engine, call->args[0], call->now,
                                       &problem, &err);

    if (rc == TP_OK)
        tp_call_changed(call);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        tp_answer_empty(call, 204);
}

/* What a sync that waits remembers. */
struct held_sync {
    uint64_t received_wall_ns;
};

static void answer_sync(struct tp_call *call, const struct tp_sync_reply *reply,
                        uint64_t received_wall_ns)
{
    struct tp_json_out o;

    tp_answer_open(call, 200, &o);
    tp_sync_json_write(&o, reply, received_wall_ns, call->now.wall_ns);
    tp_answer_close(call, &o);
}

static bool sync_is_ready(struct tp_call *call)
{
    return tp_engine_sync_ready(call->service->engine, call->args[0]);
}

static void resume_sync(struct tp_call *call)
{
    const struct held_sync *held = call->wait_arg;
    struct tp_sync_request nothing = {0};
    struct tp_sync_reply reply = {0};
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_sync(call->service->engine, call->args[0], &nothing, call->now,
                            &reply, &problem, &err);

    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_sync(call, &reply, held->received_wall_ns);
}

/* A start is known at once to all who can be told ahead; the answers follow. */
static bool write_ahead(struct tp_call *call, struct tp_buf *out)
{
    struct tp_sync_reply reply = {0};
    struct tp_err err = {0};
    struct tp_json_out o;

    if (tp_engine_sync_ahead(call->service->engine, call->args[0], call->now, &reply,
                             &err) != TP_OK ||
        reply.n_commands == 0)
        return false;
    tp_json_out_init(&o, out);
    tp_json_out_object(&o, NULL);
    tp_sync_json_write_ahead(&o, &reply, call->now.wall_ns);
    tp_json_out_close_object(&o);
    if (tp_json_out_end(&o, &err) != TP_OK)
        out->len = 0; /* the answer says it */
    return true;
}

static void hold_sync(struct tp_call *call, const struct tp_sync_body *body)
{
    struct held_sync *held = calloc(1, sizeof(*held));

    if (held == NULL) {
        tp_problem_answer(call, TP_FAULT_OUT_OF_MEMORY, "no memory to hold the call");
        return;
    }
    held->received_wall_ns = call->now.wall_ns;
    call->wait_arg = held;
    call->wait_free = free;
    call->reply = TP_REPLY_WAIT;
    call->wait.deadline_ns = call->now.mono_ns + body->wait_ms * 1000000;
    call->wait.ahead = body->takes_interim ? write_ahead : NULL;
    call->wait.ready = sync_is_ready;
    call->wait.resume = resume_sync;
}

static void run_sync(struct tp_call *call, const struct tp_sync_body *body)
{
    struct tp_sync_reply reply = {0};
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_sync(call->service->engine, call->args[0], &body->request,
                            call->now, &reply, &problem, &err);

    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        return;
    }
    if (reply.has_moved)
        tp_call_changed(call);
    if (reply.n_commands == 0 && body->wait_ms > 0)
        hold_sync(call, body);
    else
        answer_sync(call, &reply, call->now.wall_ns);
}

void tp_rest_sync_producer(struct tp_call *call)
{
    struct tp_sync_body body = {0};
    struct tp_json_in in = {0};

    tp_json_in_parse(&in, (struct tp_str){call->body.data, call->body.len},
                     (uint32_t)call->service->limits->json_depth);
    if (in.code == TP_OK)
        tp_sync_json_read(&in, &body);
    if (in.code != TP_OK)
        tp_problem_body(call, &in);
    else
        run_sync(call, &body);
    tp_sync_body_fini(&body);
    tp_json_in_fini(&in);
}
