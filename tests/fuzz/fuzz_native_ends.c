/*
 * fuzz_native_ends.c - whatever a batch is, it keeps its packets in their order when
 * ends are added, and says the same to a reader. What has its ends gets no more, and
 * only what is a slice to the reader gets one.
 *
 * The first byte is the number of the stream, the second how many events there are said
 * to be; the rest is the batch.
 */
#include <stdint.h>
#include <stdlib.h>

#include "support/native_form.h"
#include "trace/native_ends.h"
#include "trace/pf_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a reader has found. */
struct seen {
    uint64_t n, sum, slices;
    bool is_whole; /* the reader has understood all of it */
    int rc;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct seen read_all(const struct tp_buf *bytes)
{
    struct tp_pf_reader_opts opts = {0};
    struct tp_pf_cursor c = {bytes->data, bytes->data + bytes->len};
    struct seen seen = {0};
    struct tp_pf_reader *r;

    check(tp_pf_reader_new(&opts, &r, NULL) == TP_OK);
    for (;;) {
        enum tp_pf_item item;
        struct tp_event ev;

        seen.rc = tp_pf_reader_next(r, &c, &item, &ev, NULL);
        if (seen.rc != TP_OK)
            break;
        seen.n++;
        seen.slices += item == TP_PF_EVENT && ev.kind == TP_EVENT_SLICE;
        if (item == TP_PF_EVENT)
            seen.sum = seen.sum * 31 + (uint64_t)ev.ts_ns + (uint64_t)ev.dur_ns +
                       (uint64_t)ev.kind;
    }
    seen.is_whole = c.ptr == c.end && tp_pf_reader_skipped(r).events == 0;
    tp_pf_reader_free(r);
    return seen;
}

static size_t count_ends(const struct tp_buf *bytes)
{
    const char *stop = bytes->data + bytes->len;
    size_t n = 0;

    for (const char *p = bytes->data; p < stop;) {
        bool is_end;

        p = native_form_next(p, stop, &is_end);
        n += is_end;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_buf before = {0}, after = {0};
    struct seen was, is;
    uint64_t n_events;
    size_t len;

    if (size < 3)
        return 0;
    n_events = data[1];
    check(tp_buf_append(&before, data + 2, size - 2, NULL) == TP_OK);
    check(tp_buf_append(&after, data + 2, size - 2, NULL) == TP_OK);
    check(tp_native_ends_add(&after, n_events, data[0] + 1u, NULL) == TP_OK);
    check(native_form_is_same(before.data, before.len, after.data, after.len));
    check(count_ends(&after) <= count_ends(&before) + n_events);
    was = read_all(&before);
    is = read_all(&after);
    check(was.n == is.n && was.sum == is.sum && was.rc == is.rc);
    check(!was.is_whole || count_ends(&after) - count_ends(&before) <= was.slices);
    len = after.len;
    if (len != before.len)
        check(tp_native_ends_add(&after, n_events, data[0] + 1u, NULL) == TP_OK);
    check(after.len == len);
    tp_buf_fini(&before);
    tp_buf_fini(&after);
    return 0;
}
