/*
 * rest_types.c - activity types as JSON.
 */
#include "api/rest_types.h"

#include <json-c/json_object.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/answer.h"
#include "api/json_in.h"
#include "api/problem.h"
#include "api/service.h"
#include "core/limits.h"
#include "engine/jobs.h"
#include "engine/problem.h"
#include "engine/types.h"

static const char *const spec_fields[] = {"plugin", "type_name", "description", "kind",
                                          "unit",   "job",       NULL};
static const char *const batch_fields[] = {"types", "job", NULL};

static void write_warning(struct tp_json_out *o, const struct tp_type_view *t,
                          bool differs, const char *what, const char *kept)
{
    char text[256];

    if (!differs)
        return;
    snprintf(text, sizeof(text),
             "%s was registered before with %s '%.60s', which it keeps", t->name, what,
             kept);
    tp_json_out_text(o, NULL, text);
}

/* What a registration adds to the type: whether it is new, and what was not taken. */
static void write_registration(struct tp_json_out *o, const struct tp_type_view *t)
{
    tp_json_out_bool(o, "created", t->is_new);
    if (!t->kind_differs && !t->unit_differs && !t->description_differs)
        return;
    tp_json_out_array(o, "warnings");
    write_warning(o, t, t->kind_differs, "the kind", tp_type_kind_name(t->kind));
    write_warning(o, t, t->unit_differs, "the unit", t->unit);
    write_warning(o, t, t->description_differs, "the description", t->description);
    tp_json_out_close_array(o);
}

static void write_members(struct tp_json_out *o, const struct tp_type_view *t)
{
    tp_json_out_u64(o, "id", t->id);
    tp_json_out_text(o, "name", t->name);
    tp_json_out_text(o, "scope", t->is_custom ? "custom" : "static");
    if (t->is_custom) {
        tp_json_out_text(o, "plugin", t->plugin);
        tp_json_out_text(o, "type_name", t->type_name);
        tp_json_out_text(o, "job", t->job);
        tp_json_out_u64(o, "hash", t->hash);
        tp_json_out_bool(o, "resolved", t->is_resolved);
    } else {
        tp_json_out_text(o, "enum_name", t->enum_name);
    }
    tp_json_out_text(o, "kind", tp_type_kind_name(t->kind));
    tp_json_out_text(o, "device_type", tp_device_type_name(t->device_type));
    tp_json_out_str_if(o, "description", tp_str_of(t->description));
    tp_json_out_str_if(o, "unit", tp_str_of(t->unit));
}

static void read_spec(struct tp_json_in *in, struct json_object *obj, const char *path,
                      struct tp_type_spec *spec)
{
    struct tp_str kind;
    int found;

    spec->plugin = tp_json_in_str(in, obj, path, "plugin");
    spec->type_name = tp_json_in_str(in, obj, path, "type_name");
    spec->description = tp_json_in_str(in, obj, path, "description");
    spec->unit = tp_json_in_str(in, obj, path, "unit");
    kind = tp_json_in_str(in, obj, path, "kind");
    if (in->code != TP_OK || !tp_json_in_has(obj, "kind"))
        return;
    found = tp_type_kind_find(kind);
    if (found < 0 || found == TP_TYPE_KIND_UNSET)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "kind",
                        "'%skind' must be slice, instant or counter, not '%.40s'", path,
                        kind.ptr);
    else
        spec->kind = (enum tp_type_kind)found;
}

/* The job of entry i: its own, else that of the request. All are registered or none, so
 * all are of one job. */
static void read_job(struct tp_json_in *in, struct json_object *item, const char *path,
                     size_t i, struct tp_str of_request, struct tp_str *job)
{
    struct tp_str own = tp_json_in_job(in, item, path);

    if (in->code != TP_OK)
        return;
    own = own.len > 0 ? own : of_request;
    own = own.len > 0 ? own : tp_str_of(TP_JOB_DEFAULT);
    if (i == 0)
        *job = own;
    else if (!tp_str_equal(own, *job))
        tp_json_in_fail(
            in, TP_FAULT_INVALID_FIELD, path, "job",
            "'%sjob' is '%.63s' and that of the first entry is '%.63s': one "
            "request registers types of one job",
            path, own.ptr, job->ptr);
}

