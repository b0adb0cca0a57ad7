/*
 * trace_request.c - every member of POST /traces, with its type and range.
 *
 * The lists of texts share one array, which is made as large as the limits allow lists
 * to be only when there are lists at all.
 */
#include "api/trace_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_members.h"
#include "base/json_scan.h"
#include "core/limits.h"

static const char *const fields[] = {"job",    "filter",  "select", "start",
                                     "stop",   "require", "label",  "metadata",
                                     "kineto", "dry_run", NULL};
static const char *const filter_fields[] = {"include", "exclude", "names",
                                            "min_duration_ns", NULL};
static const char *const names_fields[] = {"include", "exclude", NULL};
static const char *const select_fields[] = {"ranks", "hosts", "producers", NULL};
static const char *const start_fields[] = {"when", "at", "step", NULL};
static const char *const stop_fields[] = {"duration_ms", "steps", "max_bytes", NULL};

void tp_trace_request_fini(struct tp_trace_request_body *body)
{
    free(body->ranks);
    free(body->texts);
    free(body->metadata);
    free(body->kineto);
    body->ranks = NULL;
    body->texts = NULL;
    body->metadata = body->kineto = NULL;
}

static void fail_memory(struct tp_json_in *in)
{
    in->code = tp_fail(&in->err, TP_ENOMEM, "no memory for the request");
    in->kind = TP_FAULT_OUT_OF_MEMORY;
}

/* Read a list of strings into body->texts; *items points at them. */
static void read_texts(struct tp_json_in *in, struct tp_trace_request_body *body,
                       struct json_object *obj, const char *path, const char *name,
                       uint64_t most, const struct tp_str **items, size_t *n)
{
    struct json_object *array = tp_json_in_array(in, obj, path, name, (size_t)most, n);

    if (array == NULL || *n == 0) {
        *n = 0;
        return;
    }
    if (body->cap_texts - body->n_texts < *n) {
        in->code =
            tp_fail(&in->err, TP_EINVAL, "the lists of the request are too long");
        in->kind = TP_FAULT_INVALID_FIELD;
        return;
    }
    *items = body->texts + body->n_texts;
    for (size_t i = 0; i < *n; i++)
        body->texts[body->n_texts++] = tp_json_in_item_str(in, array, i, path, name);
}

/* Refuse an entry of the lists that is longer than the limit. */
static void check_entry_bytes(struct tp_json_in *in, const struct tp_filter_spec *spec,
                              uint64_t most)
{
    static const char *const lists[TP_FILTER_LISTS] = {"include", "exclude",
                                                       "names.include",
                                                       "names.exclude"};

    for (int l = 0; l < TP_FILTER_LISTS; l++) {
        for (size_t i = 0; i < spec->lists[l].n; i++) {
            char item[48];

            if (spec->lists[l].items[i].len <= most)
                continue;
            snprintf(item, sizeof(item), "%s[%zu]", lists[l], i);
            tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "filter.", item,
                            "'filter.%s' is longer than %llu bytes", item,
                            (unsigned long long)most);
            in->is_limit = true;
            tp_json_in_limit(in, "max-filter-entry-bytes", most);
            return;
        }
    }
}

static void read_filter(struct tp_json_in *in, const struct tp_limits *limits,
                        struct tp_trace_request_body *body)
{
    struct json_object *filter = tp_json_in_object(in, in->root, "", "filter");
    struct tp_filter_spec *spec = &body->request.filter;
    struct json_object *names;

