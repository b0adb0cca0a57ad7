/*
 * gunzip.c - isa-l's inflate with the frame of gzip around it.
 *
 *   BETWEEN --0x1f--> HEADER --> MEMBER --trailer--> BETWEEN ...
 *      |                                                |
 *      +--anything else: error                          +--NUL--> PADDING (only NUL)
 *
 * isa-l reads header, blocks and trailer of one member and checks both sums. The header
 * is read by its own call, with a struct that lives on: isal_inflate() keeps what it
 * knows of a header on its stack and loses it when the header comes in pieces.
 * isa-l stops behind the trailer; what follows is ours. It may hold bytes of its own
 * between calls, never any behind the trailer: the trailer (8 bytes) fills its bit
 * buffer (64 bits).
 *
 * The ratio is checked against all that went in so far, before the output is handed on,
 * so that a bomb costs at most one output buffer of work too much.
 */
#include "trace/gunzip.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define OUT_BYTES_MAX (UINT64_C(64) << 30)
#define RATIO_MAX 400U
#define RATIO_EXEMPT_BYTES (UINT64_C(16) << 20)
#define BUFFER_BYTES (256U << 10) /* fits the second-level cache beside the state */
#define FEED_BYTES (1U << 30)     /* isa-l counts in 32 bits */

enum place { BETWEEN, HEADER, MEMBER, PADDING };

struct tp_gunzip {
    struct tp_gunzip_opts opts; /* with the defaults filled in */
    enum place place;
    uint64_t in_bytes;  /* used up */
    uint64_t out_bytes; /* handed over */
    uint64_t n_members; /* begun */
    bool is_over_ratio;
    int failed; /* the final answer, once there is one */
    struct tp_err failure;
    struct isal_gzip_header header;
    struct inflate_state state;
    char buffer[BUFFER_BYTES];
};

bool tp_gunzip_is_gzip(const char *p, size_t n)
{
    return n >= 2 && p[0] == '\x1f' && p[1] == '\x8b';
}

int tp_gunzip_new(const struct tp_gunzip_opts *opts, struct tp_gunzip **out,
                  struct tp_err *err)
{
    struct tp_gunzip *g;

    assert(opts->on_bytes != NULL);
    g = calloc(1, sizeof(*g));
    if (g == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to inflate gzip data");
    g->opts = *opts;
    if (g->opts.out_bytes == 0)
        g->opts.out_bytes = OUT_BYTES_MAX;
    if (g->opts.ratio == 0)
        g->opts.ratio = RATIO_MAX;
    if (g->opts.ratio_exempt_bytes == 0)
        g->opts.ratio_exempt_bytes = RATIO_EXEMPT_BYTES;
    *out = g;
    return TP_OK;
}

void tp_gunzip_free(struct tp_gunzip *g)
{
    free(g);
}

bool tp_gunzip_is_over_ratio(const struct tp_gunzip *g)
{
    return g->is_over_ratio;
}

static const char *inflate_text(int code)
{
    switch (code) {
    case ISAL_INCORRECT_CHECKSUM:
        return "the checksum or length of the data is wrong";
    case ISAL_INVALID_WRAPPER:
        return "the gzip header is wrong";
    case ISAL_UNSUPPORTED_METHOD:
        return "the compression method is not deflate";
    case ISAL_NEED_DICT:
        return "the data needs a dictionary";
    default:
        return "the compressed data is damaged";
    }
}

static int damaged(struct tp_gunzip *g, int code, struct tp_err *err)
{
    return tp_fail(err, TP_EINVAL, "byte %llu of the gzip data (member %llu): %s",
                   (unsigned long long)g->in_bytes, (unsigned long long)g->n_members,
                   inflate_text(code));
}

/* Check the limits for n more bytes of output, and hand them on. */
static int hand_over(struct tp_gunzip *g, size_t n, struct tp_err *err)
{
    const uint64_t total = g->out_bytes + n;

    if (total > g->opts.out_bytes)
        return tp_fail(err, TP_EQUOTA,
                       "gzip data inflates to more than the limit of %llu bytes",
                       (unsigned long long)g->opts.out_bytes);
    g->is_over_ratio = total > g->opts.ratio_exempt_bytes &&
                       total / g->opts.ratio > g->in_bytes;
    if (g->is_over_ratio)
        return tp_fail(err, TP_EQUOTA,
                       "gzip data inflates to more than %u times its size (%llu bytes "
                       "from %llu)",
                       g->opts.ratio, (unsigned long long)total,
                       (unsigned long long)g->in_bytes);
    if (n == 0)
        return TP_OK;
    g->out_bytes = total;
    return g->opts.on_bytes(g->buffer, n, err, g->opts.arg);
}

/* One call of isa-l. Sets *used to what it took of the n bytes at p. */
static int inflate_some(struct tp_gunzip *g, const char *p, size_t n, size_t *used,
                        struct tp_err *err)
{
    struct inflate_state *s = &g->state;
    size_t produced;
    int code;
    int rc;

