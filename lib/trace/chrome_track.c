/*
 * chrome_track.c - open addressing with linear probing, at most half full.
 *
 * Tracks live in blocks of 256, so that a pointer to one stays good for as long as the
 * reader. The texts of a track share one allocation with nothing else: they are rare.
 * The hash multiplies to 128 bits and folds, keyed, so that a producer cannot choose
 * ids that meet in one place.
 */
#include "trace/chrome_track.h"

#include <stdlib.h>
#include <sys/random.h>

#define BLOCK_TRACKS 256U
#define FIRST_SLOTS 64U

static uint64_t random_key(const void *fallback)
{
    uint64_t key;

    /* Early in the life of a machine there may be no random bytes; then an address
     * must do, which the kernel randomises as well. */
    if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
        key = (uint64_t)(uintptr_t)fallback * UINT64_C(0x9e3779b97f4a7c15);
    return key;
}

void tp_chrome_tracks_init(struct tp_chrome_tracks *t, uint32_t tracks_max)
{
    *t = (struct tp_chrome_tracks){.tracks_max = tracks_max, .key = random_key(t)};
}

void tp_chrome_tracks_fini(struct tp_chrome_tracks *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n_tracks; i++) {
        struct tp_track *track = &t->blocks[i / BLOCK_TRACKS][i % BLOCK_TRACKS];

        free((void *)(uintptr_t)track->pid.text.ptr);
        free((void *)(uintptr_t)track->tid.text.ptr);
    }
    for (size_t i = 0; i < t->n_blocks; i++)
        free(t->blocks[i]);
    free(t->blocks);
    free(t->slots);
    *t = (struct tp_chrome_tracks){.tracks_max = t->tracks_max, .key = t->key};
}

void tp_chrome_tracks_reset(struct tp_chrome_tracks *t)
{
    tp_chrome_tracks_fini(t);
}

/* Fold the 128-bit product of two words. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_id(uint64_t h, const struct tp_id *id)
{
    h ^= (uint64_t)id->kind * UINT64_C(0xa0761d6478bd642f);
    if (id->kind == TP_ID_NUMBER)
        return mix(h ^ (uint64_t)id->number, UINT64_C(0xe7037ed1a0b428db));
    if (id->kind == TP_ID_NONE)
        return h;
    h ^= id->text.len;
    for (size_t i = 0; i < id->text.len; i += sizeof(uint64_t)) {
        const size_t n = id->text.len - i < 8 ? id->text.len - i : 8;
        uint64_t word = 0;

        memcpy(&word, id->text.ptr + i, n);
        h = mix(h ^ word, UINT64_C(0x8ebc6af09c88c6e3));
    }
    return h;
}

static uint64_t hash_pair(uint64_t key, const struct tp_id *pid,
                          const struct tp_id *tid)
{
    const uint64_t h = hash_id(mix(key ^ UINT64_C(0x589965cc75374cc3), key | 1), pid);

    return hash_id(mix(h ^ key, UINT64_C(0x1d8e4e27c47d124f)), tid) ^ (h >> 32);
}

/* The place of the pair: its track, or the empty slot where it would go. */
static struct tp_track **find_slot(const struct tp_chrome_tracks *t,
                                   const struct tp_id *pid, const struct tp_id *tid)
{
    size_t i = (size_t)hash_pair(t->key, pid, tid) & (t->n_slots - 1);

    while (t->slots[i] != NULL && (!tp_chrome_id_equal(&t->slots[i]->pid, pid) ||
                                   !tp_chrome_id_equal(&t->slots[i]->tid, tid)))
        i = (i + 1) & (t->n_slots - 1);
    return &t->slots[i];
}

/* Have at least twice as many slots as tracks, one more included. */
static int grow_slots(struct tp_chrome_tracks *t, struct tp_err *err)
{
    struct tp_chrome_tracks bigger = *t;

    if (t->n_slots >= 2 * ((size_t)t->n_tracks + 1))
        return TP_OK;
    bigger.n_slots = t->n_slots == 0 ? FIRST_SLOTS : t->n_slots * 2;
    bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu tracks", bigger.n_slots / 2);
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i] != NULL)
            *find_slot(&bigger, &t->slots[i]->pid, &t->slots[i]->tid) = t->slots[i];
    free(t->slots);
    t->slots = bigger.slots;
    t->n_slots = bigger.n_slots;
    return TP_OK;
}

