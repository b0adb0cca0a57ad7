/*
 * chrome_members.c - one pass over an event's text, without a tree.
 *
 * A known member goes into its slot as it was scanned; args become tp_arg at once; what
 * is left is written to `extra`. Each string is scanned once, 16 bytes at a time, and
 * borrowed; only escapes, repairs and values spread over lines cost a copy.
 *
 * A key that was there before replaces its value, as JSON readers do. Looking for it
 * would be quadratic work that hardly ever finds anything, so one 64-bit set of small
 * hashes says when there is nothing to look for.
 */
#include "trace/chrome_members.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_scan.h"

#define ARENA_KEEP_BYTES (256U << 10)
#define FIRST_CAP 16U

void tp_chrome_members_fini(struct tp_chrome_members *m)
{
    if (m == NULL)
        return;
    free(m->args);
    free(m->spans);
    tp_buf_fini(&m->extra);
    tp_arena_fini(&m->arena);
    *m = (struct tp_chrome_members){0};
}

void tp_chrome_members_reject(struct tp_chrome_members *m, enum tp_chrome_reject cause,
                              const char *format, ...)
{
    va_list args;

    if (m->rejection[0] != '\0')
        return;
    m->cause = cause;
    va_start(args, format);
    vsnprintf(m->rejection, sizeof(m->rejection), format, args);
    va_end(args);
}

/* Double an array that holds *cap elements of `size` bytes; NULL when that fails. */
static void *grow(void *array, uint32_t *cap, size_t size, struct tp_err *err)
{
    const size_t n = *cap == 0 ? FIRST_CAP : (size_t)*cap * 2;
    void *bigger = n > UINT32_MAX || n > SIZE_MAX / size ? NULL
                                                         : realloc(array, n * size);

    if (bigger == NULL)
        tp_fail(err, TP_ENOMEM, "no memory for %zu members of an event", n);
    else
        *cap = (uint32_t)n;
    return bigger;
}

/* --- values ----------------------------------------------------------------------- */

int tp_chrome_members_text(struct tp_chrome_members *m, const struct tp_json_string *s,
                           struct tp_str *out, struct tp_err *err)
{
    char *room;
    size_t n;
    int rc;

    if (tp_json_string_is_plain(s)) {
        *out = (struct tp_str){s->ptr, s->len};
        return TP_OK;
    }
    rc = tp_arena_room(&m->arena, TP_JSON_DECODE_BYTES(s->len), &room, err);
    if (rc != TP_OK)
        return rc;
    n = tp_json_string_decode(s, room, &m->repaired);
    tp_arena_take(&m->arena, n);
    *out = (struct tp_str){room, n};
    return TP_OK;
}

/* As tp_chrome_members_text(), without a call for nearly all strings. */
static inline int text_of(struct tp_chrome_members *m, const struct tp_json_string *s,
                          struct tp_str *out, struct tp_err *err)
{
    if (s->traits != 0)
        return tp_chrome_members_text(m, s, out, err);
    *out = (struct tp_str){s->ptr, s->len};
    return TP_OK;
}

/* Valid JSON on one line for the text of a value that was skipped. */
static int copy_json(struct tp_chrome_members *m, struct tp_str text,
                     struct tp_str *out, struct tp_err *err)
{
    char *room;
    size_t n;
    int rc = tp_arena_room(&m->arena, TP_JSON_COPY_BYTES(text.len), &room, err);

    if (rc != TP_OK)
        return rc;
    n = tp_json_copy(text, room, &m->repaired);
    tp_arena_take(&m->arena, n);
    *out = (struct tp_str){room, n};
    return TP_OK;
}

int tp_chrome_members_json(struct tp_chrome_members *m, const struct tp_chrome_value *v,
                           struct tp_str *out, struct tp_err *err)
{
    switch (v->kind) {
    case TP_CHROME_STRING:
        *out = (struct tp_str){v->string.ptr - 1, v->string.len + 2};
        if (tp_json_string_is_sound(&v->string))
            return TP_OK;
        return copy_json(m, *out, out, err);
    case TP_CHROME_NUMBER:
        *out = (struct tp_str){v->number.ptr, v->number.len};
        return TP_OK;
    default:
        if (v->kind == TP_CHROME_WORD && v->json.ptr[0] == '"')
            m->repaired = true;
        *out = v->json;
        return TP_OK;
    }
}

