/*
 * entries.h - the processes of a table, and the maps in which they are found.
 *
 * What table.c and answer.c share; nobody else includes it. A process is an entry from
 * its first datagram until somebody has taken the news that it is gone. As table.h: not
 * thread-safe, reads no clock.
 */
#ifndef TP_KINETO_ENTRIES_H
#define TP_KINETO_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "kineto/table.h"

#define TP_KINETO_KEY_BYTES (4 + TP_KINETO_ADDRESS_BYTES)
#define TP_KINETO_SILENCE_NS (TP_KINETO_SILENCE_S * TP_KINETO_SECOND_NS)

struct tp_kineto_entry {
    struct tp_kineto_target seen;
    char key[TP_KINETO_KEY_BYTES];
    size_t key_bytes;
    char *text; /* of its order, waiting or served; NULL = none */
    size_t text_bytes;
    uint64_t serve_until_ns, begin_until_ns;
    uint64_t bucket_ns;  /* when its bucket of datagrams is empty again */
    bool is_unconfirmed; /* served, and no request since showed that it was read */
    struct tp_kineto_entry *next_news;
    bool is_queued;
};

struct tp_kineto_table {
    struct tp_strmap by_key; /* listener and address -> entry, not gone */
    struct tp_strmap by_id;  /* 8 bytes of id -> entry */
    struct tp_strmap by_pid; /* pid, or user when none is visible -> number of
                                entries in by_key */
    struct tp_strmap by_uid; /* user -> likewise */
    struct tp_kineto_entry *first_news, **last_news;
    uint64_t last_id;
    uint64_t unknown_bucket_ns; /* of all that are answered and not known */
    uint64_t sweep_ns;          /* before that a sweep finds nothing */
    struct tp_buf out;
    struct tp_kineto_stats stats;
};

/*
 * The entry of a peer, made if there is none. One whose credentials have changed is
 * gone, and this is a new one.
 *
 * Returns NULL when there are too many, of its process, of its user or at all, or no
 * memory.
 */
struct tp_kineto_entry *tp_kineto_entry_find(struct tp_kineto_table *t,
                                             const struct tp_kineto_peer *peer,
                                             uint64_t now_ns);

/* The entry of an id, gone or not, or NULL. */
struct tp_kineto_entry *tp_kineto_entry_by_id(const struct tp_kineto_table *t,
                                              uint64_t id);

/* Add news (bits of enum tp_kineto_news) and queue the entry for whoever takes them. */
void tp_kineto_entry_tell(struct tp_kineto_table *t, struct tp_kineto_entry *e,
                          uint32_t news);

/* Go to a state that the drawing in target.h allows. */
void tp_kineto_entry_move(struct tp_kineto_entry *e, enum tp_kineto_state to);

/* Release the text of its order; none waits any more. */
void tp_kineto_entry_forget_order(struct tp_kineto_entry *e);

/* It has no address any more; whoever takes its news releases it. */
void tp_kineto_entry_let_go(struct tp_kineto_table *t, struct tp_kineto_entry *e);

/* Have the next sweep no later than at_ns. */
void tp_kineto_entry_sweep_by(struct tp_kineto_table *t, uint64_t at_ns);

/* Release it; it is in no map any more. NULL is allowed. */
void tp_kineto_entry_free(struct tp_kineto_entry *e);

#endif
