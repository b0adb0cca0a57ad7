#include "producer/backlog.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

#define SPARES_MAX 8
#define SPARE_BYTES_MAX (2u << 20) /* a rare larger one is not worth keeping */
#define SLOWDOWN_BITS_MAX 4

static void release(struct tp_batch *batch)
{
    tp_buf_fini(&batch->payload);
    free(batch);
}

int tp_backlog_get(struct tp_backlog *b, size_t n_bytes, struct tp_batch **out,
                   struct tp_err *err)
{
    struct tp_batch *batch = b->spares;

    if (batch != NULL) {
        b->spares = batch->next;
        b->n_spares--;
    } else {
        batch = calloc(1, sizeof(*batch));
    }
    if (batch == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a batch of events");
    batch->payload.len = 0;
    batch->next = NULL;
    if (tp_buf_reserve(&batch->payload, n_bytes, err) != TP_OK) {
        release(batch);
        return TP_ENOMEM;
    }
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

unsigned tp_backlog_slowdown(const struct tp_backlog *b)
{
    uint64_t behind = b->first == NULL ? 0 : b->last_seq - b->first->seq;

    return 1u << (behind < SLOWDOWN_BITS_MAX ? behind : SLOWDOWN_BITS_MAX);
}

void tp_backlog_return(struct tp_backlog *b, struct tp_batch *batch)
{
    if (b->n_spares == SPARES_MAX || batch->payload.cap > SPARE_BYTES_MAX) {
        release(batch);
        return;
    }
    batch->next = b->spares;
    b->spares = batch;
    b->n_spares++;
}

void tp_backlog_trim(struct tp_backlog *b)
{
    while (b->spares != NULL) {
        struct tp_batch *batch = b->spares;

        b->spares = batch->next;
        release(batch);
    }
    b->n_spares = 0;
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
    tp_backlog_trim(b);
    b->last_seq = 0;
}
