/*
 * event_rec.h - an event as one flat run of bytes, for sorting and for holding back.
 *
 * The form is private to a running seal: it is never kept across processes, so it has
 * the byte order and the layout that are fastest here. Names that the reader knows by
 * number are stored as that number and looked up in a struct tp_rec_names, which must
 * outlive the records. Not thread-safe.
 */
#ifndef TP_TRACE_EVENT_REC_H
#define TP_TRACE_EVENT_REC_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "trace/event.h"

/* What a name is used as; each use has numbers of its own. */
enum tp_rec_use { TP_REC_NAME, TP_REC_CAT, TP_REC_KEY, TP_REC_USES };

/*
 * Copies of the strings that a reader interned, by their number. Embed it; zero but
 * for the limits. Beyond a limit strings are stored inside the records.
 */
struct tp_rec_names {
    struct tp_str *known[TP_REC_USES]; /* by iid; ptr NULL = not seen */
    uint32_t cap[TP_REC_USES];
    struct tp_arena arena; /* the bytes; private */
    size_t bytes;          /* of strings so far */
    size_t bytes_max;      /* most bytes of strings; 0 = none is kept */
    uint32_t names_max;    /* numbers from here on are not kept */
};

/* Release the strings. All-zero is allowed. */
void tp_rec_names_fini(struct tp_rec_names *names);

/* The fixed start of a record. Plain data, 8-byte aligned in a tp_buf of records. */
struct tp_rec_head {
    uint32_t size; /* of the whole record in bytes, a multiple of 8 */
    uint8_t kind;  /* enum tp_event_kind */
    char phase;
    char scope;
    uint8_t flags; /* private */
    int64_t ts_ns;
    int64_t dur_ns;
    uint32_t track; /* index */
    uint32_t n_args;
    int64_t id; /* number, or length of the text */
    uint32_t name_iid, name_len;
    uint32_t cat_iid, cat_len;
    uint32_t extra_len;
    uint32_t rank; /* of the order at equal times: the sorter's caller sets it */
};

/*
 * Append the record of an event.
 *
 * out  its length must be a multiple of 8 and stays one.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_grow(); out is as before. TP_EQUOTA too when the
 * event has more than 2 GiB.
 */
int tp_rec_encode(struct tp_rec_names *names, const struct tp_event *ev,
                  struct tp_buf *out, struct tp_err *err);

/*
 * As tp_rec_encode() for an event whose arguments are given as they will be written.
 *
 * wire  bytes; ev has no arguments and no `extra`.
 * copy  where they are in out, until that changes.
 */
int tp_rec_encode_wire(struct tp_rec_names *names, const struct tp_event *ev,
                       struct tp_str wire, struct tp_buf *out, char **copy,
                       struct tp_err *err);

/* Where a decoded event's arguments are; embed one, zero, and release it. */
struct tp_rec_args {
    struct tp_arg *args;
    uint32_t cap;
    struct tp_str wire; /* of a record of tp_rec_encode_wire(); else empty */
};

/* Release the arguments' memory. All-zero is allowed. */
void tp_rec_args_fini(struct tp_rec_args *a);

/*
 * Read a record that tp_rec_encode() made.
 *
 * rec   the record; ev points into it.
 * args  holds ev->args until it is used again.
 * ev    all but `track`, which the caller finds by its head's index.
 *
 * TP_ENOMEM  ev is untouched.
 */
int tp_rec_decode(const struct tp_rec_names *names, const void *rec,
                  struct tp_rec_args *args, struct tp_event *ev, struct tp_err *err);

#endif
