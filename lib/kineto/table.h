/*
 * table.h - the Kineto processes that ask: who each is, where it stands, and what it is
 * answered.
 *
 * A datagram goes in with its sender and the time, an answer comes out; nothing here
 * waits, reads a clock or knows a socket. What happened to a process is kept as news
 * until somebody takes it. Not thread-safe: one lock of the owner guards a table, and
 * no call takes longer than a look-up, except a sweep.
 */
#ifndef TP_KINETO_TABLE_H
#define TP_KINETO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "kineto/target.h"

struct tp_err;
struct tp_kineto_table;

#define TP_KINETO_TARGETS_MAX 8192
#define TP_KINETO_TARGETS_PER_UID (TP_KINETO_TARGETS_MAX / 2)
#define TP_KINETO_TARGETS_PER_PID 8
#define TP_KINETO_UNSEEN_PER_UID 1024 /* with a pid that is not visible from here */
#define TP_KINETO_ORDER_MAX_BYTES 4096
#define TP_KINETO_BURST 20           /* datagrams of one process at once, and then */
#define TP_KINETO_PER_S 10           /* so many a second are answered */
#define TP_KINETO_UNKNOWN_PER_S 2000 /* of all processes that are too many to know */
#define TP_KINETO_SILENCE_S 30       /* without a request; then a process is gone */
/* A process waits for an answer for 90 ms, and longer on a busy machine: what it has
 * not read so long after its request it reads at its next one. */
#define TP_KINETO_WINDOW_NS UINT64_C(150000000)

/* What a process is to be told at its next request. Plain data. */
struct tp_kineto_order {
    struct tp_str text;      /* of config_text.h; copied */
    uint64_t serve_until_ns; /* afterwards it is too late */
    uint64_t begin_until_ns; /* it is armed until then, unless it is busy before */
};

enum tp_kineto_answer {
    TP_KINETO_ANSWER_NONE_BAD,      /* not of the protocol, or nobody to answer */
    TP_KINETO_ANSWER_NONE_FLOOD,    /* too many of one process */
    TP_KINETO_ANSWER_NONE_SKIPPED,  /* one answer is left out to put it back in step */
    TP_KINETO_ANSWER_EMPTY,         /* the empty configuration */
    TP_KINETO_ANSWER_EMPTY_UNKNOWN, /* likewise, but the table is full: not known */
    TP_KINETO_ANSWER_COUNT,         /* of a context */
    TP_KINETO_ANSWER_ORDER,         /* a configuration */
    TP_KINETO_ANSWERS
};

/* Plain data. */
struct tp_kineto_reply {
    enum tp_kineto_answer answer;
    struct tp_str bytes; /* the whole datagram; empty = send nothing; valid until the
                            next call */
    uint64_t target;     /* id; 0 = of nobody that is known */
};

/* Numbers for metrics: since the table was made, except n_targets. */
struct tp_kineto_stats {
    uint64_t n_targets;
    uint64_t answers[TP_KINETO_ANSWERS];
    uint64_t repairs, unsent, gone;
};

/*
 * Make a table.
 *
 * out  set only on success; release with tp_kineto_table_free().
 *
 * TP_ENOMEM.
 */
int tp_kineto_table_new(struct tp_kineto_table **out, struct tp_err *err);

/* Release a table. NULL is allowed. */
void tp_kineto_table_free(struct tp_kineto_table *t);

/*
 * Take a datagram and say what to answer.
 *
 * peer          who sent it; one without an address gets no answer.
 * p, n          the datagram, any bytes.
 * unread_bytes  of earlier answers that the process has not read yet (SIOCOUTQ of the
 *               socket that answers only this process); 0 when not known.
 * now_ns        monotonic; not before that of the call before.
 */
struct tp_kineto_reply tp_kineto_table_receive(struct tp_kineto_table *t,
                                               const struct tp_kineto_peer *peer,
                                               const void *p, size_t n,
                                               uint64_t unread_bytes, uint64_t now_ns);

/*
 * Take what a look at the answers of a process showed some time after its last request.
 * One that has left any unread is behind: its next request is not answered, so that it
 * catches up.
 *
 * unread_bytes  as above; 0 = it has read them all.
 * looked_ns     when; a look within TP_KINETO_WINDOW_NS of the last request, or before
 *               it, says nothing.
 *
 * Returns whether there are news.
 */
bool tp_kineto_table_unread(struct tp_kineto_table *t, uint64_t target,
                            uint64_t unread_bytes, uint64_t looked_ns);

/*
 * The answer could not be sent: an order that was in it waits for the next request, if
 * there is time.
 *
 * is_gone  nobody listens at the address any more.
 */
void tp_kineto_table_unsent(struct tp_kineto_table *t,
                            const struct tp_kineto_reply *reply, bool is_gone);

/* n datagrams were thrown away by gate.h before they came here: only counted. */
void tp_kineto_table_flooded(struct tp_kineto_table *t, uint64_t n);

/*
 * Lay an order down for a process; one that waits is replaced.
 *
 * TP_ENOTFOUND  no such process, or it is gone. TP_ESTATE  it is armed or busy: it
 * would throw the order away. TP_EINVAL  the text is empty, or longer than
 * TP_KINETO_ORDER_MAX_BYTES. TP_ENOMEM. Nothing changed.
 */
int tp_kineto_table_order(struct tp_kineto_table *t, uint64_t target,
                          const struct tp_kineto_order *order, struct tp_err *err);

/* Take an order back. Returns whether it had not been served; false too when there is
 * none. */
bool tp_kineto_table_withdraw(struct tp_kineto_table *t, uint64_t target);

/* Its file is complete, so it is through with its order: one that is armed, or was busy
 * when it last asked, is idle. Its ticks go on from the end of its recording at
 * end_ns. */
void tp_kineto_table_through(struct tp_kineto_table *t, uint64_t target,
                             uint64_t end_ns);

/* Copy a process. Returns false when there is none of that id. */
bool tp_kineto_table_get(const struct tp_kineto_table *t, uint64_t target,
                         struct tp_kineto_target *out);

/*
 * Take the news of one process: it is copied with its news, which are then none. One
 * that is gone is forgotten by this.
 *
 * Returns false when nobody has news.
 */
bool tp_kineto_table_next_news(struct tp_kineto_table *t, struct tp_kineto_target *out);

/* Let those that are silent be gone, and take back orders that are too late.
 * Returns when it wants to be called next, UINT64_MAX = never. */
uint64_t tp_kineto_table_sweep(struct tp_kineto_table *t, uint64_t now_ns);

/* Copy the numbers. */
void tp_kineto_table_stats(const struct tp_kineto_table *t,
                           struct tp_kineto_stats *out);

#endif
