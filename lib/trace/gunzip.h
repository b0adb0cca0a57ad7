/*
 * gunzip.h - gzip data (RFC 1952) inflated as it arrives.
 *
 * Push style: compressed bytes go in, in pieces of any size, inflated ones come out
 * through a callback. Several members after each other are one output, as gzip(1) has
 * it; each one's CRC and length are checked. Memory is fixed (about 350 KiB); what a
 * bomb may cost is limited by output and by ratio. It reads no other format. One thread
 * at a time.
 */
#ifndef TP_TRACE_GUNZIP_H
#define TP_TRACE_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tp_err;
struct tp_gunzip;

/* Takes n inflated bytes; a non-zero answer stops the reader and is returned by it. */
typedef int (*tp_gunzip_fn)(const char *p, size_t n, struct tp_err *err, void *arg);

/* Zero means the default, where one is named. */
struct tp_gunzip_opts {
    uint64_t out_bytes; /* most inflated bytes; default 64 GiB */
    uint32_t ratio;     /* most inflated bytes for each compressed one; default 400 */
    uint64_t ratio_exempt_bytes; /* so much may always come out; default 16 MiB */
    tp_gunzip_fn on_bytes;       /* not NULL */
    void *arg;                   /* passed to it */
};

/* Whether data that starts with these n bytes is gzip data: its first two bytes. */
bool tp_gunzip_is_gzip(const char *p, size_t n);

/*
 * Create a reader; opts is copied.
 *
 * out  set only on success; release it with tp_gunzip_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_gunzip_new(const struct tp_gunzip_opts *opts, struct tp_gunzip **out,
                  struct tp_err *err);

/* Release a reader. NULL is allowed. */
void tp_gunzip_free(struct tp_gunzip *g);

/* Whether the TP_EQUOTA that it gave was for its ratio. */
bool tp_gunzip_is_over_ratio(const struct tp_gunzip *g);

/*
 * Inflate n more bytes.
 *
 * TP_EINVAL  not gzip data, damaged, or something else behind a member; the message has
 *            the offset in the compressed data. What was inflated before it was handed
 *            over. NUL bytes behind the last member are padding, and fine.
 * TP_EQUOTA  a limit of the options, likewise.
 * other      what the callback answered.
 * All are final: further calls give the same answer.
 */
int tp_gunzip_feed(struct tp_gunzip *g, const char *p, size_t n, struct tp_err *err);

/*
 * Say that the input is complete.
 *
 * TP_EINVAL  it is empty or ends inside a member; the message has the offset. All that
 *            could be inflated was handed over. Otherwise as tp_gunzip_feed().
 */
int tp_gunzip_finish(struct tp_gunzip *g, struct tp_err *err);

/* Bytes taken in and handed over so far. Each pointer may be NULL. */
void tp_gunzip_counts(const struct tp_gunzip *g, uint64_t *in_bytes,
                      uint64_t *out_bytes);

#endif
