/*
 * typemap.c - one allocation: all names in a row, where each id's name is, and an
 * open-addressing table from name to id.
 *
 * The table has 512 slots for at most 234 names, so a probe rarely looks at a second
 * one, and it is one byte a slot: it fits in eight cache lines.
 */
#include "core/typemap.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/registry.h"

#define SLOTS 512
#define EMPTY 255 /* no type has this id: static ones end at 28, custom ones at 254 */
#define NUMBER_BYTES 4

struct tp_typemap {
    _Atomic unsigned n_refs;
    uint8_t slots[SLOTS];
    struct {
        uint32_t offset; /* of the name in bytes[] */
        uint32_t len;
    } names[TP_ACTIVITY_IDS];
    char bytes[]; /* NUL-terminated names */
};

/* Length and both ends of a name decide; the middle is compared, not hashed. */
static unsigned slot_of(const char *p, size_t n)
{
    uint64_t head = 0;
    uint64_t tail = 0;
    uint64_t h;

    if (n >= 8) {
        memcpy(&head, p, 8);
        memcpy(&tail, p + n - 8, 8);
    } else {
        memcpy(&head, p, n);
    }
    h = (head ^ (tail << 7 | tail >> 57) ^ n) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(h >> 55); /* the 9 highest bits */
}

int tp_typemap_find(const struct tp_typemap *m, const char *p, size_t n)
{
    if (n == 0)
        return -1;
    for (unsigned slot = slot_of(p, n); m->slots[slot] != EMPTY;
         slot = (slot + 1) % SLOTS) {
        unsigned id = m->slots[slot];

        if (m->names[id].len == n && memcmp(m->bytes + m->names[id].offset, p, n) == 0)
            return (int)id;
    }
    return -1;
}

struct tp_str tp_typemap_name(const struct tp_typemap *m, unsigned id)
{
    if (id >= TP_ACTIVITY_IDS)
        return (struct tp_str){"", 0};
    return (struct tp_str){m->bytes + m->names[id].offset, m->names[id].len};
}

/* Append the name of an id; returns where the next one goes. */
static uint32_t put_name(struct tp_typemap *m, unsigned id, struct tp_str name,
                         uint32_t offset)
{
    memcpy(m->bytes + offset, name.ptr, name.len);
    m->bytes[offset + name.len] = '\0';
    m->names[id].offset = offset;
    m->names[id].len = (uint32_t)name.len;
    return offset + (uint32_t)name.len + 1;
}

static void index_name(struct tp_typemap *m, unsigned id)
{
    unsigned slot = slot_of(m->bytes + m->names[id].offset, m->names[id].len);

    while (m->slots[slot] != EMPTY)
        slot = (slot + 1) % SLOTS;
    m->slots[slot] = (uint8_t)id;
}

int tp_typemap_new(const struct tp_registry *r, struct tp_typemap **out,
                   struct tp_err *err)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    struct tp_str names[TP_ACTIVITY_IDS] = {{NULL, 0}};
    size_t n_types = r == NULL ? 0 : tp_registry_entries(r, types);
    size_t n_bytes = 0;
    struct tp_typemap *m;
    uint32_t offset = 0;

    for (unsigned id = 0; id < TP_ACTIVITY_STATIC_COUNT; id++)
        names[id] = tp_str_of(tp_activity_cat(id));
    for (size_t i = 0; i < n_types; i++)
        names[types[i]->id] = tp_type_full_name(types[i]);
    for (unsigned id = 0; id < TP_ACTIVITY_IDS; id++)
        n_bytes += names[id].ptr == NULL ? NUMBER_BYTES : names[id].len + 1;

    m = calloc(1, sizeof(*m) + n_bytes);
    if (m == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a type map of %zu bytes",
                       n_bytes);
    m->n_refs = 1;
    memset(m->slots, EMPTY, sizeof(m->slots));
    for (unsigned id = 0; id < TP_ACTIVITY_IDS; id++) {
        char number[NUMBER_BYTES];

        if (names[id].ptr != NULL) {
            offset = put_name(m, id, names[id], offset);
            index_name(m, id);
            continue;
        }
        snprintf(number, sizeof(number), "%u", id & 0xff);
        offset = put_name(m, id, tp_str_of(number), offset);
    }
    *out = m;
    return TP_OK;
}

struct tp_typemap *tp_typemap_ref(struct tp_typemap *m)
{
    /* Relaxed: whoever passes the pointer on has ordered that already. */
    atomic_fetch_add_explicit(&m->n_refs, 1, memory_order_relaxed);
    return m;
}

void tp_typemap_unref(struct tp_typemap *m)
{
    /* Release our reads before, acquire everybody's before the free. */
    if (m != NULL &&
        atomic_fetch_sub_explicit(&m->n_refs, 1, memory_order_acq_rel) == 1)
        free(m);
}
