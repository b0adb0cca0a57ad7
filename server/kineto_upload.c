#include "server/kineto_upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "server/clock.h"

#define CHUNK_BYTES ((size_t)1 << 20)

bool tp_kineto_find_trace_id(struct tp_str head, struct tp_str *out)
{
    static const char key[] = "\"trace_id\"", events[] = "\"traceEvents\"";
    const char *end = memmem(head.ptr, head.len, events, sizeof(events) - 1);
    const char *p, *close;

    if (end == NULL)
        end = head.ptr + head.len;
    p = memmem(head.ptr, (size_t)(end - head.ptr), key, sizeof(key) - 1);
    if (p == NULL)
        return false;
    p += sizeof(key) - 1;
    while (p < end && strchr(" \t\r\n:", *p) != NULL && *p != '\0')
        p++;
    if (p >= end || *p != '"')
        return false;
    p++;
    close = memchr(p, '"', (size_t)(end - p));
    if (close == NULL)
        return false;
    *out = (struct tp_str){p, (size_t)(close - p)};
    return true;
}

/* Up to CHUNK_BYTES. Returns how many, -1 with errno. */
static ssize_t read_chunk(int fd, char *out)
{
    size_t n = 0;

    while (n < CHUNK_BYTES) {
        ssize_t got = read(fd, out + n, CHUNK_BYTES - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int check_head(const struct tp_kineto_file *file, struct tp_str head,
                      struct tp_err *err)
{
    struct tp_str id;

    if (!tp_kineto_find_trace_id(head, &id) || tp_str_is(id, file->trace_id))
        return TP_OK;
    return tp_fail(err, TP_EINVAL, "the file is of another request, '%.*s'",
                   (int)(id.len > 40 ? 40 : id.len), id.ptr);
}

static int feed_all(struct tp_upload *u, const struct tp_kineto_file *file,
                    char *buffer, struct tp_err *err)
{
    bool is_head = true;
    int rc = TP_OK;

    while (rc == TP_OK) {
        ssize_t n = read_chunk(file->fd, buffer);

        if (n < 0)
            return tp_fail(err, TP_EIO, "the file cannot be read: %m");
        if (n == 0)
            break;
        if (is_head)
            rc = check_head(file, (struct tp_str){buffer, (size_t)n}, err);
        is_head = false;
        if (rc == TP_OK)
            rc = tp_upload_feed(u, buffer, (size_t)n, NULL, err);
    }
    return rc;
}

int tp_kineto_upload(struct tp_engine *engine, const struct tp_kineto_file *file,
                     char *note, size_t note_bytes, struct tp_err *err)
{
    struct tp_upload_request request = {.kind = TP_UPLOAD_FILE,
                                        .form = TP_FORM_SNIFF,
                                        .encoding = TP_ENCODING_SNIFF,
                                        .producer = tp_str_of(file->producer_id),
                                        .rank = -1,
                                        .pid = -1,
                                        .has_seq = true,
                                        .seq = 1,
                                        .file_name = tp_str_of(file->name)};
    struct tp_upload_reply reply = {0};
    struct tp_upload *u = NULL;
    char *buffer = malloc(CHUNK_BYTES);
    int rc;

    if (buffer == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to read a file");
    rc = tp_engine_upload_begin(engine, tp_str_of(file->trace_id), &request,
                                tp_clock_now(), &u, NULL, err);
    if (rc == TP_OK)
        rc = feed_all(u, file, buffer, err);
    if (rc == TP_OK)
        rc = tp_upload_commit(u, tp_clock_now(), &reply, NULL, err);
    if (rc == TP_OK)
        snprintf(note, note_bytes, "%s", reply.damage);
    tp_upload_free(u);
    free(buffer);
    return rc;
}
