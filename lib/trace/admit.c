/*
 * admit.c - the filter of a trace, asked once for each distinct name.
 */
#include "trace/admit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/activity.h"
#include "core/filter.h"
#include "core/typemap.h"

/* Numbers from here on are judged anew each time: a bound of memory, far above what
 * the readers number. */
#define REMEMBERED_MAX (1u << 20)

enum { NOT_JUDGED = 0, IS_JUDGED = 1, IS_UNTYPED = 2, IS_REFUSED = 4, IS_NUMBER = 8 };

/* What is known about a name of that number. */
struct memory {
    uint8_t *flags;
    uint32_t n;
};

struct tp_admit {
    const struct tp_filter *filter;
    const struct tp_typemap *types;
    bool is_open; /* nothing can be refused */
    bool judges_names;
    uint64_t min_duration_ns;
    struct memory cats, names;
    uint8_t absent_cat; /* the flags of events without one */
};

static uint8_t judge_type(const struct tp_admit *a, int id)
{
    if (id < 0)
        return IS_JUDGED | IS_UNTYPED |
               (a->filter != NULL && !tp_filter_accepts_untyped(a->filter) ? IS_REFUSED
                                                                           : 0);
    return IS_JUDGED |
           (a->filter != NULL && !tp_filter_accepts_type(a->filter, (unsigned)id)
                ? IS_REFUSED
                : 0);
}

int tp_admit_new(const struct tp_filter *filter, const struct tp_typemap *types,
                 struct tp_admit **out, struct tp_err *err)
{
    struct tp_admit *a = calloc(1, sizeof(*a));

    if (a == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for applying a filter");
    a->filter = filter;
    a->types = types;
    a->is_open = filter == NULL || tp_filter_is_open(filter);
    a->judges_names = filter != NULL && tp_filter_has_names(filter);
    a->min_duration_ns = filter == NULL ? 0 : tp_filter_min_duration_ns(filter);
    a->absent_cat = judge_type(a, -1);
    *out = a;
    return TP_OK;
}

void tp_admit_free(struct tp_admit *a)
{
    if (a == NULL)
        return;
    free(a->cats.flags);
    free(a->names.flags);
    free(a);
}

/* The flags of a name, to be read and written, or a scratch place for one that is not
 * remembered. NULL without memory. */
static uint8_t *recall(struct memory *m, uint32_t iid, uint8_t *scratch)
{
    uint32_t n = m->n == 0 ? 256 : m->n;
    uint8_t *flags;

    if (iid == 0 || iid >= REMEMBERED_MAX) {
        *scratch = NOT_JUDGED;
        return scratch;
    }
    if (iid < m->n)
        return &m->flags[iid];
    while (n <= iid)
        n *= 2;
    flags = realloc(m->flags, n);
    if (flags == NULL)
        return NULL;
    memset(flags + m->n, 0, n - m->n);
    m->flags = flags;
    m->n = n;
    return &m->flags[iid];
}

/*
 * The registered custom type whose id in decimal is this text, or -1. Static ids have
 * changed between releases of Kineto, so a number below the custom ids means nothing.
 */
static int type_by_number(const struct tp_admit *a, const struct tp_name *cat)
{
    struct tp_str name;
    unsigned id = 0;

    if (cat->len < 2 || cat->len > 3 || cat->ptr[0] == '0')
        return -1;
    for (uint32_t i = 0; i < cat->len; i++) {
        if (cat->ptr[i] < '0' || cat->ptr[i] > '9')
            return -1;
        id = id * 10 + (unsigned)(cat->ptr[i] - '0');
    }
    if (id < TP_ACTIVITY_CUSTOM_BASE || id >= TP_ACTIVITY_CUSTOM_END)
        return -1;
    name = tp_typemap_name(a->types, id);
    /* The map gives an id that is not registered its number as its name. */
    return name.len == cat->len && memcmp(name.ptr, cat->ptr, cat->len) == 0 ? -1
                                                                             : (int)id;
}

static void use_type_name(const struct tp_admit *a, struct tp_name *cat)
{
    struct tp_str name = tp_typemap_name(a->types, (unsigned)type_by_number(a, cat));

    cat->ptr = name.ptr;
    cat->len = (uint32_t)name.len;
}

static uint8_t judge_cat(const struct tp_admit *a, const struct tp_name *cat)
{
    int id = a->types == NULL ? -1 : tp_typemap_find(a->types, cat->ptr, cat->len);
    uint8_t by_number = 0;

    if (id < 0 && a->types != NULL) {
        id = type_by_number(a, cat);
        by_number = id < 0 ? 0 : IS_NUMBER;
    }
    return judge_type(a, id) | by_number;
}

/* Judge by type: *flags gets what is known about the event's cat. */
static int look_at_cat(struct tp_admit *a, struct tp_event *ev, uint8_t *flags,
                       struct tp_err *err)
{
    uint8_t scratch;
    uint8_t *known;

