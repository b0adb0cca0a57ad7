/*
 * registry.h - the custom activity types of one job: plugin.type_name <-> id.
 *
 * It follows the RFC "Dynamic ActivityType Registration" and repairs it: collisions
 * are detected, names are validated, failures are typed. It stores nothing and knows
 * no jobs or traces; a trace shows up only as a freeze. Thread-safe: every function
 * may be called from any thread, except new and free. Types are never removed, so a
 * const struct tp_type * stays valid and unchanged until tp_registry_free(). Readers
 * take no lock. Lock order: the registry's lock is a leaf.
 */
#ifndef TP_CORE_REGISTRY_H
#define TP_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/activity.h"
#include "core/detail.h"
#include "core/type.h"

struct tp_err;
struct tp_registry;

enum tp_collision_policy {
    TP_COLLISION_REJECT, /* a second type with the same id is refused */
    TP_COLLISION_PROBE   /* it gets the next free id and is marked resolved */
};

/* Plain data; zero means default. */
struct tp_registry_options {
    enum tp_collision_policy on_collision;
    size_t max_types; /* 1 to 205; 0 = 205 */
};

/* What a registration gave. Plain data. */
struct tp_registration {
    unsigned id; /* 0 = none: the RFC's sentinel. 0 is also CPU_OP, so look
                                   at the returned code, never only here */
    const struct tp_type *type; /* NULL when there is none */
    bool is_new;                /* false: it was there already */
    bool kind_differs; /* the request asked for another kind than the type has, */
    bool unit_differs; /* another unit, or another description: the first wins */
    bool description_differs;
};

/*
 * Create an empty registry.
 *
 * options  may be NULL for the defaults; copied.
 * out      release with tp_registry_free().
 *
 * TP_EINVAL  max_types is above 205. TP_ENOMEM. Nothing was created.
 */
int tp_registry_new(const struct tp_registry_options *options, struct tp_registry **out,
                    struct tp_err *err);

/* Release a registry and all its types. NULL is allowed. No other user may be left. */
void tp_registry_free(struct tp_registry *r);

/*
 * Register a type, or find it: idempotent by (plugin, type_name), frozen or not.
 *
 * out     on failure id is 0 and type NULL, nothing else is promised; so the RFC's
 *         sentinel can be passed on.
 * detail  may be NULL; written on failure.
 *
 * TP_EINVAL  bad spec. TP_EEXIST  collision under REJECT. TP_ESTATE  new and frozen.
 * TP_EQUOTA  full. TP_ENOMEM. Nothing was registered.
 */
int tp_registry_register(struct tp_registry *r, const struct tp_type_spec *spec,
                         struct tp_registration *out, struct tp_registry_detail *detail,
                         struct tp_err *err);

/*
 * Register n types, all or none, as n calls of tp_registry_register() would. Specs
 * that name the same type twice give it once. detail->index names the culprit.
 *
 * out  n places; on failure all have id 0 and type NULL.
 */
int tp_registry_register_many(struct tp_registry *r, const struct tp_type_spec *specs,
                              size_t n, struct tp_registration *out,
                              struct tp_registry_detail *detail, struct tp_err *err);

/* The new types of one registration, which nobody else sees yet. */
struct tp_registry_plan {
    struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT]; /* owned */
    size_t n;
    size_t n_before; /* private: types that were there */
};

/*
 * The first half of tp_registry_register_many(), for callers who write the new types
 * down before anybody can rely on them.
 *
 * out   as there; its types are those of the plan where they are new.
 * plan  end it with tp_registry_publish() or tp_registry_drop(). Until then the caller
 *       keeps everybody from registering in r; ids could clash otherwise (assert).
 *
 * Errors as there, and no plan.
 */
int tp_registry_plan(struct tp_registry *r, const struct tp_type_spec *specs, size_t n,
                     struct tp_registration *out, struct tp_registry_plan *plan,
                     struct tp_registry_detail *detail, struct tp_err *err);

/* The second half: the types of the plan are in the registry, and the registry's. */
void tp_registry_publish(struct tp_registry *r, struct tp_registry_plan *plan);

/* Give a plan up: its types are released. All-zero is allowed. */
void tp_registry_drop(struct tp_registry_plan *plan);

/*
 * Put a type that was registered in an earlier life back at its id, whatever the
 * policy is now. Frozen or not; known with that id is fine.
 *
 * TP_EINVAL  bad spec, or an id outside 50 to 254. TP_EEXIST  the id or the name is
 * taken otherwise. TP_EQUOTA, TP_ENOMEM. Nothing was registered.
 */
int tp_registry_restore(struct tp_registry *r, const struct tp_type_spec *spec,
                        unsigned id, struct tp_registry_detail *detail,
                        struct tp_err *err);

/* Refuse new types until the matching unfreeze; freezes count. One per active trace. */
void tp_registry_freeze(struct tp_registry *r);

/* Undo one freeze. More of these than of freezes is the caller's bug (assert). */
void tp_registry_unfreeze(struct tp_registry *r);

/* Whether a freeze is in force. */
bool tp_registry_is_frozen(const struct tp_registry *r);

/* For those who fork(): nobody registers between the two, and in the child the registry
 * is whole and free. The thread that holds it only lets it go. */
void tp_registry_hold(struct tp_registry *r);
void tp_registry_let_go(struct tp_registry *r);

/* The number of types; it only grows, so it can serve as a version. */
size_t tp_registry_len(const struct tp_registry *r);

/* The type with that id, or NULL; r may be NULL. Lock-free. */
const struct tp_type *tp_registry_at(const struct tp_registry *r, unsigned id);

/* The RFC's toCatString(): "plugin.type_name", or NULL; r may be NULL. Lock-free; lives
 * as long as r. */
const char *tp_registry_cat(const struct tp_registry *r, unsigned id);

/* The type with that plugin and type name, or NULL; r may be NULL. Lock-free. */
const struct tp_type *tp_registry_find(const struct tp_registry *r,
                                       struct tp_str plugin, struct tp_str type_name);

/*
 * The RFC's lookup() among custom types: a full name, split at its first `.`, or a bare
 * type name that one plugin has. (A bare name may hold a `.`; the full name is tried
 * first.) Static names are tp_activity_from_string()'s business.
 *
 * r  may be NULL: then no name is known.
 *
 * TP_ENOTFOUND   none; detail has the nearest names, static ones included.
 * TP_EAMBIGUOUS  several plugins have the bare name; detail lists them.
 */
int tp_registry_lookup(const struct tp_registry *r, struct tp_str name,
                       const struct tp_type **out, struct tp_registry_detail *detail,
                       struct tp_err *err);

/*
 * A snapshot of the types in order of registration.
 *
 * out  room for TP_ACTIVITY_CUSTOM_COUNT pointers.
 *
 * Returns how many were written.
 */
size_t tp_registry_entries(const struct tp_registry *r, const struct tp_type **out);

#endif
