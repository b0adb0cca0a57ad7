#include "producer/batch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceplane/record.h>
#include <unistd.h>

#include "base/err.h"
#include "base/pb.h"
#include "base/utf8.h"
#include "core/activity.h"
#include "producer/device_tracks.h"
#include "producer/ring.h"
#include "producer/texts.h"
#include "trace/pf_descriptor.h"
#include "trace/pf_encode.h"
#include "trace/pf_fields.h"

#define TEXTS_STEP 256u  /* the table of what was said grows by so many at least */
#define PLAIN_ROOM 4096u /* an event, its name, type and tracks, without fields */
#define FIELD_ROOM (TP_TEXT_BYTES_MAX + 96u) /* a field and its key, without a text */
#define NAME_ROOM 32u                        /* a packet around a text */
#define SHORT_PACKET 16000u                  /* lengths of up to this take two bytes */

/* When a text was last said, as what, and under which number. */
struct said {
    uint32_t name_batch, name_iid;
    uint32_t key_batch, key_iid;
    uint32_t series_batch;
};

/* Up to eight bytes that are written as they are. */
struct snippet {
    uint64_t bytes;
    unsigned n;
};

struct tp_batch_writer {
    uint32_t number; /* of this batch; from 1 */
    uint32_t stream_no;
    uint32_t n_names, n_keys;                 /* numbers given so far */
    uint32_t n_metas;                         /* metadata events in the batch */
    uint32_t trace;                           /* counts the traces; from 1 */
    uint32_t thread_name, process_name, name; /* the texts that metadata needs */
    uint32_t last_own_text;                   /* the largest of them */
    const struct tp_registry *registry;
    struct tp_ticks_line line;
    int64_t pid;
    struct tp_batch_thread thread;
    bool is_thread_said;
    uint64_t thread_uuid;
    struct snippet thread_track; /* track_uuid of the thread in an event */
    struct snippet lead;         /* sequence id, flags and tag of the event */
    struct said *said;           /* by number of the text; 0 to n_said - 1 */
    uint32_t n_said;
    uint32_t type_batch[256];
    uint32_t process_batch, process_trace; /* that it was described and named in */
    uint32_t device_trace[TP_DEVICE_TRACKS_MAX + 1]; /* of tracks */
    uint32_t device_process_trace[TP_DEVICE_TRACKS_MAX + 1];
    uint32_t device_batch[TP_DEVICE_TRACKS_MAX + 1];
    uint32_t device_process_batch[TP_DEVICE_TRACKS_MAX + 1];
};

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
    b->last_own_text = max(b->name, max(b->thread_name, b->process_name));
    if (b->thread_name == 0 || b->process_name == 0 || b->name == 0) {
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

static struct snippet snippet_of(const char *from, const char *end)
{
    struct snippet s = {0, (unsigned)(end - from)};

    memcpy(&s.bytes, from, s.n);
    return s;
}

/* Room: eight bytes at p. */
static inline char *put_snippet(char *p, const struct snippet *s)
{
    memcpy(p, &s->bytes, sizeof(s->bytes));
    return p + s->n;
}

static struct snippet track_snippet(uint64_t uuid)
{
    char bytes[TP_PB_TAG_MAX + TP_PB_SLACK];

    return snippet_of(bytes, tp_pb_put_u64(bytes, TP_PF_EVENT_TRACK_UUID, uuid));
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
    b->pid = getpid();
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_ID, stream_no);
    p = tp_pb_put_u64(p, TP_PF_PACKET_SEQUENCE_FLAGS, TP_PF_SEQUENCE_NEEDS);
    p = tp_pb_put_tag(p, TP_PF_PACKET_TRACK_EVENT, TP_PB_BYTES);
    b->lead = snippet_of(lead, p);
}

void tp_batch_set_thread(struct tp_batch_writer *b,
                         const struct tp_batch_thread *thread)
{
    b->thread = *thread;
    b->is_thread_said = false;
    b->thread_uuid =
        tp_pf_uuid(TP_PF_KIND_TRACK, b->stream_no, (uint32_t)thread->tid & 0x3fffff, 0);
    b->thread_track = track_snippet(b->thread_uuid);
}

/* The words of the record before its fields. */
static unsigned fields_at(unsigned kind)
{
    return kind == TP_RECORD_COMPLETE                          ? 4
           : kind == TP_RECORD_SLICE || kind == TP_RECORD_OPEN ? 3
           : kind == TP_RECORD_INSTANT                         ? 2
                                                               : 0;
}

