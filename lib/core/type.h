/*
 * type.h - one custom activity type: what a client asks for and what is registered.
 *
 * Data and the rules for names. Who has which id is registry.h's business. Pure
 * functions; safe from any thread.
 */
#ifndef TP_CORE_TYPE_H
#define TP_CORE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "core/activity.h"

struct tp_err;

/* Name limits. They are part of the format of traces, so they are not settings. */
#define TP_TYPE_PLUGIN_MAX_BYTES 63
#define TP_TYPE_NAME_MAX_BYTES 127
#define TP_TYPE_UNIT_MAX_BYTES 31
#define TP_TYPE_DESCRIPTION_MAX_BYTES 1024

/* What an event of the type is. UNSET in a request means "no opinion". */
enum tp_type_kind {
    TP_TYPE_KIND_UNSET,
    TP_TYPE_SLICE, /* what a type is when nobody says otherwise */
    TP_TYPE_INSTANT,
    TP_TYPE_COUNTER,
    TP_TYPE_KINDS
};

/* Plain data: what a client asks for. Strings are borrowed for the call. */
struct tp_type_spec {
    struct tp_str plugin;      /* 1 to 63 bytes of [A-Za-z0-9_-] */
    struct tp_str type_name;   /* 1 to 127 printable ASCII bytes; type.c has more */
    struct tp_str description; /* up to 1024 bytes of UTF-8; may be empty */
    struct tp_str unit; /* up to 31 bytes of UTF-8, such as "GB/s"; may be empty */
    enum tp_type_kind kind;
};

/* Plain data: one registered type. Immutable. All strings are NUL-terminated. */
struct tp_type {
    unsigned id;      /* 50 to 254 */
    uint32_t hash;    /* tp_activity_hash() */
    bool is_resolved; /* id is not the one the hash gives: a collision was probed */
    enum tp_type_kind kind; /* never UNSET */
    uint16_t plugin_bytes;
    uint16_t name_bytes; /* of name; type_name starts at name + plugin_bytes + 1 */
    char plugin[TP_TYPE_PLUGIN_MAX_BYTES + 1];
    char name[TP_ACTIVITY_STRING_BYTES]; /* "plugin.type_name" */
    const char *type_name;               /* points into name */
    char unit[TP_TYPE_UNIT_MAX_BYTES + 1];
    const char *description; /* "" when none was given */
};

/* Stable names: "slice", "instant", "counter"; "unset" for anything else. */
const char *tp_type_kind_name(enum tp_type_kind kind);

/* The kind of that name, or -1. */
int tp_type_kind_find(struct tp_str name);

/*
 * Check the strings and the kind of a spec.
 *
 * field  set on failure to the member at fault ("plugin", "type_name", "kind", "unit",
 *        "description"); static storage; may be NULL.
 *
 * TP_EINVAL  a member breaks its rule; the message tells which and the rule.
 */
int tp_type_check(const struct tp_type_spec *spec, const char **field,
                  struct tp_err *err);

/* The name without the plugin; lives as long as t. */
static inline struct tp_str tp_type_bare_name(const struct tp_type *t)
{
    return (struct tp_str){t->type_name, (size_t)t->name_bytes - t->plugin_bytes - 1};
}

/* "plugin.type_name"; lives as long as t. */
static inline struct tp_str tp_type_full_name(const struct tp_type *t)
{
    return (struct tp_str){t->name, t->name_bytes};
}

#endif
