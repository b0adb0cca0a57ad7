/*
 * native_batch.c - the layout of the head:
 *
 *     0a 3e                 trace.packet, 62 bytes
 *       50 SS SS SS         sequence id: the stream's number, padded to three bytes
 *       68 01               sequence_flags: state cleared
 *       f8 ea 04 01         version (9903): the sequence is ours
 *       9a eb 04 12         native (9907)
 *         09 fixed64        events
 *         11 fixed64        error of the clock, in nanoseconds
 *       32 1c               clock_snapshot
 *         0a 0c 08 40 10 T  clocks: 64, the producer's; T is padded to nine bytes
 *         0a 0c 08 06 10 T  clocks: 6, the service's and the trace's
 *
 * Without a clock a blank (9905) of the same size is in place of the snapshot. Padded
 * varints are valid protobuf. Because the layout has one form only, a head is read by
 * taking the numbers from their places and comparing all of it with what would be
 * written for them: there is no second description of it to get wrong.
 */
#include "trace/native_batch.h"

#include <assert.h>
#include <string.h>

#include "base/pb.h"
#include "trace/pf_fields.h"

#define SEQUENCE_WIDTH 3
#define TIME_WIDTH 9
#define SNAPSHOT_BYTES 30 /* with its tag and length */
#define NATIVE_BYTES 18   /* without them */

/* Where the numbers are. */
enum {
    AT_SEQUENCE = 3,
    AT_EVENTS = 17,
    AT_ERROR = 26,
    AT_SNAPSHOT = 34,
    AT_PRODUCER = 41,
    AT_SERVER = 55
};

/* A varint of constant width. */
static char *put_padded(char *p, unsigned width, uint64_t v)
{
    for (unsigned i = 0; i + 1 < width; i++) {
        p[i] = (char)(v | 0x80);
        v >>= 7;
    }
    p[width - 1] = (char)v;
    return p + width;
}

static uint64_t get_padded(const char *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < width; i++)
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
    return v;
}

static char *put_clock(char *p, uint32_t id, uint64_t time_ns)
{
    p = tp_pb_put_tag(p, TP_PF_SNAPSHOT_CLOCKS, TP_PB_BYTES);
    *p++ = 3 + TIME_WIDTH;
    p = tp_pb_put_u64(p, TP_PF_CLOCK_ID, id);
    p = tp_pb_put_tag(p, TP_PF_CLOCK_TIMESTAMP, TP_PB_VARINT);
    return put_padded(p, TIME_WIDTH, time_ns);
}

static char *put_snapshot(char *p, const struct tp_native_clock *clock)
{
    p = tp_pb_put_tag(p, TP_PF_PACKET_CLOCK_SNAPSHOT, TP_PB_BYTES);
    *p++ = SNAPSHOT_BYTES - 2;
    p = put_clock(p, TP_PF_CLOCK_SEQUENCE_MIN, clock->producer_ns);
    return put_clock(p, TP_PF_CLOCK_BOOTTIME, clock->server_ns);
}

static char *put_blank(char *p)
{
    static const char zeros[SNAPSHOT_BYTES] = {0};

    return tp_pb_put_bytes(p, TP_PF_X_PACKET_BLANK, zeros, SNAPSHOT_BYTES - 4);
}

void tp_native_head_put(char *p, const struct tp_native_head *head)
{
    const char *end = p + TP_NATIVE_HEAD_BYTES;

    assert(head->stream_no >= 1 && head->stream_no <= 65535);
    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    *p++ = TP_NATIVE_HEAD_BYTES - 2;
    p = tp_pb_put_tag(p, TP_PF_PACKET_SEQUENCE_ID, TP_PB_VARINT);
    p = put_padded(p, SEQUENCE_WIDTH, head->stream_no);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_CLEARED);
    p = tp_pb_put_u64(p, TP_PF_X_PACKET_VERSION, TP_PF_FORMAT_VERSION);
    p = tp_pb_put_tag(p, TP_PF_X_PACKET_NATIVE, TP_PB_BYTES);
    *p++ = NATIVE_BYTES;
    p = tp_pb_put_fixed64(p, TP_PF_X_NATIVE_EVENTS, head->n_events);
    p = tp_pb_put_fixed64(p, TP_PF_X_NATIVE_CLOCK_ERROR_NS,
                          head->has_clock ? head->clock.error_ns : 0);
    p = head->has_clock ? put_snapshot(p, &head->clock) : put_blank(p);
    assert(p == end);
    (void)end;
}

bool tp_native_head_get(const char *p, size_t n, struct tp_native_head *head)
{
    struct tp_native_head found = {0};
    char same[TP_NATIVE_HEAD_BYTES];

    if (n < TP_NATIVE_HEAD_BYTES)
        return false;
    found.stream_no = (uint32_t)get_padded(p + AT_SEQUENCE, SEQUENCE_WIDTH);
    memcpy(&found.n_events, p + AT_EVENTS, sizeof(found.n_events));
    found.has_clock = p[AT_SNAPSHOT] ==
                      (char)TP_PB_TAG(TP_PF_PACKET_CLOCK_SNAPSHOT, TP_PB_BYTES);
    if (found.has_clock) {
        memcpy(&found.clock.error_ns, p + AT_ERROR, sizeof(found.clock.error_ns));
        found.clock.producer_ns = get_padded(p + AT_PRODUCER, TIME_WIDTH);
        found.clock.server_ns = get_padded(p + AT_SERVER, TIME_WIDTH);
    }
    if (found.stream_no < 1 || found.stream_no > 65535 ||
        found.clock.producer_ns >= TP_NATIVE_CLOCK_MAX ||
        found.clock.server_ns >= TP_NATIVE_CLOCK_MAX)
        return false;
    tp_native_head_put(same, &found);
    if (memcmp(same, p, sizeof(same)) != 0)
        return false;
    *head = found;
    return true;
}

int64_t tp_native_head_offset(const struct tp_native_head *head)
{
    const struct tp_native_clock *c = &head->clock;

    return head->has_clock ? (int64_t)(c->server_ns - c->producer_ns) : 0;
}