/* An array or object; depth is how many are around it. */
static int scan_nested(struct tp_chrome_members *m, struct tp_json *c, unsigned depth,
                       struct tp_str *out, struct tp_err *err)
{
    const char *start = c->p;
    unsigned oddities = 0;
    int rc = m->depth_max <= depth ? TP_EQUOTA
                                   : tp_json_skip(c, m->depth_max - depth, &oddities);

    if (rc == TP_EQUOTA)
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE,
                                 "more than %u arrays and objects inside each other",
                                 m->depth_max);
    if (rc != TP_OK)
        return rc;
    *out = (struct tp_str){start, (size_t)(c->p - start)};
    return oddities == 0 ? TP_OK : copy_json(m, *out, out, err);
}

/* Whether a number starts here, and not a word such as -inf. */
static inline bool starts_number(const struct tp_json *c)
{
    if (*c->p >= '0' && *c->p <= '9')
        return true;
    if (*c->p != '-')
        return false;
    return c->end - c->p == 1 || (c->p[1] >= '0' && c->p[1] <= '9');
}

/* Any value; depth is how many arrays and objects are around it. */
static inline int scan_value(struct tp_chrome_members *m, struct tp_json *c,
                             unsigned depth, struct tp_chrome_value *out,
                             struct tp_err *err)
{
    if (*c->p == '"') {
        out->kind = TP_CHROME_STRING;
        return tp_json_string_scan(c, &out->string);
    }
    if (starts_number(c)) {
        out->kind = TP_CHROME_NUMBER;
        return tp_json_number_scan_short(c, &out->number);
    }
    if (*c->p == '{' || *c->p == '[') {
        out->kind = TP_CHROME_NESTED;
        return scan_nested(m, c, depth, &out->json, err);
    }
    out->kind = TP_CHROME_WORD;
    return tp_json_literal(c, &out->json);
}

/* --- extra ------------------------------------------------------------------------ */

/* Take the member with this written key out of extra, if it is there. */
static void drop_member(struct tp_chrome_members *m, const char *key, size_t key_bytes)
{
    for (uint32_t i = 0; i < m->n_spans; i++) {
        const struct tp_chrome_span span = m->spans[i];
        const char *at = m->extra.data + span.start;
        /* With the comma behind it, which is not there for the last one. */
        const size_t n = span.end - span.start + (i + 1 < m->n_spans ? 1 : 0);

        if (span.key_bytes != key_bytes || memcmp(at, key, key_bytes) != 0)
            continue;
        memmove(m->extra.data + span.start, at + n, m->extra.len - span.start - n);
        m->extra.len -= n;
        m->n_spans--;
        for (uint32_t k = i; k < m->n_spans; k++) {
            m->spans[k] = m->spans[k + 1];
            m->spans[k].start -= n;
            m->spans[k].end -= n;
        }
        if (i == m->n_spans && i > 0)
            m->extra.len--; /* the comma of the one before */
        return;
    }
}

/* Append `,"key":json`; the room for the key is there. */
static int append_member(struct tp_chrome_members *m, struct tp_str key,
                         struct tp_str json, struct tp_err *err)
{
    struct tp_chrome_span span;
    int rc =
        tp_buf_reserve(&m->extra, TP_JSON_WRITE_BYTES(key.len) + json.len + 2, err);

