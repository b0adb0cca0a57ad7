/*
 * type_counts.c - a sorted list, and its text:
 *
 *     <id> <emitted> <stored> <filtered> <dropped by cause>... \n
 *
 * Causes are appended to over time, so a line may have fewer of them.
 */
#include "core/type_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define FIXED 4 /* numbers before the causes */

void tp_type_counts_fini(struct tp_type_counts *c)
{
    free(c->items);
    *c = (struct tp_type_counts){0};
}

int tp_type_counts_get(struct tp_type_counts *c, unsigned id,
                       struct tp_type_count **out, struct tp_err *err)
{
    struct tp_type_count *items;
    size_t at = 0;

    if (id > 255)
        return tp_fail(err, TP_EINVAL, "type %u is over 255", id);
    while (at < c->n && c->items[at].id < id)
        at++;
    if (at < c->n && c->items[at].id == id) {
        *out = &c->items[at];
        return TP_OK;
    }
    items = realloc(c->items, (c->n + 1) * sizeof(*items));
    if (items == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the counts of a type");
    memmove(items + at + 1, items + at, (c->n - at) * sizeof(*items));
    items[at] = (struct tp_type_count){.id = id};
    c->items = items;
    c->n++;
    *out = &items[at];
    return TP_OK;
}

int tp_type_counts_take(struct tp_type_counts *to, const struct tp_type_counts *report,
                        struct tp_err *err)
{
    struct tp_type_counts taken = {0};
    struct tp_type_count *item;
    int rc = TP_OK;

    for (size_t i = 0; i < report->n && rc == TP_OK; i++) {
        rc = tp_type_counts_get(&taken, report->items[i].id, &item, err);
        if (rc == TP_OK) {
            *item = report->items[i];
            item->stored = 0;
        }
    }
    for (size_t i = 0; i < to->n && rc == TP_OK; i++) {
        if (to->items[i].stored == 0)
            continue;
        rc = tp_type_counts_get(&taken, to->items[i].id, &item, err);
        if (rc == TP_OK)
            item->stored = to->items[i].stored;
    }
    if (rc != TP_OK) {
        tp_type_counts_fini(&taken);
        return rc;
    }
    free(to->items);
    *to = taken;
    return TP_OK;
}

/* Add b to *a, up to UINT64_MAX. */
static void add(uint64_t *a, uint64_t b)
{
    *a = b > UINT64_MAX - *a ? UINT64_MAX : *a + b;
}

static uint64_t dropped(const struct tp_type_count *c)
{
    uint64_t sum = 0;

    for (int i = 0; i < TP_DROP_CAUSES; i++)
        add(&sum, c->dropped[i]);
    return sum;
}

static int differs(const char *what, uint64_t sum, uint64_t all, struct tp_err *err)
{
    return tp_fail(err, TP_EINVAL, "%s: %llu in all, but %llu by type", what,
                   (unsigned long long)all, (unsigned long long)sum);
}

int tp_type_counts_check(const struct tp_type_counts *c, const struct tp_counts *all,
                         struct tp_err *err)
{
    struct tp_type_count sum = {0};

    for (size_t i = 0; i < c->n; i++) {
        const struct tp_type_count *t = &c->items[i];
        uint64_t gone = dropped(t);

        if (t->filtered > t->emitted || gone > t->emitted - t->filtered)
            return tp_fail(
                err, TP_EINVAL,
                "type %u: %llu emitted are fewer than %llu filtered and %llu dropped",
                t->id, (unsigned long long)t->emitted, (unsigned long long)t->filtered,
                (unsigned long long)gone);
        add(&sum.emitted, t->emitted);
        add(&sum.filtered, t->filtered);
        for (int k = 0; k < TP_DROP_CAUSES; k++)
            add(&sum.dropped[k], t->dropped[k]);
    }
    if (c->n == 0)
        return TP_OK;
    if (sum.emitted != all->emitted)
        return differs("emitted", sum.emitted, all->emitted, err);
    if (sum.filtered != all->filtered)
        return differs("filtered", sum.filtered, all->filtered, err);
    for (int k = 0; k < TP_DROP_CAUSES; k++) {
        if (sum.dropped[k] != all->dropped[k])
            return differs(tp_drop_cause_name((enum tp_drop_cause)k), sum.dropped[k],
                           all->dropped[k], err);
    }
    return TP_OK;
}

struct tp_type_count tp_type_count_told(const struct tp_type_count *c, bool is_done,
                                        enum tp_drop_cause cause)
{
    struct tp_type_count told = *c;
    uint64_t known = c->stored;

    add(&known, c->filtered);
    add(&known, dropped(c));
    if (is_done && c->emitted > known)
        told.dropped[cause] += c->emitted - known;
    else
        told.emitted = known;
    return told;
}

int tp_type_counts_write(const struct tp_type_counts *c, struct tp_buf *out,
                         struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; i < c->n && rc == TP_OK; i++) {
        const struct tp_type_count *t = &c->items[i];

        rc = tp_buf_printf(out, err, "%u %llu %llu %llu", t->id,
                           (unsigned long long)t->emitted,
                           (unsigned long long)t->stored,
                           (unsigned long long)t->filtered);
        for (int k = 0; k < TP_DROP_CAUSES && rc == TP_OK; k++)
            rc = tp_buf_printf(out, err, " %llu", (unsigned long long)t->dropped[k]);
        if (rc == TP_OK)
            rc = tp_buf_append(out, "\n", 1, err);
    }
    return rc;
}

/* A decimal number and the character behind it; NULL: there is none. */
static const char *read_number(const char *p, const char *end, uint64_t *out)
{
    uint64_t v = 0;
    const char *start = p;

    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (v > (UINT64_MAX - (uint64_t)(*p - '0')) / 10)
            return NULL;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    *out = v;
    return p == start || p == end || (*p != ' ' && *p != '\n') ? NULL : p;
}

/* One line: its numbers. Returns what is behind it, or NULL. */
static const char *read_line(const char *p, const char *end,
                             uint64_t numbers[FIXED + TP_DROP_CAUSES], size_t *n)
{
    for (*n = 0; *n < FIXED + TP_DROP_CAUSES;) {
        p = read_number(p, end, &numbers[(*n)++]);
        if (p == NULL)
            return NULL;
        if (*p++ == '\n')
            return *n >= FIXED ? p : NULL;
    }
    return NULL;
}

int tp_type_counts_read(struct tp_str text, struct tp_type_counts *out,
                        struct tp_err *err)
{
    const char *end = text.ptr + text.len;
    int rc = TP_OK;

    for (const char *p = text.ptr; rc == TP_OK && p < end;) {
        uint64_t numbers[FIXED + TP_DROP_CAUSES] = {0};
        struct tp_type_count *t;
        size_t n;

        p = read_line(p, end, numbers, &n);
        if (p == NULL || numbers[0] > 255) {
            rc = tp_fail(err, TP_EINVAL, "the counts of types cannot be read");
            break;
        }
        rc = tp_type_counts_get(out, (unsigned)numbers[0], &t, err);
        if (rc != TP_OK)
            break;
        t->emitted = numbers[1];
        t->stored = numbers[2];
        t->filtered = numbers[3];
        memcpy(t->dropped, numbers + FIXED, sizeof(t->dropped));
    }
    if (rc != TP_OK)
        tp_type_counts_fini(out);
    return rc;
}
