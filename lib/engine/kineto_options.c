#include "engine/kineto_options.h"

#include <stddef.h>
#include <stdio.h>

#include <json-c/json.h>

#include "base/err.h"
#include "engine/problem.h"
#include "kineto/config_text.h"
#include "kineto/schedule.h"

static const struct {
    const char *name;
    size_t offset;
    uint64_t most; /* 0 = a flag */
} fields[] = {
    {"record_shapes", offsetof(struct tp_kineto_options, record_shapes), 0},
    {"with_stack", offsetof(struct tp_kineto_options, with_stack), 0},
    {"with_flops", offsetof(struct tp_kineto_options, with_flops), 0},
    {"with_modules", offsetof(struct tp_kineto_options, with_modules), 0},
    {"profile_memory", offsetof(struct tp_kineto_options, profile_memory), 0},
    {"warmup_ms", offsetof(struct tp_kineto_options, warmup_ms),
     UINT64_C(1000) * TP_KINETO_WARMUP_MAX_S},
    {"iterations", offsetof(struct tp_kineto_options, iterations),
     TP_KINETO_NUMBER_MAX},
    {"iteration_roundup", offsetof(struct tp_kineto_options, iteration_roundup),
     TP_KINETO_NUMBER_MAX},
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static int refuse(const char *name, const char *words, struct tp_problem *problem,
                  struct tp_err *err)
{
    char field[64];

    snprintf(field, sizeof(field), "kineto.%.50s", name);
    return tp_problem_invalid(problem, field,
                              tp_fail(err, TP_EINVAL, "'%s' %s", field, words));
}

static int read_member(const char *name, struct json_object *v,
                       struct tp_kineto_options *out, struct tp_problem *problem,
                       struct tp_err *err)
{
    char words[64];
    size_t i = 0;
    void *to;

    while (i < N_FIELDS && strcmp(name, fields[i].name) != 0)
        i++;
    if (i == N_FIELDS)
        return refuse(name, "is not a member of 'kineto'", problem, err);
    to = (char *)out + fields[i].offset;
    if (fields[i].most == 0) {
        if (!json_object_is_type(v, json_type_boolean))
            return refuse(name, "must be true or false", problem, err);
        *(bool *)to = json_object_get_boolean(v);
        return TP_OK;
    }
    if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0 ||
        json_object_get_uint64(v) > fields[i].most) {
        snprintf(words, sizeof(words), "must be a number of 0 to %llu",
                 (unsigned long long)fields[i].most);
        return refuse(name, words, problem, err);
    }
    *(uint64_t *)to = json_object_get_uint64(v);
    return TP_OK;
}

static int read_all(struct json_object *o, struct tp_kineto_options *out,
                    struct tp_problem *problem, struct tp_err *err)
{
    struct json_object_iterator it = json_object_iter_begin(o);
    struct json_object_iterator end = json_object_iter_end(o);
    int rc = TP_OK;

    for (; rc == TP_OK && !json_object_iter_equal(&it, &end);
         json_object_iter_next(&it))
        rc = read_member(json_object_iter_peek_name(&it),
                         json_object_iter_peek_value(&it), out, problem, err);
    return rc;
}

int tp_kineto_options_read(struct tp_str json, struct tp_kineto_options *out,
                           struct tp_problem *problem, struct tp_err *err)
{
    struct tp_kineto_options options = {.warmup_ms = TP_KINETO_WARMUP_MS};
    struct json_tokener *tokener = NULL;
    struct json_object *o = NULL;
    int rc = TP_OK;

    if (json.len != 0) {
        tokener = json_tokener_new();
        if (tokener == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory to read 'kineto'");
        o = json.len > INT32_MAX
                ? NULL
                : json_tokener_parse_ex(tokener, json.ptr, (int)json.len);
        rc = json_object_is_type(o, json_type_object)
                 ? read_all(o, &options, problem, err)
                 : tp_problem_invalid(problem, "kineto",
                                      tp_fail(err, TP_EINVAL,
                                              "'kineto' is not an object"));
        json_object_put(o);
        json_tokener_free(tokener);
    }
    if (rc == TP_OK && options.iterations == 0 && options.iteration_roundup != 0)
        rc = refuse("iteration_roundup", "needs 'kineto.iterations'", problem, err);
    if (rc != TP_OK)
        return rc;
    options.warmup_ms = (options.warmup_ms + 999) / 1000 * 1000;
    *out = options;
    return TP_OK;
}