static inline const uint64_t *next_field(const uint64_t *w)
{
    unsigned kind = TP_RECORD_FIELD_KIND(*w);

    if (__builtin_expect(kind == TP_FIELD_COPY, 0))
        return w + 1 + TP_RECORD_FIELD_WORDS(*w);
    return w + (kind == TP_RECORD_FIELD_SMALL ? 1 : 2);
}

static inline bool is_text(const uint64_t *w)
{
    unsigned kind = TP_RECORD_FIELD_KIND(*w);

    return kind == TP_FIELD_TEXT || kind == TP_FIELD_COPY;
}

/* The text of a field of kind TEXT or COPY. */
static struct tp_str field_text(const uint64_t *w)
{
    const char *s = (const char *)(w + 1);

    if (TP_RECORD_FIELD_KIND(*w) == TP_FIELD_TEXT)
        memcpy(&s, w + 1, sizeof(s));
    if (s == NULL)
        return (struct tp_str){"", 0};
    return tp_utf8_cut((struct tp_str){s, strnlen(s, TP_BATCH_TEXT_MAX + 1)},
                       TP_BATCH_TEXT_MAX);
}

static int reserve_said(struct tp_batch_writer *b, uint32_t text, struct tp_err *err)
{
    uint32_t n = b->n_said;
    struct said *said;

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
    for (unsigned i = 0; i < n; i++, w = next_field(w)) {
        int rc = reserve_said(b, TP_RECORD_FIELD_KEY(*w), err);

        if (rc != TP_OK)
            return rc;
        *room += FIELD_ROOM;
        if (is_text(w))
            *room += field_text(w).len;
    }
    return TP_OK;
}

/* When the table of what was said may have to grow. */
static __attribute__((noinline)) int prepare_texts(struct tp_batch_writer *b,
                                                   const uint64_t *record, size_t *room,
                                                   struct tp_err *err)
{
    uint64_t header = record[0];
    unsigned at = fields_at(TP_RECORD_KIND(header));
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
    unsigned at = fields_at(TP_RECORD_KIND(header));
    const uint64_t *w = record + at;

    *room = PLAIN_ROOM;
    if (b->last_own_text >= b->n_said || TP_RECORD_NAME(header) >= b->n_said)
        return prepare_texts(b, record, room, err);
    for (unsigned n = at == 0 ? 0 : TP_RECORD_FIELDS(header); n > 0;
         n--, w = next_field(w)) {
        if (TP_RECORD_FIELD_KEY(*w) >= b->n_said || is_text(w)) {
            *room = PLAIN_ROOM;
            return prepare_texts(b, record, room, err);
        }
        *room += FIELD_ROOM;
    }
    return TP_OK;
}

/* A packet that gives a text a number. */
static char *put_interned(const struct tp_batch_writer *b, char *p, uint32_t field,
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

static inline uint32_t known_text(const struct tp_batch_writer *b, uint32_t text)
{
    return text < b->n_said ? text : 0;
}

/* Say the name if it was not said; its number in the batch. n_said is not 0. */
static inline uint32_t say_name(struct tp_batch_writer *b, char **p, uint32_t text)
{
    struct said *s = &b->said[known_text(b, text)];

    if (__builtin_expect(s->name_batch != b->number, 0)) {
        s->name_batch = b->number;
        s->name_iid = ++b->n_names;
        *p = put_interned(b, *p, TP_PF_INTERNED_NAMES, s->name_iid,
                          tp_texts_get(known_text(b, text)));
    }
    return s->name_iid;
}

static inline uint32_t say_key(struct tp_batch_writer *b, char **p, uint32_t text)
{
    struct said *s = &b->said[known_text(b, text)];

    if (__builtin_expect(s->key_batch != b->number, 0)) {
        s->key_batch = b->number;
        s->key_iid = ++b->n_keys;
        *p = put_interned(b, *p, TP_PF_INTERNED_ARG_NAMES, s->key_iid,
                          tp_texts_get(known_text(b, text)));
    }
    return s->key_iid;
}

/* Types have the same number in all batches: one more than their id. */
static inline uint32_t say_type(struct tp_batch_writer *b, char **p, unsigned type)
{
    char text[TP_ACTIVITY_STRING_BYTES];
    size_t n;

    if (__builtin_expect(b->type_batch[type] != b->number, 0)) {
        b->type_batch[type] = b->number;
        n = tp_activity_to_string(b->registry, type, text);
        *p = put_interned(b, *p, TP_PF_INTERNED_CATEGORIES, type + 1,
                          (struct tp_str){text, n});
    }
    return type + 1;
}

static uint64_t process_uuid(const struct tp_batch_writer *b)
{
    return tp_pf_uuid(TP_PF_KIND_PROCESS, b->stream_no, 0, 0);
}

/* The metadata event that names a track: `what` is one of our texts. */
static char *put_meta(struct tp_batch_writer *b, char *p, uint32_t what,
                      uint64_t track_uuid, struct tp_str name)
{
    static const struct tp_track track;
    struct tp_arg arg = {.key = {"name", 4, 0}, .kind = TP_ARG_STRING, .s = name};
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .phase = 'M',
                          .track = &track,
                          .args = &arg,
                          .n_args = 1};
    struct tp_pf_plan plan = {.form = TP_PF_FORM_PRIVATE,
                              .sequence_id = b->stream_no,
                              .stream_no = b->stream_no,
                              .has_args = true,
                              .track_uuid = track_uuid};
    uint32_t key = say_key(b, &p, b->name);

    if (name.len == 0)
        return p;
    plan.key_iids = &key;
    plan.name_iid = say_name(b, &p, what);
    b->n_metas++;
    return tp_pf_put_event(p, tp_pf_event_room(&ev), &ev, &plan, NULL);
}