    if (filter == NULL)
        return;
    tp_json_in_known(in, filter, "filter.", filter_fields);
    names = tp_json_in_object(in, filter, "filter.", "names");
    tp_json_in_known(in, names, "filter.names.", names_fields);
    for (int i = 0; i < TP_FILTER_LISTS; i++) {
        bool is_name = i == TP_FILTER_NAMES_INCLUDE || i == TP_FILTER_NAMES_EXCLUDE;
        bool is_include = i == TP_FILTER_INCLUDE || i == TP_FILTER_NAMES_INCLUDE;

        read_texts(in, body, is_name ? names : filter,
                   is_name ? "filter.names." : "filter.",
                   is_include ? "include" : "exclude", limits->filter_entries,
                   &spec->lists[i].items, &spec->lists[i].n);
    }
    tp_json_in_limit(in, "max-filter-entries", limits->filter_entries);
    if (in->code == TP_OK)
        check_entry_bytes(in, spec, limits->filter_entry_bytes);
    spec->min_duration_ns =
        tp_json_in_u64(in, filter, "filter.", "min_duration_ns", 0, INT64_MAX, 0);
}

static void read_ranks(struct tp_json_in *in, const struct tp_limits *limits,
                       struct tp_trace_request_body *body, struct json_object *select)
{
    size_t n = 0;
    struct json_object *array = tp_json_in_array(in, select, "select.", "ranks",
                                                 (size_t)limits->select_entries, &n);

    if (array == NULL || n == 0)
        return;
    body->ranks = calloc(n, sizeof(*body->ranks));
    if (body->ranks == NULL) {
        fail_memory(in);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct json_object *item = json_object_array_get_idx(array, i);
        int64_t rank =
            json_object_is_type(item, json_type_int) ? json_object_get_int64(item) : -1;
        char name[48];

        if (rank < 0 || rank > INT32_MAX) {
            snprintf(name, sizeof(name), "ranks[%zu]", i);
            tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "select.", name,
                            "'select.%s' must be a number of 0 to 2147483647", name);
            return;
        }
        body->ranks[i] = (uint32_t)rank;
    }
    body->request.ranks = body->ranks;
    body->request.n_ranks = n;
}

static void read_select(struct tp_json_in *in, const struct tp_limits *limits,
                        struct tp_trace_request_body *body)
{
    struct json_object *select = tp_json_in_object(in, in->root, "", "select");
    struct tp_trace_request *r = &body->request;

    if (select == NULL)
        return;
    tp_json_in_known(in, select, "select.", select_fields);
    read_ranks(in, limits, body, select);
    read_texts(in, body, select, "select.", "hosts", limits->select_entries, &r->hosts,
               &r->n_hosts);
    read_texts(in, body, select, "select.", "producers", limits->select_entries,
               &r->producers, &r->n_producers);
    tp_json_in_limit(in, "max-select-entries", limits->select_entries);
}

static void read_when(struct tp_json_in *in, struct json_object *start,
                      struct tp_trace_request *r)
{
    struct tp_str when = tp_json_in_str(in, start, "start.", "when");

    if (in->code != TP_OK || tp_str_is(when, "now"))
        return;
    if (tp_str_is(when, "manual"))
        r->start = TP_START_MANUAL;
    else
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "start.", "when",
                        "'start.when' must be now or manual, not '%.40s'", when.ptr);
}

static void read_start(struct tp_json_in *in, struct tp_trace_request *r)
{
    struct json_object *start = tp_json_in_object(in, in->root, "", "start");
    int n;

    if (start == NULL)
        return;
    tp_json_in_known(in, start, "start.", start_fields);
    n = tp_json_in_has(start, "when") + tp_json_in_has(start, "at") +
        tp_json_in_has(start, "step");
    if (n != 1) {
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "start",
                        "'start' must have exactly one of when, at and step");
        return;
    }
    if (tp_json_in_has(start, "when")) {
        read_when(in, start, r);
    } else if (tp_json_in_has(start, "at")) {
        int64_t at = tp_json_in_time(in, start, "start.", "at");

        r->start = TP_START_AT;
        r->start_wall_ns = (uint64_t)at;
        if (at <= 0)
            tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "start.", "at",
                            "'start.at' must be a time after 1970");
    } else {
        r->start = TP_START_STEP;
        r->start_step = tp_json_in_u64(in, start, "start.", "step", 0, INT64_MAX, 0);
    }
}

