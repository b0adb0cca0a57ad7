#include "kineto/config_text.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/activity.h"
#include "kineto/schedule.h"

/* The first year that a start can be of: libkineto takes milliseconds, and a value in
 * seconds would be a start in 1970. */
#define START_MIN_MS UINT64_C(1000000000000)

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool has_only(struct tp_str s, const char *others)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_letter_or_digit(s.ptr[i]) &&
            (s.ptr[i] == '\0' || strchr(others, s.ptr[i]) == NULL))
            return false;
    }
    return true;
}

/* Whether s holds the bytes of what in front of its last `except` bytes. */
static bool holds(struct tp_str s, const char *what, size_t except)
{
    return s.len > except && memmem(s.ptr, s.len - except, what, strlen(what)) != NULL;
}

static bool ends_with(struct tp_str s, const char *end)
{
    size_t n = strlen(end);

    return s.len > n && memcmp(s.ptr + s.len - n, end, n) == 0;
}

static bool is_inside(struct tp_str path, struct tp_str folder)
{
    return folder.len > 0 && path.len > folder.len &&
           memcmp(path.ptr, folder.ptr, folder.len) == 0 &&
           (path.ptr[folder.len] == '/' || folder.ptr[folder.len - 1] == '/');
}

static int check_path(const struct tp_kineto_config *c, struct tp_err *err)
{
    struct tp_str path = c->log_file;
    int shown = (int)(path.len < 200 ? path.len : 200);

    if (path.len == 0 || path.ptr[0] != '/' || path.len > TP_KINETO_PATH_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "the file '%.*s' is not an absolute path", shown,
                       path.ptr);
    if (!has_only(path, "._/-"))
        return tp_fail(err, TP_EINVAL,
                       "the file '%.*s' has a character other than [A-Za-z0-9._/-]",
                       shown, path.ptr);
    if (!ends_with(path, TP_KINETO_SUFFIX) ||
        holds(path, ".json", sizeof(TP_KINETO_SUFFIX) - 1) ||
        path.ptr[path.len - sizeof(TP_KINETO_SUFFIX)] == '/')
        return tp_fail(err, TP_EINVAL,
                       "the file '%.*s' does not have '" TP_KINETO_SUFFIX
                       "' at its end and nowhere else",
                       shown, path.ptr);
    if (holds(path, "..", 0))
        return tp_fail(err, TP_EINVAL, "the file '%.*s' has '..' in it", shown,
                       path.ptr);
    if (!is_inside(path, c->folder))
        return tp_fail(err, TP_EINVAL, "the file '%.*s' is not in '%.*s'", shown,
                       path.ptr, (int)(c->folder.len < 200 ? c->folder.len : 200),
                       c->folder.ptr);
    return TP_OK;
}

static int check_number(const char *name, uint64_t value, uint64_t least, uint64_t most,
                        struct tp_err *err)
{
    if (value >= least && value <= most)
        return TP_OK;
    return tp_fail(err, TP_EINVAL, "%s %llu is not %llu to %llu", name,
                   (unsigned long long)value, (unsigned long long)least,
                   (unsigned long long)most);
}

static int check_numbers(const struct tp_kineto_config *c, struct tp_err *err)
{
    bool by_time = c->iterations == 0;
    int rc;

    rc = check_number("warmup_s", c->warmup_s, 0, TP_KINETO_WARMUP_MAX_S, err);
    if (rc == TP_OK)
        rc = check_number("duration_ms", c->duration_ms, by_time,
                          by_time ? TP_KINETO_NUMBER_MAX : 0, err);
    if (rc == TP_OK)
        rc = check_number("iterations", c->iterations, 0, TP_KINETO_NUMBER_MAX, err);
    if (rc == TP_OK)
        rc = check_number("iteration_roundup", c->iteration_roundup, 0,
                          by_time ? 0 : TP_KINETO_NUMBER_MAX, err);
    if (rc == TP_OK)
        rc = check_number("start_wall_ms", c->start_wall_ms, by_time ? START_MIN_MS : 0,
                          by_time ? INT64_MAX / 1000000 : 0, err);
    return rc;
}

static int check_types(const struct tp_kineto_config *c, struct tp_err *err)
{
    if (!c->has_types)
        return TP_OK;
    if (tp_typeset_is_empty(&c->types))
        return tp_fail(err, TP_EINVAL, "there is no type to record");
    for (unsigned id = tp_typeset_next(&c->types, 0); id < TP_ACTIVITY_IDS;
         id = tp_typeset_next(&c->types, id + 1)) {
        if (tp_activity_cat(id) == NULL)
            return tp_fail(err, TP_EINVAL, "type %u is none that Kineto can record",
                           id);
    }
    return TP_OK;
}