static char *say_process(struct tp_batch_writer *b, char *p)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    struct tp_str name = tp_utf8_cut(tp_str_of(program_invocation_short_name), 255);
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                 .uuid = process_uuid(b),
                                 .has_process = true,
                                 .shown_pid = (int32_t)b->pid,
                                 .process_name = name,
                                 .pid = &pid};

    if (b->process_batch == b->number)
        return p;
    b->process_batch = b->number;
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->process_trace == b->trace)
        return p;
    b->process_trace = b->trace;
    return put_meta(b, p, b->process_name, d.uuid, name);
}

/* The track of the thread, and that of the process. */
static char *say_thread(struct tp_batch_writer *b, char *p)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = (int64_t)b->thread.tid};
    struct tp_str name = tp_str_of(b->thread.name);
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_TRACK,
                                 .uuid = b->thread_uuid,
                                 .has_thread = true,
                                 .shown_pid = (int32_t)b->pid,
                                 .shown_tid = (int32_t)b->thread.tid,
                                 .thread_name = name,
                                 .pid = &pid,
                                 .tid = &tid};

    b->is_thread_said = true;
    p = say_process(b, p);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (*b->thread.is_told)
        return p;
    *b->thread.is_told = true;
    return put_meta(b, p, b->thread_name, d.uuid, name);
}

/* Numbers of devices are small and begin at 0: viewers get others, which no process is
 * likely to have. */
#define SHOWN(number) (0x40000000 | (int32_t)((number)&0x3fffffff))

static char *say_device(struct tp_batch_writer *b, char *p,
                        const struct tp_device_track_info *t)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = t->device};
    char name[32];
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_PROCESS,
                                 .uuid = tp_pf_uuid(TP_PF_KIND_PROCESS, b->stream_no,
                                                    t->first, 0),
                                 .has_process = true,
                                 .shown_pid = SHOWN(t->device),
                                 .pid = &pid};

    if (b->device_process_batch[t->first] == b->number)
        return p;
    b->device_process_batch[t->first] = b->number;
    d.process_name.ptr = name;
    d.process_name.len = (size_t)snprintf(name, sizeof(name), "device %u", t->device);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->device_process_trace[t->first] == b->trace)
        return p;
    b->device_process_trace[t->first] = b->trace;
    return put_meta(b, p, b->process_name, d.uuid, d.process_name);
}

/* The track of a stream of a device; *uuid is set. */
static char *say_device_track(struct tp_batch_writer *b, char *p, uint32_t number,
                              const struct tp_device_track_info *t, uint64_t *uuid)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = t->device};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = t->stream};
    char name[32];
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_TRACK,
                                 .has_thread = true,
                                 .shown_pid = SHOWN(t->device),
                                 .shown_tid = SHOWN(number),
                                 .pid = &pid,
                                 .tid = &tid};

    d.uuid = *uuid = tp_pf_uuid(TP_PF_KIND_TRACK, b->stream_no, number, 1);
    if (b->device_batch[number] == b->number)
        return p;
    b->device_batch[number] = b->number;
    d.thread_name.ptr = name;
    d.thread_name.len = (size_t)snprintf(name, sizeof(name), "stream %u", t->stream);
    p = say_device(b, p, t);
    p = tp_pf_put_descriptor(p, b->stream_no, &d);
    if (b->device_trace[number] == b->trace)
        return p;
    b->device_trace[number] = b->trace;
    return put_meta(b, p, b->thread_name, d.uuid, d.thread_name);
}

