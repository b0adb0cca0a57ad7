/*
 * intern.c - open addressing over an array of texts.
 *
 *     hash("aten::mm") & mask --> slot {hash, iid} --> texts[iid - 1] --> arena
 *
 * A look-up takes at most PROBES steps. At a quarter of the load practically nothing
 * needs that many; with strings that were made to collide, the unlucky ones stay
 * inline, which costs bytes and no time. So the hash needs no secret key.
 */
#include "trace/intern.h"

#include <stdlib.h>

#include "base/err.h"

#define PROBES 32
#define KEEP_BYTES ((size_t)1 << 20) /* of strings, for reuse after a reset */
#define FIRST_CAP 64
#define SLOTS_PER_TEXT 4

/* Multiply to 128 bits and fold: each bit of both factors reaches the result. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load64(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t load32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Hash 16 bytes a step; a short string is two loads that may overlap. */
static uint32_t hash_of(struct tp_str s)
{
    const uint64_t k0 = 0xa0761d6478bd642fULL;
    const uint64_t k1 = 0xe7037ed1a0b428dbULL;
    const char *p = s.ptr;
    size_t n = s.len;
    uint64_t h = k0 ^ n;
    uint64_t a = 0;
    uint64_t b = 0;

    for (; n > 16; n -= 16, p += 16)
        h = mix(load64(p) ^ k1, load64(p + 8) ^ h);
    if (n >= 8) {
        a = load64(p);
        b = load64(p + n - 8);
    } else if (n >= 4) {
        a = load32(p);
        b = load32(p + n - 4);
    } else if (n > 0) {
        a = (uint64_t)(unsigned char)p[0] << 16 |
            (uint64_t)(unsigned char)p[n / 2] << 8 | (unsigned char)p[n - 1];
    }
    h = mix(a ^ k1, b ^ h);
    return (uint32_t)(h ^ (h >> 32));
}

int tp_intern_copy(struct tp_arena *a, struct tp_str s, struct tp_str *out,
                   struct tp_err *err)
{
    char *copy;
    int rc = tp_arena_room(a, s.len + 1, &copy, err);

    if (rc != TP_OK)
        return rc;
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    tp_arena_take(a, s.len + 1);
    *out = (struct tp_str){copy, s.len};
    return TP_OK;
}

void tp_intern_fini(struct tp_intern *t)
{
    if (t == NULL)
        return;
    free(t->texts);
    free(t->slots);
    tp_arena_fini(&t->arena);
    t->texts = NULL;
    t->slots = NULL;
    t->cap = 0;
    t->n_slots = 0;
    t->n = 0;
    t->used_bytes = 0;
}

void tp_intern_reset(struct tp_intern *t)
{
    if (t->n > 0)
        memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
    t->n = 0;
    tp_arena_reset(&t->arena, KEEP_BYTES);
    t->used_bytes = 0;
}

/* The slot of s, or the free one where it may go, or NULL: none within reach. */
static struct tp_intern_slot *find(const struct tp_intern *t, struct tp_str s,
                                   uint32_t hash)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct tp_intern_slot *slot = &t->slots[(hash + i) & (t->n_slots - 1)];

        if (slot->iid == 0)
            return slot;
        if (slot->hash == hash && tp_intern_is(t, slot->iid, s))
            return slot;
    }
    return NULL;
}

/* Double the tables. Texts that find no slot within reach are not found any more. */
static int grow(struct tp_intern *t, struct tp_err *err)
{
    size_t cap = t->cap == 0 ? FIRST_CAP : t->cap * 2;
    size_t n_slots = cap * SLOTS_PER_TEXT;
    struct tp_intern_slot *old = t->slots;
    size_t n_old = t->n_slots;
    struct tp_intern_slot *slots = calloc(n_slots, sizeof(*slots));
    struct tp_str *texts = realloc(t->texts, cap * sizeof(*texts));

    if (texts != NULL)
        t->texts = texts; /* larger than known does no harm */
    if (slots == NULL || texts == NULL) {
        free(slots);
        return tp_fail(err, TP_ENOMEM, "no memory for %zu interned strings", cap);
    }
    t->cap = cap;
    t->slots = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < n_old; i++) {
        struct tp_intern_slot *slot = NULL;

        if (old[i].iid != 0)
            slot = find(t, t->texts[old[i].iid - 1], old[i].hash);
        if (slot != NULL && slot->iid == 0)
            *slot = old[i];
    }
    free(old);
    return TP_OK;
}

uint32_t tp_intern_find(const struct tp_intern *t, struct tp_str s)
{
    const struct tp_intern_slot *slot;

    if (t->n_slots == 0)
        return 0;
    slot = find(t, s, hash_of(s));
    return slot == NULL ? 0 : slot->iid;
}

int tp_intern_add(struct tp_intern *t, struct tp_str s, uint32_t *iid,
                  struct tp_err *err)
{
    uint32_t hash = hash_of(s);
    struct tp_intern_slot *slot = NULL;
    struct tp_str copy;
    int rc;

    if (t->n_slots > 0) {
        slot = find(t, s, hash);
        if (slot != NULL && slot->iid != 0) {
            *iid = slot->iid;
            return TP_OK;
        }
    }
    if (t->n >= t->n_max || s.len > INT32_MAX || s.len > t->bytes_max - t->used_bytes) {
        *iid = 0;
        return TP_OK;
    }
    if (t->n == t->cap) {
        rc = grow(t, err);
        if (rc != TP_OK)
            return rc;
        slot = find(t, s, hash);
    }
    if (slot == NULL) {
        *iid = 0;
        return TP_OK;
    }
    rc = tp_intern_copy(&t->arena, s, &copy, err);
    if (rc != TP_OK)
        return rc;
    t->used_bytes += s.len;
    t->texts[t->n++] = copy;
    *slot = (struct tp_intern_slot){hash, t->n};
    *iid = t->n;
    return TP_OK;
}
