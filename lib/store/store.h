/*
 * store.h - the rows of the service, as an interface with several implementations.
 *
 * A put replaces the row with the same key. Nothing here knows what a row means. One
 * thread at a time: the engine's lock guards a store. Writes outside of a transaction
 * are transactions of their own; a failed write in a transaction leaves it open, to be
 * rolled back.
 *
 * Every function that returns int gives TP_OK, TP_EIO (the store failed), TP_EQUOTA
 * (the disk is full) or TP_ENOMEM, with the rows as they were.
 */
#ifndef TP_STORE_STORE_H
#define TP_STORE_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "store/rows.h"

struct tp_store;

/* Takes one row; a non-zero answer ends the reading and is returned by it. */
typedef int (*tp_row_job_fn)(const struct tp_row_job *row, struct tp_err *err,
                             void *arg);
typedef int (*tp_row_type_fn)(const struct tp_row_type *row, struct tp_err *err,
                              void *arg);
typedef int (*tp_row_producer_fn)(const struct tp_row_producer *row, struct tp_err *err,
                                  void *arg);
typedef int (*tp_row_trace_fn)(const struct tp_row_trace *row, struct tp_err *err,
                               void *arg);
typedef int (*tp_row_move_fn)(const struct tp_row_move *row, struct tp_err *err,
                              void *arg);
typedef int (*tp_row_member_fn)(const struct tp_row_member *row, struct tp_err *err,
                                void *arg);
typedef int (*tp_row_stream_fn)(const struct tp_row_stream *row, struct tp_err *err,
                                void *arg);
typedef int (*tp_row_key_fn)(const struct tp_row_key *row, struct tp_err *err,
                             void *arg);

/* Gives the i-th row of many, whose texts live until it is called again; a non-zero
 * answer ends the writing and is returned by it. */
typedef int (*tp_nth_row_member_fn)(void *arg, size_t i, struct tp_row_member *out,
                                    struct tp_err *err);

/* The operations of an implementation; each gets its own store. */
struct tp_store_ops {
    /* Transactions do not nest. rollback does not fail and is fine without a begin. */
    int (*begin)(struct tp_store *s, struct tp_err *err);
    int (*commit)(struct tp_store *s, struct tp_err *err);
    void (*rollback)(struct tp_store *s);

    int (*put_job)(struct tp_store *s, const struct tp_row_job *row,
                   struct tp_err *err);
    int (*put_type)(struct tp_store *s, const struct tp_row_type *row,
                    struct tp_err *err);
    int (*put_producer)(struct tp_store *s, const struct tp_row_producer *row,
                        struct tp_err *err);
    int (*put_trace)(struct tp_store *s, const struct tp_row_trace *row,
                     struct tp_err *err);
    int (*put_move)(struct tp_store *s, const struct tp_row_move *row,
                    struct tp_err *err);
    int (*put_member)(struct tp_store *s, const struct tp_row_member *row,
                      struct tp_err *err);
    /* Put n members of a trace that has none, at once: in a fraction of the time, and
     * in twice the room until each was put by itself and the list is dropped. */
    int (*put_member_list)(struct tp_store *s, struct tp_str trace, size_t n,
                           tp_nth_row_member_fn nth, void *arg, struct tp_err *err);
    int (*drop_member_list)(struct tp_store *s, struct tp_str trace,
                            struct tp_err *err);
    int (*put_stream)(struct tp_store *s, const struct tp_row_stream *row,
                      struct tp_err *err);
    int (*put_key)(struct tp_store *s, const struct tp_row_key *row,
                   struct tp_err *err);

    /* Removing what is not there is fine. */
    int (*remove_producer)(struct tp_store *s, struct tp_str id, struct tp_err *err);
    /* With its moves, members, streams and keys. */
    int (*remove_trace)(struct tp_store *s, struct tp_str id, struct tp_err *err);
    int (*remove_stream)(struct tp_store *s, struct tp_str trace, uint32_t no,
                         struct tp_err *err);
    /* Those made before that time. */
    int (*remove_keys)(struct tp_store *s, uint64_t before_ns, struct tp_err *err);

    /* Read all rows of a kind: jobs by name, types in order of registration, traces by
     * id, what belongs to traces by trace and number. The callback must not use s. */
    int (*each_job)(struct tp_store *s, tp_row_job_fn fn, void *arg,
                    struct tp_err *err);
    int (*each_type)(struct tp_store *s, tp_row_type_fn fn, void *arg,
                     struct tp_err *err);
    int (*each_producer)(struct tp_store *s, tp_row_producer_fn fn, void *arg,
                         struct tp_err *err);
    int (*each_trace)(struct tp_store *s, tp_row_trace_fn fn, void *arg,
                      struct tp_err *err);
    int (*each_move)(struct tp_store *s, tp_row_move_fn fn, void *arg,
                     struct tp_err *err);
    int (*each_member)(struct tp_store *s, tp_row_member_fn fn, void *arg,
                       struct tp_err *err);
    int (*each_stream)(struct tp_store *s, tp_row_stream_fn fn, void *arg,
                       struct tp_err *err);
    int (*each_key)(struct tp_store *s, tp_row_key_fn fn, void *arg,
                    struct tp_err *err);

    /* Write something that changes nothing, to learn whether writing works. */
    int (*check)(struct tp_store *s, struct tp_err *err);
    /* Release it. */
    void (*close)(struct tp_store *s);
};

/* A store. Implementations embed this as their first member. */
struct tp_store {
    const struct tp_store_ops *ops;
};

/* Release a store of any kind. NULL is allowed. */
static inline void tp_store_close(struct tp_store *s)
{
    if (s != NULL)
        s->ops->close(s);
}

#endif
