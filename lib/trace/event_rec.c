/*
 * event_rec.c - the flat form of an event.
 *
 *     head | id text | name | cat | extra | args... | 0 to 7 bytes of padding
 *     arg: kind 1, key iid 4, [key length 4, key], value 8 | length 4, bytes
 *
 * A name with a number is only that number; length NO_NAME says that there is none.
 * Everything behind the head is unaligned and moved by memcpy, which costs nothing on
 * the machines that matter. Records of fixed C structs with pointers would be decoded
 * faster and are three times as long: sorting is bound by memory, so they lost.
 */
#include "trace/event_rec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/intern.h"

#define NO_NAME UINT32_MAX
#define RECORD_BYTES_MAX (UINT32_C(1) << 31)

#define FLAG_BINDS_ENCLOSING 1u
#define FLAG_UNFINISHED 2u
#define FLAG_ID_NUMBER 4u
#define FLAG_ID_TEXT 8u
#define FLAG_WIRE 16u /* what is in the place of `extra` are arguments */

void tp_rec_names_fini(struct tp_rec_names *names)
{
    for (int use = 0; use < TP_REC_USES; use++) {
        free(names->known[use]);
        names->known[use] = NULL;
        names->cap[use] = 0;
    }
    tp_arena_fini(&names->arena);
    names->bytes = 0;
}

static int grow_known(struct tp_rec_names *names, enum tp_rec_use use, uint32_t iid,
                      struct tp_err *err)
{
    uint32_t cap = names->cap[use] == 0 ? 256 : names->cap[use];
    struct tp_str *known;

    while (cap <= iid)
        cap = cap > names->names_max / 2 ? names->names_max : cap * 2;
    known = realloc(names->known[use], cap * sizeof(*known));
    if (known == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u names", cap);
    memset(known + names->cap[use], 0, (cap - names->cap[use]) * sizeof(*known));
    names->known[use] = known;
    names->cap[use] = cap;
    return TP_OK;
}

/* Make sure that a number is known; *iid is 0 when the string must go inline. */
static int learn_name(struct tp_rec_names *names, enum tp_rec_use use,
                      const struct tp_name *name, uint32_t *iid, struct tp_err *err)
{
    struct tp_str copy;
    int rc;

    if (name->iid < names->cap[use] && names->known[use][name->iid].ptr != NULL) {
        *iid = name->iid;
        return TP_OK;
    }
    *iid = 0;
    if (name->iid == 0 || name->iid >= names->names_max ||
        name->len > names->bytes_max - names->bytes)
        return TP_OK;
    if (name->iid >= names->cap[use]) {
        rc = grow_known(names, use, name->iid, err);
        if (rc != TP_OK)
            return rc;
    }
    rc = tp_intern_copy(&names->arena, (struct tp_str){name->ptr, name->len}, &copy,
                        err);
    if (rc != TP_OK)
        return rc;
    names->bytes += copy.len;
    names->known[use][name->iid] = copy;
    *iid = name->iid;
    return TP_OK;
}

static inline void put_u32(char **at, uint32_t v)
{
    memcpy(*at, &v, sizeof(v));
    *at += sizeof(v);
}

static inline void put_bytes(char **at, const char *p, size_t n)
{
    if (n > 0)
        memcpy(*at, p, n);
    *at += n;
}

static inline uint32_t take_u32(const char **at)
{
    uint32_t v;

    memcpy(&v, *at, sizeof(v));
    *at += sizeof(v);
    return v;
}

static inline const char *take_bytes(const char **at, size_t n)
{
    const char *p = *at;

    *at += n;
    return p;
}

static inline bool arg_is_text(const struct tp_arg *a)
{
    return a->kind == TP_ARG_STRING || a->kind == TP_ARG_JSON;
}

/* An upper bound of the record's size: every string inline. */
static size_t size_bound(const struct tp_event *ev)
{
    size_t n = sizeof(struct tp_rec_head) + 8 + ev->name.len + ev->cat.len +
               ev->extra.len + (ev->id.kind == TP_ID_TEXT ? ev->id.text.len : 0);

    for (uint32_t i = 0; i < ev->n_args; i++) {
        const struct tp_arg *a = &ev->args[i];

        n += 17 + a->key.len + (arg_is_text(a) ? a->s.len : 0);
    }
    return n;
}

static int put_arg(struct tp_rec_names *names, const struct tp_arg *a, char **at,
                   struct tp_err *err)
{
    uint32_t iid = 0;
    int rc = learn_name(names, TP_REC_KEY, &a->key, &iid, err);

