#include "engine/spare.h"

#include "engine/objects.h"

#define TEXT_BYTES 128u       /* what a producer says of itself takes about as much */
#define MIN_BYTES (1u << 20)  /* less than that is there at once */
#define STEP_BYTES (2u << 20) /* a huge page */
#define PAGE_BYTES 4096u      /* the smallest */

size_t tp_spare_wanted(const struct tp_job *job)
{
    if (job->n_producers < TP_SPARE_MANY)
        return 0;
    return job->n_producers *
           (sizeof(struct tp_member) + sizeof(struct tp_stream) + TEXT_BYTES);
}

void tp_spare_take(struct tp_engine *e, size_t n, struct tp_bulk *out)
{
    if (n == 0 || e->spare.bulk.size < n || e->spare.bulk.size / 2 > n)
        return;
    *out = e->spare.bulk;
    e->spare = (struct tp_spare){0};
}

void tp_spare_fini(struct tp_spare *spare)
{
    tp_bulk_fini(&spare->bulk);
    spare->ready_bytes = 0;
}

/* What the largest job needs. The lock is held. */
static size_t most_wanted(const struct tp_engine *e)
{
    size_t cursor = 0, most = 0;
    void *job;

    while (tp_strmap_next(&e->jobs, &cursor, NULL, &job)) {
        size_t n = tp_spare_wanted(job);

        most = n > most ? n : most;
    }
    return most < MIN_BYTES ? 0 : most;
}

/* Have the next pages. Each is written to, or it would not be there. */
static void touch(struct tp_spare *spare)
{
    size_t end = spare->ready_bytes + STEP_BYTES;

    if (end > spare->bulk.size)
        end = spare->bulk.size;
    while (spare->ready_bytes < end) {
        *(volatile char *)&spare->bulk.bytes[spare->ready_bytes] = 0;
        spare->ready_bytes += PAGE_BYTES;
    }
}

/* Whether producers are being told to start at this moment. The lock is held. */
static bool is_telling(struct tp_engine *e, struct tp_now now)
{
    const struct tp_trace *t;
    size_t cursor = 0;

    if (now.mono_ns >= e->telling_until_ns)
        return false;
    while ((t = tp_trace_next_active(e, &cursor)) != NULL) {
        if (t->telling.n_told < t->telling.n_due)
            return true;
    }
    return false;
}

/* Whether there is something to do; then the spare is the caller's for the time. A
 * quarter more than is wanted is kept: jobs grow. */
static bool borrow(struct tp_engine *e, struct tp_now now, size_t *wanted,
                   struct tp_spare *out)
{
    bool is_due;

    tp_lock_take(&e->lock);
    *wanted = most_wanted(e);
    is_due = !is_telling(e, now) &&
             (e->spare.bulk.size < *wanted || e->spare.bulk.size / 4 > *wanted ||
              e->spare.ready_bytes < e->spare.bulk.size);
    if (is_due) {
        *out = e->spare;
        e->spare = (struct tp_spare){0};
    }
    tp_lock_give(&e->lock);
    return is_due;
}

void tp_engine_make_ready(struct tp_engine *e, struct tp_now now)
{
    struct tp_spare spare;
    size_t wanted;

    if (!borrow(e, now, &wanted, &spare))
        return;
    if (spare.bulk.size < wanted || spare.bulk.size / 4 > wanted)
        tp_spare_fini(&spare);
    if (wanted > 0 && spare.bulk.bytes == NULL)
        tp_bulk_reserve(&spare.bulk, wanted + wanted / 4);
    touch(&spare);
    tp_lock_take(&e->lock);
    e->spare = spare;
    tp_lock_give(&e->lock);
}
