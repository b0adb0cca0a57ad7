/*
 * chrome_metas.h - the metadata events that a Chrome download adds to the source's own.
 *
 * Labels, order and lanes, as the plan has them. It writes no event of the source.
 * One thread at a time per writer.
 */
#ifndef TP_TRACE_CHROME_METAS_H
#define TP_TRACE_CHROME_METAS_H

#include <stddef.h>

struct tp_buf;
struct tp_chrome_writer;
struct tp_err;
struct tp_merge;

/*
 * Append the metadata that the plan adds for a stream: in a merge, a label and the
 * place of each process; without one, a label "rank N" if the source brought no
 * metadata at all; always, the names of extra lanes.
 *
 * w  stands at this stream.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); some of it may be appended.
 */
int tp_chrome_metas_write(const struct tp_merge *m, size_t stream,
                          struct tp_chrome_writer *w, struct tp_buf *out,
                          struct tp_err *err);

#endif
