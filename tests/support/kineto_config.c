/*
 * kineto_config.c - as libkineto's AbstractConfig::parse() and Config do: the first
 * fault ends the reading, and what was read before it is used all the same.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/kineto_parts.h"

/* The names of the newest release; the old one lacks those from `OLD_TYPES` on. */
static const char *const types[] = {"cpu_op",
                                    "user_annotation",
                                    "gpu_user_annotation",
                                    "gpu_memcpy",
                                    "gpu_memset",
                                    "kernel",
                                    "external_correlation",
                                    "cuda_runtime",
                                    "cuda_driver",
                                    "cpu_instant_event",
                                    "python_function",
                                    "overhead",
                                    "mtia_runtime",
                                    "mtia_ccp_events",
                                    "mtia_insight",
                                    "cuda_sync",
                                    "cuda_event",
                                    "glow_runtime",
                                    "cuda_profiler_range",
                                    "hpu_op",
                                    "xpu_runtime",
                                    "xpu_driver",
                                    "collective_comm",
                                    "privateuse1_runtime",
                                    "privateuse1_driver",
                                    "mtia_counters",
                                    "xpu_scope_profiler",
                                    "xpu_sync",
                                    "hardware_counters"};

#define OLD_TYPES 25
#define ALL_TYPES (sizeof(types) / sizeof(types[0]))

/* space, tab and newline; a carriage return stays */
static char *trim(char *s)
{
    char *end = s + strlen(s);

    while (end > s && strchr(" \t\n", end[-1]) != NULL)
        *--end = '\0';
    return s + strspn(s, " \t\n");
}

static bool read_number(const char *value, int64_t most, int64_t *out)
{
    char *end;
    long long v = strtoll(value, &end, 10);

    if (*value == '\0' || *end != '\0' || v < 0 || v > most)
        return false;
    *out = v;
    return true;
}

static bool is_flag(const char *value)
{
    static const char *const words[] = {"0",   "1", "n", "y",     "no",
                                        "yes", "f", "t", "false", "true"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(value, words[i]) == 0)
            return true;
    }
    return false;
}

static bool has_type(const struct kineto_client *c, const char *name)
{
    for (size_t i = 0; i < (c->o.is_old ? OLD_TYPES : ALL_TYPES); i++) {
        if (strcasecmp(types[i], name) == 0)
            return true;
    }
    return false;
}

static bool read_types(const struct kineto_client *c, char *value,
                       struct kineto_config *out)
{
    char *rest = value, *one;

    snprintf(out->types, sizeof(out->types), "%s", value);
    while ((one = strsep(&rest, ",")) != NULL) {
        if (!has_type(c, trim(one)))
            return false;
    }
    return true;
}

/* "" is no option of ours: a warning only. */
static bool set(struct kineto_client *c, const char *key, char *value,
                struct kineto_config *out)
{
    const struct {
        const char *key;
        int64_t *to;
        int64_t most, times;
    } numbers[] = {{"ACTIVITIES_DURATION_MSECS", &out->duration_ms, INT32_MAX, 1},
                   {"ACTIVITIES_WARMUP_PERIOD_SECS", &out->warmup_s, INT32_MAX, 1},
                   {"ACTIVITIES_ITERATIONS", &out->iterations, INT32_MAX, 1},
                   {"PROFILE_START_TIME", &out->start_ms, INT64_MAX, 1},
                   {"PROFILE_START_ITERATION", &out->start_iteration, INT32_MAX, 1},
                   {"PROFILE_START_ITERATION_ROUNDUP", &out->roundup, INT32_MAX, 1}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(key, numbers[i].key) == 0)
            return read_number(value, numbers[i].most, numbers[i].to);
    }
    if (strcmp(key, "ACTIVITIES_LOG_FILE") == 0)
        snprintf(out->log_file, sizeof(out->log_file), "%s", value);
    else if (strcmp(key, "REQUEST_TRACE_ID") == 0)
        snprintf(out->trace_id, sizeof(out->trace_id), "%s", value);
    else if (strcmp(key, "ACTIVITY_TYPES") == 0)
        return read_types(c, value, out);
    else if (strcmp(key, "PROFILE_MEMORY") == 0)
        out->spins = true;
    else if (strncmp(key, "PROFILE_", 8) == 0)
        return is_flag(value);
    else
        kineto_say(c, "unknown-key", "");
    return true;
}

static bool read_line(struct kineto_client *c, char *line, struct kineto_config *out)
{
    char *key, *value = strchr(line, '#');

    if (value != NULL)
        *value = '\0';
    key = trim(line);
    if (*key == '\0')
        return true;
    value = strchr(key, '=');
    if (value == NULL || strchr(value + 1, '=') != NULL)
        return false;
    *value++ = '\0';
    return set(c, trim(key), trim(value), out);
}

bool kineto_config_parse(struct kineto_client *c, const char *text,
                         struct kineto_config *out)
{
    char copy[KINETO_TEXT_BYTES], *rest = copy, *line;

    *out = (struct kineto_config){
        .duration_ms = 500, .warmup_s = 5, .start_iteration = -1, .roundup = -1};
    snprintf(out->log_file, sizeof(out->log_file), "/tmp/libkineto_activities.json");
    snprintf(copy, sizeof(copy), "%s", text);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (!read_line(c, line, out))
            return false;
    }
    if (out->start_ms == 0)
        out->start_ms = kineto_now_ms() + out->warmup_s * 1000 + 2000;
    if (out->roundup > 0 && out->start_iteration < 0)
        out->start_iteration = 0;
    return true;
}
