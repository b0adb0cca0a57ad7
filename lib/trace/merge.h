/*
 * merge.h - who is who when streams come together in one download.
 *
 * Each rank has its process 4037, its GPU 0 and its stream 7. This gives every process
 * and thread of every stream ids that are its own in the download, for both formats,
 * and collects the names that the metadata events of the sources gave them. A plan of
 * one stream leaves pids and tids as they are. Streams of one process share its pid.
 * The result depends on the indexes and their order only. Immutable after
 * tp_merge_new(); it borrows the indexes and the infos, which must outlive it.
 */
#ifndef TP_TRACE_MERGE_H
#define TP_TRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

struct tp_err;
struct tp_producer_info;
struct tp_stream_index;

/* One stream of a download, in the order of the download. */
struct tp_merge_stream {
    const struct tp_stream_index *index;
    const struct tp_producer_info *producer;
};

/* A pid of one stream. Texts are NULL when the source did not name it. */
struct tp_merge_process {
    struct tp_id source;
    struct tp_id pid;  /* in Chrome JSON */
    int32_t number;    /* in Perfetto: 1 to INT32_MAX, unique */
    uint32_t stream;   /* place in the plan */
    size_t owner;      /* place of the process that it is: its own, or that of another
                          stream, which then gives pid, number and name */
    char *name;        /* process_name */
    char *labels;      /* process_labels */
    bool has_metadata; /* the source has metadata events for this pid */
    bool has_sort;
    int64_t sort;       /* process_sort_index */
    int64_t sort_index; /* in the download: by rank, then as the source wanted */
    char *text;         /* private: storage of pid.text */
};

/* A tid of a process, and one of its lanes. */
struct tp_merge_thread {
    uint32_t process; /* place in the array of processes */
    uint32_t lane;
    struct tp_id source;
    struct tp_id tid; /* in Chrome JSON */
    int32_t number;   /* in Perfetto: 1 to INT32_MAX, unique in its process; lane 0 */
    uint64_t uuid;    /* the track's, as in the stream */
    char *name;       /* thread_name; of lane 0 only */
    char *text;       /* private: storage of tid.text */
};

/* A plan. Plain data, read only for users. */
struct tp_merge {
    bool is_merged; /* more than one stream */
    const struct tp_merge_stream *streams;
    size_t n_streams;
    struct tp_merge_process *processes; /* by stream, then pid */
    size_t n_processes;
    size_t *first_process; /* n_streams + 1 of them: the processes of stream i */
    struct tp_merge_thread *threads; /* by process, tid and lane */
    size_t n_threads;
    size_t *first_thread; /* n_streams + 1 of them: the threads of stream i */
    char **labels;  /* of each stream, for people: "rank 3", or the producer's name */
    char **markers; /* the same, made unique in the plan */
};

/*
 * Make a plan.
 *
 * streams  n of them, 1 or more; borrowed.
 * out      set only on success; release it with tp_merge_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_merge_new(const struct tp_merge_stream *streams, size_t n, struct tp_merge **out,
                 struct tp_err *err);

/* Release a plan. NULL is allowed. */
void tp_merge_free(struct tp_merge *m);

/* The process of a stream with this pid in the source, or NULL. */
const struct tp_merge_process *tp_merge_process(const struct tp_merge *m, size_t stream,
                                                const struct tp_id *pid);

/* The thread or lane of a process with this tid in the source, or NULL. */
const struct tp_merge_thread *tp_merge_thread(const struct tp_merge *m,
                                              const struct tp_merge_process *process,
                                              const struct tp_id *tid, uint32_t lane);

/* Order of two ids: absent ones, then numbers, then texts. As strcmp(). */
int tp_merge_compare_ids(const struct tp_id *a, const struct tp_id *b);

/*
 * The time in ns that Chrome JSON counts from: the earliest base that a source named; a
 * source without one counts from 0 while its times are below 2^53 ns, else from its
 * first event, floored to the steps of 7889238 s that Kineto uses.
 *
 * about_ns  when the trace was recorded, in ns since 1970; 0 = not known. Beside
 *           streams of that half year, others do not count: numbers that count from
 *           a base so far away are too coarse.
 */
int64_t tp_merge_base_ns(const struct tp_merge_stream *streams, size_t n,
                         int64_t about_ns);

#endif
