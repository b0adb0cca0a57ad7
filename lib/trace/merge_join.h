/*
 * merge_join.h - streams of one process share its pid in a download.
 *
 * A part of merge.c: a process that our library and Kineto have recorded is in two
 * streams, and is to be one process for viewers. Only the process itself is shared, not
 * what else the streams have, such as devices, and its threads keep rows of their own:
 * their slices were made by two recorders and need not nest. No I/O.
 */
#ifndef TP_TRACE_MERGE_JOIN_H
#define TP_TRACE_MERGE_JOIN_H

#include <stdbool.h>
#include <stddef.h>

struct tp_err;
struct tp_index_meta;
struct tp_merge;

/*
 * Set the owner of every process of a plan whose tables are sorted: itself, or the
 * process of another stream that it is. Kineto's streams own before others.
 *
 * TP_ENOMEM  some are set.
 */
int tp_merge_join(struct tp_merge *m, struct tp_err *err);

/* Let owners without a name have that of who they share their pid with. */
void tp_merge_join_names(struct tp_merge *m);

/* Whether a process of the plan has its pid from another one. */
bool tp_merge_is_joined(const struct tp_merge *m, size_t process);

/* Whether a metadata event of a stream would rename a process that it only shares. */
bool tp_merge_hides_meta(const struct tp_merge *m, size_t stream,
                         const struct tp_index_meta *meta);

/* The stream that all of a download is of, if that is one process: the first one that
 * has top-level members; else the first. SIZE_MAX: it is of several. */
size_t tp_merge_only_source(const struct tp_merge *m);

#endif
