/*
 * filter.c - names become two sets of ids once, so that the event path asks one bit.
 *
 * The two sets differ because a filter has two readers. Producers are told what to
 * record, and must be told even when nobody named anything. Ingest throws away what was
 * not wanted, and without a named type nothing is unwanted, not even an id that nobody
 * registered. RFC: filterActivities() and prepareTrace().
 */
#include "core/filter.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/glob.h"
#include "base/utf8.h"
#include "core/limits.h"

struct tp_filter {
    _Atomic unsigned n_refs;
    struct {
        struct tp_str *items; /* bytes belong to `bytes` */
        size_t n;
    } lists[TP_FILTER_LISTS];
    char *bytes; /* what all items point into */
    struct tp_typeset requested;
    struct tp_typeset accepted;
    uint64_t min_duration_ns;
};

/* What the functions that resolve a spec have in common. */
struct resolver {
    const struct tp_registry *registry;
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT]; /* one snapshot for all */
    size_t n_types;
    uint64_t max_entries;
    uint64_t max_entry_bytes;
    struct tp_filter_detail *detail;
    struct tp_err *err;
};

static const char *const list_names[TP_FILTER_LISTS] = {
    [TP_FILTER_INCLUDE] = "filter.include",
    [TP_FILTER_EXCLUDE] = "filter.exclude",
    [TP_FILTER_NAMES_INCLUDE] = "filter.names.include",
    [TP_FILTER_NAMES_EXCLUDE] = "filter.names.exclude",
};

const char *tp_filter_list_name(enum tp_filter_list which)
{
    return (unsigned)which < TP_FILTER_LISTS ? list_names[which] : "filter";
}

/* Note which entry is at fault and give it back, cut, for the message. */
static struct tp_str blame(const struct resolver *r, enum tp_filter_list list, size_t i,
                           struct tp_str item)
{
    struct tp_str shown = {item.ptr, tp_utf8_valid_prefix(item.ptr, item.len)};

    shown = tp_utf8_cut(shown, TP_FILTER_NAME_BYTES - 1);
    if (r->detail == NULL)
        return shown;
    memset(r->detail, 0, sizeof(*r->detail));
    snprintf(r->detail->field, sizeof(r->detail->field), "%s[%zu]", list_names[list],
             i);
    if (shown.len != 0)
        memcpy(r->detail->name, shown.ptr, shown.len);
    tp_detail_init(&r->detail->type, TP_REGISTRY_NO_REASON);
    return shown;
}

static int check_item(const struct resolver *r, enum tp_filter_list list, size_t i,
                      struct tp_str item)
{
    const char *name = list_names[list];
    int rc;

    if (item.len != 0 && item.len <= r->max_entry_bytes &&
        tp_utf8_is_valid(item.ptr, item.len)) {
        if (!tp_glob_is_pattern(item))
            return TP_OK;
        rc = tp_glob_check(item, r->err);
        if (rc != TP_OK) {
            blame(r, list, i, item);
            tp_fail_prefix(r->err, "%s[%zu]", name, i);
        }
        return rc;
    }
    blame(r, list, i, item);
    if (item.len == 0)
        return tp_fail(r->err, TP_EINVAL, "%s[%zu] is empty", name, i);
    if (item.len > r->max_entry_bytes)
        return tp_fail(r->err, TP_EINVAL,
                       "%s[%zu] has %zu bytes, max-filter-entry-bytes is %llu", name, i,
                       item.len, (unsigned long long)r->max_entry_bytes);
    return tp_fail(r->err, TP_EINVAL, "%s[%zu] is not valid UTF-8", name, i);
}

/* Check the form of every list before anything is allocated. */
static int check_lists(const struct resolver *r, const struct tp_filter_spec *spec)
{
    for (int list = 0; list < TP_FILTER_LISTS; list++) {
        const size_t n = spec->lists[list].n;
        int rc = TP_OK;

        if (n > r->max_entries) {
            blame(r, (enum tp_filter_list)list, r->max_entries, (struct tp_str){"", 0});
            return tp_fail(r->err, TP_EINVAL,
                           "%s has %zu entries, max-filter-entries is %llu",
                           list_names[list], n, (unsigned long long)r->max_entries);
        }
        for (size_t i = 0; i < n && rc == TP_OK; i++)
            rc =
                check_item(r, (enum tp_filter_list)list, i, spec->lists[list].items[i]);
        if (rc != TP_OK)
            return rc;
    }
    return TP_OK;
}

/* Keep the lists, so that they can be echoed and names can be matched. */
static int copy_lists(struct tp_filter *f, const struct tp_filter_spec *spec,
                      struct tp_err *err)
{
    size_t n_bytes = 1;
    char *at;

