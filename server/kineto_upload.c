#include "server/kineto_upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "engine/problem.h"
#include "server/clock.h"
#include "server/kineto_trace_id.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define PATH_MEMBER "traceName" /* where it was written: nobody's business, and gone */
#define NO_ID "no trace_id is seen in the file"

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

static int check_id(struct tp_kineto_trace_id *id, const char *p, size_t n,
                    struct tp_err *err)
{
    if (tp_kineto_trace_id_feed(id, p, n))
        return TP_OK;
    return tp_fail(err, TP_EINVAL, "the file is of another request, '%.40s'", id->text);
}

/* Nothing of it counts before it is committed, so an id at its end is early enough. */
static int feed_all(struct tp_upload *u, const struct tp_kineto_file *file,
                    struct tp_kineto_trace_id *id, char *buffer,
                    struct tp_problem *problem, struct tp_err *err)
{
    int rc = TP_OK;

    while (rc == TP_OK) {
        ssize_t n = read_chunk(file->fd, buffer);

        if (n < 0)
            return tp_fail(err, TP_EIO, "the file cannot be read: %m");
        if (n == 0)
            break;
        rc = check_id(id, buffer, (size_t)n, err);
        if (rc == TP_OK)
            rc = tp_upload_feed(u, buffer, (size_t)n, problem, err);
    }
    return rc;
}

/* What is to be known about a file that was taken. */
static void write_note(const struct tp_upload_reply *reply,
                       const struct tp_kineto_trace_id *id, char *note, size_t bytes)
{
    snprintf(note, bytes, "%s%s%s", id->is_found ? "" : NO_ID,
             id->is_found || *reply->damage == '\0' ? "" : "; ", reply->damage);
}

int tp_kineto_upload(struct tp_engine *engine, const struct tp_kineto_file *file,
                     char *note, size_t note_bytes, bool *is_for_now,
                     struct tp_err *err)
{
    struct tp_upload_request request = {.kind = TP_UPLOAD_FILE,
                                        .form = TP_FORM_SNIFF,
                                        .encoding = TP_ENCODING_SNIFF,
                                        .producer = tp_str_of(file->producer_id),
                                        .rank = -1,
                                        .pid = -1,
                                        .has_seq = true,
                                        .seq = 1,
                                        .file_name = tp_str_of(file->name),
                                        .leave_out = PATH_MEMBER};
    struct tp_upload_reply reply = {0};
    struct tp_kineto_trace_id id = {.wanted = file->trace_id};
    struct tp_problem problem = {0};
    struct tp_upload *u = NULL;
    char *buffer = malloc(CHUNK_BYTES);
    int rc;

    *is_for_now = true;
    if (buffer == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to read a file");
    rc = tp_engine_upload_begin(engine, tp_str_of(file->trace_id), &request,
                                tp_clock_now(), &u, &problem, err);
    if (rc == TP_OK)
        rc = feed_all(u, file, &id, buffer, &problem, err);
    if (rc == TP_OK)
        rc = tp_upload_commit(u, tp_clock_now(), &reply, &problem, err);
    if (rc == TP_OK)
        write_note(&reply, &id, note, note_bytes);
    *is_for_now = rc == TP_EIO || rc == TP_ENOMEM ||
                  (rc == TP_EQUOTA && problem.kind == TP_PROBLEM_STORAGE);
    tp_upload_free(u);
    free(buffer);
    return rc;
}
