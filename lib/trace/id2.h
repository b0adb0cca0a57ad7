/*
 * id2.h - keeps the "id2" of asynchronous events of several streams apart.
 *
 * Chrome's format has two forms of it: {"local":"0x5"} counts in one process, and
 * {"global":"0x5"} in the whole file. Where streams come together the processes are
 * apart already; the global ones are made so here. What joins the events of one stream
 * is tp_pf_id2() of pf_encode.h. Pure functions; safe from any thread.
 */
#ifndef TP_TRACE_ID2_H
#define TP_TRACE_ID2_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct tp_buf;
struct tp_err;

/*
 * Write the extra members of an event with a global id2 as those of a stream: a text
 * becomes "<stream_no>:<text>", and so does a number.
 *
 * stream_no   1 to 65535.
 * out         gets the members, in place of what it held.
 * is_changed  false: the event has no such id2, and out is to be ignored.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out may hold a part.
 */
int tp_id2_separate(const struct tp_event *ev, uint32_t stream_no, struct tp_buf *out,
                    bool *is_changed, struct tp_err *err);

#endif
