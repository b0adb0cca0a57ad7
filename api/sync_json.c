/*
 * sync_json.c - acks, counts and clock readings in; commands out.
 */
#include "api/sync_json.h"

#include <stdio.h>

#include "core/counts.h"

static const char *const fields[] = {"acks",    "counts",  "step",
                                     "clock",   "wait_ms", "heartbeat_ms",
                                     "interim", "seq",     NULL};
static const char *const ack_fields[] = {"trace_id",   "command", "refused", "reason",
                                         "started_at", "step",    NULL};
static const char *const counts_fields[] = {"trace_id", "emitted", "filtered",
                                            "dropped",  "types",   NULL};
static const char *const type_fields[] = {"type", "emitted", "filtered", "dropped",
                                          NULL};
static const char *const clock_fields[] = {"sent_at", "server_received_at",
                                           "server_sent_at", "received_at", NULL};

static int find_command(struct tp_str name)
{
    for (int i = 0; i < TP_COMMANDS; i++)
        if (tp_str_is(name, tp_command_name((enum tp_command_kind)i)))
            return i;
    return -1;
}

/* Element i of an array if it is an object; its path is written to `path`. */
static struct json_object *item_object(struct tp_json_in *in, struct json_object *array,
                                       const char *name, size_t i, char *path, size_t n)
{
    struct json_object *item = json_object_array_get_idx(array, i);

    snprintf(path, n, "%s[%zu]", name, i);
    if (!json_object_is_type(item, json_type_object)) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "", "'%s' must be an object",
                        path);
        return NULL;
    }
    snprintf(path, n, "%s[%zu].", name, i);
    return item;
}

static void read_ack(struct tp_json_in *in, struct json_object *obj, const char *path,
                     struct tp_sync_ack *ack)
{
    struct tp_str command;
    int found;

    tp_json_in_known(in, obj, path, ack_fields);
    ack->trace_id = tp_json_in_str(in, obj, path, "trace_id");
    ack->is_refused = tp_json_in_bool(in, obj, path, "refused", false);
    ack->reason = tp_json_in_str(in, obj, path, "reason");
    ack->start_wall_ns = (uint64_t)tp_json_in_time(in, obj, path, "started_at");
    ack->has_step = tp_json_in_has(obj, "step");
    ack->step = tp_json_in_u64(in, obj, path, "step", 0, INT64_MAX, 0);
    command = tp_json_in_str(in, obj, path, "command");
    found = find_command(command);
    if (found < 0)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "command",
                        "'%scommand' must be prepare, start, stop or cancel", path);
    else
        ack->command = (enum tp_command_kind)found;
}

static void read_dropped(struct tp_json_in *in, struct json_object *obj,
                         const char *path, uint64_t *out)
{
    const char *names[TP_DROP_CAUSES + 1] = {NULL};
    struct json_object *dropped = tp_json_in_object(in, obj, path, "dropped");
    char inner[64];

    for (int i = 0; i < TP_DROP_CAUSES; i++)
        names[i] = tp_drop_cause_name((enum tp_drop_cause)i);
    snprintf(inner, sizeof(inner), "%sdropped.", path);
    tp_json_in_known(in, dropped, inner, names);
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        out[i] = tp_json_in_u64(in, dropped, inner, names[i], 0, INT64_MAX, 0);
}

static void read_type(struct tp_json_in *in, struct json_object *obj, const char *path,
                      struct tp_type_counts *types)
{
    struct tp_type_count *count;
    unsigned id;

    tp_json_in_known(in, obj, path, type_fields);
    id = (unsigned)tp_json_in_u64(in, obj, path, "type", 0, 255, 0);
    if (!tp_json_in_has(obj, "type"))
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "type", "'%stype' is missing",
                        path);
    if (in->code != TP_OK)
        return;
    if (tp_type_counts_get(types, id, &count, &in->err) != TP_OK) {
        in->code = TP_ENOMEM;
        in->kind = TP_FAULT_OUT_OF_MEMORY;
        return;
    }
    count->emitted = tp_json_in_u64(in, obj, path, "emitted", 0, INT64_MAX, 0);
    count->filtered = tp_json_in_u64(in, obj, path, "filtered", 0, INT64_MAX, 0);
    read_dropped(in, obj, path, count->dropped);
}

/* The same by type; a type that is there twice counts as it was said last. */
static void read_types(struct tp_json_in *in, struct json_object *obj, const char *path,
                       struct tp_type_counts *types)
{
    char item_path[96];
    char name[64];
    size_t n;
    struct json_object *array = tp_json_in_array(in, obj, path, "types", 256, &n);

    snprintf(name, sizeof(name), "%stypes", path);
    for (size_t i = 0; i < n && in->code == TP_OK; i++) {
        struct json_object *item =
            item_object(in, array, name, i, item_path, sizeof(item_path));

        if (item != NULL)
            read_type(in, item, item_path, types);
    }
}

static void read_counts(struct tp_json_in *in, struct json_object *obj,
                        const char *path, struct tp_sync_counts *counts,
                        struct tp_type_counts *types)
{
    tp_json_in_known(in, obj, path, counts_fields);
    counts->trace_id = tp_json_in_str(in, obj, path, "trace_id");
    counts->emitted = tp_json_in_u64(in, obj, path, "emitted", 0, INT64_MAX, 0);
    counts->filtered = tp_json_in_u64(in, obj, path, "filtered", 0, INT64_MAX, 0);
    read_dropped(in, obj, path, counts->dropped);
    read_types(in, obj, path, types);
    counts->types = types;
}

