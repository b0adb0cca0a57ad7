/*
 * pf_objects.c - uuids for tracks, series and processes.
 *
 * A sealed stream has one writer, so numbers in order of appearance are unique, and
 * small. The batches of a log have a writer each that know nothing of one another, but
 * the same track should be the same track in all of them: there the uuid is a hash of
 * what identifies the object. Should two objects of a batch get the same hash, the
 * later one takes the next free value; across batches each batch redefines what it
 * uses.
 */
#include "trace/pf_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fnv.h"
#include "trace/pf_writer.h"

#define HASH_BITS 40 /* and two for the kind: six bytes as a varint */
#define KEEP_BYTES ((size_t)1 << 20)
#define KEY_BYTES_MAX ((size_t)64 << 20)

void tp_pf_objects_fini(struct tp_pf_objects *o)
{
    if (o == NULL)
        return;
    tp_intern_fini(&o->numbers);
    tp_intern_fini(&o->uuids);
    tp_buf_fini(&o->key);
    tp_arena_fini(&o->arena);
    free(o->items);
    free(o->by_index);
    o->items = NULL;
    o->by_index = NULL;
    o->cap = 0;
    o->n_by_index = 0;
    o->n_series = 0;
}

void tp_pf_objects_reset(struct tp_pf_objects *o)
{
    tp_intern_reset(&o->numbers);
    tp_intern_reset(&o->uuids);
    tp_arena_reset(&o->arena, KEEP_BYTES);
    if (o->n_by_index > 0)
        memset(o->by_index, 0, o->n_by_index * sizeof(*o->by_index));
    o->n_series = 0;
}

/* FNV-1a with a final mix: any hash will do that is the same in every process. */
static uint64_t stable_hash(const char *p, size_t n, uint64_t seed)
{
    uint64_t h = tp_fnv(p, n, TP_FNV_START ^ seed);

    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ULL;
    return h ^ (h >> 32);
}

/* Start a key in o->key that nothing but an equal object can have. */
static int key_begin(struct tp_pf_objects *o, enum tp_pf_track_kind kind,
                     struct tp_err *err)
{
    char byte = (char)kind;

    o->key.len = 0;
    return tp_buf_append(&o->key, &byte, 1, err);
}

static int key_text(struct tp_pf_objects *o, struct tp_str s, struct tp_err *err)
{
    uint64_t len = s.len;
    int rc = tp_buf_append(&o->key, &len, sizeof(len), err);

    return rc == TP_OK ? tp_buf_append(&o->key, s.ptr, s.len, err) : rc;
}

static int key_id(struct tp_pf_objects *o, const struct tp_id *id, struct tp_err *err)
{
    char kind = (char)id->kind;
    int rc = tp_buf_append(&o->key, &kind, 1, err);

    if (rc == TP_OK && id->kind == TP_ID_NUMBER)
        rc = tp_buf_append(&o->key, &id->number, sizeof(id->number), err);
    if (rc == TP_OK && id->kind == TP_ID_TEXT)
        rc = key_text(o, id->text, err);
    return rc;
}

static int dup_id(struct tp_pf_objects *o, struct tp_id *id, struct tp_err *err)
{
    return id->kind == TP_ID_TEXT ? tp_intern_copy(&o->arena, id->text, &id->text, err)
                                  : TP_OK;
}

