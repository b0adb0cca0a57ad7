/*
 * strmap.c - a dense array of entries in order of insertion, and an open-addressing
 * index of their numbers:
 *
 *   index    [ 0 | 2 | 0 | 1 | T | 0 | 4 | 0 ]      number + 1, 0 = empty, T = removed
 *   entries  [ a , b , (removed) , d ]
 *
 * So iteration is a walk over an array, in an order that tests and listings can rely
 * on, and removal while iterating is safe. Removed places are squeezed out when the
 * index is rebuilt. Keys come from clients, so the hash is SipHash-1-3 (Aumasson and
 * Bernstein 2012, in the variant that Rust and Python use) with a random key: nobody
 * can choose names that collide. A chained table was the alternative: one more
 * allocation an entry and no order.
 */
#include "base/strmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"

#define FIRST_INDEX 16
#define MAX_ENTRIES ((size_t)1 << 31)
#define TOMBSTONE UINT32_MAX

struct tp_strmap_entry {
    char *key; /* NULL = removed */
    size_t key_bytes;
    uint64_t hash;
    uint64_t value;
};

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static uint64_t hash_bytes(const uint64_t key[2], const char *p, size_t n)
{
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
                     key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261),
                     key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t last = (uint64_t)n << 56;
    size_t i;

    for (i = 0; i + 8 <= n; i += 8) {
        uint64_t word;

        memcpy(&word, p + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t shift = 0; i < n; i++, shift += 8)
        last |= (uint64_t)(unsigned char)p[i] << shift;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Choose the key of a map that is about to get its first entry. */
static void choose_key(struct tp_strmap *m)
{
    /* Without entropy (a very early boot) an address is the next best secret. */
    if (getrandom(m->key, sizeof(m->key), GRND_NONBLOCK) == (ssize_t)sizeof(m->key))
        return;
    m->key[0] = (uint64_t)(uintptr_t)m;
    m->key[1] = (uint64_t)(uintptr_t)m->entries ^ UINT64_C(0x9e3779b97f4a7c15);
}

void tp_strmap_fini(struct tp_strmap *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_entries; i++)
        free(m->entries[i].key);
    free(m->entries);
    free(m->index);
    memset(m, 0, sizeof(*m));
}

/* The index slot of a key, or SIZE_MAX. */
static size_t find_slot(const struct tp_strmap *m, const char *key, size_t n,
                        uint64_t hash)
{
    size_t mask = m->n_index - 1;

    if (m->n_index == 0)
        return SIZE_MAX;
    for (size_t slot = hash & mask; m->index[slot] != 0; slot = (slot + 1) & mask) {
        const struct tp_strmap_entry *e;

        if (m->index[slot] == TOMBSTONE)
            continue;
        e = &m->entries[m->index[slot] - 1];
        if (e->hash == hash && e->key_bytes == n &&
            (n == 0 || memcmp(e->key, key, n) == 0))
            return slot;
    }
    return SIZE_MAX;
}

static struct tp_strmap_entry *find(const struct tp_strmap *m, const char *key,
                                    size_t n)
{
    size_t slot = SIZE_MAX;

    if (m->n_live != 0)
        slot = find_slot(m, key, n, hash_bytes(m->key, key, n));
    return slot == SIZE_MAX ? NULL : &m->entries[m->index[slot] - 1];
}

static void index_entry(uint32_t *index, size_t n_index, uint64_t hash, size_t number)
{
    size_t mask = n_index - 1;
    size_t slot = hash & mask;

    while (index[slot] != 0)
        slot = (slot + 1) & mask;
    index[slot] = (uint32_t)number + 1;
}

/* Rebuild both tables with room for at least so many, squeezing removed entries out. */
static int rebuild(struct tp_strmap *m, size_t room, struct tp_err *err)
{
    size_t n_index = FIRST_INDEX;
    struct tp_strmap_entry *entries = NULL;
    uint32_t *index = NULL;
    size_t n = 0;

    while (n_index < MAX_ENTRIES && n_index * 3 / 4 < room)
        n_index *= 2;
    /* A place for each entry that the index may hold at a load of 3/4. */
    entries = calloc(n_index * 3 / 4, sizeof(*entries));
    index = calloc(n_index, sizeof(*index));
    if (entries == NULL || index == NULL || m->n_live >= MAX_ENTRIES) {
        free(entries);
        free(index);
        return tp_fail(err, TP_ENOMEM, "no memory for a map of %zu keys", room);
    }
    if (m->n_index == 0)
        choose_key(m);
    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].key == NULL)
            continue;
        entries[n] = m->entries[i];
        index_entry(index, n_index, entries[n].hash, n);
        n++;
    }
    free(m->entries);
    free(m->index);
    m->entries = entries;
    m->index = index;
    m->n_index = n_index;
    m->n_entries = n;
    return TP_OK;
}

