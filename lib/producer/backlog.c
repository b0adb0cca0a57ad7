#include "producer/backlog.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

/* A spare of a rare large batch is not worth keeping. */
#define SPARE_BYTES_MAX (2u << 20)

int tp_backlog_get(struct tp_backlog *b, struct tp_batch **out, struct tp_err *err)
{
    struct tp_batch *batch = b->spare;

    b->spare = NULL;
    if (batch == NULL)
        batch = calloc(1, sizeof(*batch));
    if (batch == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a batch of events");
    batch->payload.len = 0;
    batch->next = NULL;
    *out = batch;
    return TP_OK;
}

bool tp_backlog_has_room(const struct tp_backlog *b, size_t n)
{
    return b->first == NULL || b->bytes + n <= b->limit_bytes;
}

void tp_backlog_push(struct tp_backlog *b, struct tp_batch *batch)
{
    batch->seq = ++b->last_seq;
    if (b->last == NULL)
        b->first = batch;
    else
        b->last->next = batch;
    b->last = batch;
    b->bytes += batch->payload.len;
    b->n_events += batch->events.n_events;
}

static void release(struct tp_batch *batch)
{
    tp_buf_fini(&batch->payload);
    free(batch);
}

void tp_backlog_return(struct tp_backlog *b, struct tp_batch *batch)
{
    if (b->spare == NULL && batch->payload.cap <= SPARE_BYTES_MAX)
        b->spare = batch;
    else
        release(batch);
}

void tp_backlog_pop(struct tp_backlog *b)
{
    struct tp_batch *batch = b->first;

    assert(batch != NULL);
    b->first = batch->next;
    if (b->first == NULL)
        b->last = NULL;
    b->bytes -= batch->payload.len;
    b->n_events -= batch->events.n_events;
    tp_backlog_return(b, batch);
}

void tp_backlog_clear(struct tp_backlog *b)
{
    while (b->first != NULL)
        tp_backlog_pop(b);
    if (b->spare != NULL)
        release(b->spare);
    b->spare = NULL;
    b->last_seq = 0;
}
