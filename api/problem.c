/*
 * problem.c - one writer for every refusal.
 *
 * A program reads `type` and the members that belong to it; `detail` is for people.
 * When there is no memory left for a body, the status alone goes out.
 */
#include "api/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json_in.h"
#include "base/utf8.h"
#include "core/limits.h"
#include "engine/problem.h"

#define DETAIL_BYTES 768

/* Forget the answer so far, but keep what belongs to the request. */
static void clear_answer(struct tp_call *call)
{
    call->out.len = 0;
    call->fixed = (struct tp_str){NULL, 0};
    call->n_out_headers = 0;
    call->header_text.len = 0;
    if (call->stream.close != NULL)
        call->stream.close(call->stream.arg);
    memset(&call->stream, 0, sizeof(call->stream));
    call->reply = TP_REPLY_BODY;
}

void tp_problem_open(struct tp_call *call, enum tp_fault fault, const char *detail,
                     struct tp_json_out *o)
{
    char urn[80];

    clear_answer(call);
    snprintf(urn, sizeof(urn), "urn:traceplane:problem:%s", tp_status_name(fault));
    call->fault = fault;
    call->status = tp_status_http(fault);
    call->content_type = "application/problem+json";
    tp_json_out_init(o, &call->out);
    tp_json_out_object(o, NULL);
    tp_json_out_text(o, "type", urn);
    tp_json_out_text(o, "title", tp_status_title(fault));
    tp_json_out_u64(o, "status", (uint64_t)call->status);
    tp_json_out_text(o, "detail", detail);
}

void tp_problem_close(struct tp_call *call, struct tp_json_out *o)
{
    tp_json_out_close_object(o);
    if (tp_json_out_end(o, NULL) != TP_OK) {
        call->out.len = 0;
        call->content_type = NULL;
    }
}

static void answer(struct tp_call *call, enum tp_fault fault, const char *parameter,
                   const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static void answer(struct tp_call *call, enum tp_fault fault, const char *parameter,
                   const char *format, va_list args)
{
    char detail[DETAIL_BYTES];
    struct tp_json_out o;

    vsnprintf(detail, sizeof(detail), format, args);
    detail[tp_utf8_cut(tp_str_of(detail), sizeof(detail) - 1).len] = '\0';
    tp_problem_open(call, fault, detail, &o);
    if (parameter != NULL)
        tp_json_out_text(&o, "parameter", parameter);
    tp_problem_close(call, &o);
}

void tp_problem_answer(struct tp_call *call, enum tp_fault fault, const char *format,
                       ...)
{
    va_list args;

    va_start(args, format);
    answer(call, fault, NULL, format, args);
    va_end(args);
}

void tp_problem_parameter(struct tp_call *call, const char *parameter,
                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    answer(call, TP_FAULT_INVALID_PARAMETER, parameter, format, args);
    va_end(args);
}

void tp_problem_limit_answer(struct tp_call *call, enum tp_fault fault,
                             const char *name, uint64_t max, const char *format, ...)
{
    const struct tp_limit_info *info = tp_limits_find(tp_str_of(name));
    char detail[DETAIL_BYTES];
    struct tp_json_out o;
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    tp_problem_open(call, fault, detail, &o);
    tp_json_out_text(&o, "limit", name);
    tp_json_out_text(&o, "unit", info == NULL ? "" : info->unit);
    tp_json_out_u64(&o, "max", max);
    tp_problem_close(call, &o);
}

void tp_problem_body(struct tp_call *call, const struct tp_json_in *in)
{
    struct tp_json_out o;

    tp_problem_open(call, in->kind == TP_FAULT_NONE ? TP_FAULT_INVALID_FIELD : in->kind,
                    in->err.message, &o);
    if (in->field[0] != '\0')
        tp_json_out_text(&o, "field", in->field);
    if (in->limit != NULL) {
        const struct tp_limit_info *info = tp_limits_find(tp_str_of(in->limit));

        tp_json_out_text(&o, "limit", in->limit);
        tp_json_out_text(&o, "unit", info == NULL ? "" : info->unit);
        tp_json_out_u64(&o, "max", in->max);
    }
    tp_problem_close(call, &o);
}

static void write_text_if(struct tp_json_out *o, const char *key, const char *text)
{
    if (text[0] != '\0')
        tp_json_out_text(o, key, text);
}

static void write_names(struct tp_json_out *o, const char *key,
                        const struct tp_registry_detail *type)
{
    tp_json_out_array(o, key);
    for (size_t i = 0; i < type->n_names && i < TP_REGISTRY_DETAIL_NAMES; i++)
        tp_json_out_text(o, NULL, type->names[i]);
    tp_json_out_close_array(o);
}

static void write_collision(struct tp_json_out *o, const struct tp_problem *p)
{
    tp_json_out_u64(o, "id", p->type.id);
    tp_json_out_object(o, "holder");
    tp_json_out_u64(o, "id", p->type.holder_id);
    tp_json_out_text(o, "name", p->type.holder_name);
    tp_json_out_close_object(o);
}

static void write_limit(struct tp_json_out *o, const struct tp_problem *p)
{
    tp_json_out_text(o, "limit", p->limit_name);
    tp_json_out_text(o, "unit", p->limit_unit);
    tp_json_out_u64(o, "max", p->limit_max);
    tp_json_out_u64(o, "value", p->limit_value);
}

/* The members that belong to one kind only. */
static void write_kind(struct tp_json_out *o, const struct tp_problem *p)
{
    switch (p->kind) {
    case TP_PROBLEM_ID_COLLISION:
        write_collision(o, p);
        break;
    case TP_PROBLEM_REGISTRY_FROZEN:
        tp_json_out_u64(o, "id", 0);
        break;
    case TP_PROBLEM_UNKNOWN_TYPE:
        write_names(o, "nearest", &p->type);
        break;
    case TP_PROBLEM_AMBIGUOUS_NAME:
        write_names(o, "candidates", &p->type);
        break;
    case TP_PROBLEM_NOT_ENOUGH_PRODUCERS:
        tp_json_out_u64(o, "required", p->required);
        tp_json_out_u64(o, "available", p->available);
        break;
    case TP_PROBLEM_LIMIT_EXCEEDED:
        write_limit(o, p);
        break;
    case TP_PROBLEM_DAMAGED_BODY:
        if (p->has_offset)
            tp_json_out_u64(o, "offset", p->offset);
        break;
    default:
        break;
    }
}

void tp_problem_engine(struct tp_call *call, int code, const struct tp_problem *problem,
                       const struct tp_err *err)
{
    struct tp_json_out o;
    enum tp_fault fault = tp_status_fault(code, problem);

    tp_problem_open(call, fault, err->message, &o);
    if (problem != NULL && problem->kind != TP_PROBLEM_NONE) {
        write_text_if(&o, "field", problem->field);
        write_text_if(&o, "subject", problem->subject);
        write_text_if(&o, "name", problem->name);
        write_text_if(&o, "job", problem->job);
        write_text_if(&o, "trace_id", problem->trace_id);
        write_text_if(&o, "state", problem->state);
        write_kind(&o, problem);
    }
    tp_problem_close(call, &o);
    if (call->status == 503 || call->status == 429)
        tp_call_header(call, "Retry-After", "1");
}
