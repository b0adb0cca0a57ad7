/*
 * batch.c - a batch writer, and what has to be there before a record can be written.
 */
#include "producer/batch.h"

#include <stdlib.h>
#include <string.h>
#include <traceplane/record.h>
#include <unistd.h>

#include "base/err.h"
#include "base/pb.h"
#include "producer/batch_state.h"
#include "producer/fields.h"
#include "producer/ring.h"
#include "producer/texts.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"

#define TEXTS_STEP 256u  /* the table of what was said grows by so many at least */
#define PLAIN_ROOM 4096u /* an event, its name, type and tracks, without fields */
#define FIELD_ROOM (TP_TEXT_BYTES_MAX + 96u) /* a field and its key, without a text */

static uint32_t max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

int tp_batch_new(struct tp_batch_writer **out, struct tp_err *err)
{
    struct tp_batch_writer *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for batches");
    b->thread_name = tp_intern("thread_name");
    b->process_name = tp_intern("process_name");
    b->name = tp_intern("name");
    b->value = tp_intern("value");
    b->last_own_text =
        max(max(b->name, b->value), max(b->thread_name, b->process_name));
    if (b->thread_name == 0 || b->process_name == 0 || b->name == 0 || b->value == 0) {
        free(b);
        return tp_fail(err, TP_ENOMEM, "no memory for the names of batches");
    }
    *out = b;
    return TP_OK;
}

void tp_batch_free(struct tp_batch_writer *b)
{
    if (b == NULL)
        return;
    free(b->said);
    free(b);
}

struct tp_batch_snippet tp_batch_snippet_of(const char *from, const char *end)
{
    struct tp_batch_snippet s = {0, (unsigned)(end - from)};

    memcpy(&s.bytes, from, s.n);
    return s;
}

struct tp_batch_snippet tp_batch_track(uint64_t uuid)
{
    char bytes[TP_PB_TAG_MAX + TP_PB_SLACK];

    return tp_batch_snippet_of(bytes,
                               tp_pb_put_u64(bytes, TP_PF_EVENT_TRACK_UUID, uuid));
}

void tp_batch_begin_trace(struct tp_batch_writer *b)
{
    b->trace++;
}

uint32_t tp_batch_names(const struct tp_batch_writer *b)
{
    return b->n_metas;
}

void tp_batch_begin(struct tp_batch_writer *b, const struct tp_registry *registry,
                    const struct tp_ticks_line *line, uint32_t stream_no)
{
    char lead[3 * (TP_PB_TAG_MAX + TP_PB_SLACK)];
    char *p = lead;

    b->number++;
    b->stream_no = stream_no;
    b->n_names = 0;
    b->n_keys = 0;
    b->n_metas = 0;
    b->registry = registry;
    b->line = *line;
    b->slice_ticks_max = (UINT64_MAX >> 1) / (line->mult | 1);
    b->pid = getpid();
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, stream_no);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS);
    p = tp_pb_put_tag(p, TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    b->lead = tp_batch_snippet_of(lead, p);
    tp_batch_open_at(b, UINT64_C(1) << 60); /* any does to begin with */
}

void tp_batch_set_thread(struct tp_batch_writer *b,
                         const struct tp_batch_thread *thread)
{
    b->thread = *thread;
    b->is_thread_said = false;
    b->thread_uuid =
        tp_pf_uuid(TP_PF_KIND_TRACK, b->stream_no, (uint32_t)thread->tid & 0x3fffff, 0);
    b->thread_track = tp_batch_track(b->thread_uuid);
}

static int reserve_said(struct tp_batch_writer *b, uint32_t text, struct tp_err *err)
{
    uint32_t n = b->n_said;
    struct tp_batch_said *said;

    if (text < n)
        return TP_OK;
    if (text > tp_texts_count())
        text = 0; /* a number that was never given is as good as none */
    if (text < n)
        return TP_OK;
    while (n <= text)
        n += n / 2 + TEXTS_STEP;
    said = realloc(b->said, n * sizeof(*said));
    if (said == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the names of a batch");
    memset(said + b->n_said, 0, (n - b->n_said) * sizeof(*said));
    b->said = said;
    b->n_said = n;
    return TP_OK;
}

static int prepare_fields(struct tp_batch_writer *b, const uint64_t *w, unsigned n,
                          size_t *room, struct tp_err *err)
{
    for (unsigned i = 0; i < n; i++, w = tp_fields_next(w)) {
        int rc = reserve_said(b, TP_RECORD_FIELD_KEY(*w), err);

        if (rc != TP_OK)
            return rc;
        *room += FIELD_ROOM;
        if (tp_fields_is_text(w))
            *room += tp_fields_text(w, TP_BATCH_TEXT_MAX).len;
    }
    return TP_OK;
}

/* When the table of what was said may have to grow. */
static __attribute__((noinline)) int prepare_texts(struct tp_batch_writer *b,
                                                   const uint64_t *record, size_t *room,
                                                   struct tp_err *err)
{
    uint64_t header = record[0];
    unsigned at = tp_fields_at(TP_RECORD_KIND(header));
    int rc = reserve_said(b, b->last_own_text, err);

    if (rc == TP_OK)
        rc = reserve_said(b, TP_RECORD_NAME(header), err);
    if (rc == TP_OK && at != 0)
        rc = prepare_fields(b, record + at, TP_RECORD_FIELDS(header), room, err);
    return rc;
}

int tp_batch_prepare(struct tp_batch_writer *b, const uint64_t *record, size_t *room,
                     struct tp_err *err)
{
    uint64_t header = record[0];
    unsigned at = tp_fields_at(TP_RECORD_KIND(header));
    const uint64_t *w = record + at;

    *room = PLAIN_ROOM;
    if (b->last_own_text >= b->n_said || TP_RECORD_NAME(header) >= b->n_said)
        return prepare_texts(b, record, room, err);
    for (unsigned n = at == 0 ? 0 : TP_RECORD_FIELDS(header); n > 0;
         n--, w = tp_fields_next(w)) {
        if (TP_RECORD_FIELD_KEY(*w) >= b->n_said || tp_fields_is_text(w)) {
            *room = PLAIN_ROOM;
            return prepare_texts(b, record, room, err);
        }
        *room += FIELD_ROOM;
    }
    return TP_OK;
}

char *tp_batch_put_interned(const struct tp_batch_writer *b, char *p, uint32_t field,
                            uint32_t iid, struct tp_str text)
{
    char *packet;
    char *data;
    char *entry;

    p = tp_pb_put_tag(p, TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p = tp_pb_put_u64(p + 2, TP_PF_PACKET_SEQUENCE_ID, b->stream_no);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS);
    p = tp_pb_put_tag(p, TP_PF_PACKET_INTERNED_DATA, TP_PB_BYTES);
    data = p;
    p = tp_pb_put_tag(p + 2, field, TP_PB_BYTES);
    entry = p;
    p = tp_pb_put_u64(p + 2, TP_PF_INTERNED_IID, iid);
    p = tp_pb_put_bytes(p, TP_PF_INTERNED_TEXT, text.ptr, text.len);
    tp_pb_put_length(entry, 2, (size_t)(p - entry) - 2);
    tp_pb_put_length(data, 2, (size_t)(p - data) - 2);
    tp_pb_put_length(packet, 2, (size_t)(p - packet) - 2);
    return p;
}
