/*
 * sorter_runs.c - runs one behind the other in one anonymous blob, merged by a heap.
 *
 * A blob for each run would need as many file descriptors as runs. When `fan_in` runs
 * are there they are merged into a fresh blob, which then replaces the old one; the
 * merged run comes first, so the order of coming is kept.
 */
#include "trace/sorter_runs.h"

#include <assert.h>
#include <stdlib.h>

#define READ_BYTES_MIN (16 * 1024)
#define FAN_IN_MAX 256
#define WRITE_BYTES (256 * 1024)

void tp_runs_init(struct tp_runs *r, const struct tp_blobs *blobs, size_t memory_bytes)
{
    size_t fan_in = memory_bytes / READ_BYTES_MIN;

    fan_in = fan_in < 2 ? 2 : fan_in;
    fan_in = fan_in > FAN_IN_MAX ? FAN_IN_MAX : fan_in;
    *r = (struct tp_runs){.blobs = blobs,
                          .fan_in = fan_in,
                          .buffer_bytes = memory_bytes / fan_in};
}

/* Forget the runs, and what was read of them; the blob stays. */
static void drop_runs(struct tp_runs *r)
{
    for (size_t i = 0; i < r->n; i++)
        tp_buf_fini(&r->runs[i].buf);
    r->n = 0;
    free(r->heap);
    r->heap = NULL;
    r->n_heap = 0;
}

void tp_runs_fini(struct tp_runs *r)
{
    drop_runs(r);
    free(r->runs);
    tp_buf_fini(&r->out);
    if (r->blobs != NULL) {
        if (r->making != r->blob)
            r->blobs->close(r->blobs->ctx, r->making);
        r->blobs->close(r->blobs->ctx, r->blob);
    }
    *r = (struct tp_runs){0};
}

int tp_runs_compare(const struct tp_rec_head *a, const struct tp_rec_head *b)
{
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->dur_ns != b->dur_ns)
        return a->dur_ns > b->dur_ns ? -1 : 1;
    return 0;
}

static int flush(struct tp_runs *r, struct tp_err *err)
{
    int rc;

    if (r->out.len == 0)
        return TP_OK;
    rc = r->blobs->append(r->making, r->out.data, r->out.len, err);
    if (rc != TP_OK)
        return rc;
    r->bytes_written += r->out.len;
    r->out.len = 0;
    return TP_OK;
}

int tp_runs_add(struct tp_runs *r, const struct tp_rec_head *rec, struct tp_err *err)
{
    int rc = TP_OK;

    if (r->out.len >= WRITE_BYTES)
        rc = flush(r, err);
    if (rc != TP_OK)
        return rc;
    return tp_buf_append(&r->out, rec, rec->size, err);
}

int tp_runs_end(struct tp_runs *r, struct tp_err *err)
{
    int rc = flush(r, err);

    if (rc != TP_OK)
        return rc;
    assert(r->n < r->cap); /* tp_runs_begin() made the place */
    r->runs[r->n] =
        (struct tp_run){.offset = r->made_from, .end = r->blobs->size(r->making)};
    r->n++;
    r->n_written++;
    return TP_OK;
}

/* Merge all runs into one in a blob of its own, which replaces the old one. */
static int merge_into_one(struct tp_runs *r, struct tp_err *err)
{
    const struct tp_rec_head *rec = NULL;
    int rc = tp_runs_merge(r, err);

    if (rc == TP_OK)
        rc = r->blobs->open_append(r->blobs->ctx, NULL, &r->making, err);
    if (rc != TP_OK)
        return rc;
    for (;;) {
        rc = tp_runs_next(r, &rec, err);
        if (rc != TP_OK)
            return rc;
        if (rec == NULL)
            break;
        rc = tp_runs_add(r, rec, err);
        if (rc != TP_OK)
            return rc;
    }
    drop_runs(r);
    r->blobs->close(r->blobs->ctx, r->blob);
    r->blob = r->making;
    r->made_from = 0;
    return tp_runs_end(r, err);
}

