/*
 * kineto_watch.c - a folder is made, a file begun and complete, read by a worker, and
 * the folder emptied.
 *
 * A process may put into its folder what it likes, as fast as it can, and somebody who
 * tidies up may remove any of it. So a name that comes is looked at where inotify tells
 * it, a folder is listed once a second only, and not to its end when it is full; and
 * the folder of ours is made again when it has gone.
 *
 * A worker has a copy of what it needs and says by an atomic flag that it is done, so
 * that a folder is not removed under it.
 */
#include "server/kineto_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/engine.h"
#include "server/clock.h"
#include "server/kineto_folder.h"
#include "server/kineto_process.h"
#include "server/kineto_upload.h"
#include "server/workers.h"

#define READS 16 /* of inotify, before something else has its turn */

/* A file on its way into its trace. */
struct tp_kineto_upload_job {
    struct tp_kineto_collector *collector;
    char trace_id[TP_TRACE_ID_BYTES], producer_id[TP_TRACE_ID_BYTES];
    char name[256];
    char log_file[TP_KINETO_LOG_FILE_BYTES]; /* where it goes, too; "" = nowhere */
    struct tp_kineto_owner owner;
    uint32_t uid;    /* whose the file must be */
    int folder_fd;   /* of the watch, which stays while this is not done */
    bool is_put_off; /* it could not be read now; set before is_done */
    _Atomic bool is_done;
};

void tp_kineto_watch_report(struct tp_kineto_collector *c,
                            const struct tp_kineto_task *task,
                            enum tp_kineto_event event, const char *text)
{
    tp_engine_kineto_report(c->opts.engine, task->trace_id, task->producer_id, event,
                            text, tp_clock_now());
    if (c->opts.on_change != NULL)
        c->opts.on_change(c->opts.arg);
}

/* Our own folder is usable, or not for that reason, which who wants a trace is told. */
static void note_home(struct tp_kineto_collector *c, const char *error)
{
    if (strcmp(c->home_error, error) == 0)
        return;
    snprintf(c->home_error, sizeof(c->home_error), "%s", error);
    tp_engine_kineto_set_files(c->opts.engine, c->home_error);
    if (c->opts.on_files != NULL)
        c->opts.on_files(c->opts.arg, *error == '\0' ? NULL : c->home_error);
}

void tp_kineto_watch_home(struct tp_kineto_collector *c)
{
    struct tp_err err = {0};
    int fd = -1;

    if (!tp_kineto_home_is_there(c->home_fd, c->opts.trace_dir)) {
        if (tp_kineto_home_open(c->opts.trace_dir, &fd, &err) != TP_OK) {
            note_home(c, err.message);
            return; /* what is in the old one may still come to its end */
        }
        if (c->home_fd >= 0)
            close(c->home_fd);
        c->home_fd = fd;
    }
    tp_kineto_home_has_room(c->home_fd, c->opts.trace_dir, &err);
    note_home(c, err.message);
}

static void fail_folder(struct tp_kineto_collector *c,
                        const struct tp_kineto_task *task, const char *why)
{
    char text[160];

    snprintf(text, sizeof(text), "no file: %.140s", why);
    tp_kineto_watch_report(c, task, TP_KINETO_FOLDER_FAILED, text);
}

/* Whether a descriptor is one of the last quarter that there may be: those are for
 * connections, streams and files. */
static bool is_among_last(int fd, struct tp_err *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        (rlim_t)fd < limit.rlim_cur - limit.rlim_cur / 4)
        return false;
    tp_fail(err, TP_EQUOTA, "the limit of open files, %llu, is too low for so many",
            (unsigned long long)limit.rlim_cur);
    return true;
}

/* Make the folder of a watch, and have inotify tell what comes into it. */
static int open_folder(struct tp_kineto_collector *c, struct tp_kineto_watch *w,
                       struct tp_err *err)
{
    char path[1400];
    int rc = tp_kineto_folder_make(c->home_fd, w->task.folder, w->task.uid, w->task.gid,
                                   &w->fd, err);

