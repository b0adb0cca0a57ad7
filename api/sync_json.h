/*
 * sync_json.h - the bodies of POST /producers/{id}/sync, in and out.
 *
 * One thread at a time.
 */
#ifndef TP_API_SYNC_JSON_H
#define TP_API_SYNC_JSON_H

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/type_counts.h"
#include "engine/sync.h"

#define TP_SYNC_ACKS_MAX 16
#define TP_SYNC_COUNTS_MAX 16
#define TP_SYNC_WAIT_MAX_MS 30000
#define TP_SYNC_HEARTBEAT_MIN_MS 1000
#define TP_SYNC_HEARTBEAT_MAX_MS (24 * 3600 * 1000)

/* The zero value is ready; tp_sync_body_fini() releases it. Borrows from the parsed
 * body; request points into the struct, so it must not be copied. */
struct tp_sync_body {
    struct tp_sync_request request;
    struct tp_sync_ack acks[TP_SYNC_ACKS_MAX];
    struct tp_sync_counts counts[TP_SYNC_COUNTS_MAX];
    struct tp_type_counts types[TP_SYNC_COUNTS_MAX]; /* of each of them */
    bool takes_interim; /* it wants to hear of a start ahead of the answer */
    uint64_t wait_ms;   /* how long the answer may be held; 0 = not at all; by default
                         TP_SYNC_WAIT_MAX_MS */
};

/* Read a body that tp_json_in_parse() has parsed; in->code tells whether it is right.
 * */
void tp_sync_json_read(struct tp_json_in *in, struct tp_sync_body *body);

/* Release what reading took. */
void tp_sync_body_fini(struct tp_sync_body *body);

/*
 * Write the members of the answer into an object that is open.
 *
 * received_wall_ns, sent_wall_ns  when the request was complete and when this is sent,
 *                                 by the server's clock.
 */
void tp_sync_json_write(struct tp_json_out *o, const struct tp_sync_reply *reply,
                        uint64_t received_wall_ns, uint64_t sent_wall_ns);

/* Write the members of what is said ahead of the answer: the same, without the time of
 * the request, for it is no exchange to measure clocks by. */
void tp_sync_json_write_ahead(struct tp_json_out *o, const struct tp_sync_reply *reply,
                              uint64_t sent_wall_ns);

#endif