static int reserve_run(struct tp_runs *r, struct tp_err *err)
{
    size_t cap = r->cap == 0 ? 16 : r->cap * 2;
    struct tp_run *runs;

    if (r->n < r->cap)
        return TP_OK;
    runs = realloc(r->runs, cap * sizeof(*runs));
    if (runs == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu runs", cap);
    r->runs = runs;
    r->cap = cap;
    return TP_OK;
}

int tp_runs_begin(struct tp_runs *r, struct tp_err *err)
{
    int rc = TP_OK;

    if (r->blob == NULL) {
        rc = r->blobs->open_append(r->blobs->ctx, NULL, &r->blob, err);
        r->making = r->blob;
    } else if (r->n == r->fan_in) {
        rc = merge_into_one(r, err);
    }
    if (rc == TP_OK)
        rc = reserve_run(r, err);
    if (rc != TP_OK)
        return rc;
    r->made_from = r->blobs->size(r->blob);
    return TP_OK;
}

/* Bring more of a run into memory, the record at hand to the front. */
static int refill(struct tp_runs *r, struct tp_run *run, size_t want,
                  struct tp_err *err)
{
    size_t room;
    size_t got = 0;
    int rc;

    tp_buf_consume(&run->buf, run->at);
    run->at = 0;
    want = want < r->buffer_bytes ? r->buffer_bytes : want;
    room = want - run->buf.len;
    room = room < run->end - run->offset ? room : (size_t)(run->end - run->offset);
    rc = tp_buf_reserve(&run->buf, room, err);
    if (rc == TP_OK)
        rc = r->blobs->pread(r->blob, run->offset, run->buf.data + run->buf.len, room,
                             &got, err);
    if (rc != TP_OK)
        return rc;
    if (got != room)
        return tp_fail(err, TP_EIO, "a spilled run ends at %llu, not at %llu",
                       (unsigned long long)(run->offset + got),
                       (unsigned long long)run->end);
    run->buf.len += got;
    run->offset += got;
    return TP_OK;
}

/* Have the record at hand whole in memory; *rec is NULL when the run is used up. */
static int load(struct tp_runs *r, struct tp_run *run, struct tp_err *err)
{
    const struct tp_rec_head *h;
    int rc;

    if (run->buf.len - run->at < sizeof(*h) && run->offset < run->end) {
        rc = refill(r, run, 0, err);
        if (rc != TP_OK)
            return rc;
    }
    if (run->buf.len == run->at)
        return TP_OK;
    h = (const void *)(run->buf.data + run->at);
    if (run->buf.len - run->at >= h->size)
        return TP_OK;
    return refill(r, run, h->size, err);
}

static inline const struct tp_rec_head *at_hand(const struct tp_runs *r,
                                                uint32_t number)
{
    const struct tp_run *run = &r->runs[number];

    return (const void *)(run->buf.data + run->at);
}

static bool comes_before(const struct tp_runs *r, uint32_t a, uint32_t b)
{
    int order = tp_runs_compare(at_hand(r, a), at_hand(r, b));

    return order != 0 ? order < 0 : a < b;
}

/* Move the run at place i down until no run below it comes before it. */
static void sift_down(struct tp_runs *r, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        uint32_t moved = r->heap[i];

        if (child >= r->n_heap)
            return;
        if (child + 1 < r->n_heap &&
            comes_before(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (!comes_before(r, r->heap[child], moved))
            return;
        r->heap[i] = r->heap[child];
        r->heap[child] = moved;
        i = child;
    }
}

int tp_runs_merge(struct tp_runs *r, struct tp_err *err)
{
    int rc;

    assert(r->heap == NULL);
    r->heap = malloc(r->n * sizeof(*r->heap));
    if (r->heap == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to merge %zu runs", r->n);
    r->n_heap = 0;
    r->is_started = false;
    for (size_t i = 0; i < r->n; i++) {
        rc = load(r, &r->runs[i], err);
        if (rc != TP_OK)
            return rc;
        if (r->runs[i].buf.len > 0)
            r->heap[r->n_heap++] = (uint32_t)i;
    }
    for (size_t i = r->n_heap / 2; i-- > 0;)
        sift_down(r, i);
    return TP_OK;
}

/* Leave the record that was handed out last behind. */
static int advance(struct tp_runs *r, struct tp_err *err)
{
    struct tp_run *run = &r->runs[r->heap[0]];
    int rc;

    run->at += at_hand(r, r->heap[0])->size;
    rc = load(r, run, err);
    if (rc != TP_OK)
        return rc;
    if (run->at == run->buf.len) {
        tp_buf_fini(&run->buf);
        r->heap[0] = r->heap[--r->n_heap];
    }
    sift_down(r, 0);
    return TP_OK;
}

int tp_runs_next(struct tp_runs *r, const struct tp_rec_head **rec, struct tp_err *err)
{
    int rc = TP_OK;

    if (r->is_started && r->n_heap > 0)
        rc = advance(r, err);
    if (rc != TP_OK)
        return rc;
    r->is_started = true;
    *rec = r->n_heap == 0 ? NULL : at_hand(r, r->heap[0]);
    return TP_OK;
}
