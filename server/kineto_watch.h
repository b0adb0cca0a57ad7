/*
 * kineto_watch.h - our own folder, the folders of processes in it, and what comes into
 * them; a part of the collector.
 *
 * Here is what a collector is made of, for its two files only: kineto_collector.c has
 * the thread and the tasks of the engine, kineto_watch.c the folders. Nothing here
 * decides which folders there are. Everything belongs to the collector's thread, and
 * tp_kineto_watch_home() also to the one that starts it.
 */
#ifndef TP_SERVER_KINETO_WATCH_H
#define TP_SERVER_KINETO_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "engine/kineto.h"
#include "server/kineto_collector.h"
#include "server/kineto_log_file.h"

struct tp_kineto_upload_job;

/* The folder of a process. Plain data. */
struct tp_kineto_watch {
    struct tp_kineto_watch *next;
    struct tp_kineto_task task;
    struct tp_kineto_owner owner; /* when it has a log_file */
    int fd, wd;
    bool has_begun;
    bool has_ended;   /* its process, whatever has its pid now */
    bool is_found;    /* its file is here, which the engine knows */
    bool is_early;    /* its file is here before the trace takes one */
    bool is_through;  /* its file was found: nothing more is looked for */
    bool is_unwanted; /* what is left is to empty and remove its folder */
    struct tp_kineto_upload_job *upload; /* NULL = none yet */
};

struct tp_kineto_collector {
    struct tp_kineto_collector_opts opts;
    int home_fd;                           /* -1: unusable, see home_error */
    char home_error[TP_ERR_MESSAGE_BYTES]; /* "" = usable */
    int inotify_fd, wake_fd;
    struct tp_kineto_watch *watches;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_stopping;
    _Atomic bool is_poked;
    bool has_targets; /* somebody asked lately */
};

/* Tell the engine, and whoever is interested, of an event of a task.
 *
 * text  as tp_engine_kineto_report() takes it; may be NULL. */
void tp_kineto_watch_report(struct tp_kineto_collector *c,
                            const struct tp_kineto_task *task,
                            enum tp_kineto_event event, const char *text);

/* Have our own folder, again when it has gone. When it cannot be had, home_error says
 * why, and everybody is told. */
void tp_kineto_watch_home(struct tp_kineto_collector *c);

/*
 * Make the folder of a task and watch it.
 *
 * Returns the watch, which the collector owns, or NULL when there is none, which is
 * reported.
 */
struct tp_kineto_watch *tp_kineto_watch_folder(struct tp_kineto_collector *c,
                                               const struct tp_kineto_task *task);

/* Look what is in a folder, whether it is still there, and whether its process is. */
void tp_kineto_watch_look(struct tp_kineto_collector *c, struct tp_kineto_watch *w);

/* Take what inotify tells. What is lost when its queue overflows a look finds. */
void tp_kineto_watch_read(struct tp_kineto_collector *c);

/* Let go what nobody waits for any more. Returns whether there is more to remove. */
bool tp_kineto_watch_tidy(struct tp_kineto_collector *c);

/* Forget all watches. The folders stay: a trace that goes on after a restart looks into
 * them. */
void tp_kineto_watch_forget(struct tp_kineto_collector *c);

#endif
