/*
 * batch.h - the packets of one batch: what has been said in it, and how records are
 * written.
 *
 * A batch stands for itself, so names, categories and tracks are said in it before
 * their first use. Remembering what was said is one number a text, track and type: that
 * of the batch that said it last, so that nothing is cleared between batches. The bytes
 * are those that docs/stream-format.md calls the fast form. Private to drain.c; one
 * thread at a time.
 */
#ifndef TP_PRODUCER_BATCH_H
#define TP_PRODUCER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producer/ticks.h"

struct tp_batch_writer;
struct tp_err;
struct tp_registry;

#define TP_BATCH_TEXT_MAX 4095u                     /* longer texts of fields are cut */
#define TP_BATCH_EVENT_ROOM_MAX ((size_t)200 << 10) /* an event and all that it says */

/* Where records come from. Plain data. */
struct tp_batch_thread {
    uint64_t tid;
    const char *name; /* "" = not known */
    bool *is_told;    /* whether the trace has the name; set when it is written */
};

/* Create what batches are made with. out  set only on success. TP_ENOMEM. */
int tp_batch_new(struct tp_batch_writer **out, struct tp_err *err);

/* Release it. NULL is allowed. */
void tp_batch_free(struct tp_batch_writer *b);

/* Begin a trace: names of processes, threads and devices are told once in each. */
void tp_batch_begin_trace(struct tp_batch_writer *b);

/*
 * Begin a batch.
 *
 * registry  names the types; line  the ticks. Both are used until the next begin.
 * stream_no  1 to 65535.
 */
void tp_batch_begin(struct tp_batch_writer *b, const struct tp_registry *registry,
                    const struct tp_ticks_line *line, uint32_t stream_no);

/* Say whose records follow. */
void tp_batch_set_thread(struct tp_batch_writer *b,
                         const struct tp_batch_thread *thread);

/*
 * Make ready for a record: after this it can be written.
 *
 * room  at most so many bytes will be written for it, up to TP_BATCH_EVENT_ROOM_MAX.
 *
 * TP_ENOMEM  nothing changed.
 */
int tp_batch_prepare(struct tp_batch_writer *b, const uint64_t *record, size_t *room,
                     struct tp_err *err);

/* Write a record that was prepared, with what it needs that was not said before.
 * Returns the end of what was written. */
char *tp_batch_put(struct tp_batch_writer *b, char *p, const uint64_t *record);

/* How many events the batch has besides those that were put: metadata, the names. */
uint32_t tp_batch_names(const struct tp_batch_writer *b);

#endif