    if (rc != TP_OK)
        return rc;
    if (is_among_last(w->fd, err)) {
        tp_kineto_folder_remove(c->home_fd, w->task.folder);
        close(w->fd);
        return TP_EQUOTA;
    }
    snprintf(path, sizeof(path), "%s/%s", c->opts.trace_dir, w->task.folder);
    w->wd = inotify_add_watch(c->inotify_fd, path,
                              IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
    return TP_OK;
}

struct tp_kineto_watch *tp_kineto_watch_folder(struct tp_kineto_collector *c,
                                               const struct tp_kineto_task *task)
{
    struct tp_err err = {0};
    struct tp_kineto_watch *w;

    tp_kineto_watch_home(c);
    if (*c->home_error != '\0') {
        fail_folder(c, task, c->home_error);
        return NULL;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        fail_folder(c, task, "no memory to watch its folder");
        return NULL;
    }
    w->task = *task;
    if (open_folder(c, w, &err) != TP_OK) {
        fail_folder(c, task, err.message);
        free(w);
        return NULL;
    }
    if (*task->log_file != '\0') /* now, since its process may soon have ended */
        tp_kineto_owner_read(task->pid, task->uid, task->gid, &w->owner);
    w->next = c->watches;
    c->watches = w;
    return w;
}

/* Put the file where a client of dynolog's expects it. What goes wrong is a note of the
 * process's, and the trace has the file all the same. */
static void put_log_file(const struct tp_kineto_upload_job *u, int fd, char *note,
                         size_t bytes)
{
    const struct tp_kineto_collector_opts *o = &u->collector->opts;
    struct tp_err err = {0};
    size_t n = strlen(note);

    if (*u->log_file == '\0' ||
        tp_kineto_log_file_put(o->log_dirs, o->n_log_dirs, u->log_file, &u->owner, fd,
                               &err) == TP_OK)
        return;
    snprintf(note + n, bytes - n, "%sno file at its log file: %.90s",
             n == 0 ? "" : "; ", err.message);
}

/* Read it, on a worker, so that as many files are open as there are workers. */
static int read_file(struct tp_kineto_upload_job *u, char *note, size_t note_bytes,
                     struct tp_err *err)
{
    struct tp_kineto_file file = {u->trace_id, u->producer_id, u->name, -1};
    uint64_t bytes;
    int rc = tp_kineto_file_open(u->folder_fd, u->name, u->uid, &file.fd, &bytes, err);

