/*
 * activity.c - Kineto's list (libkineto/include/ActivityType.h, 2026-08) and the RFC's
 * id arithmetic.
 *
 * The device column is PyTorch's deviceTypeFromActivity(): what it does not list falls
 * into its default, CPU. That looks wrong for cuda_event, mtia_runtime and others; it
 * is what their consumers see, so it is what we say.
 */
#include "core/activity.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/registry.h"

static const struct {
    const char *cat;
    const char *enum_name;
    enum tp_device_type device;
} statics[TP_ACTIVITY_STATIC_COUNT] = {
    [TP_ACTIVITY_CPU_OP] = {"cpu_op", "CPU_OP", TP_DEVICE_CPU},
    [TP_ACTIVITY_USER_ANNOTATION] = {"user_annotation", "USER_ANNOTATION",
                                     TP_DEVICE_CPU},
    [TP_ACTIVITY_GPU_USER_ANNOTATION] = {"gpu_user_annotation", "GPU_USER_ANNOTATION",
                                         TP_DEVICE_CUDA},
    [TP_ACTIVITY_GPU_MEMCPY] = {"gpu_memcpy", "GPU_MEMCPY", TP_DEVICE_CUDA},
    [TP_ACTIVITY_GPU_MEMSET] = {"gpu_memset", "GPU_MEMSET", TP_DEVICE_CUDA},
    [TP_ACTIVITY_CONCURRENT_KERNEL] = {"kernel", "CONCURRENT_KERNEL", TP_DEVICE_CUDA},
    [TP_ACTIVITY_EXTERNAL_CORRELATION] = {"external_correlation",
                                          "EXTERNAL_CORRELATION", TP_DEVICE_CPU},
    [TP_ACTIVITY_CUDA_RUNTIME] = {"cuda_runtime", "CUDA_RUNTIME", TP_DEVICE_CPU},
    [TP_ACTIVITY_CUDA_DRIVER] = {"cuda_driver", "CUDA_DRIVER", TP_DEVICE_CPU},
    [TP_ACTIVITY_CPU_INSTANT_EVENT] = {"cpu_instant_event", "CPU_INSTANT_EVENT",
                                       TP_DEVICE_CPU},
    [TP_ACTIVITY_PYTHON_FUNCTION] = {"python_function", "PYTHON_FUNCTION",
                                     TP_DEVICE_CPU},
    [TP_ACTIVITY_OVERHEAD] = {"overhead", "OVERHEAD", TP_DEVICE_CPU},
    [TP_ACTIVITY_MTIA_RUNTIME] = {"mtia_runtime", "MTIA_RUNTIME", TP_DEVICE_CPU},
    [TP_ACTIVITY_MTIA_CCP_EVENTS] = {"mtia_ccp_events", "MTIA_CCP_EVENTS",
                                     TP_DEVICE_MTIA},
    [TP_ACTIVITY_MTIA_INSIGHT] = {"mtia_insight", "MTIA_INSIGHT", TP_DEVICE_MTIA},
    [TP_ACTIVITY_CUDA_SYNC] = {"cuda_sync", "CUDA_SYNC", TP_DEVICE_CUDA},
    [TP_ACTIVITY_CUDA_EVENT] = {"cuda_event", "CUDA_EVENT", TP_DEVICE_CPU},
    [TP_ACTIVITY_MTIA_COUNTERS] = {"mtia_counters", "MTIA_COUNTERS", TP_DEVICE_MTIA},
    [TP_ACTIVITY_GLOW_RUNTIME] = {"glow_runtime", "GLOW_RUNTIME", TP_DEVICE_CPU},
    [TP_ACTIVITY_CUDA_PROFILER_RANGE] = {"cuda_profiler_range", "CUDA_PROFILER_RANGE",
                                         TP_DEVICE_CUDA},
    [TP_ACTIVITY_HPU_OP] = {"hpu_op", "HPU_OP", TP_DEVICE_HPU},
    [TP_ACTIVITY_XPU_RUNTIME] = {"xpu_runtime", "XPU_RUNTIME", TP_DEVICE_CPU},
    [TP_ACTIVITY_XPU_DRIVER] = {"xpu_driver", "XPU_DRIVER", TP_DEVICE_CPU},
    [TP_ACTIVITY_COLLECTIVE_COMM] = {"collective_comm", "COLLECTIVE_COMM",
                                     TP_DEVICE_CPU},
    [TP_ACTIVITY_PRIVATEUSE1_RUNTIME] = {"privateuse1_runtime", "PRIVATEUSE1_RUNTIME",
                                         TP_DEVICE_CPU},
    [TP_ACTIVITY_PRIVATEUSE1_DRIVER] = {"privateuse1_driver", "PRIVATEUSE1_DRIVER",
                                        TP_DEVICE_CPU},
    [TP_ACTIVITY_XPU_SCOPE_PROFILER] = {"xpu_scope_profiler", "XPU_SCOPE_PROFILER",
                                        TP_DEVICE_XPU},
    [TP_ACTIVITY_XPU_SYNC] = {"xpu_sync", "XPU_SYNC", TP_DEVICE_CPU},
    [TP_ACTIVITY_HARDWARE_COUNTERS] = {"hardware_counters", "HARDWARE_COUNTERS",
                                       TP_DEVICE_CPU},
};

const char *tp_activity_cat(unsigned id)
{
    return id < TP_ACTIVITY_STATIC_COUNT ? statics[id].cat : NULL;
}

