/*
 * sorter.c - an external merge sort that costs nothing extra when the data fits.
 *
 *     room:    | record | record | record | ...        records as they came
 *     entries: (time, position in room) each           what is sorted
 *     blob:    | run 0, sorted | run 1, sorted | ...    when the room was full
 *
 * In memory the entries are radix sorted by time, 11 bits a pass and only the passes
 * whose digits differ: three or four for a trace of seconds. Runs of equal times, which
 * are short, are then put right by comparison. A comparison sort of everything was
 * twice as slow. Runs are merged through a heap; when there are as many as may be read
 * at once, they are first merged into one.
 */
#include "trace/sorter.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "trace/sorter_runs.h"

#define MEMORY_BYTES_MIN (64 * 1024)
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
#define HUGE_BYTES ((uintptr_t)2 << 20)
#define AHEAD 8       /* records that are fetched before they are asked for */
#define PASSES 6      /* 6 * 11 bits are 64 and more */
#define RADIX_MIN 512 /* fewer entries are compared */

struct entry {
    uint64_t key; /* ts_ns with the sign bit turned: unsigned order */
    uint64_t pos; /* offset in room */
};

struct tp_sorter {
    struct tp_runs runs;
    size_t memory_bytes;
    bool can_spill;
    struct tp_buf room;
    size_t committed; /* bytes of room that are records */
    struct entry *entries;
    struct entry *scratch; /* as many; only while sorting */
    size_t n, cap;
    bool in_order; /* the entries so far came sorted */
    size_t next;   /* entry that tp_sorter_next() gives */
    struct tp_sorter_stats stats;
};

/*
 * Ask for huge pages in what is going to be filled from its beginning. Where a page
 * costs a trip to a hypervisor, touching memory for the first time is dearer than all
 * the sorting. It is only advice: a failure means nothing.
 */
static void advise_huge(void *p, size_t n)
{
    uintptr_t start = ((uintptr_t)p + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)p + n) & ~(HUGE_BYTES - 1);

    if (start < end)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Reserve all memory at once: what is not touched costs nothing, and growing would copy
 * or move what is there. */
