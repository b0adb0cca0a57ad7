/*
 * record.c - the functions of record.h for all that is over when it is recorded; slices
 * are in slices.c.
 *
 * The common way through each of them is: the type's byte, the ring of the thread, its
 * session, room in it, the words of the record, and a store of head with release, which
 * gives them to the agent. What costs is the reading of the clock. So nearly all events
 * go a way that knows nothing but the usual and needs no frame on the stack, least of
 * all those without fields; the others find out there and go the whole way.
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

/* A record that is being written. */
struct place {
    struct tp_ring *ring;
    uint64_t *words;
    uint64_t after; /* for tp_room_commit() */
};

/*
 * Write the header and the fields of a record; the n_head - 1 words between them are
 * the caller's to write, and the commit is.
 *
 * Returns false, and nothing was done, unless all is as usual: room is at hand and no
 * text is copied.
 */
static TP_ALWAYS bool put_usual(struct tp_client *client, uint64_t header,
                                unsigned n_head, struct tp_fields fields,
                                struct place *place)
{
    struct tp_ring *g = tp_ring_here;
    uint64_t head = tp_room_head(g);
    uint64_t *p;
    uint64_t *end;

    if (!tp_room_is_here(g, (struct tp_recorder *)client) ||
        TP_RARE(fields.n > TP_FIELDS_MAX) ||
        !tp_room_is_at_hand(g, head, n_head + 2 * fields.n))
        return false;
    p = tp_room_at_hand(g, head);
    end = tp_fields_put_plain(p + n_head, fields, false);
    if (TP_RARE(end == NULL))
        return false;
    p[0] = header | TP_RECORD_HEADER(0, 0, fields.n, end - p, 0);
    *place = (struct place){g, p, head + (uint64_t)(end - p)};
    return true;
}

/* As put_usual() in all cases, for an event at those ticks unless its time is its own.
 * Returns false when it is dropped. */
static TP_RARELY bool put_whole(struct tp_client *client, uint64_t header,
                                unsigned n_head, struct tp_fields fields, uint64_t at,
                                struct place *place)
{
    struct tp_recorder *r = (struct tp_recorder *)client;
    unsigned type = TP_RECORD_TYPE(header);
    struct tp_ring *g = tp_room_ring(r, type);
    unsigned n = tp_fields_words(fields);
    uint64_t *p;

    if (g == NULL)
        return false;
    if (TP_RECORD_KIND(header) == TP_RECORD_COMPLETE)
        type |= TP_ROOM_OWN_TIME;
    if (n == TP_FIELDS_TOO_LARGE) {
        tp_room_drop(r, g, TP_RING_DROP_TOO_LARGE, type, at);
        return false;
    }
    n += n_head;
    p = tp_room_reserve(r, g, n, type, at, &place->after);
    if (p == NULL)
        return false;
    p[0] = header | TP_RECORD_HEADER(0, 0, fields.n, n, 0);
    tp_fields_put(p + n_head, fields);
    place->ring = g;
    place->words = p;
    return true;
}

static TP_RARELY void instant_whole(struct tp_client *client, uint64_t header,
                                    struct tp_fields fields)
{
    const uint64_t now = tp_ticks_now();
    struct place place;

    if (put_whole(client, header, 2, fields, now, &place)) {
        place.words[1] = now;
        tp_room_commit(place.ring, place.after);
    }
}

static TP_ALWAYS void instant(struct tp_client *client, uint64_t header,
                              struct tp_fields fields)
{
    struct place place;

    if (tp_ticks_are_at_hand() && put_usual(client, header, 2, fields, &place)) {
        place.words[1] = tp_ticks_at_hand();
        tp_room_commit(place.ring, place.after);
    } else {
        instant_whole(client, header, fields);
    }
}

/* Of one field nothing is to be remembered while it is written. */
static TP_APART void instant_with_one(struct tp_client *client, uint64_t header,
                                      const struct tp_field *field)
{
    instant(client, header, (struct tp_fields){field, 1});
}

static TP_APART void instant_with_fields(struct tp_client *client, uint64_t header,
                                         struct tp_fields fields)
{
    instant(client, header, fields);
}

void tp_instant(struct tp_client *client, unsigned type, uint32_t name,
                struct tp_fields fields)
{
    const uint64_t header = TP_RECORD_HEADER(TP_RECORD_INSTANT, type, 0, 0, name);
    const struct tp_fields none = {NULL, 0};

    if (!tp_enabled(client, type))
        return;
    if (fields.n == 0)
        instant(client, header, none);
    else if (fields.n == 1)
        instant_with_one(client, header, fields.items);
    else
        instant_with_fields(client, header, fields);
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

    if (g == NULL ||
        (p = tp_room_reserve(r, g, n, type_and_time, time, &after)) == NULL)
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

static TP_ALWAYS void put_interval(uint64_t *p, const struct tp_interval *when)
{
    p[1] = when->start_ns;
    p[2] = when->duration_ns;
    p[3] = when->track;
}

static TP_RARELY void complete_whole(struct tp_client *client, uint64_t header,
                                     const struct tp_interval *when,
                                     struct tp_fields fields)
{
    struct place place;

    if (put_whole(client, header, 4, fields, 0, &place)) {
        put_interval(place.words, when);
        tp_room_commit(place.ring, place.after);
    }
}

void tp_complete(struct tp_client *client, unsigned type, uint32_t name,
                 const struct tp_interval *when, struct tp_fields fields)
{
    const uint64_t header = TP_RECORD_HEADER(TP_RECORD_COMPLETE, type, 0, 0, name);
    struct place place;

    if (!tp_enabled(client, type))
        return;
    if (put_usual(client, header, 4, fields, &place)) {
        put_interval(place.words, when);
        tp_room_commit(place.ring, place.after);
    } else {
        complete_whole(client, header, when, fields);
    }
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