    if (rc != TP_OK) {
        u->is_put_off = rc == TP_EIO;
        return rc;
    }
    rc = tp_kineto_upload(u->collector->opts.engine, &file, note, note_bytes,
                          &u->is_put_off, err);
    if (rc == TP_OK)
        put_log_file(u, file.fd, note, note_bytes);
    close(file.fd);
    return rc;
}

/* On a worker. */
static void run_upload(void *arg)
{
    struct tp_kineto_upload_job *u = arg;
    struct tp_kineto_collector *c = u->collector;
    char note[160] = "", text[200];
    struct tp_err err = {0};
    enum tp_kineto_event event = TP_KINETO_FILE_TAKEN;

    if (read_file(u, note, sizeof(note), &err) != TP_OK) {
        event = u->is_put_off ? TP_KINETO_FILE_WAITS : TP_KINETO_FILE_REFUSED;
        snprintf(text, sizeof(text), "%s%.180s",
                 u->is_put_off ? "" : "no file: ", err.message);
    }
    tp_engine_kineto_report(c->opts.engine, u->trace_id, u->producer_id, event,
                            event == TP_KINETO_FILE_TAKEN ? note : text,
                            tp_clock_now());
    atomic_store(&u->is_done, true);
    if (c->opts.on_change != NULL)
        c->opts.on_change(c->opts.arg);
    tp_kineto_collector_poke(c);
}

static void refuse_file(struct tp_kineto_collector *c, struct tp_kineto_watch *w,
                        const char *why)
{
    char text[160];

    snprintf(text, sizeof(text), "no file: %.140s", why);
    w->is_through = true;
    tp_kineto_watch_report(c, &w->task, TP_KINETO_FILE_REFUSED, text);
}

/* Nothing that comes into its folder is of interest any more. */
static void stop_watching(struct tp_kineto_collector *c, struct tp_kineto_watch *w)
{
    if (w->wd >= 0)
        inotify_rm_watch(c->inotify_fd, w->wd);
    w->wd = -1;
}

/* Whether a file is one to be read, as far as can be seen now; it is opened again when
 * its turn comes. */
static bool is_readable(struct tp_kineto_collector *c, struct tp_kineto_watch *w,
                        const char *name)
{
    struct tp_err err = {0};
    uint64_t bytes;
    int fd;
    int rc = tp_kineto_file_open(w->fd, name, w->task.uid, &fd, &bytes, &err);

    if (rc == TP_OK)
        close(fd);
    else if (rc != TP_EIO)
        refuse_file(c, w, err.message);
    return rc == TP_OK || rc == TP_EIO;
}

static void take_file(struct tp_kineto_collector *c, struct tp_kineto_watch *w,
                      const char *name)
{
    struct tp_kineto_upload_job *u;
    struct tp_err err = {0};

    if (!is_readable(c, w, name))
        return;
    if (!w->is_found)
        tp_kineto_watch_report(c, &w->task, TP_KINETO_FILE_FOUND, NULL);
    w->is_found = true;
    /* The look once a second comes back to what is too early, or cannot be read now. */
    w->is_early = !tp_engine_kineto_takes_files(c->opts.engine, w->task.trace_id);
    u = w->is_early ? NULL : calloc(1, sizeof(*u));
    if (u == NULL)
        return;
    u->collector = c;
    memcpy(u->trace_id, w->task.trace_id, sizeof(u->trace_id));
    memcpy(u->producer_id, w->task.producer_id, sizeof(u->producer_id));
    snprintf(u->name, sizeof(u->name), "%s", name);
    memcpy(u->log_file, w->task.log_file, sizeof(u->log_file));
    u->owner = w->owner;
    u->uid = w->task.uid;
    u->folder_fd = w->fd;
    if (tp_workers_post(c->opts.workers, run_upload, u, &err) != TP_OK) {
        free(u);
        return;
    }
    w->is_through = true;
    w->upload = u;
}

/* A file that could not be read: look for it again. */
static void try_again(struct tp_kineto_watch *w)
{
    if (w->upload == NULL || !w->upload->is_done || !w->upload->is_put_off)
        return;
    free(w->upload);
    w->upload = NULL;
    w->is_through = w->is_unwanted;
}

static void note_begun(struct tp_kineto_collector *c, struct tp_kineto_watch *w)
{
    if (w->has_begun)
        return;
    w->has_begun = true;
    tp_kineto_watch_report(c, &w->task, TP_KINETO_FILE_BEGUN, NULL);
}

/* Somebody has removed the folder, or put something in its place. Made again in time,
 * the process does not notice. */
static void restore_folder(struct tp_kineto_collector *c, struct tp_kineto_watch *w)
{
    struct tp_kineto_watch fresh = *w;
    struct tp_err err = {0};

    tp_kineto_watch_home(c);
    if (w->has_begun || *c->home_error != '\0' ||
        open_folder(c, &fresh, &err) != TP_OK) {
        refuse_file(c, w,
                    w->has_begun ? "its folder was removed while it was written"
                                 : "its folder was removed");
        return;
    }
    stop_watching(c, w);
    close(w->fd);
    *w = fresh;
}

void tp_kineto_watch_look(struct tp_kineto_collector *c, struct tp_kineto_watch *w)
{
    /* In this order: what it wrote before it ended is there after it has. */
    bool is_there = !w->has_ended && tp_kineto_process_is_there(w->task.pid);
    struct tp_kineto_found found = {0};
    struct tp_err err = {0};
    int rc = TP_OK;

    try_again(w);
    if (w->is_through)
        return;
    if (!tp_kineto_folder_is_there(c->home_fd, w->task.folder, w->fd))
        restore_folder(c, w);
    else
        rc = tp_kineto_folder_look(w->fd, w->task.uid, &found, &err);
    if (rc == TP_EQUOTA)
        refuse_file(c, w, err.message);
    if (found.has_begun)
        note_begun(c, w);
    if (found.name[0] != '\0')
        take_file(c, w, found.name);
    else if (!is_there && !w->is_through && rc == TP_OK)
        tp_kineto_watch_report(c, &w->task, TP_KINETO_PROCESS_ENDED, NULL);
    if (w->is_through)
        stop_watching(c, w);
}

/* Returns whether its folder is gone, as far as it goes; some of it at a time. */
static bool remove_folder(struct tp_kineto_collector *c, struct tp_kineto_watch *w)
{
    stop_watching(c, w);
    if (tp_kineto_folder_empty(w->fd))
        return false;
    tp_kineto_folder_remove(c->home_fd, w->task.folder);
    close(w->fd);
    return true;
}

bool tp_kineto_watch_tidy(struct tp_kineto_collector *c)
{
    struct tp_kineto_watch **at = &c->watches;
    bool has_more = false;

    while (*at != NULL) {
        struct tp_kineto_watch *w = *at;

        if (!w->is_unwanted && (w->upload == NULL || w->upload->is_done))
            w->is_unwanted = !tp_engine_kineto_is_wanted(c->opts.engine,
                                                         w->task.trace_id,
                                                         w->task.producer_id);
        if (!w->is_unwanted || !remove_folder(c, w)) {
            has_more = has_more || w->is_unwanted;
            w->is_through = w->is_through || w->is_unwanted;
            at = &w->next;
            continue;
        }
        *at = w->next;
        free(w->upload);
        free(w);
    }
    return has_more;
}

/* A name has come into a folder. */
static void take_name(struct tp_kineto_collector *c, struct tp_kineto_watch *w,
                      const char *name)
{
    enum tp_kineto_file_kind kind = tp_kineto_file_kind(name);

    if (w->is_through || !tp_kineto_file_is_of(w->fd, name, w->task.uid))
        return;
    if (kind == TP_KINETO_FILE_IS_BEGUN)
        note_begun(c, w);
    else if (kind == TP_KINETO_FILE_IS_COMPLETE)
        take_file(c, w, name);
}

static void take_event(struct tp_kineto_collector *c, const struct inotify_event *e,
                       const char *name)
{
    struct tp_kineto_watch *w = c->watches;

    while (w != NULL && w->wd != e->wd)
        w = w->next;
    if (w == NULL)
        return;
    if ((e->mask & IN_IGNORED) != 0)
        tp_kineto_watch_look(c, w); /* the folder has gone */
    else if (e->len > 0)
        take_name(c, w, name);
}

void tp_kineto_watch_read(struct tp_kineto_collector *c)
{
    union {
        struct inotify_event align;
        char bytes[16384];
    } buffer;

    for (int i = 0; i < READS; i++) {
        ssize_t n = read(c->inotify_fd, buffer.bytes, sizeof(buffer.bytes));

        for (ssize_t at = 0; at < n;) {
            struct inotify_event e;

            memcpy(&e, buffer.bytes + at, sizeof(e));
            take_event(c, &e, buffer.bytes + at + sizeof(e));
            at += (ssize_t)(sizeof(e) + e.len);
        }
        if (n <= 0)
            return;
    }
}

void tp_kineto_watch_forget(struct tp_kineto_collector *c)
{
    while (c->watches != NULL) {
        struct tp_kineto_watch *w = c->watches;

        c->watches = w->next;
        close(w->fd);
        free(w->upload);
        free(w);
    }
}
