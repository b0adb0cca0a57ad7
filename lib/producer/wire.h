/*
 * wire.h - what a producer and the service say to each other, as JSON.
 *
 * Bodies of POST /types, /producers and /producers/{id}/sync, both ways. It sends
 * nothing and keeps nothing. Readers are total: any bytes give a result or TP_EINVAL,
 * and members that are not known are passed over, for the service may be newer. Pure
 * functions; safe from any thread.
 */
#ifndef TP_PRODUCER_WIRE_H
#define TP_PRODUCER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/type.h"
#include "core/typeset.h"

struct tp_buf;
struct tp_err;
struct tp_recorder_totals;
struct tp_settings;

#define TP_WIRE_ID_BYTES 64     /* of a trace or a producer, with its NUL */
#define TP_WIRE_REASON_BYTES 96 /* of a refusal, with its NUL */
#define TP_WIRE_ORDERS_MAX 8
#define TP_WIRE_ACKS_MAX 16

/* What the service tells a producer to do. */
enum tp_order_kind {
    TP_ORDER_PREPARE,
    TP_ORDER_START,
    TP_ORDER_STOP,
    TP_ORDER_CANCEL,
    TP_ORDERS
};

/* Plain data. */
struct tp_order {
    enum tp_order_kind kind;
    char trace_id[TP_WIRE_ID_BYTES];
    uint32_t stream_no;       /* PREPARE: its number in the trace */
    struct tp_typeset types;  /* PREPARE: ids of the service that are to be recorded */
    uint64_t min_duration_ns; /* PREPARE */
    uint64_t start_step;      /* PREPARE: begin at this step; 0 = when told */
    int64_t start_at_ns;      /* START: when, by the service's clock; 0 = at once */
    /* PREPARE with a start_step, and START: how many steps; 0 = until told to stop */
    uint64_t steps;
    /* likewise: how long the service lets it record, from its start; 0 = not said */
    uint64_t duration_ms;
};

/* The answer to a sync. Plain data. */
struct tp_orders {
    struct tp_order items[TP_WIRE_ORDERS_MAX];
    size_t n;
    /* Counts what the service says to this producer, since it started; 0 = not said */
    uint64_t seq;
    int64_t server_received_ns; /* by the service's clock; 0 = not said */
    int64_t server_sent_ns;
};

/* The answer to an order. Plain data. */
struct tp_ack {
    enum tp_order_kind kind;
    char trace_id[TP_WIRE_ID_BYTES];
    bool is_refused;
    char reason[TP_WIRE_REASON_BYTES]; /* when refused */
    int64_t started_at_ns;             /* START: by the producer's clock; 0 = unsaid */
    uint64_t step;                     /* START: which was on then; 0 = unsaid */
};

/* One exchange of times: both ends' clocks, in nanoseconds since 1970. */
struct tp_exchange {
    int64_t sent_ns; /* by the producer's clock, like received_ns; 0 = no exchange */
    int64_t server_received_ns;
    int64_t server_sent_ns;
    int64_t received_ns;
};

/* What a sync says. Plain data; the zero value says nothing. */
struct tp_report {
    struct tp_ack acks[TP_WIRE_ACKS_MAX];
    size_t n_acks;
    char trace_id[TP_WIRE_ID_BYTES];         /* what counts is about; "" = no counts */
    const struct tp_recorder_totals *totals; /* borrowed; with a trace_id */
    /* The service is older: no counts by type, no heartbeat, no step of a start, no
     * seq. */
    bool is_plain;
    uint64_t seq; /* counts the reports of this producer; 0 = not said */
    bool has_step;
    uint64_t step;
    struct tp_exchange clock;
    uint64_t heartbeat_ms; /* it is heard of again within this; 0 = not said */
    uint64_t wait_ms;      /* how long the answer may be held */
    bool takes_interim;    /* a start may be told ahead of the answer */
};

/* "prepare", "start", "stop", "cancel"; "unknown" for a value that is none. */
const char *tp_order_name(enum tp_order_kind kind);

/*
 * Append the body of a sync.
 *
 * TP_ENOMEM, TP_EQUOTA  as tp_buf_append(); out holds a beginning of the body.
 */
int tp_wire_write_report(const struct tp_report *report, struct tp_buf *out,
                         struct tp_err *err);

/* What the service takes that producers register with: an older one refuses what came
 * later. */
enum tp_wire_age { TP_WIRE_NOW, TP_WIRE_NO_IDS, TP_WIRE_NO_PROCESS_KEYS };

/*
 * Append the body that registers a producer.
 *
 * id  that it asks for; "" = none.
 *
 * Errors as tp_wire_write_report().
 */
int tp_wire_write_producer(const struct tp_settings *s, const char *id,
                           enum tp_wire_age age, struct tp_buf *out,
                           struct tp_err *err);

/* Append the body that registers n types of a job. Errors as tp_wire_write_report(). */
int tp_wire_write_types(const char *job, const struct tp_type_spec *types, size_t n,
                        struct tp_buf *out, struct tp_err *err);

/*
 * Read the answer to a sync. Orders of a kind that is not known are left out.
 *
 * out  written on success only.
 *
 * TP_EINVAL  it is no JSON object, or an order lacks what it needs.
 */
int tp_wire_read_orders(struct tp_str body, struct tp_orders *out, struct tp_err *err);

/*
 * Read the id of a producer from the answer to its registration.
 *
 * out  TP_WIRE_ID_BYTES bytes; written on success only.
 *
 * TP_EINVAL  there is none, or it is not of [A-Za-z0-9_-].
 */
int tp_wire_read_id(struct tp_str body, char *out, struct tp_err *err);

/*
 * Read the ids of n types from the answer to their registration, in order.
 *
 * out  n ids, 0 to 255; undefined on failure.
 *
 * TP_EINVAL  there are not as many, or one is out of range.
 */
int tp_wire_read_types(struct tp_str body, size_t n, unsigned *out, struct tp_err *err);

/*
 * What kind of problem an error answer names: the last part of its `type`
 * ("registry-frozen"); empty when it names none. Borrowed from the body.
 */
struct tp_str tp_wire_problem(struct tp_str body);

#endif
