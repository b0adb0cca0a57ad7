/*
 * pf_slice.h - a part of a sealed stream, packet by packet.
 *
 * Packets that pass are copied as they are; of those that do not, only the names that
 * they define stay, since later packets may use them. It decides nothing about events:
 * the caller does. One stream, one thread.
 */
#ifndef TP_TRACE_PF_SLICE_H
#define TP_TRACE_PF_SLICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;
struct tp_pf_slice;

/*
 * Create a slicer for a stream with n_tracks tracks, lanes included.
 *
 * out  set only on success; release it with tp_pf_slice_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_pf_slice_new(size_t n_tracks, struct tp_pf_slice **out, struct tp_err *err);

/* Release a slicer. NULL is allowed. */
void tp_pf_slice_free(struct tp_pf_slice *s);

/*
 * Append what stays of the packets that tp_stream_source_next() passed.
 *
 * packets  whole packets: those of at most one event, and before them ends of earlier
 *          slices and names.
 * passes   whether the event is shown.
 *
 * TP_EIO  not such packets; out holds a part of them. TP_ENOMEM, TP_EQUOTA  likewise.
 */
int tp_pf_slice_add(struct tp_pf_slice *s, struct tp_str packets, bool passes,
                    struct tp_buf *out, struct tp_err *err);

#endif
