/*
 * native_ends.h - gives the slices of a native batch the ends that its sender left out.
 *
 * A linked producer sends a slice as one packet, with its duration, since an end costs
 * it a third of all bytes. On disk each slice has the synthetic end that other readers
 * of Perfetto's format need (docs/stream-format.md). It judges nothing: the batch was
 * found to be good before (native_check.h). Pure functions; safe from any thread.
 */
#ifndef TP_TRACE_NATIVE_ENDS_H
#define TP_TRACE_NATIVE_ENDS_H

#include <stdint.h>

struct tp_buf;
struct tp_err;

/*
 * Put an end behind each complete slice that has none, unless the first one has: then
 * all are taken to have theirs, and nothing is changed.
 *
 * batch      a whole native batch; grows in place.
 * n_events   at least as many as slices are in it.
 * stream_no  the sequence that its packets are of.
 *
 * TP_ENOMEM, TP_EQUOTA (the limit of the buffer)  nothing changed.
 */
int tp_native_ends_add(struct tp_buf *batch, uint64_t n_events, uint32_t stream_no,
                       struct tp_err *err);

#endif
