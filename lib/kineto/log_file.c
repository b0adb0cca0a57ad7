#include "kineto/log_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define NAME_BYTES 255   /* of one name, on the file systems that there are */
#define NUMBER_BYTES 48  /* of what names a process */
#define PREFIX "kineto-" /* of a producer's name */

/* The next name of a path; empty at its end. "." and empty ones are left out. */
static struct tp_str next_name(struct tp_str *path)
{
    struct tp_str name = {path->ptr, 0};

    do {
        while (path->len > 0 && *path->ptr == '/') {
            path->ptr++;
            path->len--;
        }
        name = (struct tp_str){path->ptr, 0};
        while (path->len > 0 && *path->ptr != '/') {
            path->ptr++;
            path->len--;
            name.len++;
        }
    } while (tp_str_is(name, "."));
    return name;
}

static int check(struct tp_str path, struct tp_err *err)
{
    struct tp_str left = path, name;
    bool is_file = false;

    if (path.len == 0 || path.ptr[0] != '/')
        return tp_fail(err, TP_EINVAL, "the log file has no absolute path");
    if (path.len >= TP_KINETO_LOG_FILE_BYTES - NUMBER_BYTES)
        return tp_fail(err, TP_EINVAL, "the path of the log file is too long");
    for (size_t i = 0; i < path.len; i++) {
        if ((unsigned char)path.ptr[i] < 0x20 || path.ptr[i] == 0x7f)
            return tp_fail(err, TP_EINVAL,
                           "the path of the log file has a control character");
    }
    while ((name = next_name(&left)).len > 0) {
        if (tp_str_is(name, ".."))
            return tp_fail(err, TP_EINVAL, "the path of the log file has '..'");
        is_file = left.len == 0;
        if (name.len > NAME_BYTES - (is_file ? NUMBER_BYTES : 0))
            return tp_fail(err, TP_EINVAL, "the log file has a name that is too long");
    }
    if (!is_file)
        return tp_fail(err, TP_EINVAL, "the log file is a directory");
    return TP_OK;
}

/* Take the names of dir from the front of path. */
static bool is_below(struct tp_str dir, struct tp_str *path)
{
    struct tp_str name;

    while ((name = next_name(&dir)).len > 0) {
        if (!tp_str_equal(name, next_name(path)))
            return false;
    }
    return true;
}

int tp_kineto_log_file_find(struct tp_str path, char *const *dirs, size_t n,
                            struct tp_kineto_log_file *out, struct tp_err *err)
{
    int rc = check(path, err);

    for (size_t i = 0; rc == TP_OK && i < n; i++) {
        struct tp_str left = path, name;
        size_t at = 0;

        if (!is_below(tp_str_of(dirs[i]), &left))
            continue;
        name = next_name(&left);
        if (name.len == 0)
            continue; /* it is that directory */
        for (; name.len > 0; name = next_name(&left)) {
            if (at > 0)
                out->below[at++] = '/';
            memcpy(out->below + at, name.ptr, name.len);
            at += name.len;
        }
        out->below[at] = '\0';
        out->dir = i;
        return TP_OK;
    }
    return rc != TP_OK ? rc
                       : tp_fail(err, TP_EDENIED,
                                 "the log file is not below a dynolog-log-dir");
}

/* Where the number goes in a name. */
static size_t place_in(struct tp_str name)
{
    static const char *const ends[] = {".pt.trace.json", ".json"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *p = memmem(name.ptr, name.len, ends[i], strlen(ends[i]));

        if (p != NULL)
            return (size_t)(p - name.ptr);
    }
    return name.len;
}

int tp_kineto_log_file_name(struct tp_str path, const char *producer, char *out,
                            struct tp_err *err)
{
    size_t prefix = strlen(PREFIX), at = path.len, split;
    const char *number = strncmp(producer, PREFIX, prefix) == 0 ? producer + prefix
                                                                : producer;
    size_t bytes = strlen(number) + 1;

    while (at > 0 && path.ptr[at - 1] != '/')
        at--;
    if (bytes > NUMBER_BYTES || strchr(number, '/') != NULL)
        return tp_fail(err, TP_EINVAL, "'%.64s' is no number for a log file", producer);
    if (path.len - at + bytes > NAME_BYTES ||
        path.len + bytes >= TP_KINETO_LOG_FILE_BYTES)
        return tp_fail(err, TP_EINVAL, "the log file has a name that is too long");
    split = at + place_in((struct tp_str){path.ptr + at, path.len - at});
    snprintf(out, TP_KINETO_LOG_FILE_BYTES, "%.*s_%s%.*s", (int)split, path.ptr, number,
             (int)(path.len - split), path.ptr + split);
    return TP_OK;
}
