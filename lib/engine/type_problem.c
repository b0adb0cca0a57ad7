#include "engine/type_problem.h"

#include <stdio.h>

#include "base/err.h"
#include "base/utf8.h"
#include "core/filter.h"

static enum tp_problem_kind kind_of(enum tp_registry_reason reason)
{
    switch (reason) {
    case TP_REGISTRY_COLLISION:
        return TP_PROBLEM_ID_COLLISION;
    case TP_REGISTRY_FROZEN:
        return TP_PROBLEM_REGISTRY_FROZEN;
    case TP_REGISTRY_FULL:
        return TP_PROBLEM_LIMIT_EXCEEDED;
    case TP_REGISTRY_UNKNOWN:
        return TP_PROBLEM_UNKNOWN_TYPE;
    case TP_REGISTRY_AMBIGUOUS:
        return TP_PROBLEM_AMBIGUOUS_NAME;
    default:
        return TP_PROBLEM_INVALID;
    }
}

static void put_name(struct tp_problem *p, struct tp_str name)
{
    struct tp_str cut = tp_utf8_cut(name, sizeof(p->name) - 1);

    if (cut.len != 0)
        memcpy(p->name, cut.ptr, cut.len);
    p->name[cut.len] = '\0';
}

int tp_problem_from_registry(struct tp_problem *p,
                             const struct tp_registry_detail *detail, const char *job,
                             bool is_batch, struct tp_str name, int code)
{
    const char *field = detail->field == NULL ? "" : detail->field;

    if (p == NULL || code == TP_ENOMEM)
        return code;
    tp_problem_clear(p);
    p->kind = kind_of(detail->reason);
    p->type = *detail;
    snprintf(p->job, sizeof(p->job), "%s", job);
    put_name(p, name);
    if (is_batch)
        snprintf(p->field, sizeof(p->field), "types[%zu]%s%s", detail->index,
                 *field == '\0' ? "" : ".", field);
    else
        snprintf(p->field, sizeof(p->field), "%s", field);
    if (p->kind == TP_PROBLEM_LIMIT_EXCEEDED) {
        snprintf(p->limit_name, sizeof(p->limit_name), "max-types-per-job");
        snprintf(p->limit_unit, sizeof(p->limit_unit), "types");
    }
    return code;
}

int tp_problem_from_filter(struct tp_problem *p, const struct tp_filter_detail *detail,
                           const char *job, int code)
{
    if (p == NULL || code != TP_EINVAL)
        return code;
    tp_problem_from_registry(p, &detail->type, job, false, tp_str_of(detail->name),
                             code);
    snprintf(p->field, sizeof(p->field), "%s", detail->field);
    return code;
}
