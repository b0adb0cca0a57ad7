/*
 * batch_run.h - the fast lane of a batch: slices and instants that need nothing said.
 *
 * Nearly all that a busy thread records is slices and instants with a name, a type and
 * keys that the batch has said before, and with few, short arguments. Runs of such
 * records are looked at and written in one pass. Whatever is rare about a record ends
 * the run: it goes the general way, tp_batch_prepare() and tp_batch_put(), which would
 * have written the same bytes of all the others. Private to drain.c; one thread at a
 * time.
 */
#ifndef TP_PRODUCER_BATCH_RUN_H
#define TP_PRODUCER_BATCH_RUN_H

#include <stddef.h>
#include <stdint.h>

struct tp_batch_writer;

/* What the packet of a record in a run may touch, in bytes. */
#define TP_BATCH_RUN_ROOM ((size_t)4096)

/* Which records are for the batch, and where in it they go. Plain data. */
struct tp_batch_run {
    uint64_t start_ticks, stop_ticks; /* what began in between, both included */
    uint64_t min_ticks;               /* slices that lasted so long */
    char *p;                          /* where the next record goes */
    char *end;                        /* of the room for the batch */
    uint64_t n_events;                /* records written are added here */
    uint32_t *by_type;                /* and here; 256 numbers */
};

/*
 * Write records until one is not for the fast lane, or there is no room for one.
 *
 * from, to  whole records of the thread that was set, one behind the other; the last
 *           one may end behind `to`.
 *
 * Returns where the record begins that is next, `to` or behind it when it was all of
 * them. That record has left no trace, but for bytes behind run->p.
 */
const uint64_t *tp_batch_put_run(struct tp_batch_writer *b, struct tp_batch_run *run,
                                 const uint64_t *from, const uint64_t *to);

#endif
