/*
 * rest_downloads.c - a trace as an answer, whole or in part.
 *
 * Most formats are made while they are sent, so their size is not known beforehand. A
 * range needs it: then the file is made once to count it, and the size is remembered by
 * its ETag. The bytes are the same each time, so a part is served by making the file
 * again and throwing away what lies before.
 */
#include "api/rest_downloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/download_request.h"
#include "api/http_fields.h"
#include "api/problem.h"
#include "api/service.h"
#include "engine/downloads.h"
#include "engine/engine.h"
#include "trace/download.h"
#include "trace/summary.h"

/* A download that is being sent. */
struct sending {
    struct tp_engine_download *download;
    const struct tp_service *service;
    uint64_t skip_bytes; /* to be thrown away first */
    bool has_left;
    uint64_t left_bytes; /* when has_left: what is still to be sent */
    uint64_t sent_bytes; /* of a whole file of unknown size: to learn it */
};

static void sending_close(void *arg)
{
    struct sending *s = arg;

    tp_engine_download_close(s->download);
    free(s);
}

/* The whole file went out: the next one gets a Content-Length. */
static void learn_size(struct sending *s)
{
    const struct tp_engine_download_info *info = tp_engine_download_info(s->download);

    if (!s->has_left && info->etag[0] != '\0' && s->service->size_put != NULL)
        s->service->size_put(s->service->arg, info->etag, s->sent_bytes);
}

static int sending_read(void *arg, struct tp_now now, char *p, size_t n, size_t *got,
                        struct tp_err *err)
{
    struct sending *s = arg;
    struct tp_download *d = tp_engine_download_data(s->download);
    int rc = TP_OK;

    (void)now;
    *got = 0;
    if (s->skip_bytes > 0)
        rc = tp_download_skip(d, s->skip_bytes, NULL, err);
    s->skip_bytes = 0;
    if (rc != TP_OK || (s->has_left && s->left_bytes == 0))
        return rc;
    if (s->has_left && n > s->left_bytes)
        n = (size_t)s->left_bytes;
    rc = tp_download_read(d, p, n, got, err);
    if (rc != TP_OK)
        return rc;
    s->left_bytes -= s->has_left ? *got : 0;
    s->sent_bytes += *got;
    if (*got == 0) {
        if (s->has_left)
            return tp_fail(err, TP_EIO, "the trace is shorter than it was");
        learn_size(s);
    }
    return TP_OK;
}

/* Count the bytes of a file by making it once. */
static int count_size(struct tp_call *call, const struct tp_download_params *params,
                      uint64_t *out, struct tp_err *err)
{
    struct tp_engine_download *d = NULL;
    struct tp_problem problem = {0};
    int rc = tp_engine_download_open(call->service->engine, call->args[0],
                                     &params->request, call->now, &d, &problem, err);

    if (rc == TP_OK)
        rc = tp_download_skip(tp_engine_download_data(d), UINT64_MAX, out, err);
    tp_engine_download_close(d);
    return rc;
}

/* The size of the file, when it is known or (count_it) wanted badly enough. */
static bool find_size(struct tp_call *call, const struct tp_download_params *params,
                      const struct tp_engine_download_info *info, bool count_it,
                      uint64_t *out)
{
    const struct tp_service *service = call->service;
    struct tp_err err = {0};

    *out = info->size_bytes;
    if (info->has_size)
        return true;
    if (info->etag[0] == '\0')
        return false;
    if (service->size_get != NULL && service->size_get(service->arg, info->etag, out))
        return true;
    if (!count_it || count_size(call, params, out, &err) != TP_OK)
        return false;
    if (service->size_put != NULL)
        service->size_put(service->arg, info->etag, *out);
    return true;
}

static const char *file_type(const struct tp_download_params *params,
                             const struct tp_engine_download_info *info)
{
    if (params->is_file && tp_str_is(params->request.compress, "gzip"))
        return "application/gzip";
    if (params->is_file && tp_str_is(params->request.compress, "zstd"))
        return "application/zstd";
    return strncmp(info->content_type, "application/json", 16) == 0
               ? "application/json"
               : "application/x-perfetto-trace";
}

/* What is added to the name of a file that stays compressed. */
static const char *file_suffix(const struct tp_download_params *params)
{
    if (!params->is_file)
        return "";
    if (tp_str_is(params->request.compress, "gzip"))
        return ".gz";
    return tp_str_is(params->request.compress, "zstd") ? ".zst" : "";
}

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s);
    size_t k = strlen(suffix);

    return n >= k && strcmp(s + n - k, suffix) == 0;
}

static void put_headers(struct tp_call *call, const struct tp_download_params *params,
                        const struct tp_engine_download_info *info)
{
    const char *suffix = file_suffix(params);

    if (ends_with(info->file_name, suffix))
        suffix = "";
    tp_call_header_printf(call, "Content-Disposition", "attachment; filename=\"%s%s\"",
                          info->file_name, suffix);
    if (!params->is_file && tp_str_is(params->request.compress, "gzip"))
        tp_call_header(call, "Content-Encoding", "gzip");
    else if (!params->is_file && tp_str_is(params->request.compress, "zstd"))
        tp_call_header(call, "Content-Encoding", "zstd");
}

