/*
 * download_request.c - lists, times and the coding.
 *
 * `compress` asks for a compressed file: it is saved as name.json.gz and stays
 * compressed. Accept-Encoding asks for a compressed transfer: whoever receives it
 * unpacks it on the way.
 */
#include "api/download_request.h"

#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/http_fields.h"
#include "api/problem.h"
#include "api/service.h"
#include "core/limits.h"

void tp_download_params_fini(struct tp_download_params *params)
{
    free(params->ranks);
    free(params->types);
    params->ranks = NULL;
    params->types = NULL;
}

/* How many entries the lists of that parameter have: commas part them. */
static size_t count_entries(const struct tp_call *call, const char *key)
{
    size_t n = 0;

    for (size_t i = 0; i < call->n_params; i++) {
        struct tp_str s = call->params[i].value;

        if (!tp_str_is(call->params[i].key, key) || s.len == 0)
            continue;
        n++;
        for (size_t k = 0; k < s.len; k++)
            n += s.ptr[k] == ',';
    }
    return n;
}

/* Step through the entries; *param and *at start at 0. */
static bool next_entry(const struct tp_call *call, const char *key, size_t *param,
                       size_t *at, struct tp_str *out)
{
    for (; *param < call->n_params; (*param)++, *at = 0) {
        struct tp_str s = call->params[*param].value;
        const char *comma;

        if (!tp_str_is(call->params[*param].key, key) || s.len == 0 || *at > s.len)
            continue;
        comma = *at == s.len ? NULL : memchr(s.ptr + *at, ',', s.len - *at);
        out->ptr = s.ptr + *at;
        out->len = comma == NULL ? s.len - *at : (size_t)(comma - out->ptr);
        *at += out->len + 1;
        return true;
    }
    return false;
}

/* A list that is given and has nothing in it is an unset variable of some script, and
 * not the wish for all. */
static bool is_empty_list(const struct tp_call *call, const char *key)
{
    bool is_given = false;

    for (size_t i = 0; i < call->n_params; i++)
        is_given = is_given || tp_str_is(call->params[i].key, key);
    return is_given && count_entries(call, key) == 0;
}

/* Room for the entries of a list. False with the answer made when there are none in a
 * list that is given, or too many. */
static bool make_room(struct tp_call *call, const char *key, size_t each, size_t *n,
                      void **out)
{
    uint64_t most = call->service->limits->select_entries;

    if (is_empty_list(call, key)) {
        tp_problem_parameter(call, key, "'%s' is empty; leave it out for all", key);
        return false;
    }
    *n = count_entries(call, key);
    if (*n == 0)
        return true;
    if (*n > most) {
        tp_problem_parameter(call, key, "'%s' has %zu entries; %llu is the most", key,
                             *n, (unsigned long long)most);
        return false;
    }
    *out = calloc(*n, each);
    if (*out == NULL)
        tp_problem_answer(call, TP_FAULT_OUT_OF_MEMORY, "no memory for the request");
    return *out != NULL;
}

static bool parse_rank(struct tp_str s, uint32_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || v > INT32_MAX)
            return false;
        v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    *out = (uint32_t)v;
    return s.len > 0 && v <= INT32_MAX;
}

static bool read_ranks(struct tp_call *call, struct tp_download_params *params)
{
    void *room = NULL;
    size_t param = 0;
    size_t at = 0;
    size_t n;
    struct tp_str s;

    if (!make_room(call, "ranks", sizeof(*params->ranks), &n, &room))
        return false;
    params->ranks = room;
    for (size_t i = 0; i < n && next_entry(call, "ranks", &param, &at, &s); i++) {
        if (!parse_rank(s, &params->ranks[i])) {
            tp_problem_parameter(call, "ranks", "'%.*s' is not a rank",
                                 (int)(s.len < 40 ? s.len : 40), s.ptr);
            return false;
        }
    }
    params->request.ranks = params->ranks;
    params->request.n_ranks = n;
    return true;
}

static bool read_types(struct tp_call *call, struct tp_download_params *params)
{
    void *room = NULL;
    size_t param = 0;
    size_t at = 0;
    size_t n;

    if (!make_room(call, "types", sizeof(*params->types), &n, &room))
        return false;
    params->types = room;
    for (size_t i = 0;
         i < n && next_entry(call, "types", &param, &at, &params->types[i]); i++)
        continue;
    params->request.types = params->types;
    params->request.n_types = n;
    return true;
}

static bool read_coding(struct tp_call *call, struct tp_download_params *params)
{
    static const char *const names[] = {"gzip", "zstd", "identity"};
    struct tp_str s = tp_call_param(call, "compress");
    enum tp_accept coding;

    if (s.ptr != NULL) {
        params->is_file = true;
        if (tp_str_is(s, "none") || tp_str_is(s, "identity"))
            params->request.compress = tp_str_of("identity");
        else if (tp_str_is(s, "gzip") || tp_str_is(s, "zstd"))
            params->request.compress = s;
        else {
            tp_problem_parameter(call, "compress",
                                 "'compress' must be gzip, zstd, identity or none");
            return false;
        }
        return true;
    }
    params->has_negotiated = true;
    coding = tp_accept_coding(call->headers[TP_HEADER_ACCEPT_ENCODING]);
    if (coding == TP_ACCEPT_NOTHING) {
        tp_problem_answer(call, TP_FAULT_NOT_ACCEPTABLE,
                          "Accept-Encoding leaves none of gzip, zstd and identity");
        return false;
    }
    params->request.compress = tp_str_of(names[coding]);
    return true;
}

static bool read_format(struct tp_call *call, struct tp_download_params *params)
{
    struct tp_str s = tp_call_param(call, "format");

    if (s.ptr != NULL && !tp_str_is(s, "chrome") && !tp_str_is(s, "perfetto")) {
        tp_problem_parameter(call, "format", "'format' must be chrome or perfetto");
        return false;
    }
    params->request.format = s.ptr == NULL ? tp_str_of("chrome") : s;
    return true;
}

bool tp_download_params_read(struct tp_call *call, struct tp_download_params *params)
{
    struct tp_engine_download_request *r = &params->request;

    return read_format(call, params) && read_coding(call, params) &&
           read_ranks(call, params) && read_types(call, params) &&
           tp_param_time(call, "from", &r->has_from, &r->from_ns) &&
           tp_param_time(call, "to", &r->has_to, &r->to_ns);
}
