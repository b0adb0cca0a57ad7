/*
 * name_counts.c - two open-addressing tables, of types and of (type, name).
 *
 * Nearly every event of a trace repeats names that the reader has numbered, so a small
 * direct-mapped cache from two numbers to the entry answers without hashing any bytes.
 * The hash of bytes is keyed at random, since names come from strangers.
 */
#include "trace/name_counts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NAMES_MAX 65536
#define TYPES_MAX 4096
#define BYTES_MAX (8u << 20)
#define CACHE_SLOTS 4096
#define NO_CAT UINT32_MAX /* in the cache: the event has no cat */
#define NO_ENTRY UINT32_MAX

/* Places of a table hold the number of the entry + 1, 0 when free. */
struct places {
    uint32_t *at;
    uint32_t n; /* a power of two, or 0 */
};

struct cached {
    uint32_t cat_iid, name_iid; /* 0 = free */
    uint32_t type, name;        /* entries; name may be NO_ENTRY */
};

struct tp_name_counts {
    struct tp_name_counts_opts opts;
    uint64_t key; /* of the hash */
    struct tp_index_type *types;
    uint32_t n_types, cap_types;
    struct places type_places;
    struct tp_index_name *names;
    uint32_t *name_types; /* of each name: its type */
    uint32_t n_names, cap_names;
    struct places name_places;
    size_t bytes;
    bool is_incomplete;
    struct cached cache[CACHE_SLOTS];
};

int tp_name_counts_new(const struct tp_name_counts_opts *opts,
                       struct tp_name_counts **out, struct tp_err *err)
{
    struct tp_name_counts *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for counting names");
    if (opts != NULL)
        c->opts = *opts;
    if (c->opts.names_max == 0)
        c->opts.names_max = NAMES_MAX;
    if (c->opts.types_max == 0)
        c->opts.types_max = TYPES_MAX;
    if (c->opts.bytes_max == 0)
        c->opts.bytes_max = BYTES_MAX;
    /* A failure leaves the key weak, not wrong. */
    if (getrandom(&c->key, sizeof(c->key), GRND_NONBLOCK) != sizeof(c->key))
        c->key = (uint64_t)(uintptr_t)c;
    *out = c;
    return TP_OK;
}

void tp_name_counts_free(struct tp_name_counts *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->n_types; i++)
        free((char *)c->types[i].cat.ptr);
    for (uint32_t i = 0; i < c->n_names; i++)
        free((char *)c->names[i].name.ptr);
    free(c->types);
    free(c->names);
    free(c->name_types);
    free(c->type_places.at);
    free(c->name_places.at);
    free(c);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(uint64_t key, const char *p, size_t n)
{
    uint64_t h = key ^ n * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t word;

    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, UINT64_C(0xd6e8feb86659fd93)) ^ key;
    }
    word = 0;
    if (n > 0)
        memcpy(&word, p, n);
    return mix(h ^ word, UINT64_C(0xa0761d6478bd642f)) ^ h;
}

/* Copy bytes; an empty string gets a byte, so that NULL means no memory. */
static char *copy_bytes(const char *p, size_t n)
{
    char *copy = malloc(n + 1);

    if (copy != NULL && n > 0)
        memcpy(copy, p, n);
    return copy;
}

