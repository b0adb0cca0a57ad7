/*
 * pf_places.c - uuid --> place --> track, and (pid, tid) --> track.
 *
 *     uuid 77 --> place {named "queue 3", parent 12} --> track (pid 4, tid "queue 3")
 *     uuid 12 --> place {process, pid 4}             --> track (pid 4, no tid)
 *
 * A descriptor may come after one that names it as its parent, so a track of others is
 * found out when the first event needs it.
 */
#include "trace/pf_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define PARENTS_MAX 32 /* a chain of parents that is longer, or a circle, ends there */
#define ID_KEY_BYTES 24

struct tp_pf_track_node {
    struct tp_track track;
    struct tp_pf_track_node *next_lane;
};

void tp_pf_places_fini(struct tp_pf_places *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->ids.n && i < t->cap_tracks; i++) {
        while (t->tracks[i] != NULL) {
            struct tp_pf_track_node *next = t->tracks[i]->next_lane;

            free(t->tracks[i]);
            t->tracks[i] = next;
        }
    }
    free(t->tracks);
    free(t->places);
    free(t->slots);
    tp_intern_fini(&t->ids);
    tp_arena_fini(&t->arena);
    *t = (struct tp_pf_places){0};
}

static uint32_t slot_of(const struct tp_pf_places *t, uint64_t uuid)
{
    return (uint32_t)((uuid * 0x9e3779b97f4a7c15ULL) >> 32) & (t->n_slots - 1);
}

struct tp_pf_place *tp_pf_places_find(const struct tp_pf_places *t, uint64_t uuid)
{
    if (t->n_slots == 0)
        return NULL;
    for (uint32_t i = slot_of(t, uuid);; i = (i + 1) & (t->n_slots - 1)) {
        uint32_t number = t->slots[i];

        if (number == 0)
            return NULL;
        if (t->places[number].uuid == uuid)
            return &t->places[number];
    }
}

static void link_place(struct tp_pf_places *t, uint32_t number)
{
    uint32_t i = slot_of(t, t->places[number].uuid);

    while (t->slots[i] != 0)
        i = (i + 1) & (t->n_slots - 1);
    t->slots[i] = number;
}