/* Have a block for the track number n_tracks. */
static int grow_blocks(struct tp_chrome_tracks *t, struct tp_err *err)
{
    const size_t n = t->n_blocks;
    struct tp_track **blocks;

    if (t->n_tracks / BLOCK_TRACKS < n)
        return TP_OK;
    /* The list of blocks doubles whenever their number is a power of two. */
    if ((n & (n - 1)) == 0) {
        blocks = realloc(t->blocks, (n == 0 ? 1 : 2 * n) * sizeof(struct tp_track *));
        if (blocks == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", t->n_tracks + 1);
        t->blocks = blocks;
    }
    t->blocks[n] = calloc(BLOCK_TRACKS, sizeof(struct tp_track));
    if (t->blocks[n] == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u tracks", t->n_tracks + 1);
    t->n_blocks++;
    return TP_OK;
}

/* Copy an id; a text becomes the copy's own. */
static int copy_id(const struct tp_id *from, struct tp_id *to, struct tp_err *err)
{
    struct tp_id id = {.kind = from->kind};
    char *text;

    if (from->kind == TP_ID_NUMBER)
        id.number = from->number;
    if (from->kind == TP_ID_TEXT) {
        text = malloc(from->text.len + 1); /* an empty text has an address as well */
        if (text == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for an id");
        if (from->text.len > 0)
            memcpy(text, from->text.ptr, from->text.len);
        id.text = (struct tp_str){text, from->text.len};
    }
    *to = id;
    return TP_OK;
}

static size_t text_bytes(const struct tp_id *pid, const struct tp_id *tid)
{
    return (pid->kind == TP_ID_TEXT ? pid->text.len : 0) +
           (tid->kind == TP_ID_TEXT ? tid->text.len : 0);
}

/* Fill in the next track, which has a place already. */
static int fill_track(struct tp_chrome_tracks *t, const struct tp_id *pid,
                      const struct tp_id *tid, struct tp_track **out,
                      struct tp_err *err)
{
    struct tp_track track = {.index = t->n_tracks};
    int rc;

    rc = copy_id(pid, &track.pid, err);
    if (rc != TP_OK)
        return rc;
    rc = copy_id(tid, &track.tid, err);
    if (rc != TP_OK) {
        free((void *)(uintptr_t)track.pid.text.ptr);
        return rc;
    }
    *out = &t->blocks[t->n_tracks / BLOCK_TRACKS][t->n_tracks % BLOCK_TRACKS];
    **out = track;
    t->text_bytes += text_bytes(pid, tid);
    t->n_tracks++;
    return TP_OK;
}

static int add_track(struct tp_chrome_tracks *t, const struct tp_id *pid,
                     const struct tp_id *tid, struct tp_track **out, struct tp_err *err)
{
    int rc;

    if (t->n_tracks >= t->tracks_max)
        return tp_fail(err, TP_EQUOTA, "more than %u pairs of pid and tid",
                       t->tracks_max);
    if (text_bytes(pid, tid) > TP_CHROME_TRACK_TEXT_BYTES - t->text_bytes)
        return tp_fail(err, TP_EQUOTA, "more than %u bytes of pids and tids",
                       TP_CHROME_TRACK_TEXT_BYTES);
    rc = grow_slots(t, err);
    if (rc == TP_OK)
        rc = grow_blocks(t, err);
    if (rc == TP_OK)
        rc = fill_track(t, pid, tid, out, err);
    return rc;
}

int tp_chrome_tracks_find(struct tp_chrome_tracks *t, const struct tp_id *pid,
                          const struct tp_id *tid, const struct tp_track **out,
                          struct tp_err *err)
{
    struct tp_track *track = t->n_slots == 0 ? NULL : *find_slot(t, pid, tid);
    int rc;

    if (track == NULL) {
        rc = add_track(t, pid, tid, &track, err);
        if (rc != TP_OK)
            return rc;
        *find_slot(t, pid, tid) = track;
    }
    t->recent[tp_chrome_recent(pid, tid)] = track;
    *out = track;
    return TP_OK;
}