static int check(const struct tp_kineto_config *c, struct tp_err *err)
{
    int rc = check_path(c, err);

    if (rc == TP_OK)
        rc = check_numbers(c, err);
    if (rc == TP_OK)
        rc = check_types(c, err);
    if (rc == TP_OK && (c->trace_id.len == 0 || !has_only(c->trace_id, "_-") ||
                        c->trace_id.len > TP_KINETO_TRACE_ID_MAX_BYTES))
        rc = tp_fail(err, TP_EINVAL, "the trace id is not 1 to %d of [A-Za-z0-9_-]",
                     TP_KINETO_TRACE_ID_MAX_BYTES);
    return rc;
}

static int put_types(const struct tp_typeset *types, struct tp_buf *out,
                     struct tp_err *err)
{
    const char *between = "ACTIVITY_TYPES=";
    int rc = TP_OK;

    for (unsigned id = tp_typeset_next(types, 0); id < TP_ACTIVITY_IDS && rc == TP_OK;
         id = tp_typeset_next(types, id + 1)) {
        rc = tp_buf_printf(out, err, "%s%s", between, tp_activity_cat(id));
        between = ",";
    }
    return rc == TP_OK ? tp_buf_append_str(out, "\n", err) : rc;
}

static int put_flags(const struct tp_kineto_config *c, struct tp_buf *out,
                     struct tp_err *err)
{
    const struct {
        const char *name;
        bool is_set;
    } flags[] = {{"REPORT_INPUT_SHAPES", c->record_shapes},
                 {"PROFILE_MEMORY", c->profile_memory},
                 {"WITH_STACK", c->with_stack},
                 {"WITH_FLOPS", c->with_flops},
                 {"WITH_MODULES", c->with_modules}};
    int rc = TP_OK;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && rc == TP_OK; i++)
        rc = tp_buf_printf(out, err, "PROFILE_%s=%s\n", flags[i].name,
                           flags[i].is_set ? "true" : "false");
    return rc;
}

static int put_when(const struct tp_kineto_config *c, struct tp_buf *out,
                    struct tp_err *err)
{
    int rc = tp_buf_printf(out, err, "ACTIVITIES_WARMUP_PERIOD_SECS=%llu\n",
                           (unsigned long long)c->warmup_s);

    if (rc != TP_OK)
        return rc;
    if (c->iterations == 0)
        return tp_buf_printf(
            out, err, "PROFILE_START_TIME=%llu\nACTIVITIES_DURATION_MSECS=%llu\n",
            (unsigned long long)c->start_wall_ms, (unsigned long long)c->duration_ms);
    rc = tp_buf_append_str(out, "PROFILE_START_ITERATION=0\n", err);
    if (rc == TP_OK && c->iteration_roundup > 0)
        rc = tp_buf_printf(out, err, "PROFILE_START_ITERATION_ROUNDUP=%llu\n",
                           (unsigned long long)c->iteration_roundup);
    if (rc == TP_OK)
        rc = tp_buf_printf(out, err, "ACTIVITIES_ITERATIONS=%llu\n",
                           (unsigned long long)c->iterations);
    return rc;
}

int tp_kineto_config_write(const struct tp_kineto_config *config, struct tp_buf *out,
                           struct tp_err *err)
{
    size_t before = out->len;
    int rc = check(config, err);

    if (rc == TP_OK)
        rc = tp_buf_printf(out, err, "ACTIVITIES_LOG_FILE=%.*s\n",
                           (int)config->log_file.len, config->log_file.ptr);
    if (rc == TP_OK)
        rc = put_when(config, out, err);
    if (rc == TP_OK && config->has_types)
        rc = put_types(&config->types, out, err);
    if (rc == TP_OK)
        rc = put_flags(config, out, err);
    if (rc == TP_OK)
        rc = tp_buf_printf(out, err, "REQUEST_TRACE_ID=%.*s\n",
                           (int)config->trace_id.len, config->trace_id.ptr);
    if (rc != TP_OK)
        out->len = before;
    return rc;
}

struct tp_typeset tp_kineto_known_types(bool is_old)
{
    /* What the enum has got since 2026-02, and a release of that age may not have; the
     * first is from 2026-08, and so younger than types 2 and 0. */
    static const unsigned newer[] = {TP_ACTIVITY_HARDWARE_COUNTERS,
                                     TP_ACTIVITY_MTIA_COUNTERS,
                                     TP_ACTIVITY_XPU_SCOPE_PROFILER,
                                     TP_ACTIVITY_XPU_SYNC};
    size_t n = is_old ? sizeof(newer) / sizeof(newer[0]) : 1;
    struct tp_typeset known = {0};

    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++)
        tp_typeset_add(&known, id);
    for (size_t i = 0; i < n; i++)
        tp_typeset_remove(&known, newer[i]);
    return known;
}