/* What belongs to 200, 206 and 304 alike. */
static void put_cache_headers(struct tp_call *call,
                              const struct tp_download_params *params,
                              const struct tp_engine_download_info *info)
{
    if (params->has_negotiated)
        tp_call_header(call, "Vary", "Accept-Encoding");
    if (info->etag[0] == '\0')
        return;
    tp_call_header_printf(call, "ETag", "%s", info->etag);
    tp_call_header(call, "Cache-Control", "private, no-cache");
}

/* Decide between all, a part, and nothing. Returns false with the answer made. */
static bool choose_part(struct tp_call *call, const struct tp_download_params *params,
                        const struct tp_engine_download_info *info, struct sending *s)
{
    struct tp_str range = call->headers[TP_HEADER_RANGE];
    bool is_wanted =
        call->method == TP_METHOD_GET && tp_range_is_single(range) && info->is_final &&
        tp_etag_allows_range(call->headers[TP_HEADER_IF_RANGE], tp_str_of(info->etag));
    uint64_t size = 0;
    uint64_t first = 0;
    uint64_t last = 0;

    if (!find_size(call, params, info, is_wanted, &size))
        return true;
    s->has_left = true;
    s->left_bytes = size;
    if (!is_wanted)
        return true;
    switch (tp_range_parse(range, size, &first, &last)) {
    case TP_RANGE_ONE:
        s->skip_bytes = first;
        s->left_bytes = last - first + 1;
        call->status = 206;
        tp_call_header_printf(call, "Content-Range", "bytes %llu-%llu/%llu",
                              (unsigned long long)first, (unsigned long long)last,
                              (unsigned long long)size);
        return true;
    case TP_RANGE_UNSATISFIABLE:
        tp_problem_answer(call, TP_FAULT_RANGE_NOT_SATISFIABLE,
                          "the file has %llu bytes", (unsigned long long)size);
        tp_call_header_printf(call, "Content-Range", "bytes */%llu",
                              (unsigned long long)size);
        return false;
    case TP_RANGE_NONE:
    default:
        return true;
    }
}

/* Answer with an open download, which becomes the call's. */
static void answer_download(struct tp_call *call,
                            const struct tp_download_params *params,
                            struct tp_engine_download *download)
{
    const struct tp_engine_download_info *info = tp_engine_download_info(download);
    struct sending *s = NULL;

    put_cache_headers(call, params, info);
    if (info->etag[0] != '\0' &&
        tp_etag_is_listed(call->headers[TP_HEADER_IF_NONE_MATCH],
                          tp_str_of(info->etag))) {
        tp_answer_empty(call, 304);
        goto out;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        tp_problem_answer(call, TP_FAULT_OUT_OF_MEMORY, "no memory for a download");
        goto out;
    }
    s->download = download;
    s->service = call->service;
    call->status = 200;
    if (info->is_final)
        tp_call_header(call, "Accept-Ranges", "bytes");
    put_headers(call, params, info);
    if (!choose_part(call, params, info, s))
        goto out;
    call->content_type = file_type(params, info);
    call->reply = TP_REPLY_STREAM;
    call->stream = (struct tp_call_stream){.arg = s,
                                           .has_size = s->has_left,
                                           .size_bytes = s->left_bytes,
                                           .read = sending_read,
                                           .close = sending_close};
    return;

out:
    free(s);
    tp_engine_download_close(download);
}

void tp_rest_download_trace(struct tp_call *call)
{
    struct tp_download_params params = {0};
    struct tp_engine_download *download = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc;

    if (tp_download_params_read(call, &params)) {
        rc = tp_engine_download_open(call->service->engine, call->args[0],
                                     &params.request, call->now, &download, &problem,
                                     &err);
        if (rc == TP_OK)
            answer_download(call, &params, download);
        else
            tp_problem_engine(call, rc, &problem, &err);
    }
    tp_download_params_fini(&params);
}

/* The members of a summary, behind what is in the answer already. */
static int put_summary(struct tp_call *call, const struct tp_summary *summary,
                       struct tp_err *err)
{
    struct tp_buf text = {0};
    int rc = tp_summary_write(summary, &text, err);

    if (rc == TP_OK && text.len > 1) { /* without the brace in front */
        rc = tp_buf_append(&call->out, ",", 1, err);
        if (rc == TP_OK)
            rc = tp_buf_append(&call->out, text.data + 1, text.len - 1, err);
        if (rc == TP_OK)
            rc = tp_buf_append(&call->out, "\n", 1, err);
    }
    tp_buf_fini(&text);
    return rc;
}

void tp_rest_summarize_trace(struct tp_call *call)
{
    struct tp_summary *summary = NULL;
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    struct tp_json_out o;
    int rc = tp_engine_summary(call->service->engine, call->args[0], call->now,
                               &summary, &problem, &err);

    if (rc == TP_OK) {
        tp_answer_open(call, 200, &o);
        tp_json_out_str(&o, "trace_id", call->args[0]);
        rc = tp_json_out_end(&o, &err);
    }
    if (rc == TP_OK)
        rc = put_summary(call, summary, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    tp_summary_free(summary);
}
