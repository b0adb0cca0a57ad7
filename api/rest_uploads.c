/*
 * rest_uploads.c - parameters and content types of uploads, and what came of them.
 */
#include "api/rest_uploads.h"

#include <string.h>

#include "api/answer.h"
#include "api/problem.h"
#include "api/rest.h"
#include "api/service.h"
#include "core/limits.h"
#include "engine/problem.h"
#include "engine/uploads.h"

#define RANK_MAX INT32_MAX
#define PRODUCER_MAX_BYTES 127
#define FILE_MAX_BYTES 255

/* What curl says when nobody told it: --data-binary and -d say the first. */
static bool is_untold(const struct tp_call *call)
{
    return call->headers[TP_HEADER_CONTENT_TYPE].len == 0 ||
           tp_rest_media_is(call, "application/x-www-form-urlencoded");
}

/* Find the form of a batch of events by its content type. */
static bool events_form(struct tp_call *call, struct tp_upload_request *request)
{
    request->encoding = tp_rest_coding(call) == TP_CODING_GZIP ? TP_ENCODING_GZIP
                                                               : TP_ENCODING_IDENTITY;
    if (is_untold(call) || tp_rest_media_is(call, "application/json"))
        request->form = TP_FORM_JSON;
    else if (tp_rest_media_is(call, "application/x-ndjson"))
        request->form = TP_FORM_NDJSON;
    else if (tp_rest_media_is(call, "application/x-perfetto-trace"))
        request->form = TP_FORM_PERFETTO;
    else
        return false;
    return true;
}

/* A file says by its first bytes what it is; the content type must only not contradict.
 * */
static bool file_form(struct tp_call *call, struct tp_upload_request *request)
{
    static const char *const types[] = {
        "application/json",     "application/gzip",
        "application/x-gzip",   "application/octet-stream",
        "application/x-ndjson", "application/x-perfetto-trace"};
    bool is_known = is_untold(call);

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        is_known = is_known || tp_rest_media_is(call, types[i]);
    request->form = tp_rest_media_is(call, "application/x-ndjson") ? TP_FORM_NDJSON
                    : tp_rest_media_is(call, "application/x-perfetto-trace")
                        ? TP_FORM_PERFETTO
                        : TP_FORM_SNIFF;
    request->encoding = tp_rest_coding(call) == TP_CODING_GZIP ? TP_ENCODING_GZIP
                                                               : TP_ENCODING_SNIFF;
    return is_known;
}

static void refuse_type(struct tp_call *call, bool is_file)
{
    if (is_file) {
        tp_problem_answer(call, TP_FAULT_UNSUPPORTED_MEDIA_TYPE,
                          "a file must be application/json, application/gzip, "
                          "application/x-ndjson, application/x-perfetto-trace or "
                          "application/octet-stream");
        tp_call_header(call, "Accept-Post",
                       "application/json, application/gzip, application/x-ndjson, "
                       "application/x-perfetto-trace, application/octet-stream");
        return;
    }
    tp_problem_answer(call, TP_FAULT_UNSUPPORTED_MEDIA_TYPE,
                      "events must be application/json, application/x-ndjson or "
                      "application/x-perfetto-trace; gzipped ones say so with "
                      "Content-Encoding: gzip, and a gzipped file goes to /files");
    tp_call_header(
        call, "Accept-Post",
        "application/json, application/x-ndjson, application/x-perfetto-trace");
}

/* Read the parameters that say whose data this is. */
static bool read_params(struct tp_call *call, struct tp_upload_request *request)
{
    size_t label = (size_t)call->service->limits->label_bytes;
    uint64_t rank;
    uint64_t pid;
    uint64_t world;

    if (!tp_param_text(call, "producer", PRODUCER_MAX_BYTES, &request->producer) ||
        !tp_param_text(call, "host", label, &request->host) ||
        !tp_param_text(call, "name", FILE_MAX_BYTES, &request->file_name) ||
        !tp_param_u64(call, "rank", 0, RANK_MAX, UINT64_MAX, &rank) ||
        !tp_param_u64(call, "pid", 0, INT64_MAX, UINT64_MAX, &pid) ||
        !tp_param_u64(call, "world_size", 1, RANK_MAX, 0, &world) ||
        !tp_param_u64(call, "seq", 0, INT64_MAX, 0, &request->seq))
        return false;
    request->has_seq = tp_call_param(call, "seq").ptr != NULL;
    request->rank = rank == UINT64_MAX ? -1 : (int64_t)rank;
    request->pid = pid == UINT64_MAX ? -1 : (int64_t)pid;
    request->world_size = (uint32_t)world;
    return true;
}

