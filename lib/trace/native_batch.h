/*
 * native_batch.h - the first packet of a batch that a linked producer posts.
 *
 * A native batch is the payload of a frame as it lies in a log: a service that finds it
 * in order stores its bytes and writes none of its own. docs/stream-format.md, "What a
 * linked producer posts", has the packets that follow; this is only the first one,
 * which says that the batch is native, how many events it holds and how the producer's
 * clock stood to the service's. It always has the same size, so that it can be written
 * when the batch is full. Pure functions on the caller's memory; safe from any thread.
 */
#ifndef TP_TRACE_NATIVE_BATCH_H
#define TP_TRACE_NATIVE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_NATIVE_HEAD_BYTES 64          /* of the first packet, always */
#define TP_NATIVE_BYTES_MAX (4u << 20)   /* a longer body is read the long way */
#define TP_NATIVE_CLOCK_MAX (1ULL << 62) /* times of clocks are below it */

/* One moment on two clocks: the best exchange that the producer has had lately. */
struct tp_native_clock {
    uint64_t producer_ns; /* that of the batch's timestamps and of sync's times */
    uint64_t server_ns;   /* since 1970, by the service's clock */
    uint64_t error_ns;    /* server_ns is right to plus or minus this */
};

/* Plain data. */
struct tp_native_head {
    uint32_t stream_no; /* 1 to 65535: that of the command `prepare` */
    uint64_t n_events;  /* in the batch; a counter event is one */
    bool has_clock;
    struct tp_native_clock clock; /* with has_clock; times below TP_NATIVE_CLOCK_MAX */
};

/* Write the packet: TP_NATIVE_HEAD_BYTES bytes at p. */
void tp_native_head_put(char *p, const struct tp_native_head *head);

/*
 * Read the packet at p.
 *
 * n     bytes that are there; those behind TP_NATIVE_HEAD_BYTES are not looked at.
 * head  set when it is one.
 *
 * Returns whether these are exactly the bytes that tp_native_head_put() writes for what
 * they say.
 */
bool tp_native_head_get(const char *p, size_t n, struct tp_native_head *head);

/* What is to be added to the times of the batch to have the service's, about: 0 when
 * the clocks were not compared. */
int64_t tp_native_head_offset(const struct tp_native_head *head);

#endif
