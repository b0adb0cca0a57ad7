/*
 * agent_state.h - the inside of an agent, for its own files only.
 *
 * The thread owns all of it but what is said to be guarded or atomic.
 *
 *   channel REPORT   types --> producer --> a few syncs for the clock --> reports
 *   channel POLL     from then on one sync after the other, held by the service
 *   channel POST     batches of the backlog, one after the other
 *
 * Each channel waits after a failure, on its own; an answer on any ends all waits.
 */
#ifndef TP_PRODUCER_AGENT_STATE_H
#define TP_PRODUCER_AGENT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/ulid.h"
#include "core/activity.h"
#include "producer/agent.h"
#include "producer/backoff.h"
#include "producer/clock_offset.h"
#include "producer/link.h"
#include "producer/part.h"
#include "producer/recorder.h"
#include "producer/settings.h"
#include "producer/wire.h"

#define TP_AGENT_NS_PER_MS UINT64_C(1000000)
#define TP_AGENT_NEVER UINT64_MAX

/* What the request on the channel REPORT is. */
enum tp_agent_call {
    TP_CALL_NONE,
    TP_CALL_TYPES,
    TP_CALL_PRODUCER,
    TP_CALL_SYNC,
    TP_CALL_LEAVE
};

/* A sync that is on its way. */
struct tp_agent_sync {
    struct tp_buf body;
    size_t n_acks;        /* how many of the part's oldest acks it carries */
    int64_t sent_ns;      /* by our clock */
    unsigned n_forgotten; /* of the agent, when it was sent */
    bool has_ahead;       /* orders came ahead of its answer, which will not be long */
    bool has_news;        /* and something in them was new */
    bool has_counts_due;  /* its counts are not told by another one */
};

struct tp_agent {
    struct tp_settings settings;
    struct tp_recorder *recorder;
    struct tp_link *link;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_woken, is_forgotten; /* in the child of a fork: it has no thread */

    /* Types and producer */
    char own_id[TP_ULID_BYTES]; /* that we ask for; "" = none */
    enum tp_wire_age wire_age;  /* of the service */
    char id[TP_WIRE_ID_BYTES];  /* "" = not registered */
    bool may_be_known;          /* by own_id: the answer to a registration was lost */
    size_t n_types_known;       /* of the registry, with the service */
    size_t n_types_asked;       /* in the request on its way */
    size_t n_types_told;        /* that were said to wait, and all before them */
    bool one_by_one;            /* types: several at once were refused */
    uint64_t types_retry_ns, types_wait_ns; /* refused: not before; last wait, or 0 */
    unsigned n_types_refused;     /* of those known: the service did not take them */
    unsigned char local_ids[256]; /* by custom id of the service; 0 = it has not said */
    struct tp_typeset asked; /* ids of the service that the trace at hand is about */
    unsigned n_forgotten;    /* how often the service has forgotten us */
    struct tp_backoff forgotten; /* again and again */
    bool is_anew;                /* known again, and not told anything since */
    uint64_t known_ns, again_ns; /* registered last; not anew before */

    /* Channels */
    enum tp_agent_call call;
    struct tp_buf call_body;
    struct tp_agent_sync poll, report;
    uint64_t said_seq, heard_seq; /* of the last sync; the highest of an answer */
    int64_t heard_ns;             /* when that came */
    struct tp_backoff backoff[TP_LINK_CHANNELS];
    uint64_t retry_ns[TP_LINK_CHANNELS]; /* not before */
    uint64_t calm_ns, paced_ns;          /* no poll before; see calm_down() */
    bool is_trouble_told;
    bool is_leaving_told; /* the service knows that we leave, or never will */

    /* Clock */
    struct tp_clock_offset offset;
    struct tp_exchange exchange; /* the last one, for the next sync */
    bool is_plain_service;       /* it knows neither counts by type nor heartbeats */
    unsigned n_exchanges;        /* at attach, still to do */

    /* Trace */
    struct tp_part part;
    bool is_posting, has_news; /* a post is on its way; the published stats are old */
    bool has_counts_due;       /* counts changed for good: report them once more */
    uint64_t drain_ns, report_ns;     /* when to drain and to report next */
    uint64_t n_sent;                  /* events that the service took, of this trace */
    struct tp_recorder_totals totals; /* for reports */