    s->next_in = (uint8_t *)(uintptr_t)p; /* isa-l only reads it */
    s->avail_in = (uint32_t)n;
    s->next_out = (uint8_t *)g->buffer;
    s->avail_out = BUFFER_BYTES;
    code = isal_inflate(s);
    *used = n - s->avail_in;
    produced = BUFFER_BYTES - s->avail_out;
    g->in_bytes += *used;
    rc = hand_over(g, produced, err);
    if (rc != TP_OK)
        return rc;
    if (code < 0 || code == ISAL_NEED_DICT)
        return damaged(g, code, err);
    if (s->block_state == ISAL_BLOCK_FINISH)
        g->place = BETWEEN;
    return TP_OK;
}

/* A whole member, or what is there of it. */
static int read_member(struct tp_gunzip *g, const char *p, size_t n, size_t *used,
                       struct tp_err *err)
{
    size_t total = 0;
    size_t taken;
    int rc;

    do {
        rc = inflate_some(g, p + total, n - total, &taken, err);
        total += taken;
        /* A full buffer means that more may be waiting inside isa-l. */
    } while (rc == TP_OK && g->place == MEMBER &&
             (total < n || g->state.avail_out == 0));
    *used = total;
    return rc;
}

/* The first byte behind a member, or of all. */
static int begin_member(struct tp_gunzip *g, char first, struct tp_err *err)
{
    if (first == '\0' && g->n_members > 0) {
        g->place = PADDING;
        return TP_OK;
    }
    if (first != '\x1f' && g->n_members > 0)
        return tp_fail(
            err, TP_EINVAL,
            "byte %llu of the gzip data: behind member %llu is something that "
            "is not gzip data",
            (unsigned long long)g->in_bytes, (unsigned long long)g->n_members);
    if (first != '\x1f')
        return tp_fail(err, TP_EINVAL, "byte 0: not gzip data");
    isal_inflate_init(&g->state);
    isal_gzip_header_init(&g->header); /* no buffers: the texts are passed over */
    g->n_members++;
    g->place = HEADER;
    return TP_OK;
}

static int read_header(struct tp_gunzip *g, const char *p, size_t n, size_t *used,
                       struct tp_err *err)
{
    int code;

    g->state.next_in = (uint8_t *)(uintptr_t)p; /* isa-l only reads it */
    g->state.avail_in = (uint32_t)n;
    code = isal_read_gzip_header(&g->state, &g->header);
    *used = n - g->state.avail_in;
    g->in_bytes += *used;
    if (code == ISAL_END_INPUT)
        return TP_OK;
    if (code != ISAL_DECOMP_OK)
        return damaged(g, code, err);
    g->state.crc_flag = ISAL_GZIP_NO_HDR_VER; /* blocks and trailer are left */
    g->place = MEMBER;
    return TP_OK;
}

/* NUL bytes up to the end of the input. */
static int read_padding(struct tp_gunzip *g, const char *p, size_t n, size_t *used,
                        struct tp_err *err)
{
    size_t i = 0;

    while (i < n && p[i] == '\0')
        i++;
    g->in_bytes += i;
    *used = i;
    if (i == n)
        return TP_OK;
    return tp_fail(err, TP_EINVAL,
                   "byte %llu of the gzip data: behind the padding is something else",
                   (unsigned long long)g->in_bytes);
}

static int read_some(struct tp_gunzip *g, const char *p, size_t n, size_t *used,
                     struct tp_err *err)
{
    *used = 0;
    switch (g->place) {
    case BETWEEN:
        return begin_member(g, *p, err);
    case HEADER:
        return read_header(g, p, n < FEED_BYTES ? n : FEED_BYTES, used, err);
    case MEMBER:
        return read_member(g, p, n < FEED_BYTES ? n : FEED_BYTES, used, err);
    default:
        return read_padding(g, p, n, used, err);
    }
}

/* Keep the final answer. */
static int fail(struct tp_gunzip *g, int rc, const struct tp_err *why,
                struct tp_err *err)
{
    if (g->failed == TP_OK) {
        g->failed = rc;
        g->failure = *why;
        g->failure.code = rc;
    }
    if (err != NULL)
        *err = g->failure;
    return g->failed;
}

int tp_gunzip_feed(struct tp_gunzip *g, const char *p, size_t n, struct tp_err *err)
{
    struct tp_err why = {0};
    size_t done = 0;
    int rc = TP_OK;

    if (g->failed != TP_OK)
        return fail(g, g->failed, &g->failure, err);
    while (rc == TP_OK && done < n) {
        size_t used;

        rc = read_some(g, p + done, n - done, &used, &why);
        done += used;
    }
    return rc == TP_OK ? TP_OK : fail(g, rc, &why, err);
}

int tp_gunzip_finish(struct tp_gunzip *g, struct tp_err *err)
{
    struct tp_err why = {0};
    int rc;

    if (g->failed != TP_OK)
        return fail(g, g->failed, &g->failure, err);
    if (g->n_members == 0)
        rc = tp_fail(&why, TP_EINVAL, "the gzip data is empty");
    else if (g->place == HEADER || g->place == MEMBER)
        rc = tp_fail(&why, TP_EINVAL,
                     "byte %llu of the gzip data: it ends inside member %llu",
                     (unsigned long long)g->in_bytes, (unsigned long long)g->n_members);
    else
        return TP_OK;
    return fail(g, rc, &why, err);
}

void tp_gunzip_counts(const struct tp_gunzip *g, uint64_t *in_bytes,
                      uint64_t *out_bytes)
{
    if (in_bytes != NULL)
        *in_bytes = g->in_bytes;
    if (out_bytes != NULL)
        *out_bytes = g->out_bytes;
}
