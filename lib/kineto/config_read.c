/*
 * config_read.c - a table of keys, and how the value of each is read.
 *
 * As libkineto does it: '#' starts a comment anywhere, blanks around key and value do
 * not count, of two lines with one key the later one counts.
 */
#include "kineto/config_read.h"

#include <stddef.h>
#include <strings.h>

#include "base/err.h"
#include "kineto/config_text.h"
#include "kineto/schedule.h"

enum kind { TEXT, NUMBER, FLAG, ZERO, IGNORED };

#define AT(field) offsetof(struct tp_kineto_wish, field)

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t most; /* of a NUMBER */
} keys[] = {
    {"ACTIVITIES_LOG_FILE", TEXT, AT(log_file), 0},
    {"ACTIVITY_TYPES", TEXT, AT(types), 0},
    {"PROFILE_START_TIME", NUMBER, AT(start_wall_ms), INT64_MAX / 1000000},
    {"ACTIVITIES_DURATION_MSECS", NUMBER, AT(duration_ms), TP_KINETO_NUMBER_MAX},
    {"ACTIVITIES_ITERATIONS", NUMBER, AT(iterations), TP_KINETO_NUMBER_MAX},
    {"PROFILE_START_ITERATION_ROUNDUP", NUMBER, AT(iteration_roundup),
     TP_KINETO_NUMBER_MAX},
    {"ACTIVITIES_WARMUP_PERIOD_SECS", NUMBER, AT(warmup_s), TP_KINETO_WARMUP_MAX_S},
    {"PROFILE_REPORT_INPUT_SHAPES", FLAG, AT(record_shapes), 0},
    {"PROFILE_PROFILE_MEMORY", FLAG, AT(profile_memory), 0},
    {"PROFILE_WITH_STACK", FLAG, AT(with_stack), 0},
    {"PROFILE_WITH_FLOPS", FLAG, AT(with_flops), 0},
    {"PROFILE_WITH_MODULES", FLAG, AT(with_modules), 0},
    {"PROFILE_MEMORY", FLAG, AT(wants_snapshot), 0},
    {"PROFILE_START_ITERATION", ZERO, 0, 0}, /* 0 = the next one */
    {"PROFILE_MEMORY_DURATION_MSECS", IGNORED, 0, 0},
    {"REQUEST_TRACE_ID", IGNORED, 0, 0}, /* ours is there instead */
    {"REQUEST_GROUP_TRACE_ID", IGNORED, 0, 0},
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct tp_str trim(struct tp_str s)
{
    while (s.len > 0 && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static bool read_number(struct tp_str s, uint64_t most, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' ||
            __builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
            return false;
    }
    *out = v;
    return s.len > 0 && v <= most;
}

static bool read_flag(struct tp_str s, bool *out)
{
    static const char *const words[] = {"0", "n", "no",  "f", "false",
                                        "1", "y", "yes", "t", "true"};
    size_t n = sizeof(words) / sizeof(words[0]);

    for (size_t i = 0; i < n; i++) {
        if (s.len == strlen(words[i]) && strncasecmp(s.ptr, words[i], s.len) == 0) {
            *out = i >= n / 2;
            return true;
        }
    }
    return false;
}

static bool take_value(const struct key *key, struct tp_str value,
                       struct tp_kineto_wish *wish)
{
    void *field = (char *)wish + key->offset;
    uint64_t zero;

    switch (key->kind) {
    case TEXT:
        *(struct tp_str *)field = value;
        return value.len > 0;
    case NUMBER:
        return read_number(value, key->most, field);
    case FLAG:
        return read_flag(value, field);
    case ZERO:
        return read_number(value, 0, &zero);
    case IGNORED:
    default:
        return true;
    }
}

static int shown(struct tp_str s)
{
    return (int)(s.len < 64 ? s.len : 64);
}

static int take_line(struct tp_str line, unsigned number, struct tp_kineto_wish *wish,
                     struct tp_err *err)
{
    const char *eq = memchr(line.ptr, '=', line.len);
    struct tp_str name, value;

    if (eq == NULL)
        return tp_fail(err, TP_EINVAL, "line %u of the config is no 'KEY=VALUE'",
                       number);
    name = trim((struct tp_str){line.ptr, (size_t)(eq - line.ptr)});
    value = trim((struct tp_str){eq + 1, line.len - (size_t)(eq + 1 - line.ptr)});
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!tp_str_is(name, keys[i].name))
            continue;
        if (!take_value(&keys[i], value, wish))
            return tp_fail(err, TP_EINVAL,
                           "line %u of the config: %s cannot be '%.*s' here", number,
                           keys[i].name, shown(value), value.ptr);
        wish->has_warmup = wish->has_warmup || keys[i].offset == AT(warmup_s);
        return TP_OK;
    }
    return tp_fail(err, TP_EINVAL, "line %u of the config: '%.*s' is not supported",
                   number, shown(name), name.ptr);
}

int tp_kineto_config_read(struct tp_str text, struct tp_kineto_wish *out,
                          struct tp_err *err)
{
    struct tp_kineto_wish wish = {.log_file = {"", 0}, .types = {"", 0}};
    const char *p = text.ptr, *end = text.ptr + text.len;
    int rc = TP_OK;

    for (unsigned number = 1; p < end && rc == TP_OK; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        struct tp_str line = {p, (size_t)((stop == NULL ? end : stop) - p)};
        const char *comment = line.len == 0 ? NULL : memchr(p, '#', line.len);

        if (comment != NULL)
            line.len = (size_t)(comment - p);
        line = trim(line);
        if (line.len > 0)
            rc = take_line(line, number, &wish, err);
        p = stop == NULL ? end : stop + 1;
    }
    if (rc == TP_OK && wish.iterations == 0 && wish.iteration_roundup > 0)
        rc = tp_fail(err, TP_EINVAL,
                     "PROFILE_START_ITERATION_ROUNDUP needs ACTIVITIES_ITERATIONS");
    if (rc == TP_OK)
        *out = wish;
    return rc;
}