bool tp_rest_begin_upload(struct tp_call *call)
{
    struct tp_upload_request request = {0};
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    bool is_file = call->route->body == TP_BODY_FILE;
    int rc;

    request.kind = is_file ? TP_UPLOAD_FILE : TP_UPLOAD_EVENTS;
    if (!(is_file ? file_form(call, &request) : events_form(call, &request))) {
        refuse_type(call, is_file);
        return false;
    }
    if (!read_params(call, &request))
        return false;
    rc = tp_engine_upload_begin(call->service->engine, call->args[0], &request,
                                call->now, &call->upload, &problem, &err);
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    return rc == TP_OK;
}

void tp_rest_feed_upload(struct tp_call *call, const char *p, size_t n)
{
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_upload_feed(call->upload, p, n, &problem, &err);

    if (rc == TP_OK)
        return;
    tp_problem_engine(call, rc, &problem, &err);
    call->is_refused = true;
    /* What it holds is of no use any more, and the rest of the body may be long. */
    tp_upload_free(call->upload);
    call->upload = NULL;
}

static void write_dropped(struct tp_json_out *o, const struct tp_upload_reply *reply)
{
    uint64_t sum = 0;

    for (int i = 0; i < TP_DROP_CAUSES; i++)
        sum += reply->dropped[i];
    tp_json_out_u64(o, "dropped", sum);
    tp_json_out_object(o, "dropped_by_cause");
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        if (reply->dropped[i] > 0)
            tp_json_out_u64(o, tp_drop_cause_name((enum tp_drop_cause)i),
                            reply->dropped[i]);
    tp_json_out_close_object(o);
}

static void answer_reply(struct tp_call *call, const struct tp_upload_reply *reply)
{
    struct tp_json_out o;
    bool is_file = call->route->body == TP_BODY_FILE;

    tp_answer_open(call, is_file ? 201 : 200, &o);
    tp_json_out_u64(&o, "posted", reply->posted);
    tp_json_out_u64(&o, "accepted", reply->accepted);
    tp_json_out_u64(&o, "filtered", reply->filtered);
    tp_json_out_u64(&o, "rejected", reply->rejected);
    tp_json_out_u64(&o, "repaired", reply->repaired);
    tp_json_out_u64(&o, "untyped", reply->untyped);
    write_dropped(&o, reply);
    if (reply->first_reason[0] != '\0')
        tp_json_out_text(&o, "first_rejection", reply->first_reason);
    tp_json_out_bool(&o, "duplicate", reply->is_duplicate);
    tp_json_out_u64(&o, "stream", reply->stream_no);
    tp_json_out_text(&o, "producer", reply->producer);
    if (reply->rank >= 0)
        tp_json_out_i64(&o, "rank", reply->rank);
    if (reply->damage[0] != '\0')
        tp_json_out_text(&o, "damage", reply->damage);
    if (reply->note[0] != '\0')
        tp_json_out_text(&o, "note", reply->note);
    if (is_file)
        tp_json_out_bool(&o, "truncated", reply->is_truncated);
    tp_answer_close(call, &o);
}

void tp_rest_commit_upload(struct tp_call *call)
{
    struct tp_upload_reply reply = {0};
    struct tp_problem problem = {0};
    struct tp_err err = {0};
    int rc = tp_upload_commit(call->upload, call->now, &reply, &problem, &err);

    tp_upload_free(call->upload);
    call->upload = NULL;
    if (rc != TP_OK)
        tp_problem_engine(call, rc, &problem, &err);
    else
        answer_reply(call, &reply);
}