    if (ev->cat.ptr == NULL) {
        *flags = a->absent_cat;
        return TP_OK;
    }
    known = recall(&a->cats, ev->cat.iid, &scratch);
    if (known == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for applying a filter");
    if (*known == NOT_JUDGED)
        *known = judge_cat(a, &ev->cat);
    *flags = *known;
    /* The reader's number stays: for all its events it now means these bytes. */
    if (*known & IS_NUMBER)
        use_type_name(a, &ev->cat);
    return TP_OK;
}

static int look_at_name(struct tp_admit *a, const struct tp_event *ev, bool *refuses,
                        struct tp_err *err)
{
    uint8_t scratch;
    uint8_t *known = recall(&a->names, ev->name.iid, &scratch);

    if (known == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for applying a filter");
    if (*known == NOT_JUDGED)
        *known = tp_filter_name_matches(a->filter, ev->name.ptr, ev->name.len)
                     ? IS_JUDGED
                     : IS_JUDGED | IS_REFUSED;
    *refuses = (*known & IS_REFUSED) != 0;
    return TP_OK;
}

static bool has_no_type(enum tp_event_kind kind)
{
    return kind == TP_EVENT_META || kind == TP_EVENT_END ||
           kind == TP_EVENT_FLOW_START || kind == TP_EVENT_FLOW_STEP ||
           kind == TP_EVENT_FLOW_END;
}

/* The end or a step of an async operation may leave the name to its begin. */
static bool leaves_name_out(const struct tp_event *ev)
{
    return ev->name.ptr == NULL &&
           (ev->kind == TP_EVENT_ASYNC_END || ev->kind == TP_EVENT_ASYNC_INSTANT);
}

int tp_admit_judge(struct tp_admit *a, struct tp_event *ev, enum tp_admission *out,
                   bool *is_untyped, struct tp_err *err)
{
    uint8_t flags = 0;
    bool refuses;
    int rc;

    *is_untyped = false;
    *out = TP_ADMIT_STORE;
    if (has_no_type(ev->kind))
        return TP_OK;
    rc = look_at_cat(a, ev, &flags, err);
    if (rc != TP_OK)
        return rc;
    *is_untyped = (flags & IS_UNTYPED) != 0;
    if (a->is_open)
        return TP_OK;
    refuses = (flags & IS_REFUSED) != 0;
    if (!refuses && a->judges_names && !leaves_name_out(ev)) {
        rc = look_at_name(a, ev, &refuses, err);
        if (rc != TP_OK)
            return rc;
    }
    if (!refuses && ev->kind == TP_EVENT_SLICE)
        refuses = (uint64_t)ev->dur_ns < a->min_duration_ns;
    if (refuses)
        *out = ev->kind == TP_EVENT_BEGIN ? TP_ADMIT_GHOST : TP_ADMIT_REFUSE;
    return TP_OK;
}

bool tp_admit_is_by_cat(const struct tp_admit *a, uint64_t *min_duration_ns)
{
    *min_duration_ns = a->is_open ? 0 : a->min_duration_ns;
    return a->is_open || !a->judges_names;
}
