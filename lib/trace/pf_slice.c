/*
 * pf_slice.c - looks at two levels of each packet, and at no more.
 *
 * A slice is two packets, BEGIN and a synthetic END, and others may be between them. So
 * for each track it is remembered whether its last BEGIN passed; the END goes with it.
 */
#include "trace/pf_slice.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/pb_read.h"
#include "trace/pf_fields.h"

/* One track. uuid 0: a free place. */
struct track {
    uint64_t uuid;
    bool is_open; /* its last BEGIN passed */
};

struct tp_pf_slice {
    size_t n_places; /* a power of two, at most half full */
    size_t n_tracks, n_used;
    struct track places[];
};

/* What a packet is, as far as it matters here. */
struct packet {
    bool is_event;  /* a track event or a private one */
    bool has_names; /* interned data */
    uint64_t type, uuid;
    bool is_synthetic;
};

int tp_pf_slice_new(size_t n_tracks, struct tp_pf_slice **out, struct tp_err *err)
{
    size_t n = 64;
    struct tp_pf_slice *s;

    while (n < (n_tracks + 1) * 2)
        n *= 2;
    s = calloc(1, sizeof(*s) + n * sizeof(s->places[0]));
    if (s == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to follow %zu tracks", n_tracks);
    s->n_places = n;
    s->n_tracks = n_tracks;
    *out = s;
    return TP_OK;
}

void tp_pf_slice_free(struct tp_pf_slice *s)
{
    free(s);
}

/* The place of a track; NULL when there are more tracks than the index said. */
static struct track *find(struct tp_pf_slice *s, uint64_t uuid)
{
    size_t i = (size_t)((uuid * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

    for (;; i++) {
        struct track *t = &s->places[i & (s->n_places - 1)];

        if (t->uuid == uuid)
            return t;
        if (t->uuid != 0)
            continue;
        if (s->n_used > s->n_tracks)
            return NULL;
        s->n_used++;
        t->uuid = uuid;
        return t;
    }
}

static int damaged(struct tp_err *err)
{
    return tp_fail(err, TP_EIO, "a packet of a sealed stream is damaged");
}

static bool look_at_event(struct tp_pb c, struct packet *p)
{
    struct tp_pb_field f;

    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        if (f.number == TP_PF_EVENT_TYPE)
            p->type = f.value;
        else if (f.number == TP_PF_EVENT_TRACK_UUID)
            p->uuid = f.value;
        else if (f.number == TP_PF_X_EVENT_SYNTHETIC)
            p->is_synthetic = f.value != 0;
    }
    return true;
}

static bool look_at_packet(struct tp_pb c, struct packet *p)
{
    struct tp_pb_field f;

    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        if (f.number == TP_PF_X_PACKET_PRIVATE)
            p->is_event = true;
        if (f.number == TP_PF_PACKET_INTERNED_DATA)
            p->has_names = true;
        if (f.number != TP_PF_PACKET_TRACK_EVENT || f.wire != TP_PB_BYTES)
            continue;
        p->is_event = true;
        if (!look_at_event((struct tp_pb){f.bytes, f.bytes + f.value}, p))
            return false;
    }
    return true;
}

/* Append a packet without its event: the names that it defines. */
static int append_names(struct tp_pb c, struct tp_buf *out, struct tp_err *err)
{
    size_t bytes = (size_t)(c.end - c.p);
    size_t kept = 0;
    struct tp_pb_field f;
    char *p;
    int rc = tp_buf_reserve(out, tp_pb_bytes_room(bytes) + TP_PB_SLACK, err);

    if (rc != TP_OK)
        return rc;
    for (int is_writing = 0; is_writing < 2; is_writing++) {
        struct tp_pb at = c;

        p = out->data + out->len;
        if (is_writing) {
            p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
            p = tp_pb_put_varint(p, kept);
        }
        while (at.p < at.end) {
            const char *start = at.p;

            if (!tp_pb_get_field(&at, &f))
                return damaged(err);
            if (f.number == TP_PF_PACKET_TRACK_EVENT ||
                f.number == TP_PF_X_PACKET_PRIVATE)
                continue;
            if (is_writing) {
                memcpy(p, start, (size_t)(at.p - start));
                p += at.p - start;
            } else {
                kept += (size_t)(at.p - start);
            }
        }
    }
    out->len = (size_t)(p - out->data);
    return TP_OK;
}

/* Whether the packet stays; notes begins and ends. */
static int decide(struct tp_pf_slice *s, const struct packet *p, bool passes,
                  bool *stays, struct tp_err *err)
{
    struct track *t;

    *stays = !p->is_event || passes;
    if (p->type != TP_PF_TYPE_BEGIN && !p->is_synthetic)
        return TP_OK;
    t = p->uuid == 0 ? NULL : find(s, p->uuid);
    if (t == NULL)
        return damaged(err);
    if (p->is_synthetic)
        *stays = t->is_open;
    t->is_open = p->type == TP_PF_TYPE_BEGIN && passes;
    return TP_OK;
}

int tp_pf_slice_add(struct tp_pf_slice *s, struct tp_str packets, bool passes,
                    struct tp_buf *out, struct tp_err *err)
{
    struct tp_pb c = {packets.ptr, packets.ptr + packets.len};
    struct tp_pb_field f;

    while (c.p < c.end) {
        const char *start = c.p;
        struct packet packet = {0};
        struct tp_pb body;
        bool stays;
        int rc;

        if (!tp_pb_get_field(&c, &f))
            return damaged(err);
        if (f.number != TP_PF_TRACE_PACKET || f.wire != TP_PB_BYTES)
            continue;
        body = (struct tp_pb){f.bytes, f.bytes + f.value};
        if (!look_at_packet(body, &packet))
            return damaged(err);
        rc = decide(s, &packet, passes, &stays, err);
        if (rc == TP_OK && stays)
            rc = tp_buf_append(out, start, (size_t)(c.p - start), err);
        else if (rc == TP_OK && packet.has_names)
            rc = append_names(body, out, err);
        if (rc != TP_OK)
            return rc;
    }
    return TP_OK;
}
