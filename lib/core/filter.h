/*
 * filter.h - what a trace keeps, resolved against a registry once.
 *
 * Immutable after tp_filter_new(), so any thread may read it; shared by counting. It
 * judges types, names and durations; which phases of events have a type at all
 * (metadata and flows have none) is the caller's knowledge. What the client wrote is
 * kept to be echoed; this room does not format it.
 */
#ifndef TP_CORE_FILTER_H
#define TP_CORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/registry.h"
#include "core/typeset.h"

struct tp_err;
struct tp_filter; /* opaque */
struct tp_limits;

/* The four lists of a filter, and their field names in the API. */
enum tp_filter_list {
    TP_FILTER_INCLUDE,       /* "filter.include" */
    TP_FILTER_EXCLUDE,       /* "filter.exclude" */
    TP_FILTER_NAMES_INCLUDE, /* "filter.names.include" */
    TP_FILTER_NAMES_EXCLUDE, /* "filter.names.exclude" */
    TP_FILTER_LISTS
};

/*
 * Plain data: a filter as written. The zero value filters nothing. An empty list is the
 * same as none. Strings are borrowed for the call.
 *
 * The entries of include and exclude are names as tp_activity_from_string() takes them
 * (but no numbers), or shell patterns over static `cat` strings and full custom names.
 * An exact name is tried before a pattern.
 */
struct tp_filter_spec {
    struct {
        const struct tp_str *items;
        size_t n;
    } lists[TP_FILTER_LISTS];
    uint64_t min_duration_ns; /* slices that are shorter are dropped; 0 = none */
};

#define TP_FILTER_NAME_BYTES 256

/* Plain data: which entry of a spec was refused and why. */
struct tp_filter_detail {
    char field[48];                  /* such as "filter.include[2]" */
    char name[TP_FILTER_NAME_BYTES]; /* the entry, cut to fit; valid UTF-8 */
    struct tp_registry_detail type;  /* reason, candidates or nearest names */
};

/*
 * Resolve a filter.
 *
 * registry  may be NULL (static types only). What registers later is not in the filter.
 * limits    may be NULL for the defaults of core/limits.h.
 * out       one reference; release with tp_filter_unref().
 * detail    may be NULL; written on TP_EINVAL.
 *
 * TP_EINVAL  an entry is empty, too long, not UTF-8, unknown, ambiguous or a broken
 *            pattern, a list is too long, or exclude leaves no type of include.
 * TP_ENOMEM. Nothing was created.
 */
int tp_filter_new(const struct tp_filter_spec *spec, const struct tp_registry *registry,
                  const struct tp_limits *limits, struct tp_filter **out,
                  struct tp_filter_detail *detail, struct tp_err *err);

/* Take one more reference; returns f. */
struct tp_filter *tp_filter_ref(struct tp_filter *f);

/* Give one reference back; the last frees. NULL is allowed. */
void tp_filter_unref(struct tp_filter *f);

/* Whether include or exclude names anything; if not, ingest drops no type. */
bool tp_filter_has_types(const struct tp_filter *f);

/* Whether the filter, after all, keeps everything. */
bool tp_filter_is_open(const struct tp_filter *f);

/*
 * What producers are asked to record, as the RFC's prepareTrace(): the included types;
 * without include but with exclude all static and custom types; with neither, the
 * static defaults 0 to 17 and all custom types; less what is excluded. Borrowed.
 */
const struct tp_typeset *tp_filter_requested(const struct tp_filter *f);

/*
 * What ingest lets through: all 256 ids when no type is named; with include the same
 * as requested; with exclude only all ids but those. Borrowed.
 */
const struct tp_typeset *tp_filter_accepted(const struct tp_filter *f);

/* Whether ingest lets an event of type id (0 to 255) through. */
bool tp_filter_accepts_type(const struct tp_filter *f, unsigned id);

/* Whether an event whose `cat` is no known type passes: there is no include list. */
bool tp_filter_accepts_untyped(const struct tp_filter *f);

/* Whether names.include or names.exclude has an entry. */
bool tp_filter_has_names(const struct tp_filter *f);

/*
 * Whether an event name passes: it matches a pattern of names.include, or there is
 * none, and matches no pattern of names.exclude. Any bytes.
 */
bool tp_filter_name_matches(const struct tp_filter *f, const char *p, size_t n);

/* Slices shorter than this, in nanoseconds, do not pass; 0 = all pass. */
uint64_t tp_filter_min_duration_ns(const struct tp_filter *f);

/* One list as the client wrote it; *n gets its length. Borrowed from f. */
const struct tp_str *tp_filter_items(const struct tp_filter *f,
                                     enum tp_filter_list which, size_t *n);

/* The field name of a list: "filter.include", ...; static storage. */
const char *tp_filter_list_name(enum tp_filter_list which);

#endif