/* The series of a counter; *uuid is set. n_said is not 0. */
static char *say_series(struct tp_batch_writer *b, char *p, uint32_t text,
                        uint64_t *uuid)
{
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = b->pid};
    const struct tp_id tid = {.kind = TP_ID_NUMBER, .number = (int64_t)b->thread.tid};
    struct tp_pf_descriptor d = {.kind = TP_PF_KIND_SERIES,
                                 .parent_uuid = process_uuid(b),
                                 .series = {"value", 5},
                                 .pid = &pid,
                                 .tid = &tid};

    text = known_text(b, text);
    *uuid = tp_pf_uuid(TP_PF_KIND_SERIES, b->stream_no, text, 0);
    if (b->said[text].series_batch == b->number)
        return p;
    b->said[text].series_batch = b->number;
    d.uuid = *uuid;
    d.name = tp_texts_get(text);
    return tp_pf_put_descriptor(p, b->stream_no, &d);
}

/* The track of a record that names one; that of its thread when it names none. */
static char *say_track(struct tp_batch_writer *b, char *p, uint64_t number,
                       uint64_t *uuid)
{
    struct tp_device_track_info info;

    if (number <= TP_DEVICE_TRACKS_MAX && tp_device_tracks_get((uint32_t)number, &info))
        return say_device_track(b, p, (uint32_t)number, &info, uuid);
    *uuid = b->thread_uuid;
    return b->is_thread_said ? p : say_thread(b, p);
}

/* Times since 1970 take nine bytes from 1972 to 2262. */
static inline char *put_time(char *p, uint64_t ns)
{
    uint64_t x = ns & 0x00ffffffffffffffULL;

    if (__builtin_expect(ns >> 56 == 0 || ns >> 63 != 0, 0))
        return tp_pb_put_varint(p, ns);
    x = (x & 0x000000000fffffffULL) | ((x & 0x00fffffff0000000ULL) << 4);
    x = (x & 0x00003fff00003fffULL) | ((x & 0x0fffc0000fffc000ULL) << 2);
    x = (x & 0x007f007f007f007fULL) | ((x & 0x3f803f803f803f80ULL) << 1);
    x |= 0x8080808080808080ULL;
    memcpy(p, &x, sizeof(x));
    p[8] = (char)(ns >> 56);
    return p + 9;
}

/* Room: eight bytes for each constant. */
#define PUT_BYTES(p, text)                   \
    do {                                     \
        memcpy((p), text, sizeof(text) - 1); \
        (p) += sizeof(text) - 1;             \
    } while (0)

static char *put_double(char *p, double v)
{
    const char *text = isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";

    if (isfinite(v))
        return tp_pb_put_double(p, TP_PF_ARG_DOUBLE, v);
    return tp_pb_put_bytes(p, TP_PF_ARG_STRING, text, strlen(text));
}

static inline char *put_field_value(char *p, const uint64_t *w)
{
    struct tp_str text;
    double d;

    switch (TP_RECORD_FIELD_KIND(*w)) {
    case TP_RECORD_FIELD_SMALL:
        return tp_pb_put_u64(p, TP_PF_ARG_INT, (uint64_t)TP_RECORD_SMALL_VALUE(*w));
    case TP_FIELD_INT:
        return tp_pb_put_u64(p, TP_PF_ARG_INT, w[1]);
    case TP_FIELD_BOOL:
        return tp_pb_put_u64(p, TP_PF_ARG_BOOL, w[1] != 0);
    case TP_FIELD_DOUBLE:
        memcpy(&d, w + 1, sizeof(d));
        return put_double(p, d);
    case TP_FIELD_TEXT:
    case TP_FIELD_COPY:
        text = field_text(w);
        return tp_pb_put_bytes(p, TP_PF_ARG_STRING, text.ptr, text.len);
    default: /* a kind that there is not: the field has no value */
        return p;
    }
}