    for (int list = 0; list < TP_FILTER_LISTS; list++) {
        for (size_t i = 0; i < spec->lists[list].n; i++)
            n_bytes += spec->lists[list].items[i].len;
    }
    f->bytes = malloc(n_bytes);
    if (f->bytes == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a filter of %zu bytes", n_bytes);
    at = f->bytes;
    for (int list = 0; list < TP_FILTER_LISTS; list++) {
        const size_t n = spec->lists[list].n;
        struct tp_str *items = NULL;

        if (n == 0)
            continue;
        items = calloc(n, sizeof(*items));
        if (items == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for a filter of %zu entries", n);
        f->lists[list].items = items;
        f->lists[list].n = n;
        for (size_t i = 0; i < n; i++) {
            const struct tp_str item = spec->lists[list].items[i];

            memcpy(at, item.ptr, item.len);
            items[i] = (struct tp_str){at, item.len};
            at += item.len;
        }
    }
    return TP_OK;
}

/* Add every type whose name matches; returns how many did. */
static size_t add_matching(const struct resolver *r, struct tp_str pattern,
                           struct tp_typeset *set)
{
    size_t n = 0;

    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++) {
        if (tp_glob_matches(pattern, tp_str_of(tp_activity_cat(id)))) {
            tp_typeset_add(set, id);
            n++;
        }
    }
    for (size_t i = 0; i < r->n_types; i++) {
        if (tp_glob_matches(pattern, tp_type_full_name(r->types[i]))) {
            tp_typeset_add(set, r->types[i]->id);
            n++;
        }
    }
    return n;
}

/* Add what one entry of include or exclude names. */
static int resolve_item(const struct resolver *r, enum tp_filter_list list, size_t i,
                        struct tp_str item, struct tp_typeset *set)
{
    struct tp_registry_detail detail;
    struct tp_str shown;
    unsigned id;
    int rc;

    rc = tp_activity_from_string(r->registry, item, &id, &detail, r->err);
    /* A number that stands for an id without a name names nothing. */
    if (rc == TP_OK && tp_activity_cat(id) == NULL &&
        tp_registry_at(r->registry, id) == NULL) {
        tp_detail_init(&detail, TP_REGISTRY_UNKNOWN);
        rc = tp_fail(r->err, TP_ENOTFOUND, "no activity type has id %u", id);
    }
    if (rc == TP_OK) {
        tp_typeset_add(set, id);
        return TP_OK;
    }
    if (rc == TP_ENOTFOUND && tp_glob_is_pattern(item)) {
        if (add_matching(r, item, set) > 0)
            return TP_OK;
        tp_detail_init(&detail, TP_REGISTRY_UNKNOWN);
        shown = tp_utf8_cut(item, TP_FILTER_NAME_BYTES - 1);
        tp_fail(r->err, TP_ENOTFOUND, "no activity type matches '%.*s'", (int)shown.len,
                shown.ptr);
    }
    blame(r, list, i, item);
    if (r->detail != NULL)
        r->detail->type = detail;
    tp_fail_prefix(r->err, "%s[%zu]", list_names[list], i);
    if (r->err != NULL)
        r->err->code = TP_EINVAL;
    return TP_EINVAL;
}

static int resolve_list(const struct resolver *r, const struct tp_filter_spec *spec,
                        enum tp_filter_list list, struct tp_typeset *set)
{
    int rc = TP_OK;

    for (size_t i = 0; i < spec->lists[list].n && rc == TP_OK; i++)
        rc = resolve_item(r, list, i, spec->lists[list].items[i], set);
    return rc;
}

/* The static ids below n_static and all custom types. */
static struct tp_typeset known_types(const struct resolver *r, unsigned n_static)
{
    struct tp_typeset set = {{0}};

    for (unsigned id = 0; id < n_static; id++)
        tp_typeset_add(&set, id);
    for (size_t i = 0; i < r->n_types; i++)
        tp_typeset_add(&set, r->types[i]->id);
    return set;
}

static int resolve_types(const struct resolver *r, const struct tp_filter_spec *spec,
                         struct tp_filter *f)
{
    const bool has_include = spec->lists[TP_FILTER_INCLUDE].n != 0;
    const bool has_exclude = spec->lists[TP_FILTER_EXCLUDE].n != 0;
    struct tp_typeset include = {{0}};
    struct tp_typeset exclude = {{0}};
    int rc = resolve_list(r, spec, TP_FILTER_INCLUDE, &include);

