/*
 * detail.h - what a program needs to know about a refused activity type or name.
 *
 * The message of a struct tp_err is for people; this goes beside it and becomes the
 * fields of a problem document. Plain data, owning nothing; one per caller.
 */
#ifndef TP_CORE_DETAIL_H
#define TP_CORE_DETAIL_H

#include <stddef.h>

#include "base/str.h"
#include "core/activity.h"

struct tp_registry;

/* Why a call failed, beside the code. */
enum tp_registry_reason {
    TP_REGISTRY_NO_REASON,
    TP_REGISTRY_BAD_SPEC,  /* TP_EINVAL: `field` says which member */
    TP_REGISTRY_COLLISION, /* TP_EEXIST: `holder_*` has the id */
    TP_REGISTRY_FROZEN,    /* TP_ESTATE: a trace holds the registry */
    TP_REGISTRY_FULL,      /* TP_EQUOTA */
    TP_REGISTRY_UNKNOWN,   /* TP_ENOTFOUND: `names` are the nearest */
    TP_REGISTRY_AMBIGUOUS  /* TP_EAMBIGUOUS: `names` are the candidates */
};

#define TP_REGISTRY_DETAIL_NAMES 8

/* Plain data, owning nothing; written by functions that fail with a reason. */
struct tp_registry_detail {
    enum tp_registry_reason reason;
    size_t index; /* which spec of a batch; 0 for one */
    const char
        *field;  /* static: "plugin", "type_name", ...; "" when no member is meant */
    unsigned id; /* the id in dispute; 0 when there is none */
    unsigned holder_id;                         /* of a COLLISION: equals id */
    char holder_name[TP_ACTIVITY_STRING_BYTES]; /* its "plugin.type_name" */
    size_t n_names;                             /* valid places of names */
    size_t n_found; /* how many there are in all, which may be more */
    char names[TP_REGISTRY_DETAIL_NAMES][TP_ACTIVITY_STRING_BYTES];
};

/* Start a detail: this reason, nothing else. NULL is allowed and ignored. */
void tp_detail_init(struct tp_registry_detail *detail, enum tp_registry_reason reason);

/* Add a candidate. It counts in n_found always, and is kept while there is room. NULL
 * is allowed and ignored. Longer names than any type's are cut. */
void tp_detail_add(struct tp_registry_detail *detail, struct tp_str name);

/*
 * Start a detail of reason UNKNOWN with the known names nearest to `wanted`, at most
 * TP_NAMES_NEAREST: static `cat` strings and full names of r, which may be NULL.
 */
void tp_detail_suggest(struct tp_registry_detail *detail, const struct tp_registry *r,
                       struct tp_str wanted);

#endif