/* Read the specs of a batch. *out is for the caller to free. job: in, of the request;
 * out, of all entries. */
static void read_batch(struct tp_json_in *in, struct tp_call *call, struct tp_str *job,
                       struct tp_type_spec **out, size_t *n)
{
    struct tp_str of_request = *job;
    size_t most = (size_t)call->service->limits->types_per_request;
    struct json_object *array;

    tp_json_in_known(in, in->root, "", batch_fields);
    array = tp_json_in_array(in, in->root, "", "types", most, n);
    tp_json_in_limit(in, "max-types-per-request", most);
    if (in->code != TP_OK)
        return;
    if (*n == 0) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "types",
                        "'types' must have at least one entry");
        return;
    }
    *out = calloc(*n, sizeof(**out));
    if (*out == NULL) {
        in->code = tp_fail(&in->err, TP_ENOMEM, "no memory for %zu types", *n);
        in->kind = TP_FAULT_OUT_OF_MEMORY;
        return;
    }
    for (size_t i = 0; i < *n; i++) {
        struct json_object *item = json_object_array_get_idx(array, i);
        char path[32];

        snprintf(path, sizeof(path), "types[%zu].", i);
        if (!json_object_is_type(item, json_type_object)) {
            snprintf(path, sizeof(path), "types[%zu]", i);
            tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, path, "",
                            "'%s' must be an object", path);
            return;
        }
        tp_json_in_known(in, item, path, spec_fields);
        read_spec(in, item, path, &(*out)[i]);
        read_job(in, item, path, i, of_request, job);
    }
}

static void answer_registered(struct tp_call *call, const struct tp_type_list *list,
                              bool is_batch)
{
    struct tp_json_out o;
    int status = 200;

    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].is_new)
            status = 201;
    call->is_repeat = status == 200; /* each process registers anew when it starts */
    tp_answer_open(call, status, &o);
    if (is_batch)
        tp_json_out_array(&o, "types");
    for (size_t i = 0; i < list->n; i++) {
        if (is_batch)
            tp_json_out_object(&o, NULL);
        write_members(&o, &list->items[i]);
        write_registration(&o, &list->items[i]);
        if (is_batch)
            tp_json_out_close_object(&o);
    }
    if (is_batch)
        tp_json_out_close_array(&o);
    tp_answer_close(call, &o);
}

static void register_specs(struct tp_call *call, struct tp_str job,
                           const struct tp_type_spec *specs, size_t n, bool is_batch)
{
    struct tp_type_list *list = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_engine_types_register(call->service->engine, job, specs, n, call->now,
                                      &list, &problem, &err);

    if (specs->plugin.len + specs->type_name.len > 0)
        snprintf(call->subject, sizeof(call->subject), "%.*s.%.*s",
                 (int)(specs->plugin.len < 30 ? specs->plugin.len : 30),
                 specs->plugin.ptr,
                 (int)(specs->type_name.len < 30 ? specs->type_name.len : 30),
                 specs->type_name.ptr);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        return;
    }
    answer_registered(call, list, is_batch);
    tp_type_list_free(list);
}

void tp_rest_register_types(struct tp_call *call)
{
    struct tp_json_in in = {0};
    struct tp_type_spec single = {0};
    struct tp_type_spec *specs = NULL;
    struct tp_str job = {"", 0};
    size_t n = 1;
    bool is_batch = false;

    tp_json_in_parse(&in, (struct tp_str){call->body.data, call->body.len},
                     (uint32_t)call->service->limits->json_depth);
    if (in.code == TP_OK) {
        is_batch = tp_json_in_has(in.root, "types");
        job = tp_json_in_job(&in, in.root, "");
        if (is_batch) {
            read_batch(&in, call, &job, &specs, &n);
        } else {
            tp_json_in_known(&in, in.root, "", spec_fields);
            read_spec(&in, in.root, "", &single);
        }
    }
    if (in.code != TP_OK)
        tp_problem_body(call, &in);
    else
        register_specs(call, job, is_batch ? specs : &single, n, is_batch);
    free(specs);
    tp_json_in_fini(&in);
}