    if (rc == TP_OK)
        rc = resolve_list(r, spec, TP_FILTER_EXCLUDE, &exclude);
    if (rc != TP_OK)
        return rc;
    f->accepted = tp_typeset_full();
    if (has_include) {
        f->requested = include;
        f->accepted = include;
    } else if (has_exclude) {
        f->requested = known_types(r, TP_ACTIVITY_STATIC_COUNT);
    } else {
        f->requested = known_types(r, TP_ACTIVITY_DEFAULT_COUNT);
    }
    tp_typeset_remove_all(&f->requested, &exclude);
    tp_typeset_remove_all(&f->accepted, &exclude);
    if (!tp_typeset_is_empty(&f->requested))
        return TP_OK;
    blame(r, TP_FILTER_EXCLUDE, 0, spec->lists[TP_FILTER_EXCLUDE].items[0]);
    return tp_fail(r->err, TP_EINVAL, "filter.exclude leaves no activity type");
}

int tp_filter_new(const struct tp_filter_spec *spec, const struct tp_registry *registry,
                  const struct tp_limits *limits, struct tp_filter **out,
                  struct tp_filter_detail *detail, struct tp_err *err)
{
    const struct tp_limits defaults = tp_limits_default();
    struct resolver r = {.registry = registry, .detail = detail, .err = err};
    struct tp_filter *f = NULL;
    int rc;

    if (limits == NULL)
        limits = &defaults;
    r.max_entries = limits->filter_entries;
    r.max_entry_bytes = limits->filter_entry_bytes;
    r.n_types = registry == NULL ? 0 : tp_registry_entries(registry, r.types);
    rc = check_lists(&r, spec);
    if (rc != TP_OK)
        return rc;
    f = calloc(1, sizeof(*f));
    if (f == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a filter");
    f->n_refs = 1;
    f->min_duration_ns = spec->min_duration_ns;
    rc = copy_lists(f, spec, err);
    if (rc == TP_OK)
        rc = resolve_types(&r, spec, f);
    if (rc != TP_OK) {
        tp_filter_unref(f);
        return rc;
    }
    *out = f;
    return TP_OK;
}

struct tp_filter *tp_filter_ref(struct tp_filter *f)
{
    /* Relaxed: whoever passes the pointer on has ordered that already. */
    atomic_fetch_add_explicit(&f->n_refs, 1, memory_order_relaxed);
    return f;
}

void tp_filter_unref(struct tp_filter *f)
{
    /* Release our reads before, acquire everybody's before the free. */
    if (f == NULL ||
        atomic_fetch_sub_explicit(&f->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int list = 0; list < TP_FILTER_LISTS; list++)
        free(f->lists[list].items);
    free(f->bytes);
    free(f);
}

bool tp_filter_has_types(const struct tp_filter *f)
{
    return f->lists[TP_FILTER_INCLUDE].n != 0 || f->lists[TP_FILTER_EXCLUDE].n != 0;
}

bool tp_filter_has_names(const struct tp_filter *f)
{
    return f->lists[TP_FILTER_NAMES_INCLUDE].n != 0 ||
           f->lists[TP_FILTER_NAMES_EXCLUDE].n != 0;
}

bool tp_filter_is_open(const struct tp_filter *f)
{
    return !tp_filter_has_types(f) && !tp_filter_has_names(f) &&
           f->min_duration_ns == 0;
}

const struct tp_typeset *tp_filter_requested(const struct tp_filter *f)
{
    return &f->requested;
}

const struct tp_typeset *tp_filter_accepted(const struct tp_filter *f)
{
    return &f->accepted;
}

bool tp_filter_accepts_type(const struct tp_filter *f, unsigned id)
{
    return tp_typeset_has(&f->accepted, id);
}

bool tp_filter_accepts_untyped(const struct tp_filter *f)
{
    return f->lists[TP_FILTER_INCLUDE].n == 0;
}

static bool matches_any(const struct tp_filter *f, enum tp_filter_list list,
                        struct tp_str name)
{
    for (size_t i = 0; i < f->lists[list].n; i++) {
        if (tp_glob_matches(f->lists[list].items[i], name))
            return true;
    }
    return false;
}

bool tp_filter_name_matches(const struct tp_filter *f, const char *p, size_t n)
{
    struct tp_str name = {p, n};

    if (f->lists[TP_FILTER_NAMES_INCLUDE].n != 0 &&
        !matches_any(f, TP_FILTER_NAMES_INCLUDE, name))
        return false;
    return !matches_any(f, TP_FILTER_NAMES_EXCLUDE, name);
}

uint64_t tp_filter_min_duration_ns(const struct tp_filter *f)
{
    return f->min_duration_ns;
}

const struct tp_str *tp_filter_items(const struct tp_filter *f,
                                     enum tp_filter_list which, size_t *n)
{
    *n = f->lists[which].n;
    return f->lists[which].items;
}
