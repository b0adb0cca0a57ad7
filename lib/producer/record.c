/*
 * record.c - the functions of record.h for all that is over when it is recorded; slices
 * are in slices.c.
 *
 * The common way through each of them is: the type's byte, the ring of the thread, its
 * session, room in it, the words of the record, and a store of head with release, which
 * gives them to the agent. What costs is the reading of the clock.
 */
#include <string.h>
#include <traceplane/traceplane.h>

#include "producer/fields.h"
#include "producer/room.h"
#include "producer/ticks.h"

uint64_t tp_now(void)
{
    const struct tp_ticks_line *line = tp_ticks_line();

    return tp_ticks_ns(line, tp_ticks_now());
}

void tp_instant(struct tp_client *client, unsigned type, uint32_t name,
                struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t after;
    uint64_t *p;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = tp_room_ring(r, type & 255)) == NULL)
        return;
    n = tp_fields_words(fields, &has_copies);
    if (TP_RARE(n == TP_FIELDS_TOO_LARGE)) {
        tp_room_drop(r, g, TP_RING_DROP_TOO_LARGE, type & 255);
        return;
    }
    p = tp_room_reserve(r, g, n + 2, type & 255, &after);
    if (p == NULL)
        return;
    p[0] = TP_RECORD_HEADER(TP_RECORD_INSTANT, type, fields.n, n + 2, name);
    p[1] = tp_ticks_now();
    tp_fields_put(p + 2, fields, has_copies);
    tp_room_commit(g, after);
}

/* A record of a header and up to three words, without fields. The third has bit 63 when
 * the time is the program's, as the track of a flow. */
static inline void put_short(struct tp_client *client, unsigned type, uint64_t header,
                             uint64_t time, uint64_t second, uint64_t third)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g = tp_room_ring(r, type & 255);
    unsigned type_and_time = (type & 255) | (third >> 63 != 0 ? TP_ROOM_OWN_TIME : 0);
    unsigned n = TP_RECORD_WORDS(header);
    uint64_t after;
    uint64_t *p;

    if (g == NULL || (p = tp_room_reserve(r, g, n, type_and_time, &after)) == NULL)
        return;
    p[0] = header;
    p[1] = time;
    p[2] = second;
    if (n > 3)
        p[3] = third;
    tp_room_commit(g, after);
}

void tp_counter(struct tp_client *client, unsigned type, uint32_t name, double value)
{
    uint64_t bits;

    if (!tp_enabled(client, type))
        return;
    memcpy(&bits, &value, sizeof(bits));
    put_short(client, type, TP_RECORD_HEADER(TP_RECORD_COUNTER, type, 0, 3, name),
              tp_ticks_now(), bits, 0);
}

void tp_counter_int(struct tp_client *client, unsigned type, uint32_t name,
                    int64_t value)
{
    if (tp_enabled(client, type))
        put_short(client, type,
                  TP_RECORD_HEADER(TP_RECORD_COUNTER_INT, type, 0, 3, name),
                  tp_ticks_now(), (uint64_t)value, 0);
}

void tp_complete(struct tp_client *client, unsigned type, uint32_t name,
                 const struct tp_interval *when, struct tp_fields fields)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    struct tp_ring *g;
    uint64_t after;
    uint64_t *p;
    bool has_copies;
    unsigned n;

    if (!tp_enabled(client, type) || (g = tp_room_ring(r, type & 255)) == NULL)
        return;
    n = tp_fields_words(fields, &has_copies);
    if (TP_RARE(n == TP_FIELDS_TOO_LARGE)) {
        tp_room_drop(r, g, TP_RING_DROP_TOO_LARGE, (type & 255) | TP_ROOM_OWN_TIME);
        return;
    }
    p = tp_room_reserve(r, g, n + 4, (type & 255) | TP_ROOM_OWN_TIME, &after);
    if (p == NULL)
        return;
    p[0] = TP_RECORD_HEADER(TP_RECORD_COMPLETE, type, fields.n, n + 4, name);
    p[1] = when->start_ns;
    p[2] = when->duration_ns;
    p[3] = when->track;
    tp_fields_put(p + 4, fields, has_copies);
    tp_room_commit(g, after);
}

void tp_flow(struct tp_client *client, unsigned type, uint32_t name,
             const struct tp_flow_point *point)
{
    bool is_now;

    if (!tp_enabled(client, type))
        return;
    is_now = point->time_ns == 0;
    put_short(client, type,
              TP_RECORD_HEADER(TP_RECORD_FLOW, type, point->phase & 3, 4, name),
              is_now ? tp_ticks_now() : point->time_ns, point->id,
              point->track | (is_now ? 0 : 1ULL << 63));
}

void tp_async(struct tp_client *client, unsigned type, uint32_t name,
              enum tp_phase phase, uint64_t id)
{
    if (tp_enabled(client, type))
        put_short(client, type,
                  TP_RECORD_HEADER(TP_RECORD_ASYNC, type, phase & 3, 3, name),
                  tp_ticks_now(), id, 0);
}