static bool read_scope(struct tp_call *call, enum tp_type_scope *out)
{
    struct tp_str s = tp_call_param(call, "scope");

    if (s.ptr == NULL || tp_str_is(s, "all"))
        *out = TP_TYPES_ALL;
    else if (tp_str_is(s, "static"))
        *out = TP_TYPES_STATIC;
    else if (tp_str_is(s, "custom"))
        *out = TP_TYPES_CUSTOM;
    else {
        tp_problem_parameter(call, "scope", "'scope' must be all, static or custom");
        return false;
    }
    return true;
}

static void answer_types(struct tp_call *call, const struct tp_type_list *list)
{
    struct tp_json_out o;
    char cursor[16];

    tp_answer_open(call, 200, &o);
    tp_json_out_array(&o, "items");
    for (size_t i = 0; i < list->n; i++) {
        tp_json_out_object(&o, NULL);
        write_members(&o, &list->items[i]);
        tp_json_out_close_object(&o);
    }
    tp_json_out_close_array(&o);
    if (list->has_more && list->n > 0)
        snprintf(cursor, sizeof(cursor), "%u", list->items[list->n - 1].id);
    tp_json_out_text(&o, "next_cursor", list->has_more && list->n > 0 ? cursor : NULL);
    tp_answer_close(call, &o);
}

void tp_rest_list_types(struct tp_call *call)
{
    struct tp_type_list *list = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    struct tp_str job;
    enum tp_type_scope scope;
    uint64_t after;
    size_t limit;
    int rc;

    if (!tp_param_job(call, &job) || !read_scope(call, &scope) ||
        !tp_param_limit(call, &limit) ||
        !tp_param_u64(call, "cursor", 0, TP_ACTIVITY_IDS, UINT64_MAX, &after))
        return;
    /* The ids are few: without a limit all of them are one page. */
    if (tp_call_param(call, "limit").ptr == NULL)
        limit = 0;
    rc = tp_engine_types_list(call->service->engine, job, scope,
                              after == UINT64_MAX ? -1 : (int)after, limit, &list,
                              &problem, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_types(call, list);
    tp_type_list_free(list);
}

void tp_rest_get_type(struct tp_call *call)
{
    struct tp_type_list *list = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    struct tp_json_out o;
    struct tp_str job;
    int rc;

    if (!tp_param_job(call, &job))
        return;
    rc = tp_engine_type_get(call->service->engine, job, call->args[0], &list, &problem,
                            &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, &problem, &err);
        return;
    }
    tp_answer_open(call, 200, &o);
    write_members(&o, &list->items[0]);
    tp_answer_close(call, &o);
    tp_type_list_free(list);
}

static void write_job(struct tp_json_out *o, const struct tp_job_view *job)
{
    tp_json_out_object(o, NULL);
    tp_json_out_text(o, "name", job->name);
    tp_json_out_time(o, "created_at", (int64_t)job->created_wall_ns);
    tp_json_out_u64(o, "types", job->n_types);
    tp_json_out_u64(o, "producers", job->n_producers);
    tp_json_out_u64(o, "traces", job->n_traces);
    tp_json_out_text(o, "active_trace",
                     job->active_trace[0] ? job->active_trace : NULL);
    tp_json_out_close_object(o);
}

void tp_rest_list_jobs(struct tp_call *call)
{
    struct tp_job_list *list = NULL;
    struct tp_err err = {0};
    struct tp_json_out o;
    struct tp_str after;
    size_t limit;
    int rc;

    if (!tp_param_limit(call, &limit) ||
        !tp_param_text(call, "cursor", TP_JOB_NAME_MAX_BYTES, &after))
        return;
    rc = tp_engine_jobs_list(call->service->engine, after, limit, &list, &err);
    if (rc != TP_OK) {
        tp_problem_engine(call, rc, NULL, &err);
        return;
    }
    tp_answer_open(call, 200, &o);
    tp_json_out_array(&o, "items");
    for (size_t i = 0; i < list->n; i++)
        write_job(&o, &list->items[i]);
    tp_json_out_close_array(&o);
    tp_json_out_text(&o, "next_cursor",
                     list->has_more && list->n > 0 ? list->items[list->n - 1].name
                                                   : NULL);
    tp_answer_close(call, &o);
    tp_job_list_free(list);
}
