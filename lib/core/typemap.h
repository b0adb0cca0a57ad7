/*
 * typemap.h - a frozen copy of the names of a registry, for the event path.
 *
 * It maps the `cat` of an event to an activity id and back. A `cat` is a static name or
 * a full "plugin.type_name"; a bare custom name, an enum name or a number is not taken
 * for a type, since data must not change its meaning when another plugin registers.
 * Immutable after tp_typemap_new(), so any thread may read it; shared by counting.
 */
#ifndef TP_CORE_TYPEMAP_H
#define TP_CORE_TYPEMAP_H

#include <stddef.h>

#include "base/str.h"

struct tp_err;
struct tp_registry;
struct tp_typemap; /* opaque */

/*
 * Copy the static names and those of a registry as they are now.
 *
 * r    may be NULL: static names only. It may be freed before the map.
 * out  one reference; release with tp_typemap_unref().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_typemap_new(const struct tp_registry *r, struct tp_typemap **out,
                   struct tp_err *err);

/* Take one more reference; returns m. */
struct tp_typemap *tp_typemap_ref(struct tp_typemap *m);

/* Give one reference back; the last frees. NULL is allowed. */
void tp_typemap_unref(struct tp_typemap *m);

/* The id of a `cat` of n bytes, or -1 when it is no known type. */
int tp_typemap_find(const struct tp_typemap *m, const char *p, size_t n);

/*
 * What to write as the `cat` of an id: its name, or its decimal number.
 *
 * id  0 to 255; above gives the empty string.
 *
 * The bytes live as long as the map and are NUL-terminated.
 */
struct tp_str tp_typemap_name(const struct tp_typemap *m, unsigned id);

#endif