static int reserve(struct tp_sorter *s, struct tp_err *err)
{
    int rc = tp_buf_reserve(&s->room, s->memory_bytes, err);

    if (rc != TP_OK)
        return rc;
    advise_huge(s->room.data, s->room.cap);
    s->cap = s->memory_bytes / (sizeof(struct tp_rec_head) + 2 * sizeof(*s->entries)) +
             1;
    s->entries = malloc(s->cap * sizeof(*s->entries));
    if (s->entries == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to sort %zu events", s->cap);
    advise_huge(s->entries, s->cap * sizeof(*s->entries));
    return TP_OK;
}

int tp_sorter_new(const struct tp_blobs *blobs, size_t memory_bytes,
                  struct tp_sorter **out, struct tp_err *err)
{
    struct tp_sorter *s = calloc(1, sizeof(*s));
    int rc;

    if (s == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a sorter");
    if (memory_bytes < MEMORY_BYTES_MIN)
        memory_bytes = MEMORY_BYTES_MIN;
    s->memory_bytes = memory_bytes;
    s->can_spill = blobs != NULL;
    s->in_order = true;
    s->stats.was_sorted = true;
    tp_runs_init(&s->runs, blobs, memory_bytes / 2);
    rc = reserve(s, err);
    if (rc != TP_OK) {
        tp_sorter_free(s);
        return rc;
    }
    *out = s;
    return TP_OK;
}

void tp_sorter_free(struct tp_sorter *s)
{
    if (s == NULL)
        return;
    tp_runs_fini(&s->runs);
    tp_buf_fini(&s->room);
    free(s->entries);
    free(s->scratch);
    free(s);
}

struct tp_buf *tp_sorter_room(struct tp_sorter *s)
{
    return &s->room;
}

static inline const struct tp_rec_head *record_at(const struct tp_sorter *s,
                                                  uint64_t pos)
{
    return (const void *)(s->room.data + pos);
}

static inline uint64_t key_of(int64_t ts_ns)
{
    return (uint64_t)ts_ns ^ (UINT64_C(1) << 63);
}

static int compare_entries(const void *pa, const void *pb, void *arg)
{
    const struct entry *a = pa;
    const struct entry *b = pb;
    const struct tp_sorter *s = arg;
    int order = tp_runs_compare(record_at(s, a->pos), record_at(s, b->pos));

    return order != 0 ? order : (a->pos > b->pos) - (a->pos < b->pos);
}

/* Put runs of equal times, which keep the order of coming so far, into full order. */
static void sort_ties(struct tp_sorter *s)
{
    for (size_t i = 0; i < s->n;) {
        size_t end = i + 1;
        bool ok = true;

        for (; end < s->n && s->entries[end].key == s->entries[i].key; end++)
            ok = ok && compare_entries(&s->entries[end - 1], &s->entries[end], s) < 0;
        if (!ok)
            qsort_r(s->entries + i, end - i, sizeof(*s->entries), compare_entries, s);
        i = end;
    }
}

static void count_digits(const struct tp_sorter *s, uint64_t min,
                         uint32_t counts[PASSES][DIGITS])
{
    for (size_t i = 0; i < s->n; i++) {
        uint64_t key = s->entries[i].key - min;

        for (int pass = 0; pass < PASSES && key != 0; pass++) {
            counts[pass][key & (DIGITS - 1)]++;
            key >>= DIGIT_BITS;
        }
    }
}

/* One stable pass from entries to scratch, which then change places. */
static void radix_pass(struct tp_sorter *s, uint64_t min, int pass, uint32_t *counts)
{
    struct entry *to = s->scratch;
    uint32_t at = 0;

    for (int d = 0; d < DIGITS; d++) {
        uint32_t count = counts[d];

        counts[d] = at;
        at += count;
    }
    for (size_t i = 0; i < s->n; i++) {
        uint64_t key = s->entries[i].key - min;

        to[counts[key >> (pass * DIGIT_BITS) & (DIGITS - 1)]++] = s->entries[i];
    }
    s->scratch = s->entries;
    s->entries = to;
}

static int radix_sort(struct tp_sorter *s, struct tp_err *err)
{
    uint32_t(*counts)[DIGITS] = calloc(PASSES, sizeof(*counts));
    uint64_t min = s->entries[0].key;

    s->scratch = malloc(s->cap * sizeof(*s->scratch)); /* as it may stay */
    if (counts == NULL || s->scratch == NULL) {
        free(counts);
        return tp_fail(err, TP_ENOMEM, "no memory to sort %zu events", s->n);
    }
    advise_huge(s->scratch, s->n * sizeof(*s->scratch));
    for (size_t i = 1; i < s->n; i++)
        min = s->entries[i].key < min ? s->entries[i].key : min;
    count_digits(s, min, counts);
    for (int pass = 0; pass < PASSES; pass++) {
        uint32_t others = 0; /* entries whose digit is not 0; zeros are not counted
                                once the rest of the key is 0 */

        for (int d = 1; d < DIGITS; d++)
            others += counts[pass][d];
        if (others == 0)
            continue;
        counts[pass][0] = (uint32_t)s->n - others;
        radix_pass(s, min, pass, counts[pass]);
    }
    free(counts);
    free(s->scratch);
    s->scratch = NULL;
    return TP_OK;
}

static int sort_entries(struct tp_sorter *s, struct tp_err *err)
{
    int rc = TP_OK;

    if (s->in_order)
        return TP_OK;
    s->stats.was_sorted = false;
    if (s->n < RADIX_MIN || s->n > UINT32_MAX) {
        qsort_r(s->entries, s->n, sizeof(*s->entries), compare_entries, s);
        return TP_OK;
    }
    rc = radix_sort(s, err);
    if (rc == TP_OK)
        sort_ties(s);
    return rc;
}

/* Sort what is in memory, write it as a run and empty the room. */
static int spill(struct tp_sorter *s, struct tp_err *err)
{
    int rc = sort_entries(s, err);

    if (rc == TP_OK)
        rc = tp_runs_begin(&s->runs, err);
    for (size_t i = 0; rc == TP_OK && i < s->n; i++)
        rc = tp_runs_add(&s->runs, record_at(s, s->entries[i].pos), err);
    if (rc == TP_OK)
        rc = tp_runs_end(&s->runs, err);
    if (rc != TP_OK)
        return rc;
    s->n = 0;
    s->room.len = 0;
    s->committed = 0;
    s->in_order = true;
    return TP_OK;
}

int tp_sorter_commit(struct tp_sorter *s, uint32_t rank, struct tp_err *err)
{
    struct tp_rec_head *h = (void *)(s->room.data + s->committed);
    struct entry e = {key_of(h->ts_ns), s->committed};
    size_t used;

    assert(s->room.len == s->committed + h->size);
    h->rank = rank;
    assert(s->n < s->cap); /* cap records of the least size fill the memory */
    s->entries[s->n++] = e;
    if (s->in_order && s->n > 1)
        s->in_order = compare_entries(&s->entries[s->n - 2], &e, s) < 0;
    s->committed = s->room.len;
    s->stats.records++;
    used = s->committed + s->n * 2 * sizeof(e);
    if (used < s->memory_bytes)
        return TP_OK;
    if (!s->can_spill)
        return tp_fail(err, TP_EQUOTA, "%zu bytes of events are over the limit of %zu",
                       used, s->memory_bytes);
    return spill(s, err);
}

int tp_sorter_finish(struct tp_sorter *s, struct tp_err *err)
{
    int rc;

    if (tp_runs_count(&s->runs) == 0)
        return sort_entries(s, err);
    s->stats.was_sorted = false;
    rc = s->n > 0 ? spill(s, err) : TP_OK;
    if (rc != TP_OK)
        return rc;
    tp_buf_fini(&s->room); /* its place is for the buffers of the merge */
    free(s->entries);
    s->entries = NULL;
    s->cap = 0;
    return tp_runs_merge(&s->runs, err);
}

int tp_sorter_next(struct tp_sorter *s, const struct tp_rec_head **rec,
                   struct tp_err *err)
{
    if (tp_runs_count(&s->runs) > 0)
        return tp_runs_next(&s->runs, rec, err);
    if (s->next == s->n) {
        *rec = NULL;
        return TP_OK;
    }
    if (s->next + AHEAD < s->n) {
        const char *ahead = (const char *)record_at(s, s->entries[s->next + AHEAD].pos);

        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + 64);
        __builtin_prefetch(ahead + 128);
    }
    *rec = record_at(s, s->entries[s->next++].pos);
    return TP_OK;
}

struct tp_sorter_stats tp_sorter_stats(const struct tp_sorter *s)
{
    struct tp_sorter_stats stats = s->stats;

    stats.runs = s->runs.n_written;
    stats.spill_bytes = s->runs.bytes_written;
    return stats;
}
