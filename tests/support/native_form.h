/*
 * native_form.h - batches of slices in the form in which a linked producer posts them.
 *
 * For tests and benchmarks, which make batches with the writer of the service. Pure
 * functions; safe from any thread.
 */
#ifndef TP_SUPPORT_NATIVE_FORM_H
#define TP_SUPPORT_NATIVE_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/pb_read.h"

/* Whether a packet is the synthetic end of a slice. */
static inline bool native_form_is_end(const struct tp_pb_field *packet)
{
    static const char mark[] = {(char)0xe8, (char)0xea, 0x04, 0x01};

    return packet->bytes != NULL && packet->value >= 2 + sizeof(mark) &&
           packet->bytes[0] == 0x5a &&
           memcmp(packet->bytes + 2, mark, sizeof(mark)) == 0;
}

/* The end of the packet at p, or of all when there is none. */
static inline const char *native_form_next(const char *p, const char *stop,
                                           bool *is_end)
{
    struct tp_pb_field f;
    const char *next = tp_pb_next_field(p, stop, &f);

    *is_end = next != NULL && native_form_is_end(&f);
    return next == NULL ? stop : next;
}

/* Whether two batches are the same, whichever ends of slices they have. */
static inline bool native_form_is_same(const char *a, size_t n_a, const char *b,
                                       size_t n_b)
{
    const char *stop_a = a + n_a;
    const char *stop_b = b + n_b;

    while (a < stop_a || b < stop_b) {
        bool is_end_a, is_end_b;
        const char *next_a = native_form_next(a, stop_a, &is_end_a);
        const char *next_b = native_form_next(b, stop_b, &is_end_b);

        if (!is_end_a && !is_end_b &&
            (next_a - a != next_b - b || memcmp(a, b, (size_t)(next_a - a)) != 0))
            return false;
        a = is_end_a || !is_end_b ? next_a : a;
        b = is_end_b || !is_end_a ? next_b : b;
    }
    return true;
}

/* Leave the synthetic ends out, but for the first `n_kept`; what is no packet stays. */
static inline void native_form_leave_out_ends(struct tp_buf *batch, size_t n_kept)
{
    const char *p = batch->data;
    const char *stop = p + batch->len;
    char *to = batch->data;

    while (p < stop) {
        bool is_end;
        const char *next = native_form_next(p, stop, &is_end);

        if (!is_end || n_kept > 0) {
            n_kept -= is_end;
            memmove(to, p, (size_t)(next - p));
            to += next - p;
        }
        p = next;
    }
    batch->len = (size_t)(to - batch->data);
}

#endif
