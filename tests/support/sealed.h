/*
 * sealed.h - sealed streams made of events, for tests of what reads them.
 *
 * Events go straight into a pf_writer, in the order that a seal would write them, and
 * the index is kept up as a seal would. Ends the program when something fails, so use
 * it while no fault is armed. One thread at a time.
 */
#ifndef TP_SUPPORT_SEALED_H
#define TP_SUPPORT_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"
#include "trace/stream_index.h"

struct tp_blob;
struct tp_blobs;
struct tp_pf_writer;

#define SEALED_TRACKS_MAX 64

/* A stream being made, and made. Start with sealed_init(). */
struct sealed {
    struct tp_blobs *blobs;
    struct tp_pf_writer *writer;
    struct tp_buf bytes;
    struct tp_stream_index index; /* to be changed freely */
    struct tp_blob *blob;         /* after sealed_close_writer() */
    bool has_endless;
    int64_t max_end_ns;
    struct tp_track tracks[SEALED_TRACKS_MAX];
};

/* Start an empty stream. */
void sealed_init(struct sealed *s, uint32_t stream_no);

/* The track of (pid, tid) and lane, numbers; made when new, known to the index. */
const struct tp_track *sealed_track(struct sealed *s, int64_t pid, int64_t tid,
                                    uint32_t lane);

/* The track of two texts. */
const struct tp_track *sealed_track_text(struct sealed *s, const char *pid,
                                         const char *tid);

/* Append an event; times must not decrease. Its cat is counted in the index. */
void sealed_add(struct sealed *s, const struct tp_event *ev);

/* Note that a block begins here: what comes starts at first_ns or later. */
void sealed_block(struct sealed *s, int64_t first_ns);

/* Add a metadata event or a top-level member to the index; texts are copied. */
void sealed_meta(struct sealed *s, const char *name, const struct tp_track *track,
                 const char *args_json);
void sealed_member(struct sealed *s, const char *key, const char *json);

/* Finish: the bytes go into a blob of the name, which is opened for reading. */
void sealed_close_writer(struct sealed *s, struct tp_blobs *blobs, const char *name);

/* Release everything, the blob too; not the home of the blob. */
void sealed_fini(struct sealed *s);

#endif