/* Make room for one more item. */
static int reserve_item(struct tp_pf_objects *o, struct tp_err *err)
{
    size_t cap = o->cap == 0 ? 16 : o->cap * 2;
    struct tp_pf_object *items;

    if (o->numbers.n < o->cap)
        return TP_OK;
    items = realloc(o->items, cap * sizeof(*items));
    if (items == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu tracks", cap);
    o->items = items;
    o->cap = cap;
    return TP_OK;
}

/* A uuid of a log: from the key in o->key, unlike all others of this writer. */
static int hashed_uuid(struct tp_pf_objects *o, enum tp_pf_track_kind kind,
                       uint64_t *out, struct tp_err *err)
{
    uint64_t hash = stable_hash(o->key.data, o->key.len, o->stream_no);
    uint64_t uuid;
    uint32_t before;
    uint32_t iid;
    int rc;

    do {
        uuid = (hash & ((1ULL << HASH_BITS) - 1)) << 2 | (uint64_t)kind;
        hash++;
        before = o->uuids.n;
        rc = tp_intern_add(&o->uuids, (struct tp_str){(char *)&uuid, sizeof(uuid)},
                           &iid, err);
        if (rc != TP_OK)
            return rc;
        if (iid == 0)
            return tp_fail(err, TP_EQUOTA, "there are too many tracks");
    } while (o->uuids.n == before || uuid == 0);
    *out = uuid;
    return TP_OK;
}

/* Add *object under the key in o->key; its ids are copied. */
static int add(struct tp_pf_objects *o, struct tp_pf_object *object, uint32_t *number,
               struct tp_err *err)
{
    int rc;

    o->numbers.n_max = TP_PF_TRACKS_MAX;
    o->numbers.bytes_max = KEY_BYTES_MAX;
    o->uuids.n_max = TP_PF_TRACKS_MAX;
    o->uuids.bytes_max = KEY_BYTES_MAX;
    rc = reserve_item(o, err);
    if (rc == TP_OK)
        rc = dup_id(o, &object->track.pid, err);
    if (rc == TP_OK)
        rc = dup_id(o, &object->track.tid, err);
    if (rc == TP_OK && !o->is_sealed)
        rc = hashed_uuid(o, object->kind, &object->uuid, err);
    if (rc == TP_OK)
        rc = tp_intern_add(&o->numbers, (struct tp_str){o->key.data, o->key.len},
                           number, err);
    if (rc != TP_OK)
        return rc;
    if (*number == 0)
        return tp_fail(err, TP_EQUOTA, "there are too many tracks");
    o->items[*number - 1] = *object;
    return TP_OK;
}

/* The number of the process of a track. */
static int process_of(struct tp_pf_objects *o, const struct tp_id *pid, uint64_t *uuid,
                      struct tp_err *err)
{
    struct tp_pf_object object = {.kind = TP_PF_KIND_PROCESS, .track.pid = *pid};
    uint32_t number;
    int rc = key_begin(o, TP_PF_KIND_PROCESS, err);

    if (rc == TP_OK)
        rc = key_id(o, pid, err);
    if (rc != TP_OK)
        return rc;
    number = tp_intern_find(&o->numbers, (struct tp_str){o->key.data, o->key.len});
    if (number == 0)
        rc = add(o, &object, &number, err);
    if (rc == TP_OK)
        *uuid = o->items[number - 1].uuid;
    return rc;
}

static int track_key(struct tp_pf_objects *o, const struct tp_track *track,
                     struct tp_err *err)
{
    int rc = key_begin(o, TP_PF_KIND_TRACK, err);

    if (rc == TP_OK)
        rc = key_id(o, &track->pid, err);
    if (rc == TP_OK)
        rc = key_id(o, &track->tid, err);
    if (rc == TP_OK)
        rc = tp_buf_append(&o->key, &track->lane, sizeof(track->lane), err);
    return rc;
}

/* Find or add the object of a track of a log. */
static int track_object(struct tp_pf_objects *o, const struct tp_track *track,
                        uint32_t *number, struct tp_err *err)
{
    struct tp_pf_object object = {.kind = TP_PF_KIND_TRACK, .track = *track};
    int rc = process_of(o, &track->pid, &object.parent_uuid, err);

    if (rc == TP_OK)
        rc = track_key(o, track, err);
    if (rc != TP_OK)
        return rc;
    *number = tp_intern_find(&o->numbers, (struct tp_str){o->key.data, o->key.len});
    return *number != 0 ? TP_OK : add(o, &object, number, err);
}

/* Make by_index long enough for index. */
static int reserve_index(struct tp_pf_objects *o, uint32_t index, struct tp_err *err)
{
    size_t n = o->n_by_index == 0 ? 64 : o->n_by_index;
    uint32_t *by_index;

    while (n <= index)
        n *= 2;
    if (n == o->n_by_index)
        return TP_OK;
    by_index = realloc(o->by_index, n * sizeof(*by_index));
    if (by_index == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu tracks", n);
    memset(by_index + o->n_by_index, 0, (n - o->n_by_index) * sizeof(*by_index));
    o->by_index = by_index;
    o->n_by_index = n;
    return TP_OK;
}

static int log_track(struct tp_pf_objects *o, const struct tp_track *track,
                     uint64_t *uuid, struct tp_err *err)
{
    uint32_t number = 0;
    int rc = reserve_index(o, track->index, err);

    if (rc == TP_OK)
        rc = track_object(o, track, &number, err);
    if (rc != TP_OK)
        return rc;
    if (track->lane == 0)
        o->by_index[track->index] = number;
    *uuid = o->items[number - 1].uuid;
    return TP_OK;
}

int tp_pf_objects_track(struct tp_pf_objects *o, const struct tp_track *track,
                        uint64_t *uuid, struct tp_err *err)
{
    if (track->index >= TP_PF_TRACKS_MAX || track->lane >= TP_PF_LANES_MAX)
        return tp_fail(err, TP_EQUOTA, "track %u lane %u is over the limits",
                       track->index, track->lane);
    if (o->is_sealed) {
        *uuid = tp_pf_track_uuid(o->stream_no, track->index, track->lane);
        return TP_OK;
    }
    if (track->lane == 0 && track->index < o->n_by_index &&
        o->by_index[track->index] != 0) {
        *uuid = o->items[o->by_index[track->index] - 1].uuid;
        return TP_OK;
    }
    return log_track(o, track, uuid, err);
}

/* Append the counter's name as it is shown: Chrome tells counters apart by id too. */
static int put_counter_name(struct tp_buf *b, const struct tp_event *ev,
                            struct tp_err *err)
{
    int rc = tp_buf_append(b, ev->name.ptr, ev->name.len, err);

    if (rc == TP_OK && ev->id.kind == TP_ID_NUMBER)
        rc = tp_buf_printf(b, err, " id: %lld", (long long)ev->id.number);
    if (rc == TP_OK && ev->id.kind == TP_ID_TEXT) {
        rc = tp_buf_append(b, " id: ", 5, err);
        if (rc == TP_OK)
            rc = tp_buf_append(b, ev->id.text.ptr, ev->id.text.len, err);
    }
    return rc;
}

/* Key of a series: not of its thread, so that threads that count the same share it. */
static int series_key(struct tp_pf_objects *o, const struct tp_event *ev,
                      struct tp_str key, struct tp_err *err)
{
    int rc = key_begin(o, TP_PF_KIND_SERIES, err);

    if (rc == TP_OK)
        rc = key_id(o, &ev->track->pid, err);
    if (rc == TP_OK)
        rc = key_id(o, &ev->id, err);
    if (rc == TP_OK)
        rc = key_text(o, (struct tp_str){ev->name.ptr, ev->name.len}, err);
    if (rc == TP_OK)
        rc = key_text(o, key, err);
    return rc;
}

/* Copy the texts of a series. */
static int series_texts(struct tp_pf_objects *o, const struct tp_event *ev,
                        struct tp_str key, struct tp_pf_object *object,
                        struct tp_err *err)
{
    struct tp_str cat = {ev->cat.ptr, ev->cat.ptr == NULL ? 0 : ev->cat.len};
    struct tp_buf text = {0};
    int rc = put_counter_name(&text, ev, err);

    if (rc == TP_OK)
        rc = tp_intern_copy(&o->arena, (struct tp_str){text.data, text.len},
                            &object->counter, err);
    if (rc == TP_OK)
        rc = tp_intern_copy(&o->arena, cat, &object->cat, err);
    if (rc == TP_OK)
        rc = tp_intern_copy(&o->arena, key, &object->series, err);
    text.len = 0;
    if (rc == TP_OK)
        rc = tp_pf_series_name(&text, object->counter, object->series, err);
    if (rc == TP_OK)
        rc = tp_intern_copy(&o->arena, (struct tp_str){text.data, text.len},
                            &object->shown, err);
    tp_buf_fini(&text);
    return rc;
}

static int add_series(struct tp_pf_objects *o, const struct tp_event *ev,
                      uint64_t own_track, struct tp_str key, uint32_t *number,
                      struct tp_err *err)
{
    struct tp_pf_object object = {.kind = TP_PF_KIND_SERIES,
                                  .track = *ev->track,
                                  .track_uuid = own_track};
    int rc = series_texts(o, ev, key, &object, err);

    if (rc == TP_OK && !o->is_sealed)
        rc = process_of(o, &ev->track->pid, &object.parent_uuid, err);
    if (rc == TP_OK)
        rc = series_key(o, ev, key, err); /* process_of() has used the key buffer */
    object.uuid = tp_pf_uuid(TP_PF_KIND_SERIES, o->stream_no, o->n_series, 0);
    if (rc == TP_OK)
        rc = add(o, &object, number, err);
    if (rc == TP_OK)
        o->n_series++;
    return rc;
}

int tp_pf_objects_series(struct tp_pf_objects *o, const struct tp_event *ev,
                         uint64_t own_track, struct tp_str key, uint32_t *number,
                         struct tp_err *err)
{
    int rc = series_key(o, ev, key, err);

    if (rc != TP_OK)
        return rc;
    *number = tp_intern_find(&o->numbers, (struct tp_str){o->key.data, o->key.len});
    if (*number != 0 || o->n_series >= TP_PF_SERIES_MAX)
        return TP_OK;
    return add_series(o, ev, own_track, key, number, err);
}

/* The number that viewers get for an id: itself, or a made-up one that is unlikely to
 * meet a real one. 0 means "swapper" to them. */
static int32_t shown_number(const struct tp_id *id)
{
    uint64_t hash;

    if (id->kind == TP_ID_NUMBER && id->number > 0 && id->number <= INT32_MAX)
        return (int32_t)id->number;
    hash = id->kind == TP_ID_TEXT ? stable_hash(id->text.ptr, id->text.len, 1)
                                  : stable_hash((const char *)&id->number, 8, id->kind);
    return (int32_t)(0x40000000 | (hash & 0x3fffffff));
}

static struct tp_str shown_text(const struct tp_id *id)
{
    return id->kind == TP_ID_TEXT ? id->text : (struct tp_str){NULL, 0};
}

struct tp_pf_descriptor tp_pf_objects_describe(const struct tp_pf_object *object)
{
    struct tp_pf_descriptor d = {
        .kind = object->kind,
        .uuid = object->uuid,
        .pid = &object->track.pid,
        .tid = &object->track.tid,
        .lane = object->track.lane,
        .shown_pid = shown_number(&object->track.pid),
        .shown_tid = shown_number(&object->track.tid),
    };

    if (object->kind == TP_PF_KIND_PROCESS) {
        d.has_process = true;
        d.process_name = shown_text(&object->track.pid);
    } else if (object->kind == TP_PF_KIND_TRACK) {
        d.has_thread = object->track.lane == 0;
        d.thread_name = shown_text(&object->track.tid);
        d.parent_uuid = d.has_thread ? 0 : object->parent_uuid;
    } else {
        d.parent_uuid = object->parent_uuid;
        d.name = object->shown;
        d.series = object->series;
    }
    return d;
}