    if (rc != TP_OK)
        return rc;
    *(*at)++ = (char)a->kind;
    put_u32(at, iid);
    if (iid == 0) {
        put_u32(at, a->key.len);
        put_bytes(at, a->key.ptr, a->key.len);
    }
    if (arg_is_text(a)) {
        put_u32(at, (uint32_t)a->s.len);
        put_bytes(at, a->s.ptr, a->s.len);
    } else {
        uint64_t bits = a->kind == TP_ARG_BOOL ? a->b : a->u;

        memcpy(*at, &bits, sizeof(bits));
        *at += sizeof(bits);
    }
    return TP_OK;
}

/* The head, but for its size, and the names' numbers. */
static int make_head(struct tp_rec_names *names, const struct tp_event *ev,
                     struct tp_rec_head *h, struct tp_err *err)
{
    int rc;

    *h = (struct tp_rec_head){
        .kind = (uint8_t)ev->kind,
        .phase = ev->phase,
        .scope = ev->scope,
        .flags = (uint8_t)((ev->binds_enclosing ? FLAG_BINDS_ENCLOSING : 0) |
                           (ev->is_unfinished ? FLAG_UNFINISHED : 0)),
        .ts_ns = ev->ts_ns,
        .dur_ns = ev->dur_ns,
        .track = ev->track->index,
        .n_args = ev->n_args,
        .name_len = ev->name.ptr == NULL ? NO_NAME : ev->name.len,
        .cat_len = ev->cat.ptr == NULL ? NO_NAME : ev->cat.len,
        .extra_len = (uint32_t)ev->extra.len,
    };
    if (ev->id.kind == TP_ID_NUMBER) {
        h->flags |= FLAG_ID_NUMBER;
        h->id = ev->id.number;
    } else if (ev->id.kind == TP_ID_TEXT) {
        h->flags |= FLAG_ID_TEXT;
        h->id = (int64_t)ev->id.text.len;
    }
    rc = ev->name.ptr == NULL
             ? TP_OK
             : learn_name(names, TP_REC_NAME, &ev->name, &h->name_iid, err);
    if (rc == TP_OK && ev->cat.ptr != NULL)
        rc = learn_name(names, TP_REC_CAT, &ev->cat, &h->cat_iid, err);
    return rc;
}

int tp_rec_encode(struct tp_rec_names *names, const struct tp_event *ev,
                  struct tp_buf *out, struct tp_err *err)
{
    size_t bound = size_bound(ev);
    struct tp_rec_head h;
    char *start;
    char *at;
    int rc;

    assert(out->len % 8 == 0);
    if (bound > RECORD_BYTES_MAX)
        return tp_fail(err, TP_EQUOTA, "an event of %zu bytes is too large", bound);
    rc = tp_buf_reserve(out, bound, err);
    if (rc == TP_OK)
        rc = make_head(names, ev, &h, err);
    if (rc != TP_OK)
        return rc;
    start = out->data + out->len;
    at = start + sizeof(h);
    if (h.flags & FLAG_ID_TEXT)
        put_bytes(&at, ev->id.text.ptr, ev->id.text.len);
    if (h.name_iid == 0)
        put_bytes(&at, ev->name.ptr, ev->name.ptr == NULL ? 0 : ev->name.len);
    if (h.cat_iid == 0)
        put_bytes(&at, ev->cat.ptr, ev->cat.ptr == NULL ? 0 : ev->cat.len);
    put_bytes(&at, ev->extra.ptr, ev->extra.len);
    for (uint32_t i = 0; i < ev->n_args; i++) {
        rc = put_arg(names, &ev->args[i], &at, err);
        if (rc != TP_OK)
            return rc;
    }
    while ((at - start) % 8 != 0)
        *at++ = 0;
    h.size = (uint32_t)(at - start);
    memcpy(start, &h, sizeof(h));
    out->len += h.size;
    return TP_OK;
}

int tp_rec_encode_wire(struct tp_rec_names *names, const struct tp_event *ev,
                       struct tp_str wire, struct tp_buf *out, char **copy,
                       struct tp_err *err)
{
    struct tp_event in = *ev;
    size_t start = out->len;
    struct tp_rec_head *h;
    int rc;