static void read_clock(struct tp_json_in *in, struct tp_sync_request *r)
{
    struct json_object *clock = tp_json_in_object(in, in->root, "", "clock");

    if (clock == NULL)
        return;
    tp_json_in_known(in, clock, "clock.", clock_fields);
    for (const char *const *name = clock_fields; *name != NULL; name++)
        if (!tp_json_in_has(clock, *name))
            tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "clock.", *name,
                            "'clock.%s' is missing", *name);
    r->t_sent_ns = (uint64_t)tp_json_in_time(in, clock, "clock.", "sent_at");
    r->t_server_received_ns =
        (uint64_t)tp_json_in_time(in, clock, "clock.", "server_received_at");
    r->t_server_sent_ns =
        (uint64_t)tp_json_in_time(in, clock, "clock.", "server_sent_at");
    r->t_received_ns = (uint64_t)tp_json_in_time(in, clock, "clock.", "received_at");
}

void tp_sync_json_read(struct tp_json_in *in, struct tp_sync_body *body)
{
    struct tp_sync_request *r = &body->request;
    struct json_object *acks;
    struct json_object *counts;
    char path[48];

    tp_json_in_known(in, in->root, "", fields);
    acks = tp_json_in_array(in, in->root, "", "acks", TP_SYNC_ACKS_MAX, &r->n_acks);
    counts =
        tp_json_in_array(in, in->root, "", "counts", TP_SYNC_COUNTS_MAX, &r->n_counts);
    for (size_t i = 0; i < r->n_acks && in->code == TP_OK; i++) {
        struct json_object *obj = item_object(in, acks, "acks", i, path, sizeof(path));

        if (obj != NULL)
            read_ack(in, obj, path, &body->acks[i]);
    }
    for (size_t i = 0; i < r->n_counts && in->code == TP_OK; i++) {
        struct json_object *obj =
            item_object(in, counts, "counts", i, path, sizeof(path));

        if (obj != NULL)
            read_counts(in, obj, path, &body->counts[i], &body->types[i]);
    }
    r->acks = body->acks;
    r->counts = body->counts;
    r->seq = tp_json_in_u64(in, in->root, "", "seq", 0, INT64_MAX, 0);
    r->has_step = tp_json_in_has(in->root, "step");
    r->step = tp_json_in_u64(in, in->root, "", "step", 0, INT64_MAX, 0);
    read_clock(in, r);
    if (tp_json_in_has(in->root, "heartbeat_ms"))
        r->heartbeat_ms = tp_json_in_u64(in, in->root, "", "heartbeat_ms",
                                         TP_SYNC_HEARTBEAT_MIN_MS,
                                         TP_SYNC_HEARTBEAT_MAX_MS, 0);
    body->takes_interim = tp_json_in_bool(in, in->root, "", "interim", false);
    body->wait_ms = tp_json_in_u64(in, in->root, "", "wait_ms", 0, TP_SYNC_WAIT_MAX_MS,
                                   TP_SYNC_WAIT_MAX_MS);
}

void tp_sync_body_fini(struct tp_sync_body *body)
{
    for (size_t i = 0; i < TP_SYNC_COUNTS_MAX; i++)
        tp_type_counts_fini(&body->types[i]);
}

static void write_command(struct tp_json_out *o, const struct tp_command *c)
{
    tp_json_out_object(o, NULL);
    tp_json_out_text(o, "command", tp_command_name(c->kind));
    tp_json_out_text(o, "trace_id", c->trace_id);
    tp_json_out_u64(o, "stream", c->stream_no);
    if (c->kind == TP_COMMAND_PREPARE) {
        tp_json_out_array(o, "types");
        for (unsigned id = tp_typeset_next(&c->types, 0); id < 256;
             id = tp_typeset_next(&c->types, id + 1))
            tp_json_out_u64(o, NULL, id);
        tp_json_out_close_array(o);
        tp_json_out_u64(o, "min_duration_ns", c->min_duration_ns);
        tp_json_out_u64(o, "start_step", c->start_step);
        tp_json_out_u64(o, "steps", c->steps);
        tp_json_out_u64(o, "duration_ms", c->duration_ms);
    } else if (c->kind == TP_COMMAND_START) {
        tp_json_out_time(o, "start_at", (int64_t)c->start_wall_ns);
        tp_json_out_u64(o, "steps", c->steps);
        tp_json_out_u64(o, "duration_ms", c->duration_ms);
    }
    tp_json_out_close_object(o);
}

void tp_sync_json_write_ahead(struct tp_json_out *o, const struct tp_sync_reply *reply,
                              uint64_t sent_wall_ns)
{
    tp_json_out_array(o, "commands");
    for (size_t i = 0; i < reply->n_commands; i++)
        write_command(o, &reply->commands[i]);
    tp_json_out_close_array(o);
    tp_json_out_u64(o, "seq", reply->seq);
    tp_json_out_time(o, "server_sent_at", (int64_t)sent_wall_ns);
}

void tp_sync_json_write(struct tp_json_out *o, const struct tp_sync_reply *reply,
                        uint64_t received_wall_ns, uint64_t sent_wall_ns)
{
    tp_sync_json_write_ahead(o, reply, sent_wall_ns);
    tp_json_out_time(o, "server_received_at", (int64_t)received_wall_ns);
}