static char *put_fields(const struct tp_batch_writer *b, char *p, const uint64_t *w,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++, w = next_field(w)) {
        unsigned width = !is_text(w) || field_text(w).len < 100 ? 1 : 2;
        char *at;

        *p++ = (char)TP_PB_TAG(TP_PF_EVENT_ARGS, TP_PB_BYTES);
        at = p;
        p = tp_pb_put_u64(p + width, TP_PF_ARG_NAME_IID,
                          b->said[known_text(b, TP_RECORD_FIELD_KEY(*w))].key_iid);
        p = put_field_value(p, w);
        tp_pb_put_length(at, width, (size_t)(p - at) - width);
    }
    return p;
}

/* With its form known where it is called from, a shape lives in registers: a slice is a
 * fifth cheaper. */
#define ALWAYS inline __attribute__((always_inline))

/* What is written of a slice or an instant. */
struct shape {
    enum { SHAPE_SLICE, SHAPE_OPEN, SHAPE_INSTANT } form;
    uint64_t ts_ns, dur_ns;
    struct snippet track;
    uint32_t name_iid, type_iid;
    const uint64_t *fields;
    unsigned n_fields;
    unsigned width; /* of the lengths, in bytes */
};

static ALWAYS char *put_shape(const struct tp_batch_writer *b, char *p,
                              const struct shape *s)
{
    char *packet;
    char *body;

    *p++ = (char)TP_PB_TAG(TP_PF_TRACE_PACKET, TP_PB_BYTES);
    packet = p;
    p += s->width;
    *p++ = (char)TP_PB_TAG(TP_PF_PACKET_TIMESTAMP, TP_PB_VARINT);
    p = put_time(p, s->ts_ns);
    p = put_snippet(p, &b->lead);
    body = p;
    p += s->width;
    if (s->form == SHAPE_SLICE) {
        PUT_BYTES(p, "\x48\x01\xe0\xea\x04");
        p = tp_pb_put_varint(p, s->dur_ns);
    } else if (s->form == SHAPE_OPEN) {
        PUT_BYTES(p, "\x48\x01");
    } else {
        PUT_BYTES(p, "\x48\x03");
    }
    p = put_snippet(p, &s->track);
    p = tp_pb_put_u64(p, TP_PF_EVENT_CATEGORY_IIDS, s->type_iid);
    p = tp_pb_put_u64(p, TP_PF_EVENT_NAME_IID, s->name_iid);
    if (s->n_fields != 0)
        p = put_fields(b, p, s->fields, s->n_fields);
    if (s->form == SHAPE_OPEN)
        p = tp_pb_put_u64(p, TP_PF_X_EVENT_UNFINISHED, 1);
    tp_pb_put_length(body, s->width, (size_t)(p - body) - s->width);
    tp_pb_put_length(packet, s->width, (size_t)(p - packet) - s->width);
    return p;
}

/* Say what a slice or an instant needs and write it. */
static ALWAYS char *put_event(struct tp_batch_writer *b, char *p,
                              const uint64_t *record, struct shape *s)
{
    uint64_t header = record[0];
    size_t room = 0;

    s->fields = record + fields_at(TP_RECORD_KIND(header));
    s->n_fields = TP_RECORD_FIELDS(header);
    s->width = 2;
    if (__builtin_expect(s->n_fields != 0, 0)) {
        const uint64_t *w = s->fields;

        for (unsigned i = 0; i < s->n_fields; i++, w = next_field(w)) {
            say_key(b, &p, TP_RECORD_FIELD_KEY(*w));
            room += 64;
            if (is_text(w))
                room += field_text(w).len;
        }
        s->width = room > SHORT_PACKET - 256 ? 4 : 2;
    }
    s->type_iid = say_type(b, &p, TP_RECORD_TYPE(header));
    s->name_iid = say_name(b, &p, TP_RECORD_NAME(header));
    return put_shape(b, p, s);
}

/* Counters, flows and asynchronous events, which are few: by way of the encoder that
 * the service uses. */
static char *put_other(struct tp_batch_writer *b, char *p, const uint64_t *record,
                       struct tp_event *ev, struct tp_pf_plan *plan)
{
    static const struct tp_track track;

