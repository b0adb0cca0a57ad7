#include "engine/problem.h"

#include <stdio.h>

#include "base/err.h"
#include "base/utf8.h"

static void copy(char *out, size_t size, struct tp_str s)
{
    struct tp_str cut = tp_utf8_cut(s, size - 1);

    if (cut.len != 0)
        memcpy(out, cut.ptr, cut.len);
    out[cut.len] = '\0';
}

void tp_problem_clear(struct tp_problem *p)
{
    if (p != NULL)
        memset(p, 0, sizeof(*p));
}

int tp_problem_not_found(struct tp_problem *p, const char *subject, struct tp_str name,
                         struct tp_err *err)
{
    struct tp_str shown = tp_utf8_cut(name, TP_PROBLEM_TEXT_BYTES - 1);

    if (p != NULL) {
        tp_problem_clear(p);
        p->kind = TP_PROBLEM_NOT_FOUND;
        copy(p->subject, sizeof(p->subject), tp_str_of(subject));
        copy(p->name, sizeof(p->name), name);
    }
    return tp_fail(err, TP_ENOTFOUND, "there is no %s '%.*s'", subject, (int)shown.len,
                   shown.len == 0 ? "" : shown.ptr);
}

int tp_problem_invalid(struct tp_problem *p, const char *field, int code)
{
    if (p != NULL) {
        tp_problem_clear(p);
        p->kind = TP_PROBLEM_INVALID;
        copy(p->field, sizeof(p->field), tp_str_of(field));
    }
    return code;
}

int tp_problem_limit(struct tp_problem *p, const char *name, const char *unit,
                     uint64_t max, uint64_t value, struct tp_err *err)
{
    if (p != NULL) {
        tp_problem_clear(p);
        p->kind = TP_PROBLEM_LIMIT_EXCEEDED;
        copy(p->limit_name, sizeof(p->limit_name), tp_str_of(name));
        copy(p->limit_unit, sizeof(p->limit_unit), tp_str_of(unit));
        p->limit_max = max;
        p->limit_value = value;
    }
    return tp_fail(err, TP_EQUOTA, "%llu %s is over the limit %s of %llu",
                   (unsigned long long)value, unit, name, (unsigned long long)max);
}

int tp_problem_state(struct tp_problem *p, const char *trace_id, const char *state,
                     const char *words, struct tp_err *err)
{
    if (p != NULL) {
        tp_problem_clear(p);
        p->kind = TP_PROBLEM_ILLEGAL_STATE;
        copy(p->trace_id, sizeof(p->trace_id), tp_str_of(trace_id));
        copy(p->state, sizeof(p->state), tp_str_of(state));
    }
    return tp_fail(err, TP_ESTATE, "%s: trace %s is %s", words, trace_id, state);
}

int tp_problem_storage(struct tp_problem *p, int code)
{
    if (p != NULL && p->kind == TP_PROBLEM_NONE &&
        (code == TP_EIO || code == TP_EQUOTA))
        p->kind = TP_PROBLEM_STORAGE;
    return code;
}