    if (rc != TP_OK)
        return rc;
    if (m->n_spans == m->spans_cap) {
        void *spans = grow(m->spans, &m->spans_cap, sizeof(*m->spans), err);

        if (spans == NULL)
            return TP_ENOMEM;
        m->spans = spans;
    }
    span.key_bytes = tp_json_string_write(key, m->extra.data + m->extra.len);
    drop_member(m, m->extra.data + m->extra.len, span.key_bytes);
    if (m->n_spans > 0)
        m->extra.data[m->extra.len++] = ',';
    span.start = m->extra.len;
    m->extra.len += tp_json_string_write(key, m->extra.data + m->extra.len);
    m->extra.data[m->extra.len++] = ':';
    memcpy(m->extra.data + m->extra.len, json.ptr, json.len);
    m->extra.len += json.len;
    span.end = m->extra.len;
    m->spans[m->n_spans++] = span;
    return TP_OK;
}

int tp_chrome_members_keep(struct tp_chrome_members *m, struct tp_str key,
                           const struct tp_chrome_value *v, struct tp_err *err)
{
    struct tp_str json;
    int rc;

    if (m->n_spans >= m->args_max) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "more than %u further members",
                                 m->args_max);
        return TP_OK;
    }
    rc = tp_chrome_members_json(m, v, &json, err);
    if (rc != TP_OK)
        return rc;
    return append_member(m, key, json, err);
}

bool tp_chrome_members_has(const struct tp_chrome_members *m, const char *key)
{
    const size_t n = strlen(key);

    for (uint32_t i = 0; i < m->n_spans; i++)
        if (m->spans[i].key_bytes == n + 2 &&
            memcmp(m->extra.data + m->spans[i].start + 1, key, n) == 0)
            return true;
    return false;
}

/* --- args ------------------------------------------------------------------------- */

static int set_number(const struct tp_json_number *n, struct tp_arg *arg)
{
    if (tp_json_number_int64(n, &arg->i)) {
        arg->kind = TP_ARG_INT;
    } else if (tp_json_number_uint64(n, &arg->u)) {
        arg->kind = TP_ARG_UINT;
    } else if (!n->is_integer && tp_json_number_double(n, &arg->d)) {
        arg->kind = TP_ARG_DOUBLE;
    } else {
        arg->kind = TP_ARG_JSON;
        arg->s = (struct tp_str){n->ptr, n->len};
    }
    return TP_OK;
}

static void set_word(struct tp_chrome_members *m, struct tp_str word,
                     struct tp_arg *arg)
{
    if (word.ptr[0] == '"') {
        arg->kind = TP_ARG_STRING;
        arg->s = (struct tp_str){word.ptr + 1, word.len - 2};
        m->repaired = true;
    } else if (word.ptr[0] == 'n') {
        arg->kind = TP_ARG_JSON;
        arg->s = word;
    } else {
        arg->kind = TP_ARG_BOOL;
        arg->b = word.ptr[0] == 't';
    }
}

/* The value of an argument, without its key. */
static int set_arg(struct tp_chrome_members *m, const struct tp_chrome_value *v,
                   struct tp_arg *arg, struct tp_err *err)
{
    switch (v->kind) {
    case TP_CHROME_STRING:
        arg->kind = TP_ARG_STRING;
        return text_of(m, &v->string, &arg->s, err);
    case TP_CHROME_NUMBER:
        return set_number(&v->number, arg);
    case TP_CHROME_NESTED:
        arg->kind = TP_ARG_JSON;
        arg->s = v->json;
        return TP_OK;
    default:
        set_word(m, v->json, arg);
        return TP_OK;
    }
}

/* The argument with this key, when it was there before. */
static struct tp_arg *find_arg(struct tp_chrome_members *m, struct tp_str key)
{
    for (uint32_t i = 0; i < m->n_args; i++)
        if (m->args[i].key.len == key.len &&
            (key.len == 0 || memcmp(m->args[i].key.ptr, key.ptr, key.len) == 0))
            return &m->args[i];
    return NULL;
}

/* A place for the argument; NULL without memory or when there are too many. */
static struct tp_arg *place_arg(struct tp_chrome_members *m, struct tp_str key,
                                struct tp_err *err)
{
    const unsigned char *p = (const unsigned char *)key.ptr;
    const unsigned hash =
        key.len == 0 ? 0 : (unsigned)(key.len * 31 + p[0] * 7U + p[key.len - 1]);
    const uint64_t bit = UINT64_C(1) << (hash % 64);
    struct tp_arg *arg = (m->seen & bit) != 0 ? find_arg(m, key) : NULL;