    plan->form = TP_PF_FORM_PUBLIC;
    plan->sequence_id = b->stream_no;
    plan->stream_no = b->stream_no;
    plan->cat_iid = say_type(b, &p, TP_RECORD_TYPE(record[0]));
    plan->name_iid = say_name(b, &p, TP_RECORD_NAME(record[0]));
    ev->phase = tp_pf_usual_phase[ev->kind];
    ev->track = &track;
    return tp_pf_put_event(p, tp_pf_event_room(ev), ev, plan, NULL);
}

static char *put_counter(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    struct tp_arg value = {.key = {"value", 5, 0}, .kind = TP_ARG_INT};
    struct tp_event ev = {.kind = TP_EVENT_COUNTER, .args = &value, .n_args = 1};
    struct tp_pf_plan plan = {.n_series = 1, .value = &value};

    value.i = (int64_t)record[2];
    if (TP_RECORD_KIND(record[0]) == TP_RECORD_COUNTER) {
        value.kind = TP_ARG_DOUBLE;
        memcpy(&value.d, record + 2, sizeof(value.d));
        if (!isfinite(value.d))
            return p;
    }
    ev.ts_ns = (int64_t)tp_ticks_ns(&b->line, record[1]);
    p = say_track(b, p, 0, &plan.own_track);
    p = say_series(b, p, TP_RECORD_NAME(record[0]), &plan.track_uuid);
    return put_other(b, p, record, &ev, &plan);
}

static char *put_joined(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    static const enum tp_event_kind flows[4] = {TP_EVENT_FLOW_START, TP_EVENT_FLOW_STEP,
                                                TP_EVENT_FLOW_END, TP_EVENT_FLOW_END};
    static const enum tp_event_kind asyncs[4] = {TP_EVENT_ASYNC_BEGIN,
                                                 TP_EVENT_ASYNC_INSTANT,
                                                 TP_EVENT_ASYNC_END,
                                                 TP_EVENT_ASYNC_END};
    bool is_flow = TP_RECORD_KIND(record[0]) == TP_RECORD_FLOW;
    unsigned phase = TP_RECORD_FIELDS(record[0]) & 3;
    bool is_ns = is_flow && record[3] >> 63 != 0;
    struct tp_pf_plan plan = {0};
    struct tp_event ev = {.kind = is_flow ? flows[phase] : asyncs[phase],
                          .id = {.kind = TP_ID_NUMBER,
                                 .number = (int64_t)(record[2] & INT64_MAX)}};

    ev.ts_ns = (int64_t)(is_ns ? record[1] : tp_ticks_ns(&b->line, record[1]));
    ev.binds_enclosing = ev.kind == TP_EVENT_FLOW_END;
    p = say_track(b, p, is_flow ? record[3] & INT64_MAX : 0, &plan.track_uuid);
    return put_other(b, p, record, &ev, &plan);
}

static char *put_complete(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    struct shape s = {.form = SHAPE_SLICE, .ts_ns = record[1], .dur_ns = record[2]};
    uint64_t uuid;

    p = say_track(b, p, record[3], &uuid);
    s.track = track_snippet(uuid);
    return put_event(b, p, record, &s);
}

/* What happened on its thread: slices, done and undone, and instants. */
static ALWAYS char *put_on_thread(struct tp_batch_writer *b, char *p,
                                  const uint64_t *record, int form)
{
    struct shape s;

    if (__builtin_expect(!b->is_thread_said, 0))
        p = say_thread(b, p);
    s.form = form;
    s.ts_ns = tp_ticks_ns(&b->line, record[1]);
    /* From two rounded times: so a slice that ends with its parent does so here too. */
    s.dur_ns = form == SHAPE_SLICE
                   ? tp_ticks_ns(&b->line, record[1] + record[2]) - s.ts_ns
                   : 0;
    s.track = b->thread_track;
    return put_event(b, p, record, &s);
}

char *tp_batch_put(struct tp_batch_writer *b, char *p, const uint64_t *record)
{
    switch (TP_RECORD_KIND(record[0])) {
    case TP_RECORD_SLICE:
        return put_on_thread(b, p, record, SHAPE_SLICE);
    case TP_RECORD_OPEN:
        return put_on_thread(b, p, record, SHAPE_OPEN);
    case TP_RECORD_INSTANT:
        return put_on_thread(b, p, record, SHAPE_INSTANT);
    case TP_RECORD_COUNTER:
    case TP_RECORD_COUNTER_INT:
        return put_counter(b, p, record);
    case TP_RECORD_COMPLETE:
        return put_complete(b, p, record);
    default:
        return put_joined(b, p, record);
    }
}