    assert(ev->n_args == 0 && ev->extra.len == 0);
    in.extra = wire;
    rc = tp_rec_encode(names, &in, out, err);
    if (rc != TP_OK)
        return rc;
    h = (void *)(out->data + start);
    h->flags |= FLAG_WIRE;
    *copy = (char *)(h + 1) + (h->name_iid == 0 ? in.name.len : 0) +
            (h->cat_iid == 0 ? in.cat.len : 0);
    return TP_OK;
}

void tp_rec_args_fini(struct tp_rec_args *a)
{
    free(a->args);
    *a = (struct tp_rec_args){0};
}

static int reserve_args(struct tp_rec_args *a, uint32_t n, struct tp_err *err)
{
    struct tp_arg *args;

    if (n <= a->cap)
        return TP_OK;
    args = realloc(a->args, ((size_t)n + 16) * sizeof(*args));
    if (args == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u arguments", n);
    a->args = args;
    a->cap = n + 16;
    return TP_OK;
}

static void take_arg(const struct tp_rec_names *names, const char **at,
                     struct tp_arg *a)
{
    uint8_t kind = (uint8_t) * (*at)++;

    a->kind = (enum tp_arg_kind)kind;
    a->key.iid = take_u32(at);
    if (a->key.iid != 0) {
        const struct tp_str *s = &names->known[TP_REC_KEY][a->key.iid];

        a->key.ptr = s->ptr;
        a->key.len = (uint32_t)s->len;
    } else {
        a->key.len = take_u32(at);
        a->key.ptr = take_bytes(at, a->key.len);
    }
    if (arg_is_text(a)) {
        a->s.len = take_u32(at);
        a->s.ptr = take_bytes(at, a->s.len);
        return;
    }
    memcpy(&a->u, *at, sizeof(a->u));
    *at += sizeof(a->u);
    if (kind == TP_ARG_BOOL)
        a->b = a->u != 0;
}

static struct tp_name take_name(const struct tp_rec_names *names, enum tp_rec_use use,
                                uint32_t iid, uint32_t len, const char **at)
{
    struct tp_name name = {NULL, 0, 0};

    if (len == NO_NAME)
        return name;
    name.iid = iid;
    name.len = len;
    name.ptr = iid != 0 ? names->known[use][iid].ptr : take_bytes(at, len);
    return name;
}

int tp_rec_decode(const struct tp_rec_names *names, const void *rec,
                  struct tp_rec_args *args, struct tp_event *ev, struct tp_err *err)
{
    const struct tp_rec_head *h = rec;
    const char *at = (const char *)rec + sizeof(*h);
    int rc = reserve_args(args, h->n_args, err);

    if (rc != TP_OK)
        return rc;
    *ev = (struct tp_event){
        .kind = (enum tp_event_kind)h->kind,
        .phase = h->phase,
        .scope = h->scope,
        .binds_enclosing = (h->flags & FLAG_BINDS_ENCLOSING) != 0,
        .is_unfinished = (h->flags & FLAG_UNFINISHED) != 0,
        .ts_ns = h->ts_ns,
        .dur_ns = h->dur_ns,
        .args = args->args,
        .n_args = h->n_args,
    };
    if (h->flags & FLAG_ID_NUMBER) {
        ev->id.kind = TP_ID_NUMBER;
        ev->id.number = h->id;
    } else if (h->flags & FLAG_ID_TEXT) {
        ev->id.kind = TP_ID_TEXT;
        ev->id.text = (struct tp_str){take_bytes(&at, (size_t)h->id), (size_t)h->id};
    }
    ev->name = take_name(names, TP_REC_NAME, h->name_iid, h->name_len, &at);
    ev->cat = take_name(names, TP_REC_CAT, h->cat_iid, h->cat_len, &at);
    ev->extra = (struct tp_str){take_bytes(&at, h->extra_len), h->extra_len};
    args->wire = (struct tp_str){NULL, 0};
    if (h->flags & FLAG_WIRE) {
        args->wire = ev->extra;
        ev->extra = (struct tp_str){NULL, 0};
    }
    for (uint32_t i = 0; i < h->n_args; i++)
        take_arg(names, &at, &args->args[i]);
    return TP_OK;
}