int tp_strmap_reserve(struct tp_strmap *m, size_t n, struct tp_err *err)
{
    size_t room = n > m->n_live ? n : m->n_live;

    if (m->n_index * 3 / 4 - m->n_entries >= room - m->n_live)
        return TP_OK;
    return rebuild(m, room, err);
}

int tp_strmap_put_u64(struct tp_strmap *m, const char *key, size_t n, uint64_t value,
                      struct tp_err *err)
{
    struct tp_strmap_entry *e = find(m, key, n);
    char *copy;
    int rc;

    if (e != NULL) {
        e->value = value;
        return TP_OK;
    }
    if (m->n_entries == m->n_index * 3 / 4) {
        rc = rebuild(m, m->n_live + m->n_live / 2 + 1, err);
        if (rc != TP_OK)
            return rc;
    }
    copy = malloc(n + 1);
    if (copy == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a key of %zu bytes", n);
    if (n != 0)
        memcpy(copy, key, n);
    copy[n] = '\0';
    e = &m->entries[m->n_entries];
    *e = (struct tp_strmap_entry){copy, n, hash_bytes(m->key, copy, n), value};
    index_entry(m->index, m->n_index, e->hash, m->n_entries);
    m->n_entries++;
    m->n_live++;
    return TP_OK;
}

int tp_strmap_put(struct tp_strmap *m, const char *key, size_t n, void *value,
                  struct tp_err *err)
{
    assert(value != NULL);
    return tp_strmap_put_u64(m, key, n, (uint64_t)(uintptr_t)value, err);
}

void *tp_strmap_get(const struct tp_strmap *m, const char *key, size_t n)
{
    const struct tp_strmap_entry *e = find(m, key, n);

    return e == NULL ? NULL : (void *)(uintptr_t)e->value;
}

bool tp_strmap_get_u64(const struct tp_strmap *m, const char *key, size_t n,
                       uint64_t *out)
{
    const struct tp_strmap_entry *e = find(m, key, n);

    if (e != NULL && out != NULL)
        *out = e->value;
    return e != NULL;
}

static bool remove_key(struct tp_strmap *m, const char *key, size_t n, uint64_t *old)
{
    size_t slot = SIZE_MAX;
    struct tp_strmap_entry *e;

    if (m->n_live != 0)
        slot = find_slot(m, key, n, hash_bytes(m->key, key, n));
    if (slot == SIZE_MAX)
        return false;
    e = &m->entries[m->index[slot] - 1];
    *old = e->value;
    free(e->key);
    e->key = NULL;
    m->index[slot] = TOMBSTONE;
    m->n_live--;
    return true;
}

void *tp_strmap_remove(struct tp_strmap *m, const char *key, size_t n)
{
    uint64_t old = 0;

    return remove_key(m, key, n, &old) ? (void *)(uintptr_t)old : NULL;
}

bool tp_strmap_remove_u64(struct tp_strmap *m, const char *key, size_t n)
{
    uint64_t old;

    return remove_key(m, key, n, &old);
}

size_t tp_strmap_len(const struct tp_strmap *m)
{
    return m->n_live;
}

bool tp_strmap_next_u64(const struct tp_strmap *m, size_t *cursor, struct tp_str *key,
                        uint64_t *value)
{
    while (*cursor < m->n_entries) {
        const struct tp_strmap_entry *e = &m->entries[(*cursor)++];

        if (e->key == NULL)
            continue;
        if (key != NULL)
            *key = (struct tp_str){e->key, e->key_bytes};
        if (value != NULL)
            *value = e->value;
        return true;
    }
    return false;
}

bool tp_strmap_next(const struct tp_strmap *m, size_t *cursor, struct tp_str *key,
                    void **value)
{
    uint64_t number;

    if (!tp_strmap_next_u64(m, cursor, key, &number))
        return false;
    if (value != NULL)
        *value = (void *)(uintptr_t)number;
    return true;
}