/* Double places and slots; places[0] is never used. */
static int grow_places(struct tp_pf_places *t, struct tp_err *err)
{
    uint32_t cap = t->cap_places == 0 ? 64 : t->cap_places * 2;
    struct tp_pf_place *places = realloc(t->places, cap * sizeof(*places));
    uint32_t *slots;

    if (places == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", cap);
    t->places = places;
    slots = calloc((size_t)cap * 4, sizeof(*slots));
    if (slots == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", cap);
    free(t->slots);
    t->slots = slots;
    t->n_slots = cap * 4;
    t->cap_places = cap;
    for (uint32_t number = 1; number <= t->n_places; number++)
        link_place(t, number);
    return TP_OK;
}

int tp_pf_places_add(struct tp_pf_places *t, uint64_t uuid, struct tp_pf_place **out,
                     struct tp_err *err)
{
    struct tp_pf_place *place = tp_pf_places_find(t, uuid);

    if (place != NULL) {
        *out = place;
        return TP_OK;
    }
    if (t->n_places >= t->tracks_max)
        return tp_fail(err, TP_EQUOTA, "there are more than %u tracks", t->tracks_max);
    if (t->n_places + 1 >= t->cap_places) {
        int rc = grow_places(t, err);

        if (rc != TP_OK)
            return rc;
    }
    place = &t->places[++t->n_places];
    *place = (struct tp_pf_place){.uuid = uuid};
    link_place(t, t->n_places);
    *out = place;
    return TP_OK;
}

int tp_pf_places_text(struct tp_pf_places *t, struct tp_str s, struct tp_str *out,
                      struct tp_err *err)
{
    int rc;

    if (s.len > t->text_bytes_max - t->text_bytes)
        return tp_fail(err, TP_EQUOTA, "the names of tracks are over %zu bytes",
                       t->text_bytes_max);
    rc = tp_intern_copy(&t->arena, s, out, err);
    if (rc == TP_OK)
        t->text_bytes += s.len;
    return rc;
}

/* Append an id to a key that no other (pid, tid) has. */
static char *put_id(char *p, const struct tp_id *id)
{
    uint64_t number = id->kind == TP_ID_NUMBER ? (uint64_t)id->number : id->text.len;

    *p++ = (char)id->kind;
    if (id->kind == TP_ID_NONE)
        return p;
    memcpy(p, &number, sizeof(number));
    p += sizeof(number);
    if (id->kind == TP_ID_TEXT && id->text.len > 0) {
        memcpy(p, id->text.ptr, id->text.len);
        p += id->text.len;
    }
    return p;
}

/* The number of (pid, tid), from 1. */
static int number_ids(struct tp_pf_places *t, const struct tp_id *pid,
                      const struct tp_id *tid, uint32_t *number, struct tp_err *err)
{
    size_t room = ID_KEY_BYTES + (pid->kind == TP_ID_TEXT ? pid->text.len : 0) +
                  (tid->kind == TP_ID_TEXT ? tid->text.len : 0);
    char small[256];
    char *key = small;
    int rc;

    if (room > sizeof(small)) {
        key = malloc(room);
        if (key == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for the name of a track");
    }
    t->ids.n_max = t->tracks_max;
    t->ids.bytes_max = t->text_bytes_max + (size_t)t->tracks_max * ID_KEY_BYTES;
    rc = tp_intern_add(
        &t->ids, (struct tp_str){key, (size_t)(put_id(put_id(key, pid), tid) - key)},
        number, err);
    if (rc == TP_OK && *number == 0)
        rc = tp_fail(err, TP_EQUOTA, "there are more than %u tracks", t->tracks_max);
    if (key != small)
        free(key);
    return rc;
}

static int reserve_tracks(struct tp_pf_places *t, struct tp_err *err)
{
    size_t cap = t->cap_tracks == 0 ? 64 : t->cap_tracks * 2;
    struct tp_pf_track_node **tracks;

    if (t->ids.n < t->cap_tracks)
        return TP_OK;
    tracks = realloc(t->tracks, cap * sizeof(*tracks));
    if (tracks == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu tracks", cap);
    memset(tracks + t->cap_tracks, 0, (cap - t->cap_tracks) * sizeof(*tracks));
    t->tracks = tracks;
    t->cap_tracks = cap;
    return TP_OK;
}

static int copy_id(struct tp_pf_places *t, const struct tp_id *id, struct tp_id *out,
                   struct tp_err *err)
{
    *out = (struct tp_id){.kind = id->kind};
    if (id->kind == TP_ID_NUMBER)
        out->number = id->number;
    return id->kind == TP_ID_TEXT ? tp_pf_places_text(t, id->text, &out->text, err)
                                  : TP_OK;
}

int tp_pf_places_track(struct tp_pf_places *t, const struct tp_id *pid,
                       const struct tp_id *tid, uint32_t lane,
                       const struct tp_track **out, struct tp_err *err)
{
    struct tp_pf_track_node *node;
    uint32_t number = 0;
    int rc = reserve_tracks(t, err);

    if (rc == TP_OK)
        rc = number_ids(t, pid, tid, &number, err);
    if (rc != TP_OK)
        return rc;
    for (node = t->tracks[number - 1]; node != NULL; node = node->next_lane) {
        if (node->track.lane == lane) {
            *out = &node->track;
            return TP_OK;
        }
    }
    if (t->n_nodes >= t->tracks_max)
        return tp_fail(err, TP_EQUOTA, "there are more than %u tracks", t->tracks_max);
    node = calloc(1, sizeof(*node));
    if (node == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a track");
    node->track.index = number - 1;
    node->track.lane = lane;
    rc = copy_id(t, pid, &node->track.pid, err);
    if (rc == TP_OK)
        rc = copy_id(t, tid, &node->track.tid, err);
    if (rc != TP_OK) {
        free(node);
        return rc;
    }
    node->next_lane = t->tracks[number - 1];
    t->tracks[number - 1] = node;
    t->n_nodes++;
    *out = &node->track;
    return TP_OK;
}

/* Find the pid of a place among itself and its ancestors. */
static struct tp_id inherited_pid(const struct tp_pf_places *t,
                                  const struct tp_pf_place *place)
{
    struct tp_id pid = {.kind = TP_ID_NONE};

    for (int i = 0; place != NULL && i < PARENTS_MAX; i++) {
        if (place->has_pid) {
            pid.kind = TP_ID_NUMBER;
            pid.number = place->pid;
            break;
        }
        if (place->is_ours && place->track != NULL)
            return place->track->pid;
        if (place->parent_uuid == 0)
            break;
        place = tp_pf_places_find(t, place->parent_uuid);
    }
    return pid;
}

/* Whether another uuid has the name of this track in the same process: then the text
 * needs its uuid to tell them apart. */
static bool is_taken(struct tp_pf_places *t, const struct tp_id *pid,
                     struct tp_str name)
{
    struct tp_id tid = {.kind = TP_ID_TEXT, .text = name};
    uint32_t before = t->ids.n;
    uint32_t number = 0;

    /* A number that is new here has no track yet and is used by the caller at once. */
    if (reserve_tracks(t, NULL) != TP_OK ||
        number_ids(t, pid, &tid, &number, NULL) != TP_OK)
        return false;
    return t->ids.n == before && t->tracks[number - 1] != NULL;
}

/* The track of a place that is no thread and no process. */
static int resolve_named(struct tp_pf_places *t, struct tp_pf_place *place,
                         const struct tp_track **out, struct tp_err *err)
{
    struct tp_id pid = inherited_pid(t, place);
    struct tp_str name = {place->name.ptr, place->name.len};
    struct tp_id tid = {.kind = TP_ID_TEXT};
    char plain[32];

    if (name.len > 0 && !is_taken(t, &pid, name)) {
        tid.text = name;
        return tp_pf_places_track(t, &pid, &tid, 0, out, err);
    }
    snprintf(plain, sizeof(plain), "track %llu", (unsigned long long)place->uuid);
    tid.text = tp_str_of(plain);
    return tp_pf_places_track(t, &pid, &tid, 0, out, err);
}

int tp_pf_places_resolve(struct tp_pf_places *t, uint64_t uuid,
                         const struct tp_track **out, struct tp_err *err)
{
    struct tp_id none = {.kind = TP_ID_NONE};
    struct tp_pf_place *place;
    const struct tp_track *track;
    int rc = tp_pf_places_add(t, uuid, &place, err);

    if (rc != TP_OK)
        return rc;
    if (place->track != NULL) {
        *out = place->track;
        return TP_OK;
    }
    if (place->has_tid) {
        rc = tp_pf_places_track(
            t, &(struct tp_id){.kind = TP_ID_NUMBER, .number = place->pid},
            &(struct tp_id){.kind = TP_ID_NUMBER, .number = place->tid}, 0, &track,
            err);
    } else if (place->has_pid || place->is_counter || uuid == 0) {
        struct tp_id pid = inherited_pid(t, place);

        rc = tp_pf_places_track(t, &pid, &none, 0, &track, err);
    } else {
        rc = resolve_named(t, place, &track, err);
    }
    if (rc != TP_OK)
        return rc;
    place->track = track;
    *out = track;
    return TP_OK;
}
