/*
 * chrome_writer.h - events as lines of Chrome trace JSON.
 *
 * Each event becomes one object on a line of its own, behind a comma where one is due.
 * What is around the events (chrome_head.h) and where they come from is the caller's
 * business. Strings that the reader knows by number are escaped once and copied from
 * then on, and so are pid and tid of each track; these caches are bounded. One thread
 * at a time. docs/trace-format.md describes the result.
 */
#ifndef TP_TRACE_CHROME_WRITER_H
#define TP_TRACE_CHROME_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

struct tp_buf;
struct tp_chrome_writer;
struct tp_err;
struct tp_index_meta;
struct tp_merge;

/*
 * Create a writer. It stands at stream 0 and before the first event.
 *
 * merge    who is who; borrowed, and must outlive the writer.
 * base_ns  what times are relative to.
 * out      set only on success; release it with tp_chrome_writer_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_chrome_writer_new(const struct tp_merge *merge, int64_t base_ns,
                         struct tp_chrome_writer **out, struct tp_err *err);

/* Release a writer. NULL is allowed. */
void tp_chrome_writer_free(struct tp_chrome_writer *w);

/*
 * Go to another stream, whose reader is another one: its iids and track indexes have
 * nothing to do with those before.
 *
 * stream  place in the plan.
 */
void tp_chrome_writer_stream(struct tp_chrome_writer *w, size_t stream);

/*
 * Append an event of the present stream.
 *
 * ev   ts_ns is absolute. Strings must be what event.h says; invalid UTF-8 in them is
 *      repaired all the same, except inside TP_ARG_JSON and extra.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); nothing was appended.
 */
int tp_chrome_writer_event(struct tp_chrome_writer *w, const struct tp_event *ev,
                           struct tp_buf *out, struct tp_err *err);

/*
 * Append a metadata event of the present stream, given with the pid and tid of the
 * source and the lane that it is about; 0 is the thread itself. Errors as
 * tp_chrome_writer_event().
 */
int tp_chrome_writer_meta(struct tp_chrome_writer *w, const struct tp_index_meta *meta,
                          uint32_t lane, struct tp_buf *out, struct tp_err *err);

#endif