    pthread_mutex_t lock; /* guards all below; a leaf */
    pthread_cond_t changed;
    uint64_t n_flushes_wanted, n_flushes_done;
    bool is_ending;         /* the thread is asked to end */
    bool is_over;           /* it has; nothing is sent any more */
    uint64_t end_ns;        /* from is_ending on, fixed: the deadline */
    uint64_t cut_ns;        /* likewise: what is not sent by then is not waited for */
    bool takes_late;        /* likewise: somebody may report what is late */
    struct tp_stats *stats; /* what was last published; its own block */

    /* The end, as the thread knows it */
    bool ends;       /* it was asked to, as of this turn */
    bool is_cut_off; /* the time to send is over */
    bool is_counted; /* the rings are empty for good, and the service is told of it */

    /* Flushes, as the thread knows them */
    uint64_t flush_seen;  /* wanted before the last drain */
    uint64_t flush_taken; /* begun */
    uint64_t flush_seq;   /* done when this batch is sent */
};

/* See, once in each turn, whether it is to end, and do what follows for the trace. */
void tp_agent_see_end(struct tp_agent *a, uint64_t now_ns);

/* Whether the thread is to end now. */
bool tp_agent_is_over(const struct tp_agent *a, uint64_t now_ns);

/* When the end has something due that nothing else brings. */
uint64_t tp_agent_end_due(const struct tp_agent *a);

/* Whether it sends what was recorded before it leaves. */
bool tp_agent_is_sending(const struct tp_agent *a);

/* A registration was sent, and its answer is this one. */
void tp_agent_note_known(struct tp_agent *a, const struct tp_link_reply *reply);

/* Take the answer to the farewell. */
void tp_agent_left(struct tp_agent *a, const struct tp_link_reply *reply,
                   uint64_t now_ns);

/* The thread ends: count what is unsent as dropped. Returns whether there is none. */
bool tp_agent_give_up_rest(struct tp_agent *a);

/* Write a line on stderr if the settings ask for it. */
void tp_agent_log(const struct tp_agent *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* After a failed request: set when the channel may try again, and tell once. */
void tp_agent_failed(struct tp_agent *a, enum tp_link_channel channel,
                     const struct tp_link_reply *reply, uint64_t now_ns);

/* For how long to wait after a failure; asked_ms as in tp_backoff_ms(). */
uint64_t tp_agent_wait_ns(const struct tp_agent *a, struct tp_backoff *b,
                          uint64_t asked_ms);

/* The service is there: no channel waits any more. */
void tp_agent_succeeded(struct tp_agent *a);

/* Register what is not registered. Returns whether the channel REPORT was used. */
bool tp_agent_register(struct tp_agent *a, uint64_t now_ns);

/* Take the answer to a registration. */
void tp_agent_registered(struct tp_agent *a, const struct tp_link_reply *reply,
                         uint64_t now_ns);

/* The service has forgotten us: register anew; once at once, again and again later. */
void tp_agent_forget(struct tp_agent *a, uint64_t now_ns);

/* Send what is to be said: polls, reports, the farewell. */
void tp_agent_sync(struct tp_agent *a, uint64_t now_ns);

/* Whether polls are of use now; else reports say what there is to say. */
bool tp_agent_may_poll(const struct tp_agent *a);

/* When a report carries the acks of a held poll, too; TP_AGENT_NEVER = it need not. */
uint64_t tp_agent_acks_due(const struct tp_agent *a, uint64_t now_ns);

/* Take what came ahead of the answer to the poll. */
void tp_agent_heard_ahead(struct tp_agent *a, struct tp_str body, uint64_t now_ns);

/* Take the answer to a sync of a channel. */
void tp_agent_synced(struct tp_agent *a, enum tp_link_channel channel,
                     const struct tp_link_reply *reply, uint64_t now_ns);

/* Drain what is due and send the oldest batch. Returns when to call again. */
uint64_t tp_agent_move_events(struct tp_agent *a, uint64_t now_ns);

/* Take the answer to a batch. */
void tp_agent_posted(struct tp_agent *a, const struct tp_link_reply *reply,
                     uint64_t now_ns);

/* Break off the post on its way: its batch may go. */
void tp_agent_drop_post(struct tp_agent *a);

#endif