    if (arg != NULL)
        return arg;
    if (m->n_args >= m->args_max) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "more than %u arguments",
                                 m->args_max);
        return NULL;
    }
    if (m->n_args == m->args_cap) {
        void *args = grow(m->args, &m->args_cap, sizeof(*m->args), err);

        if (args == NULL)
            return NULL;
        m->args = args;
    }
    m->seen |= bit;
    arg = &m->args[m->n_args++];
    arg->key = (struct tp_name){key.ptr, (uint32_t)key.len, 0};
    return arg;
}

/* --- the object ------------------------------------------------------------------- */

/* Pass the colon behind a key, and the whitespace around it. */
static inline int scan_colon(struct tp_json *c)
{
    const char *p = c->p;
    int rc;

    /* Nearly always it stands at once, with one blank or none behind. */
    if (c->end - p >= 3 && p[0] == ':') {
        p += p[1] == ' ' ? 2 : 1;
        if ((unsigned char)*p > ' ') {
            c->p = p;
            return TP_OK;
        }
    }
    rc = tp_json_space(c);
    if (rc != TP_OK)
        return rc;
    if (*c->p != ':')
        return tp_json_bad(c, "':' was expected");
    c->p++;
    return tp_json_space(c);
}

/* A key, the colon and the whitespace around it. */
static inline int scan_key(struct tp_chrome_members *m, struct tp_json *c,
                           struct tp_str *key, struct tp_err *err)
{
    struct tp_json_string s;
    int rc;

    if (*c->p != '"')
        return tp_json_bad(c, "a key in quotes was expected");
    rc = tp_json_string_scan(c, &s);
    if (rc != TP_OK)
        return rc;
    rc = scan_colon(c);
    if (rc != TP_OK)
        return rc;
    rc = text_of(m, &s, key, err);
    if (rc == TP_OK && key->len > m->name_bytes)
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE,
                                 "a key is longer than %zu bytes", m->name_bytes);
    return rc;
}

/*
 * Behind a member: pass `,` (the cursor is on the next key then) or the closing brace.
 */
static inline int scan_next(struct tp_json *c, bool *is_closed)
{
    const char *p = c->p;
    int rc;

    /* As in scan_colon(). */
    if (c->end - p >= 3 && p[0] == ',') {
        p += p[1] == ' ' ? 2 : 1;
        if (*p == '"') {
            c->p = p;
            return TP_OK;
        }
    }
    rc = tp_json_space(c);
    if (rc != TP_OK)
        return rc;
    if (*c->p == ',') {
        c->p++;
        rc = tp_json_space(c);
        if (rc != TP_OK)
            return rc;
        if (*c->p != '}')
            return TP_OK;
    }
    if (*c->p != '}')
        return tp_json_bad(c, "',' or '}' was expected");
    c->p++;
    *is_closed = true;
    return TP_OK;
}

/* Pass the opening brace, and the closing one when there is nothing in between. */
static inline int scan_open(struct tp_json *c, bool *is_closed)
{
    int rc;

    c->p++;
    rc = tp_json_space(c);
    if (rc == TP_OK && *c->p == '}') {
        c->p++;
        *is_closed = true;
    }
    return rc;
}

/* One member of args, its key already passed. */
static int scan_arg(struct tp_chrome_members *m, struct tp_json *c, struct tp_str key,
                    struct tp_err *err)
{
    struct tp_chrome_value v;
    struct tp_arg *arg;
    int rc = scan_value(m, c, 2, &v, err);

    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    arg = place_arg(m, key, err);
    if (arg == NULL)
        return m->rejection[0] != '\0' ? TP_OK : TP_ENOMEM;
    return set_arg(m, &v, arg, err);
}

