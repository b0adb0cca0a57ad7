/*
 * kineto_collector.c - tasks of the engine, folders that are watched, files that come.
 *
 *   task FOLDER --> folder made, watched --> file begun --> file complete --> a worker
 *   reads it --> reported --> no longer wanted --> folder emptied, bit by bit --> gone
 *
 * Only the thread touches the list of watches. What happens in a folder is in
 * kineto_watch.c.
 */
#include "server/kineto_collector.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process_key.h"
#include "engine/engine.h"
#include "server/clock.h"
#include "server/kineto_folder.h"
#include "server/kineto_process.h"
#include "server/kineto_watch.h"

#define MS_NS UINT64_C(1000000)
#define GATHER_NS (5 * MS_NS) /* news of many processes at once are one step */
#define IDLE_NS (1000 * MS_NS)
#define LOOK_NS (1000 * MS_NS) /* inotify may miss: a remote file system */
#define TASK_NS (50 * MS_NS)   /* new traces are looked for so often */

static void describe(struct tp_kineto_collector *c, const struct tp_kineto_task *task)
{
    struct tp_kineto_description description = {.rank = -1};
    struct tp_kineto_process process;
    char key[TP_PROCESS_KEY_BYTES] = "";

    tp_kineto_process_read(task->pid, task->uid, &process);
    if (task->pid > 0)
        tp_process_key(task->pid, key);
    description.process = tp_str_of(key);
    description.job = tp_str_of(process.job);
    description.rank = process.rank;
    description.world_size = process.world_size;
    /* When it fails, the next request of the process makes another task. */
    (void)tp_engine_kineto_describe(c->opts.engine, task->target, &description,
                                    tp_clock_now(), NULL);
    c->has_targets = true;
}

/* Whether the process of a FIND task is no more. */
static bool has_ended(const struct tp_kineto_task *task)
{
    char key[TP_PROCESS_KEY_BYTES];

    if (task->pid <= 0)
        return false; /* nobody knows */
    return !tp_kineto_process_is_there(task->pid) ||
           (*task->process != '\0' && tp_process_key(task->pid, key) &&
            strcmp(key, task->process) != 0);
}

/* What is in there came before the process can be told anything again. */
static void find_folder(struct tp_kineto_collector *c,
                        const struct tp_kineto_task *task)
{
    struct tp_kineto_task found = *task;
    bool is_over = has_ended(task); /* before the look, as in look() */
    struct tp_kineto_watch *w = NULL;

    tp_kineto_watch_home(c);
    if (tp_kineto_folder_owner(c->home_fd, task->folder,
                               task->has_uid ? &task->uid : NULL, &found.uid,
                               &found.gid)) {
        w = tp_kineto_watch_folder(c, &found);
        if (w == NULL)
            return;
        w->has_ended = is_over;
        tp_kineto_watch_look(c, w);
        tp_kineto_watch_report(c, task, TP_KINETO_FOLDER_READY, NULL);
    } else if (is_over) {
        tp_kineto_watch_report(c, task, TP_KINETO_PROCESS_ENDED, NULL);
    }
}

static void do_tasks(struct tp_kineto_collector *c)
{
    struct tp_kineto_task task;

    while (!c->is_stopping && tp_engine_kineto_next_task(c->opts.engine, &task)) {
        if (task.kind == TP_KINETO_TASK_DESCRIBE)
            describe(c, &task);
        else if (task.kind == TP_KINETO_TASK_FIND)
            find_folder(c, &task);
        else if (tp_kineto_watch_folder(c, &task) != NULL)
            tp_kineto_watch_report(c, &task, TP_KINETO_FOLDER_READY, NULL);
    }
}

static void wait_events(struct tp_kineto_collector *c, uint64_t ns)
{
    struct pollfd fds[2] = {{c->wake_fd, POLLIN, 0}, {c->inotify_fd, POLLIN, 0}};
    uint64_t ignored;

    if (poll(fds, 2, (int)((ns + MS_NS - 1) / MS_NS)) <= 0)
        return;
    if ((fds[0].revents & POLLIN) != 0 &&
        read(c->wake_fd, &ignored, sizeof(ignored)) < 0)
        return;
    if ((fds[1].revents & POLLIN) != 0)
        tp_kineto_watch_read(c);
}

static void *run(void *arg)
{
    struct tp_kineto_collector *c = arg;
    uint64_t looked_ns = 0;

    while (!c->is_stopping) {
        struct tp_now now = tp_clock_now();
        uint64_t next, wait_ns = c->has_targets ? TASK_NS : IDLE_NS;

        atomic_store(&c->is_poked, false);
        next = tp_engine_kineto_run(c->opts.engine, now);
        do_tasks(c);
        if (now.mono_ns - looked_ns >= LOOK_NS) {
            looked_ns = now.mono_ns;
            tp_kineto_watch_home(c);
            for (struct tp_kineto_watch *w = c->watches; w != NULL; w = w->next)
                tp_kineto_watch_look(c, w);
        }
        if (tp_kineto_watch_tidy(c))
            wait_ns = MS_NS;
        if (next != UINT64_MAX && next < now.mono_ns + wait_ns)
            wait_ns = next > now.mono_ns + MS_NS ? next - now.mono_ns : MS_NS;
        wait_events(c, wait_ns);
        if (c->is_poked && !c->is_stopping)
            usleep(GATHER_NS / 1000);
    }
    return NULL;
}

void tp_kineto_collector_poke(struct tp_kineto_collector *c)
{
    const uint64_t one = 1;

    if (atomic_exchange(&c->is_poked, true))
        return;
    if (write(c->wake_fd, &one, sizeof(one)) < 0)
        return; /* it is full, so the thread will wake up */
}

static bool wants_folder(void *arg, const char *name)
{
    const struct tp_kineto_collector *c = arg;

    return tp_engine_kineto_wants_folder(c->opts.engine, name);
}

int tp_kineto_collector_start(const struct tp_kineto_collector_opts *opts,
                              struct tp_kineto_collector **out, struct tp_err *err)
{
    struct tp_kineto_collector *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the Kineto collector");
    c->opts = *opts;
    c->home_fd = -1;
    tp_kineto_watch_home(c);
    if (c->home_fd >= 0)
        tp_kineto_home_tidy(c->home_fd, wants_folder, c);
    c->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->inotify_fd < 0 || c->wake_fd < 0 ||
        pthread_create(&c->thread, NULL, run, c) != 0) {
        tp_kineto_collector_free(c);
        return tp_fail(err, TP_EIO, "cannot start the thread for Kineto files: %m");
    }
    pthread_setname_np(c->thread, "kineto-collect");
    c->has_thread = true;
    *out = c;
    return TP_OK;
}

void tp_kineto_collector_stop(struct tp_kineto_collector *c)
{
    if (c == NULL || !c->has_thread)
        return;
    atomic_store(&c->is_stopping, true);
    atomic_store(&c->is_poked, false);
    tp_kineto_collector_poke(c);
    pthread_join(c->thread, NULL);
    c->has_thread = false;
}

void tp_kineto_collector_free(struct tp_kineto_collector *c)
{
    if (c == NULL)
        return;
    tp_kineto_watch_forget(c);
    if (c->inotify_fd >= 0)
        close(c->inotify_fd);
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    if (c->home_fd >= 0)
        close(c->home_fd);
    free(c);
}
