/*
 * types.h - activity types: register, list, look up.
 *
 * A registration is in the store before it is acknowledged. Job names: 1 to 63 bytes of
 * [A-Za-z0-9._-], not starting with a dot; the empty one means "default". Thread-safe.
 */
#ifndef TP_ENGINE_TYPES_H
#define TP_ENGINE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/activity.h"
#include "core/registry.h"
#include "engine/now.h"

struct tp_engine;
struct tp_err;
struct tp_problem;

/* One type, static or custom. Strings belong to the list or live as long as the
 * engine; texts that are absent are "". Plain data. */
struct tp_type_view {
    unsigned id;
    bool is_custom;
    bool is_resolved;  /* the id is not the hash's: a collision was probed */
    bool is_new;       /* of a registration: 201, else 200 */
    bool kind_differs; /* of a registration: the first one's kind, unit or */
    bool unit_differs; /* description stayed, this request asked for another */
    bool description_differs;
    uint32_t hash;         /* of custom types */
    const char *job;       /* "" for static types */
    const char *plugin;    /* "" for static types */
    const char *type_name; /* of static types the name, such as "kernel" */
    const char *name;      /* "plugin.type_name", or the static name */
    const char *enum_name; /* static: "CONCURRENT_KERNEL"; "" for custom */
    const char *description;
    const char *unit;
    enum tp_type_kind kind;
    enum tp_device_type device_type;
};

/* A list that a call made; release with tp_type_list_free(). */
struct tp_type_list {
    size_t n;
    bool has_more;               /* the limit cut it: go on with cursor = last id */
    struct tp_type_view items[]; /* n of them */
};

/* Release a list. NULL is allowed. */
void tp_type_list_free(struct tp_type_list *list);

/*
 * Register n types in one job, all or none.
 *
 * job      empty for "default"; the job is made when it is new.
 * out      n views, in the order of specs; with is_new each.
 * problem  may be NULL. On REGISTRY_FROZEN problem->type.id is the RFC's 0.
 *
 * TP_EINVAL  bad job or spec (field). TP_EEXIST  id collision. TP_ESTATE  new types
 * while a trace holds the registry. TP_EQUOTA  too many types or jobs. TP_EIO.
 * TP_ENOMEM. Nothing was registered.
 */
int tp_engine_types_register(struct tp_engine *e, struct tp_str job,
                             const struct tp_type_spec *specs, size_t n,
                             struct tp_now now, struct tp_type_list **out,
                             struct tp_problem *problem, struct tp_err *err);

enum tp_type_scope { TP_TYPES_ALL, TP_TYPES_STATIC, TP_TYPES_CUSTOM };

/*
 * List types in order of id: those of one job.
 *
 * job     empty for "default". A job that nobody has used yet has the static types
 * only. after   list ids above this; -1 for all.
 * limit   most items; 0 = all.
 *
 * TP_EINVAL  bad job name. TP_ENOMEM.
 */
int tp_engine_types_list(struct tp_engine *e, struct tp_str job,
                         enum tp_type_scope scope, int after, size_t limit,
                         struct tp_type_list **out, struct tp_problem *problem,
                         struct tp_err *err);

/*
 * Get one type by id or by any name that tp_activity_from_string() takes.
 *
 * out  a list of one.
 *
 * TP_ENOTFOUND  no such type (UNKNOWN_TYPE with the nearest names, or an id that nobody
 * has). TP_EAMBIGUOUS  several (AMBIGUOUS_NAME with them). TP_EINVAL, TP_ENOMEM.
 */
int tp_engine_type_get(struct tp_engine *e, struct tp_str job, struct tp_str id_or_name,
                       struct tp_type_list **out, struct tp_problem *problem,
                       struct tp_err *err);

#endif