/* The args object; the last one of several counts. */
static int scan_args(struct tp_chrome_members *m, struct tp_json *c, struct tp_err *err)
{
    bool is_closed = false;
    int rc;

    if (m->depth_max < 2) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "args are deeper than %u",
                                 m->depth_max);
        return TP_EQUOTA;
    }
    m->n_args = 0;
    m->seen = 0;
    drop_member(m, "\"args\"", 6);
    rc = scan_open(c, &is_closed);
    while (rc == TP_OK && !is_closed) {
        struct tp_str key;

        rc = scan_key(m, c, &key, err);
        if (rc == TP_OK)
            rc = scan_arg(m, c, key, err);
        if (rc == TP_OK)
            rc = scan_next(c, &is_closed);
    }
    return rc;
}

/* Which member this is. */
static inline enum tp_chrome_key key_of(struct tp_str key)
{
    const char *p = key.ptr;

    switch (key.len) {
    case 1:
        return p[0] == 's' ? TP_CHROME_SCOPE : TP_CHROME_OTHER;
    case 2:
        if (p[1] == 'h')
            return p[0] == 'p' ? TP_CHROME_PH : TP_CHROME_OTHER;
        if (p[1] == 's')
            return p[0] == 't' ? TP_CHROME_TS : TP_CHROME_OTHER;
        if (p[1] == 'd')
            return p[0] == 'i' ? TP_CHROME_ID : TP_CHROME_OTHER;
        return p[0] == 'b' && p[1] == 'p' ? TP_CHROME_BP : TP_CHROME_OTHER;
    case 3:
        if (p[1] == 'i' && p[2] == 'd')
            return p[0] == 'p'   ? TP_CHROME_PID
                   : p[0] == 't' ? TP_CHROME_TID
                                 : TP_CHROME_OTHER;
        if (memcmp(p, "dur", 3) == 0)
            return TP_CHROME_DUR;
        return memcmp(p, "cat", 3) == 0 ? TP_CHROME_CAT : TP_CHROME_OTHER;
    case 4:
        if (memcmp(p, "name", 4) == 0)
            return TP_CHROME_NAME;
        return memcmp(p, "args", 4) == 0 ? TP_CHROME_ARGS : TP_CHROME_OTHER;
    default:
        return TP_CHROME_OTHER;
    }
}

/* A member that goes to extra, its key already passed. */
static int scan_other(struct tp_chrome_members *m, struct tp_json *c, struct tp_str key,
                      struct tp_err *err)
{
    struct tp_chrome_value v;
    int rc = scan_value(m, c, 1, &v, err);

    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    return tp_chrome_members_keep(m, key, &v, err);
}

/* One member of the event; the cursor is on its key. */
static inline int scan_member(struct tp_chrome_members *m, struct tp_json *c,
                              struct tp_err *err)
{
    enum tp_chrome_key which;
    struct tp_str key;
    int rc = scan_key(m, c, &key, err);

    if (rc != TP_OK)
        return rc;
    which = key_of(key);
    if (which < TP_CHROME_KEYS)
        return scan_value(m, c, 1, &m->values[which], err);
    if (which == TP_CHROME_ARGS && *c->p == '{')
        return scan_args(m, c, err);
    if (which == TP_CHROME_ARGS)
        m->n_args = 0;
    return scan_other(m, c, key, err);
}

int tp_chrome_members_parse(struct tp_chrome_members *m, struct tp_json *cursor,
                            struct tp_err *err)
{
    struct tp_json c = *cursor; /* of our own, so that it can live in registers */
    bool is_closed = false;
    int rc;

    for (int i = 0; i < TP_CHROME_KEYS; i++)
        m->values[i].kind = TP_CHROME_NONE;
    m->n_args = 0;
    m->extra.len = 0;
    m->n_spans = 0;
    m->repaired = false;
    m->rejection[0] = '\0';
    tp_arena_reset(&m->arena, ARENA_KEEP_BYTES);

    rc = scan_open(&c, &is_closed);
    while (rc == TP_OK && !is_closed) {
        rc = scan_member(m, &c, err);
        if (rc == TP_OK)
            rc = scan_next(&c, &is_closed);
    }
    *cursor = c;
    return rc;
}