static int grow_places(struct places *t, uint32_t n, struct tp_err *err)
{
    uint32_t *at = calloc(n, sizeof(*at));

    if (at == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for counting names");
    free(t->at);
    t->at = at;
    t->n = n;
    return TP_OK;
}

static void put_place(struct places *t, uint64_t hash, uint32_t entry)
{
    uint32_t i = (uint32_t)hash & (t->n - 1);

    while (t->at[i] != 0)
        i = (i + 1) & (t->n - 1);
    t->at[i] = entry + 1;
}

static uint64_t hash_type(const struct tp_name_counts *c, struct tp_str cat)
{
    return hash_bytes(c->key, cat.ptr, cat.len);
}

static uint64_t hash_name(const struct tp_name_counts *c, uint32_t type,
                          struct tp_str name)
{
    return hash_bytes(c->key + type * UINT64_C(0x9e3779b97f4a7c15), name.ptr, name.len);
}

static uint32_t find_type(const struct tp_name_counts *c, uint64_t hash,
                          struct tp_str cat)
{
    const struct places *t = &c->type_places;

    for (uint32_t i = (uint32_t)hash; t->n != 0; i++) {
        uint32_t place = t->at[i & (t->n - 1)];

        if (place == 0)
            break;
        if (tp_str_equal(c->types[place - 1].cat, cat))
            return place - 1;
    }
    return NO_ENTRY;
}

static uint32_t find_name(const struct tp_name_counts *c, uint64_t hash, uint32_t type,
                          struct tp_str name)
{
    const struct places *t = &c->name_places;

    for (uint32_t i = (uint32_t)hash; t->n != 0; i++) {
        uint32_t place = t->at[i & (t->n - 1)];

        if (place == 0)
            break;
        if (c->name_types[place - 1] == type &&
            tp_str_equal(c->names[place - 1].name, name))
            return place - 1;
    }
    return NO_ENTRY;
}

/* Make room for one more type, its places included. */
static int reserve_type(struct tp_name_counts *c, struct tp_err *err)
{
    uint32_t cap = c->cap_types == 0 ? 32 : c->cap_types * 2;
    struct tp_index_type *types;
    int rc;

    if (c->n_types < c->cap_types)
        return TP_OK;
    types = realloc(c->types, cap * sizeof(*types));
    if (types == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for counting %u types", cap);
    c->types = types;
    rc = grow_places(&c->type_places, cap * 2, err);
    if (rc != TP_OK)
        return rc;
    c->cap_types = cap;
    for (uint32_t i = 0; i < c->n_types; i++)
        put_place(&c->type_places, hash_type(c, types[i].cat), i);
    return TP_OK;
}

static int add_type(struct tp_name_counts *c, uint64_t hash, struct tp_str cat,
                    uint32_t *entry, struct tp_err *err)
{
    char *copy;
    int rc;

    if (c->n_types == c->opts.types_max || cat.len > c->opts.bytes_max - c->bytes) {
        c->is_incomplete = true;
        *entry = NO_ENTRY;
        return TP_OK;
    }
    rc = reserve_type(c, err);
    if (rc != TP_OK)
        return rc;
    copy = copy_bytes(cat.ptr, cat.len);
    if (copy == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a type of %zu bytes", cat.len);
    c->types[c->n_types] = (struct tp_index_type){.cat = {copy, cat.len},
                                                  .first_ns = INT64_MAX,
                                                  .last_ns = INT64_MIN};
    put_place(&c->type_places, hash, c->n_types);
    c->bytes += cat.len;
    *entry = c->n_types++;
    return TP_OK;
}

static int compare_names(const void *pa, const void *pb)
{
    const struct tp_index_name *a = pa;
    const struct tp_index_name *b = pb;
    size_t n = a->name.len < b->name.len ? a->name.len : b->name.len;
    int order;

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    order = n == 0 ? 0 : memcmp(a->name.ptr, b->name.ptr, n);
    if (order != 0)
        return order;
    if (a->name.len != b->name.len)
        return a->name.len < b->name.len ? -1 : 1;
    n = a->cat.len < b->cat.len ? a->cat.len : b->cat.len;
    order = n == 0 ? 0 : memcmp(a->cat.ptr, b->cat.ptr, n);
    return order != 0 ? order : (a->cat.len > b->cat.len) - (a->cat.len < b->cat.len);
}

/* Bring places and name_types in line with names after these were moved. */
static void reindex_names(struct tp_name_counts *c)
{
    memset(c->name_places.at, 0, c->name_places.n * sizeof(*c->name_places.at));
    memset(c->cache, 0, sizeof(c->cache));
    for (uint32_t i = 0; i < c->n_names; i++) {
        struct tp_index_name *name = &c->names[i];
        uint32_t type = find_type(c, hash_type(c, name->cat), name->cat);

        c->name_types[i] = type;
        put_place(&c->name_places, hash_name(c, type, name->name), i);
    }
}

static void sort_names(struct tp_name_counts *c)
{
    if (c->n_names == 0)
        return;
    qsort(c->names, c->n_names, sizeof(*c->names), compare_names);
    reindex_names(c);
}

/* Forget the half of the names that took the least time. */
static void forget_half(struct tp_name_counts *c)
{
    uint32_t keep = c->n_names / 2;

    sort_names(c);
    for (uint32_t i = keep; i < c->n_names; i++) {
        c->bytes -= c->names[i].name.len;
        free((char *)c->names[i].name.ptr);
    }
    c->n_names = keep;
    c->is_incomplete = true;
    reindex_names(c);
}

static int reserve_name(struct tp_name_counts *c, struct tp_err *err)
{
    uint32_t cap = c->cap_names == 0 ? 256 : c->cap_names * 2;
    struct tp_index_name *names;
    uint32_t *types;
    int rc;

    if (c->n_names < c->cap_names)
        return TP_OK;
    names = realloc(c->names, cap * sizeof(*names));
    if (names == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for counting %u names", cap);
    c->names = names;
    types = realloc(c->name_types, cap * sizeof(*types));
    if (types == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for counting %u names", cap);
    c->name_types = types;
    rc = grow_places(&c->name_places, cap * 2, err);
    if (rc != TP_OK)
        return rc;
    c->cap_names = cap;
    reindex_names(c);
    return TP_OK;
}

static int add_name(struct tp_name_counts *c, uint64_t hash, uint32_t type,
                    struct tp_str name, uint32_t *entry, struct tp_err *err)
{
    char *copy;
    int rc;

    while (c->n_names > 0 &&
           (c->n_names >= c->opts.names_max || name.len > c->opts.bytes_max - c->bytes))
        forget_half(c);
    *entry = NO_ENTRY;
    if (name.len > c->opts.bytes_max - c->bytes) {
        c->is_incomplete = true;
        return TP_OK;
    }
    rc = reserve_name(c, err);
    if (rc != TP_OK)
        return rc;
    copy = copy_bytes(name.ptr, name.len);
    if (copy == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a name of %zu bytes", name.len);
    c->names[c->n_names] = (struct tp_index_name){.cat = c->types[type].cat,
                                                  .name = {copy, name.len},
                                                  .min_ns = UINT64_MAX};
    c->name_types[c->n_names] = type;
    put_place(&c->name_places, hash, c->n_names);
    c->bytes += name.len;
    *entry = c->n_names++;
    return TP_OK;
}

static bool counts_name(const struct tp_event *ev)
{
    return ev->kind != TP_EVENT_FLOW_START && ev->kind != TP_EVENT_FLOW_STEP &&
           ev->kind != TP_EVENT_FLOW_END;
}

/* The entries of an event, made when absent; NO_ENTRY when it is not counted. */
static int look_up(struct tp_name_counts *c, const struct tp_event *ev, uint32_t *type,
                   uint32_t *name, struct tp_err *err)
{
    struct tp_str cat = {ev->cat.ptr, ev->cat.len};
    struct tp_str text = {ev->name.ptr, ev->name.len};
    uint64_t hash = hash_type(c, cat);
    int rc = TP_OK;

    *name = NO_ENTRY;
    *type = find_type(c, hash, cat);
    if (*type == NO_ENTRY)
        rc = add_type(c, hash, cat, type, err);
    if (rc != TP_OK || *type == NO_ENTRY || !counts_name(ev))
        return rc;
    hash = hash_name(c, *type, text);
    *name = find_name(c, hash, *type, text);
    return *name == NO_ENTRY ? add_name(c, hash, *type, text, name, err) : TP_OK;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static void count_one(struct tp_name_counts *c, const struct tp_event *ev,
                      uint32_t type, uint32_t name)
{
    uint64_t dur = (uint64_t)ev->dur_ns;
    int64_t end = ev->dur_ns > INT64_MAX - ev->ts_ns ? INT64_MAX
                                                     : ev->ts_ns + ev->dur_ns;

    if (type != NO_ENTRY) {
        struct tp_index_type *t = &c->types[type];

        t->count++;
        t->total_ns = add_up(t->total_ns, dur);
        t->first_ns = ev->ts_ns < t->first_ns ? ev->ts_ns : t->first_ns;
        t->last_ns = end > t->last_ns ? end : t->last_ns;
    }
    if (name != NO_ENTRY) {
        struct tp_index_name *n = &c->names[name];

        n->count++;
        n->total_ns = add_up(n->total_ns, dur);
        n->min_ns = dur < n->min_ns ? dur : n->min_ns;
        n->max_ns = dur > n->max_ns ? dur : n->max_ns;
    }
}

int tp_name_counts_add(struct tp_name_counts *c, const struct tp_event *ev,
                       struct tp_err *err)
{
    uint32_t cat_iid = ev->cat.ptr == NULL ? NO_CAT : ev->cat.iid;
    uint32_t name_iid = ev->name.iid;
    uint32_t slot = (cat_iid * 0x9e3779b1u ^ name_iid * 0x85ebca6bu) >> 20;
    struct cached *hit = &c->cache[slot % CACHE_SLOTS];
    bool can_cache = cat_iid != 0 && name_iid != 0 && counts_name(ev);
    uint32_t type;
    uint32_t name;
    int rc;

    if (can_cache && hit->cat_iid == cat_iid && hit->name_iid == name_iid) {
        count_one(c, ev, hit->type, hit->name);
        return TP_OK;
    }
    rc = look_up(c, ev, &type, &name, err);
    if (rc == TP_OK || type != NO_ENTRY)
        count_one(c, ev, type, name);
    if (rc == TP_OK && can_cache)
        *hit = (struct cached){cat_iid, name_iid, type, name};
    return rc;
}

const struct tp_index_type *tp_name_counts_types(const struct tp_name_counts *c,
                                                 size_t *n)
{
    *n = c->n_types;
    return c->types;
}

const struct tp_index_name *tp_name_counts_top(struct tp_name_counts *c, size_t *n)
{
    sort_names(c);
    *n = c->n_names;
    return c->names;
}

bool tp_name_counts_is_complete(const struct tp_name_counts *c)
{
    return !c->is_incomplete;
}
