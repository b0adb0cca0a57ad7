#include "producer/backlog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define SPARES_MAX 8
#define SPARE_BYTES_MAX (2u << 20) /* a rare larger one is not worth keeping */
#define SLOWDOWN_BITS_MAX 4

static void release(struct tp_batch *batch)
{
    tp_buf_fini(&batch->payload);
    free(batch);
}

/* What a batch with a payload of n bytes is charged for. */
static size_t charge_of(size_t n)
{
    return sizeof(struct tp_batch) + n;
}

static struct tp_batch *take_spare(struct tp_backlog *b)
{
    struct tp_batch *batch = b->spares;

    b->spares = batch->next;
    b->n_spares--;
    b->spare_bytes -= batch->payload.cap;
    return batch;
}

/* Make one with a buffer of exactly n bytes. NULL: no memory. */
static struct tp_batch *create(size_t n)
{
    struct tp_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        return NULL;
    batch->payload.data = malloc(n);
    if (batch->payload.data == NULL) {
        free(batch);
        return NULL;
    }
    batch->payload.cap = n;
    return batch;
}

int tp_backlog_get(struct tp_backlog *b, size_t n_bytes, struct tp_batch **out,
                   struct tp_err *err)
{
    struct tp_batch *batch = NULL;

    while (batch == NULL && b->spares != NULL) {
        batch = take_spare(b);
        if (batch->payload.cap < n_bytes) {
            release(batch);
            batch = NULL;
        }
    }
    if (batch == NULL)
        batch = create(n_bytes);
    if (batch == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a batch of events");
    batch->payload.len = 0;
    batch->next = NULL;
    *out = batch;
    return TP_OK;
}

bool tp_backlog_has_room(const struct tp_backlog *b, size_t n)
{
    return b->first == NULL || b->bytes + charge_of(n) <= b->limit_bytes;
}

/* Spares are kept within the limit, all but one. */
static void release_spares(struct tp_backlog *b)
{
    while (b->n_spares > 1 && b->bytes + b->spare_bytes > b->limit_bytes)
        release(take_spare(b));
}

/*
 * Move a batch that fills its buffer badly into one of its size; the buffer serves the
 * next batch. Else a service that is away would cost a whole buffer for each batch,
 * however few events there are. Without memory for it the batch stays where it is.
 */
static struct tp_batch *fit(struct tp_backlog *b, struct tp_batch *batch)
{
    struct tp_batch *fitting;
    struct tp_buf payload;

    if (batch->payload.len >= batch->payload.cap - batch->payload.cap / 4)
        return batch;
    fitting = create(batch->payload.len);
    if (fitting == NULL)
        return batch;
    payload = fitting->payload;
    memcpy(payload.data, batch->payload.data, batch->payload.len);
    payload.len = batch->payload.len;
    *fitting = *batch;
    fitting->payload = payload;
    tp_backlog_return(b, batch);
    return fitting;
}

void tp_backlog_push(struct tp_backlog *b, struct tp_batch *batch)
{
    if (b->first != NULL)
        batch = fit(b, batch);
    batch->seq = ++b->last_seq;
    if (b->last == NULL)
        b->first = batch;
    else
        b->last->next = batch;
    b->last = batch;
    b->bytes += charge_of(batch->payload.len);
    b->n_events += batch->events.n_events;
    release_spares(b);
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
    b->spare_bytes += batch->payload.cap;
    release_spares(b);
}

void tp_backlog_trim(struct tp_backlog *b)
{
    while (b->spares != NULL)
        release(take_spare(b));
}

void tp_backlog_pop(struct tp_backlog *b)
{
    struct tp_batch *batch = b->first;

    assert(batch != NULL);
    b->first = batch->next;
    if (b->first == NULL)
        b->last = NULL;
    b->bytes -= charge_of(batch->payload.len);
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
