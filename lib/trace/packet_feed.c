/*
 * packet_feed.c - a window over the bytes that came.
 *
 * While no packet is cut, the reader works on the caller's bytes themselves; only the
 * piece of a packet at their end is copied, and completed by the next bytes.
 */
#include "trace/packet_feed.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "trace/pf_plain.h"
#include "trace/pf_reader.h"

struct tp_packet_feed {
    struct tp_packet_feed_opts opts;
    struct tp_pf_reader *reader;
    struct tp_buf rest; /* the beginning of a packet, or empty */
    struct tp_packet_feed_stats stats;
    struct tp_pf_plain plain;
};

int tp_packet_feed_new(const struct tp_packet_feed_opts *opts,
                       struct tp_packet_feed **out, struct tp_err *err)
{
    struct tp_pf_reader_opts reader = {.tracks_max = opts->tracks_max,
                                       .is_trusted = opts->is_trusted};
    struct tp_packet_feed *f = calloc(1, sizeof(*f));
    int rc;

    assert(opts->on_plain == NULL || opts->is_trusted);
    if (f == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for reading packets");
    f->opts = *opts;
    rc = tp_pf_reader_new(&reader, &f->reader, err);
    if (rc != TP_OK) {
        tp_packet_feed_free(f);
        return rc;
    }
    *out = f;
    return TP_OK;
}

void tp_packet_feed_free(struct tp_packet_feed *f)
{
    if (f == NULL)
        return;
    tp_pf_reader_free(f->reader);
    tp_buf_fini(&f->rest);
    free(f);
}

static int hand_out(struct tp_packet_feed *f, enum tp_pf_item item,
                    const struct tp_event *ev, struct tp_err *err)
{
    const struct tp_packet_feed_opts *o = &f->opts;

    switch (item) {
    case TP_PF_EVENT:
        return o->on_event(ev, err, o->arg);
    case TP_PF_GHOST:
        return o->on_ghost == NULL ? TP_OK : o->on_ghost(ev, err, o->arg);
    case TP_PF_FRAME:
        return o->on_frame == NULL
                   ? TP_OK
                   : o->on_frame(tp_pf_reader_frame(f->reader), err, o->arg);
    }
    return TP_OK;
}

/* Note damage when salvaging, else pass the error on with where it is. */
static int damaged(struct tp_packet_feed *f, uint64_t offset, bool is_truncated,
                   struct tp_err *err)
{
    if (f->opts.salvage) {
        f->stats.is_damaged = true;
        f->stats.is_truncated = is_truncated;
        f->stats.damage_offset = offset;
        return TP_OK;
    }
    if (is_truncated)
        return tp_fail(err, TP_EINVAL, "the input ends inside a packet at byte %llu",
                       (unsigned long long)offset);
    return TP_EINVAL; /* the reader has said where */
}

/* Hand out the plain slices at c, up to the first packet that is none. */
static int read_plain(struct tp_packet_feed *f, struct tp_pf_cursor *c,
                      struct tp_err *err)
{
    bool is_taken = f->opts.on_plain != NULL;

    while (is_taken && tp_pf_plain_look(f->reader, c, &f->plain)) {
        int rc = f->opts.on_plain(&f->plain, &is_taken, err, f->opts.arg);

        if (rc != TP_OK)
            return rc;
        if (is_taken)
            tp_pf_plain_take(f->reader, c, &f->plain);
    }
    return TP_OK;
}

/* Hand out the items at c. TP_EAGAIN: all whole packets are used up. */
static int read_items(struct tp_packet_feed *f, struct tp_pf_cursor *c,
                      struct tp_err *err)
{
    struct tp_event ev;
    enum tp_pf_item item;
    int rc;

    for (;;) {
        rc = read_plain(f, c, err);
        if (rc != TP_OK)
            return rc;
        rc = tp_pf_reader_next(f->reader, c, &item, &ev, err);
        if (rc == TP_OK)
            rc = hand_out(f, item, &ev, err);
        else if (rc == TP_EAGAIN)
            return TP_EAGAIN;
        else if (rc == TP_EINVAL)
            return damaged(f, f->stats.bytes - (uint64_t)(c->end - c->ptr), false, err);
        else if (rc == TP_EQUOTA) {
            f->stats.over_limit++;
            rc = TP_OK;
        }
        if (rc != TP_OK)
            return rc;
    }
}

/* Work on n bytes at p, keep what is left of them. */
static int read_window(struct tp_packet_feed *f, const char *p, size_t n,
                       struct tp_err *err)
{
    struct tp_pf_cursor c = {p, p + n};
    int rc = read_items(f, &c, err);

    if (rc != TP_EAGAIN)
        return rc;
    if (p == f->rest.data) {
        tp_buf_consume(&f->rest, (size_t)(c.ptr - p));
        return TP_OK;
    }
    return tp_buf_append(&f->rest, c.ptr, (size_t)(c.end - c.ptr), err);
}

int tp_packet_feed(struct tp_packet_feed *f, const char *p, size_t n,
                   struct tp_err *err)
{
    int rc;

    f->stats.bytes += n;
    if (f->stats.is_damaged)
        return TP_OK;
    if (f->rest.len == 0)
        return read_window(f, p, n, err);
    rc = tp_buf_append(&f->rest, p, n, err);
    return rc != TP_OK ? rc : read_window(f, f->rest.data, f->rest.len, err);
}

int tp_packet_feed_finish(struct tp_packet_feed *f, struct tp_err *err)
{
    if (f->stats.is_damaged ||
        (f->rest.len == 0 && !tp_pf_reader_is_skipping(f->reader)))
        return TP_OK;
    return damaged(f, f->stats.bytes - f->rest.len, true, err);
}

struct tp_packet_feed_stats tp_packet_feed_stats(const struct tp_packet_feed *f)
{
    struct tp_packet_feed_stats stats = f->stats;
    struct tp_pf_skipped skipped = tp_pf_reader_skipped(f->reader);

    stats.misread = skipped.events;
    stats.repaired = skipped.repaired;
    return stats;
}

uint64_t tp_packet_feed_repaired(const struct tp_packet_feed *f)
{
    return tp_pf_reader_skipped(f->reader).repaired;
}