static void read_stop(struct tp_json_in *in, struct tp_trace_request *r)
{
    struct json_object *stop = tp_json_in_object(in, in->root, "", "stop");

    if (stop == NULL)
        return;
    tp_json_in_known(in, stop, "stop.", stop_fields);
    r->stop_duration_ms =
        tp_json_in_u64(in, stop, "stop.", "duration_ms", 1, INT64_MAX / 1000000, 0);
    r->stop_steps = tp_json_in_u64(in, stop, "stop.", "steps", 1, INT64_MAX, 0);
    r->stop_max_bytes = tp_json_in_u64(in, stop, "stop.", "max_bytes", 1, INT64_MAX, 0);
}

static void read_require(struct tp_json_in *in, struct tp_trace_request *r)
{
    struct json_object *v = NULL;
    struct tp_str s;

    if (!json_object_object_get_ex(in->root, "require", &v))
        return;
    if (json_object_is_type(v, json_type_int)) {
        r->require = TP_REQUIRE_COUNT;
        r->require_count =
            (uint32_t)tp_json_in_u64(in, in->root, "", "require", 0, INT32_MAX, 0);
        return;
    }
    s = json_object_is_type(v, json_type_string)
            ? tp_json_in_str(in, in->root, "", "require")
            : (struct tp_str){"", 0};
    if (tp_str_is(s, "all"))
        r->require = TP_REQUIRE_ALL;
    else if (!tp_str_is(s, "any"))
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", "require",
                        "'require' must be any, all or a number of producers");
}

/* A member that is kept as JSON text: that of the body, since json-c does not keep
 * every number. A key that is written with escapes is not found there. */
static struct tp_str read_json(struct tp_json_in *in, const char *name, uint64_t most,
                               char **owned)
{
    struct json_object *v = tp_json_in_object(in, in->root, "", name);
    struct tp_str text = {0};
    bool repaired = false;
    size_t n;

    if (v == NULL)
        return (struct tp_str){"", 0};
    if (!tp_json_members_find(in->text, name, &text))
        text.ptr = json_object_to_json_string_length(
            v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &text.len);
    *owned = text.ptr == NULL ? NULL : malloc(TP_JSON_COPY_BYTES(text.len));
    if (*owned == NULL) {
        fail_memory(in);
        return (struct tp_str){"", 0};
    }
    n = tp_json_copy(text, *owned, &repaired);
    in->is_limit = in->code == TP_OK && n > most;
    tp_json_in_limit(in, "max-metadata-bytes", most);
    if (n > most)
        tp_json_in_fail(in, TP_FAULT_INVALID_FIELD, "", name,
                        "'%s' has %zu bytes as JSON; %llu is the most", name, n,
                        (unsigned long long)most);
    return (struct tp_str){*owned, n};
}

void tp_trace_request_read(struct tp_json_in *in, const struct tp_limits *limits,
                           struct tp_trace_request_body *body)
{
    struct tp_trace_request *r = &body->request;

    tp_json_in_known(in, in->root, "", fields);
    if (in->code != TP_OK)
        return;
    if (tp_json_in_has(in->root, "filter") || tp_json_in_has(in->root, "select")) {
        body->cap_texts =
            (size_t)(4 * limits->filter_entries + 2 * limits->select_entries);
        body->texts = calloc(body->cap_texts, sizeof(*body->texts));
        if (body->texts == NULL) {
            fail_memory(in);
            return;
        }
    }
    r->job = tp_json_in_job(in, in->root, "");
    read_filter(in, limits, body);
    read_select(in, limits, body);
    read_start(in, r);
    read_stop(in, r);
    if (in->code == TP_OK)
        read_require(in, r);
    r->label = tp_json_in_str(in, in->root, "", "label");
    r->metadata_json =
        read_json(in, "metadata", limits->metadata_bytes, &body->metadata);
    r->kineto_json = read_json(in, "kineto", limits->metadata_bytes, &body->kineto);
    r->dry_run = tp_json_in_bool(in, in->root, "", "dry_run", false);
}
