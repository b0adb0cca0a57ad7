/*
 * activity.h - activity types: Kineto's closed list, the range of custom ids, and the
 * function that every process uses to compute a custom id.
 *
 * An id is what fits in a byte: 0 to 28 static, 50 to 254 custom; the others mean
 * nothing and are written as their decimal number. Static values shift between
 * versions of Kineto, so only names leave the process. Custom types live in a
 * registry (registry.h). Pure functions over const tables; safe from any thread.
 */
#ifndef TP_CORE_ACTIVITY_H
#define TP_CORE_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_registry;
struct tp_registry_detail;

/* libkineto's ActivityType, values and order as in its ActivityType.h. */
enum tp_activity {
    TP_ACTIVITY_CPU_OP,
    TP_ACTIVITY_USER_ANNOTATION,
    TP_ACTIVITY_GPU_USER_ANNOTATION,
    TP_ACTIVITY_GPU_MEMCPY,
    TP_ACTIVITY_GPU_MEMSET,
    TP_ACTIVITY_CONCURRENT_KERNEL,
    TP_ACTIVITY_EXTERNAL_CORRELATION,
    TP_ACTIVITY_CUDA_RUNTIME,
    TP_ACTIVITY_CUDA_DRIVER,
    TP_ACTIVITY_CPU_INSTANT_EVENT,
    TP_ACTIVITY_PYTHON_FUNCTION,
    TP_ACTIVITY_OVERHEAD,
    TP_ACTIVITY_MTIA_RUNTIME,
    TP_ACTIVITY_MTIA_CCP_EVENTS,
    TP_ACTIVITY_MTIA_INSIGHT,
    TP_ACTIVITY_CUDA_SYNC,
    TP_ACTIVITY_CUDA_EVENT,
    TP_ACTIVITY_MTIA_COUNTERS,
    TP_ACTIVITY_GLOW_RUNTIME, /* the first that is recorded only when asked for */
    TP_ACTIVITY_CUDA_PROFILER_RANGE,
    TP_ACTIVITY_HPU_OP,
    TP_ACTIVITY_XPU_RUNTIME,
    TP_ACTIVITY_XPU_DRIVER,
    TP_ACTIVITY_COLLECTIVE_COMM,
    TP_ACTIVITY_PRIVATEUSE1_RUNTIME,
    TP_ACTIVITY_PRIVATEUSE1_DRIVER,
    TP_ACTIVITY_XPU_SCOPE_PROFILER,
    TP_ACTIVITY_XPU_SYNC,
    TP_ACTIVITY_HARDWARE_COUNTERS,
    TP_ACTIVITY_STATIC_COUNT /* 29 */
};

#define TP_ACTIVITY_DEFAULT_COUNT TP_ACTIVITY_GLOW_RUNTIME /* ids 0 to 17 */
#define TP_ACTIVITY_CUSTOM_BASE 50u   /* the RFC's kCustomActivityTypeBase */
#define TP_ACTIVITY_CUSTOM_COUNT 205u /* ids 50 to 254 */
#define TP_ACTIVITY_CUSTOM_END 255u   /* one past the last custom id */
#define TP_ACTIVITY_UNTYPED 255u      /* no type has it: events without one */
#define TP_ACTIVITY_IDS 256u          /* every id fits in a byte */

/* Room for any activity's text and its NUL: "plugin.type_name" is the longest. */
#define TP_ACTIVITY_STRING_BYTES 192

/* PyTorch's device types, as far as an activity can imply one. */
enum tp_device_type {
    TP_DEVICE_CPU,
    TP_DEVICE_CUDA,
    TP_DEVICE_XPU,
    TP_DEVICE_MTIA,
    TP_DEVICE_HPU,
    TP_DEVICE_PRIVATEUSE1,
    TP_DEVICE_TYPES
};

/* The `cat` of a static type ("kernel"), or NULL for any other id. Static storage. */
const char *tp_activity_cat(unsigned id);

/* The enum name of a static type ("CONCURRENT_KERNEL"), or NULL. Static storage. */
const char *tp_activity_enum_name(unsigned id);

/* The static id whose `cat` is exactly s, or -1. */
int tp_activity_find_cat(struct tp_str s);

/* The static id whose enum name is exactly s, or -1. */
int tp_activity_find_enum_name(struct tp_str s);

/* Whether id is in the custom range, registered or not. */
bool tp_activity_is_custom(unsigned id);

/*
 * The device that an activity runs on, as PyTorch's deviceTypeFromActivity() without
 * a PrivateUse1 backend in place: ids from 50 up are PrivateUse1, unknown ones CPU.
 */
enum tp_device_type tp_activity_device_type(unsigned id);

/* PyTorch's name of a device type ("PrivateUse1"); "CPU" for values that are none. */
const char *tp_device_type_name(enum tp_device_type device);

/*
 * The RFC's hash over "plugin.type_name": not FNV-1a, and with collisions by
 * construction; docs/activity-types.md has the arithmetic. Any bytes are hashed.
 */
uint32_t tp_activity_hash(struct tp_str plugin, struct tp_str type_name);

/* The RFC's computeId(): hash modulo 205, plus 50; in [50, 255). */
unsigned tp_activity_compute_id(struct tp_str plugin, struct tp_str type_name);

/*
 * The RFC's toString(): the static name, else "plugin.type_name", else the decimal
 * number. Safe while others register.
 *
 * registry  may be NULL: then custom ids give their number.
 * id        any value.
 * out       at least TP_ACTIVITY_STRING_BYTES; NUL-terminated.
 *
 * Returns the length without the NUL.
 */
size_t tp_activity_to_string(const struct tp_registry *registry, unsigned id,
                             char *out);

/*
 * The RFC's toActivityType(), in this order: a static `cat`; "plugin.type_name"; a bare
 * custom type name or an enum name; the decimal number of an id that has no name. So
 * every id 0 to 255 comes back from its text.
 *
 * registry  may be NULL: then only static names and numbers are known.
 * id        set on success only.
 * detail    may be NULL; on failure it holds the candidates or the nearest names.
 *
 * TP_ENOTFOUND   no such type.
 * TP_EAMBIGUOUS  a bare name that several plugins have, or that is an enum name too.
 */
int tp_activity_from_string(const struct tp_registry *registry, struct tp_str s,
                            unsigned *id, struct tp_registry_detail *detail,
                            struct tp_err *err);

#endif
