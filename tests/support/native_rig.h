/*
 * native_rig.h - native batches for tests, as a linked producer would post them.
 *
 * Events are written by tp_pf_writer behind a head. One thread at a time. What fails
 * ends the test.
 */
#ifndef TP_SUPPORT_NATIVE_RIG_H
#define TP_SUPPORT_NATIVE_RIG_H

#include <stdbool.h>

#include "base/buf.h"
#include "trace/event.h"
#include "trace/native_batch.h"

struct tp_pf_writer;
struct tp_typemap;

/* The static types, between the next two, which are for a group of tests. */
extern struct tp_typemap *native_rig_types;

int native_rig_set_up(void **state);
int native_rig_tear_down(void **state);

/* Embed it, zero. */
struct native_rig {
    struct tp_native_head head; /* its n_events is counted */
    struct tp_buf bytes;        /* the batch */
    bool keeps_ends;            /* of slices, as older producers do; set after begin */
    struct tp_pf_writer *writer;
};

/* Begin a batch of a stream; clock NULL: none. */
void native_rig_begin(struct native_rig *rig, uint32_t stream_no,
                      const struct tp_native_clock *clock);

/* Add an event of any kind. */
void native_rig_event(struct native_rig *rig, const struct tp_event *ev);

/* Add a slice of a type on thread tid of process 42, with one argument, n. */
void native_rig_slice(struct native_rig *rig, const char *cat, const char *name,
                      int64_t tid, int64_t ts_ns, int64_t dur_ns);

/* Add an instant of type kernel, tick, on a track. */
void native_rig_instant(struct native_rig *rig, const struct tp_track *track,
                        int64_t ts_ns);

/* Write the head, with what was counted, and leave out what is not sent. */
void native_rig_end(struct native_rig *rig);

/* Release all. All-zero is allowed. */
void native_rig_fini(struct native_rig *rig);

#endif
