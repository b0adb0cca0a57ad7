/*
 * merge_ids.h - gives the processes, threads and lanes of a plan their ids.
 *
 * A part of merge.c, which calls it once when its tables are there. No I/O.
 */
#ifndef TP_TRACE_MERGE_IDS_H
#define TP_TRACE_MERGE_IDS_H

struct tp_err;
struct tp_merge;

/*
 * Fill in pid, tid, number, sort_index, labels and markers of a plan whose tables are
 * sorted and named.
 *
 * TP_ENOMEM  some are filled in; tp_merge_free() releases them.
 */
int tp_merge_ids_give(struct tp_merge *m, struct tp_err *err);

#endif