const char *tp_activity_enum_name(unsigned id)
{
    return id < TP_ACTIVITY_STATIC_COUNT ? statics[id].enum_name : NULL;
}

int tp_activity_find_cat(struct tp_str s)
{
    for (int i = 0; i < TP_ACTIVITY_STATIC_COUNT; i++) {
        if (tp_str_is(s, statics[i].cat))
            return i;
    }
    return -1;
}

int tp_activity_find_enum_name(struct tp_str s)
{
    for (int i = 0; i < TP_ACTIVITY_STATIC_COUNT; i++) {
        if (tp_str_is(s, statics[i].enum_name))
            return i;
    }
    return -1;
}

bool tp_activity_is_custom(unsigned id)
{
    return id >= TP_ACTIVITY_CUSTOM_BASE && id < TP_ACTIVITY_CUSTOM_END;
}

enum tp_device_type tp_activity_device_type(unsigned id)
{
    if (id >= TP_ACTIVITY_CUSTOM_BASE)
        return TP_DEVICE_PRIVATEUSE1;
    return id < TP_ACTIVITY_STATIC_COUNT ? statics[id].device : TP_DEVICE_CPU;
}

const char *tp_device_type_name(enum tp_device_type device)
{
    static const char *const names[TP_DEVICE_TYPES] = {
        [TP_DEVICE_CPU] = "CPU", [TP_DEVICE_CUDA] = "CUDA",
        [TP_DEVICE_XPU] = "XPU", [TP_DEVICE_MTIA] = "MTIA",
        [TP_DEVICE_HPU] = "HPU", [TP_DEVICE_PRIVATEUSE1] = "PrivateUse1",
    };

    return (unsigned)device < TP_DEVICE_TYPES ? names[device] : names[TP_DEVICE_CPU];
}

#define HASH_START UINT32_C(216512456)
#define HASH_MULTIPLIER UINT32_C(1234)

static uint32_t hash_bytes(uint32_t hash, struct tp_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * HASH_MULTIPLIER;
    return hash;
}

uint32_t tp_activity_hash(struct tp_str plugin, struct tp_str type_name)
{
    uint32_t hash = hash_bytes(HASH_START, plugin);

    return hash_bytes(hash_bytes(hash, (struct tp_str){".", 1}), type_name);
}

unsigned tp_activity_compute_id(struct tp_str plugin, struct tp_str type_name)
{
    uint32_t hash = tp_activity_hash(plugin, type_name);

    return TP_ACTIVITY_CUSTOM_BASE + hash % TP_ACTIVITY_CUSTOM_COUNT;
}

size_t tp_activity_to_string(const struct tp_registry *registry, unsigned id, char *out)
{
    const char *name = tp_activity_cat(id);
    const struct tp_type *type = NULL;
    int n;

    if (name == NULL)
        type = tp_registry_at(registry, id);
    if (type != NULL)
        name = type->name;
    if (name != NULL)
        n = snprintf(out, TP_ACTIVITY_STRING_BYTES, "%s", name);
    else
        n = snprintf(out, TP_ACTIVITY_STRING_BYTES, "%u", id);
    return (size_t)n;
}

/* The value of a canonical decimal number 0 to 255, or -1. */
static int parse_number(struct tp_str s)
{
    int value = 0;

    if (s.len == 0 || s.len > 3 || (s.len > 1 && s.ptr[0] == '0'))
        return -1;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return -1;
        value = value * 10 + (s.ptr[i] - '0');
    }
    return value < (int)TP_ACTIVITY_IDS ? value : -1;
}

/* An enum name that custom types have as their bare name too. */
static int fail_two_readings(const struct tp_registry *registry, struct tp_str s,
                             unsigned static_id, struct tp_registry_detail *detail,
                             struct tp_err *err)
{
    const char *cat = tp_activity_cat(static_id);
    const struct tp_type *type;

    if (tp_registry_lookup(registry, s, &type, detail, NULL) == TP_OK) {
        tp_detail_init(detail, TP_REGISTRY_AMBIGUOUS);
        tp_detail_add(detail, tp_type_full_name(type));
    }
    tp_detail_add(detail, tp_str_of(cat));
    return tp_fail(err, TP_EAMBIGUOUS,
                   "'%.*s' is the static type '%s' and the type_name of a custom one",
                   (int)s.len, s.ptr, cat);
}

int tp_activity_from_string(const struct tp_registry *registry, struct tp_str s,
                            unsigned *id, struct tp_registry_detail *detail,
                            struct tp_err *err)
{
    const struct tp_type *type = NULL;
    int number = tp_activity_find_cat(s);
    int rc;

    if (number < 0) {
        /* A number means its id only where to_string() writes it: static values shift
         * between versions of Kineto, so nobody may rely on theirs. */
        number = parse_number(s);
        if (number >= 0 && (tp_activity_cat((unsigned)number) != NULL ||
                            tp_registry_at(registry, (unsigned)number) != NULL))
            number = -1;
    }
    if (number < 0) {
        number = tp_activity_find_enum_name(s);
        if (number >= 0 &&
            tp_registry_lookup(registry, s, &type, NULL, NULL) != TP_ENOTFOUND)
            return fail_two_readings(registry, s, (unsigned)number, detail, err);
    }
    if (number >= 0) {
        *id = (unsigned)number;
        return TP_OK;
    }
    rc = tp_registry_lookup(registry, s, &type, detail, err);
    if (rc == TP_OK)
        *id = type->id;
    return rc;
}
