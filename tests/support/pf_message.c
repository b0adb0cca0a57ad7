/*
 * pf_message.c - appends fields, checking that there is room.
 */
#include "support/pf_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/pb.h"
#include "trace/pf_fields.h"

/* Where n bytes and their tag go. */
static char *room(struct pf_message *m, size_t n)
{
    if (m->n + n + tp_pb_bytes_room(TP_PB_SLACK) > PF_MESSAGE_BYTES)
        abort();
    return m->bytes + m->n;
}

static void end_at(struct pf_message *m, const char *p)
{
    m->n = (size_t)(p - m->bytes);
}

void pf_message_number(struct pf_message *m, uint32_t field, uint64_t v)
{
    end_at(m, tp_pb_put_u64(room(m, 0), field, v));
}

void pf_message_text(struct pf_message *m, uint32_t field, const char *s)
{
    end_at(m, tp_pb_put_bytes(room(m, strlen(s)), field, s, strlen(s)));
}

void pf_message_real(struct pf_message *m, uint32_t field, double d)
{
    end_at(m, tp_pb_put_double(room(m, 8), field, d));
}

void pf_message_fixed(struct pf_message *m, uint32_t field, uint64_t v)
{
    end_at(m, tp_pb_put_fixed64(room(m, 8), field, v));
}

void pf_message_nest(struct pf_message *m, uint32_t field,
                     const struct pf_message *inner)
{
    end_at(m, tp_pb_put_bytes(room(m, inner->n), field, inner->bytes, inner->n));
}

void pf_message_packet(struct pf_message *trace, uint32_t field,
                       const struct pf_message *inner)
{
    struct pf_message packet = {.n = 0};

    pf_message_number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    pf_message_nest(&packet, field, inner);
    pf_message_nest(trace, TP_PF_TRACE_PACKET, &packet);
}

void pf_message_event(struct pf_message *trace, uint64_t ts,
                      const struct pf_message *event)
{
    struct pf_message packet = {.n = 0};

    pf_message_number(&packet, TP_PF_PACKET_TIMESTAMP, ts);
    pf_message_number(&packet, TP_PF_PACKET_SEQUENCE_ID, 1);
    pf_message_nest(&packet, TP_PF_PACKET_TRACK_EVENT, event);
    pf_message_nest(trace, TP_PF_TRACE_PACKET, &packet);
}

void pf_message_simple(struct pf_message *trace, uint64_t ts, uint64_t type,
                       uint64_t uuid, const char *name)
{
    struct pf_message event = {.n = 0};

    pf_message_number(&event, TP_PF_EVENT_TYPE, type);
    pf_message_number(&event, TP_PF_EVENT_TRACK_UUID, uuid);
    if (name != NULL)
        pf_message_text(&event, TP_PF_EVENT_NAME, name);
    pf_message_event(trace, ts, &event);
}
