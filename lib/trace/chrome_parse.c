/*
 * chrome_parse.c - one pass over an event's text, without a tree. The hottest loop of
 * all that is posted.
 *
 * A known member goes into its slot as it was scanned; args become tp_arg at once; what
 * is left is written to `extra`. Each string is scanned once, 16 bytes at a time, and
 * borrowed; only escapes, repairs and values spread over lines cost a copy.
 *
 * Each step has a quick way for what nearly all events look like, and a general one for
 * everything else, which also words the errors. Only the general ways take the address
 * of a cursor, and then of a copy: so the cursor of the loop lives in registers.
 *
 * A key that was there before replaces its value, as JSON readers do. Looking for it
 * would be quadratic work that hardly ever finds anything, so one 64-bit set of small
 * hashes says when there is nothing to look for.
 */
#include <string.h>

#include "base/json_scan.h"
#include "trace/chrome_members.h"

#define ARENA_KEEP_BYTES (256U << 10)
/* What is left as a call would need the cursor in memory. */
#define HOT static inline __attribute__((always_inline))
#define KEY_BYTES 16 /* read by the quick way: a known key, colon, blank, a byte */

/* --- tokens ----------------------------------------------------------------------- */

HOT int scan_space(struct tp_json *c)
{
    c->p = tp_json_behind_space(c->p, c->end);
    return c->p < c->end ? TP_OK : TP_EAGAIN;
}

HOT int scan_string(struct tp_json *c, struct tp_json_string *out)
{
    const char *p = tp_json_string_quick(c->p, c->end, out);
    struct tp_json copy;
    int rc;

    if (__builtin_expect(p != NULL, 1)) {
        c->p = p;
        return TP_OK;
    }
    copy = *c;
    rc = tp_json_string_rest(&copy, copy.p + 1, out);
    *c = copy;
    return rc;
}

HOT int scan_number(struct tp_json *c, struct tp_json_number *out)
{
    const char *p = tp_json_number_quick(c->p, c->end, out);
    struct tp_json copy;
    int rc;

    if (__builtin_expect(p != NULL, 1)) {
        c->p = p;
        return TP_OK;
    }
    copy = *c;
    rc = tp_json_number_scan(&copy, out);
    *c = copy;
    return rc;
}

/* Pass the colon behind a key, and the whitespace around it. */
HOT int scan_colon(struct tp_json *c)
{
    const char *p = c->p;
    int rc;

    /* Nearly always it stands at once, with one blank or none behind. Branches guess
     * which; a sum of the blanks would have to wait for them. */
    if (c->end - p >= 3 && p[0] == ':') {
        if ((unsigned char)p[1] > ' ') {
            c->p = p + 1;
            return TP_OK;
        }
        if (p[1] == ' ' && (unsigned char)p[2] > ' ') {
            c->p = p + 2;
            return TP_OK;
        }
    }
    rc = scan_space(c);
    if (rc != TP_OK)
        return rc;
    if (*c->p != ':')
        return tp_json_bad(c, "':' was expected");
    c->p++;
    return scan_space(c);
}

/* A key, the colon and the whitespace around it. */
HOT int scan_key(struct tp_chrome_members *m, struct tp_json *c, struct tp_str *key,
                 struct tp_err *err)
{
    struct tp_json_string s;
    int rc;

    if (*c->p != '"')
        return tp_json_bad(c, "a key in quotes was expected");
    rc = scan_string(c, &s);
    if (rc != TP_OK)
        return rc;
    rc = scan_colon(c);
    if (rc != TP_OK)
        return rc;
    return tp_chrome_members_plain(m, &s, key, err);
}

/* Reject the event when a key that is not one of ours is too long. */
static inline void check_key(struct tp_chrome_members *m, struct tp_str key)
{
    if (__builtin_expect(key.len > m->name_bytes, 0))
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE,
                                 "a key is longer than %zu bytes", m->name_bytes);
}

/*
 * Behind a member: pass `,` (the cursor is on the next key then) or the closing brace.
 */
HOT int scan_next(struct tp_json *c, bool *is_closed)
{
    const char *p = c->p;
    int rc;

    /* As in scan_colon(). */
    if (c->end - p >= 3 && p[0] == ',') {
        if (p[1] == '"') {
            c->p = p + 1;
            return TP_OK;
        }
        if (p[1] == ' ' && p[2] == '"') {
            c->p = p + 2;
            return TP_OK;
        }
    }
    rc = scan_space(c);
    if (rc != TP_OK)
        return rc;
    if (*c->p == ',') {
        c->p++;
        rc = scan_space(c);
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
HOT int scan_open(struct tp_json *c, bool *is_closed)
{
    int rc;

    c->p++;
    rc = scan_space(c);
    if (rc == TP_OK && *c->p == '}') {
        c->p++;
        *is_closed = true;
    }
    return rc;
}

/* --- values ----------------------------------------------------------------------- */

/* Whether a number starts here, and not a word such as -inf. */
HOT bool starts_number(const struct tp_json *c)
{
    if (*c->p >= '0' && *c->p <= '9')
        return true;
    if (*c->p != '-')
        return false;
    return c->end - c->p == 1 || (c->p[1] >= '0' && c->p[1] <= '9');
}

HOT int scan_nested(struct tp_chrome_members *m, struct tp_json *c, unsigned depth,
                    struct tp_str *out, struct tp_err *err)
{
    struct tp_json copy = *c;
    int rc = tp_chrome_members_nested(m, &copy, depth, out, err);

    *c = copy;
    return rc;
}

HOT int scan_word(struct tp_json *c, struct tp_str *out)
{
    struct tp_json copy = *c;
    int rc = tp_json_literal(&copy, out);

    *c = copy;
    return rc;
}

/* Any value; depth is how many arrays and objects are around it. */
HOT int scan_value(struct tp_chrome_members *m, struct tp_json *c, unsigned depth,
                   struct tp_chrome_value *out, struct tp_err *err)
{
    if (*c->p == '"') {
        out->kind = TP_CHROME_STRING;
        return scan_string(c, &out->string);
    }
    if (starts_number(c)) {
        out->kind = TP_CHROME_NUMBER;
        return scan_number(c, &out->number);
    }
    if (*c->p == '{' || *c->p == '[') {
        out->kind = TP_CHROME_NESTED;
        return scan_nested(m, c, depth, &out->json, err);
    }
    out->kind = TP_CHROME_WORD;
    return scan_word(c, &out->json);
}

/* --- args ------------------------------------------------------------------------- */

/* The value of an argument that is no plain integer. */
static void set_odd_number(const struct tp_json_number *n, struct tp_arg *arg)
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
}

HOT void set_number(const struct tp_json_number *n, struct tp_arg *arg)
{
    if (!tp_json_number_is_small(n)) {
        set_odd_number(n, arg);
        return;
    }
    arg->kind = TP_ARG_INT;
    arg->i = (int64_t)n->digits;
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
HOT int set_arg(struct tp_chrome_members *m, const struct tp_chrome_value *v,
                struct tp_arg *arg, struct tp_err *err)
{
    switch (v->kind) {
    case TP_CHROME_STRING:
        arg->kind = TP_ARG_STRING;
        return tp_chrome_members_plain(m, &v->string, &arg->s, err);
    case TP_CHROME_NUMBER:
        set_number(&v->number, arg);
        return TP_OK;
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
static struct tp_arg *find_arg(struct tp_chrome_members *m, const struct tp_name *key)
{
    for (uint32_t i = 0; i < m->n_args; i++)
        if (m->args[i].key.len == key->len &&
            (key->len == 0 || memcmp(m->args[i].key.ptr, key->ptr, key->len) == 0))
            return &m->args[i];
    return NULL;
}

/* A place for the argument; NULL without memory or when there are too many. */
HOT struct tp_arg *place_arg(struct tp_chrome_members *m, struct tp_name key,
                             struct tp_err *err)
{
    const unsigned char *p = (const unsigned char *)key.ptr;
    const unsigned hash =
        key.len == 0 ? 0 : (unsigned)(key.len * 31 + p[0] * 7U + p[key.len - 1]);
    const uint64_t bit = UINT64_C(1) << (hash % 64);
    struct tp_arg *arg = (m->seen & bit) != 0 ? find_arg(m, &key) : NULL;

    if (arg != NULL)
        return arg;
    if (m->n_args >= m->args_max) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "more than %u arguments",
                                 m->args_max);
        return NULL;
    }
    if (m->n_args == m->args_cap && tp_chrome_members_grow_args(m, err) != TP_OK)
        return NULL;
    m->seen |= bit;
    arg = &m->args[m->n_args++];
    arg->key = key;
    return arg;
}

/* Where in args we are. */
struct place {
    struct tp_chrome_shape *shape;
    uint32_t position;
    bool is_expected; /* all keys so far were the expected ones */
};

/* As scan_arg_key() for a key that is not the expected one. */
static int scan_other_arg_key(struct tp_chrome_members *m, struct tp_json *c,
                              const struct place *at, struct tp_name *key,
                              struct tp_err *err)
{
    const char *start = c->p;
    struct tp_str text;
    bool is_written;
    int rc = scan_key(m, c, &text, err);

    if (rc != TP_OK)
        return rc;
    *key = (struct tp_name){text.ptr, (uint32_t)text.len, 0};
    is_written = text.ptr == start + 1 && text.ptr[text.len + 1] == ':';
    return tp_chrome_names_key(&m->names, at->shape, at->position, is_written, key,
                               err);
}

/* A key of args, the colon and the whitespace around it. */
HOT int scan_arg_key(struct tp_chrome_members *m, struct tp_json *c, struct place *at,
                     struct tp_name *key, struct tp_err *err)
{
    const char *p = tp_chrome_names_expect(at->shape, at->position, c->p, c->end, key);
    struct tp_json copy;
    int rc;

    if (__builtin_expect(p != NULL, 1)) {
        c->p = p;
        if (p < c->end && (unsigned char)*p > ' ')
            return TP_OK;
        return scan_space(c);
    }
    at->is_expected = false;
    copy = *c;
    rc = scan_other_arg_key(m, &copy, at, key, err);
    *c = copy;
    return rc;
}

/* The value of an argument; arrays are mostly those of the event before. */
HOT int scan_arg_value(struct tp_chrome_members *m, struct tp_json *c,
                       const struct place *at, struct tp_chrome_value *out,
                       struct tp_err *err)
{
    const struct tp_chrome_token *array =
        &at->shape->arrays[at->position % TP_CHROME_SHAPE_ARGS];
    const char *start = c->p;
    const char *p;
    int rc;

    if (*start != '[')
        return scan_value(m, c, 2, out, err);
    p = tp_chrome_token_match(array, start, c->end);
    out->kind = TP_CHROME_NESTED;
    if (p != NULL) {
        out->json = (struct tp_str){start, (size_t)(p - start)};
        c->p = p;
        return TP_OK;
    }
    rc = scan_nested(m, c, 2, &out->json, err);
    if (rc == TP_OK && out->json.ptr == start) /* borrowed: right as it is written */
        tp_chrome_names_array(at->shape, at->position, out->json);
    return rc;
}

/* One member of args, its key already passed. */
HOT int scan_arg(struct tp_chrome_members *m, struct tp_json *c, const struct place *at,
                 struct tp_name key, struct tp_err *err)
{
    struct tp_chrome_value v;
    struct tp_arg *arg;
    int rc = scan_arg_value(m, c, at, &v, err);

    check_key(m, (struct tp_str){key.ptr, key.len});
    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    arg = place_arg(m, key, err);
    if (arg == NULL)
        return m->rejection[0] != '\0' ? TP_OK : TP_ENOMEM;
    return set_arg(m, &v, arg, err);
}

HOT struct tp_chrome_shape *find_shape(struct tp_chrome_members *m)
{
    const struct tp_chrome_value *cat = &m->values[TP_CHROME_CAT];
    struct tp_str text = {NULL, 0};

    if (cat->kind == TP_CHROME_STRING)
        text = (struct tp_str){cat->string.ptr, cat->string.len};
    return tp_chrome_names_shape(&m->names, text);
}

/* The args object; the last one of several counts. */
static int scan_args(struct tp_chrome_members *m, struct tp_json *cursor,
                     struct tp_err *err)
{
    struct place at = {.shape = find_shape(m), .is_expected = true};
    struct tp_json c = *cursor;
    bool is_closed = false;
    int rc;

    if (m->depth_max < 2) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "args are deeper than %u",
                                 m->depth_max);
        return TP_EQUOTA;
    }
    m->n_args = 0;
    m->seen = 0;
    if (m->n_spans > 0)
        tp_chrome_members_drop(m, "\"args\"", 6);
    rc = scan_open(&c, &is_closed);
    while (rc == TP_OK && !is_closed) {
        struct tp_name key;

        rc = scan_arg_key(m, &c, &at, &key, err);
        if (rc == TP_OK)
            rc = scan_arg(m, &c, &at, key, err);
        if (rc == TP_OK)
            rc = scan_next(&c, &is_closed);
        at.position++;
    }
    m->args_shape =
        tp_chrome_names_number(&m->names, at.shape, at.is_expected, m->n_args);
    *cursor = c;
    return rc;
}

/* --- the object ------------------------------------------------------------------- */

/* Four characters as one number, the first in its lowest byte. */
#define WORD(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* Which known key the first four bytes of a key are, with the quote behind; *n is its
 * length. */
HOT enum tp_chrome_key key_of_word(uint32_t word, unsigned *n)
{
    *n = 4;
    if (word == WORD('n', 'a', 'm', 'e'))
        return TP_CHROME_NAME;
    if (word == WORD('a', 'r', 'g', 's'))
        return TP_CHROME_ARGS;
    *n = 3;
    switch (word) {
    case WORD('c', 'a', 't', '"'):
        return TP_CHROME_CAT;
    case WORD('p', 'i', 'd', '"'):
        return TP_CHROME_PID;
    case WORD('t', 'i', 'd', '"'):
        return TP_CHROME_TID;
    case WORD('d', 'u', 'r', '"'):
        return TP_CHROME_DUR;
    default:
        break;
    }
    *n = 2;
    if (word == WORD('p', 'h', '"', ':'))
        return TP_CHROME_PH;
    if (word == WORD('t', 's', '"', ':'))
        return TP_CHROME_TS;
    return word == WORD('i', 'd', '"', ':') ? TP_CHROME_ID : TP_CHROME_OTHER;
}

/* Pass a known key, as nearly all are written, with its colon; the cursor is on the
 * value then. TP_CHROME_OTHER: it did not move, the key may be any. */
HOT enum tp_chrome_key quick_key(struct tp_json *c)
{
    const char *p = c->p;
    enum tp_chrome_key which;
    const unsigned char *u = (const unsigned char *)p + 1;
    unsigned n;

    if (c->end - p < KEY_BYTES || *p != '"')
        return TP_CHROME_OTHER;
    which = key_of_word(WORD(u[0], u[1], u[2], u[3]), &n);
    if (which == TP_CHROME_OTHER || u[n] != '"' || u[n + 1] != ':')
        return TP_CHROME_OTHER;
    p += n + 3;
    if ((unsigned char)*p > ' ') {
        c->p = p;
        return which;
    }
    if (*p == ' ' && (unsigned char)p[1] > ' ') {
        c->p = p + 1;
        return which;
    }
    return TP_CHROME_OTHER;
}

/* Which member this is. */
static enum tp_chrome_key key_of(struct tp_str key)
{
    static const struct {
        const char *text;
        enum tp_chrome_key which;
    } keys[] = {
        {"ph", TP_CHROME_PH},     {"ts", TP_CHROME_TS},   {"dur", TP_CHROME_DUR},
        {"pid", TP_CHROME_PID},   {"tid", TP_CHROME_TID}, {"name", TP_CHROME_NAME},
        {"cat", TP_CHROME_CAT},   {"id", TP_CHROME_ID},   {"s", TP_CHROME_SCOPE},
        {"args", TP_CHROME_ARGS}, {"bp", TP_CHROME_BP},
    };

    if (key.len > 4)
        return TP_CHROME_OTHER;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (tp_str_is(key, keys[i].text))
            return keys[i].which;
    return TP_CHROME_OTHER;
}

/* A member that goes to extra, its key already passed. */
static int scan_other(struct tp_chrome_members *m, struct tp_json *c, struct tp_str key,
                      struct tp_err *err)
{
    struct tp_chrome_value v;
    int rc = scan_value(m, c, 1, &v, err);

    check_key(m, key);
    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    return tp_chrome_members_keep(m, key, &v, err);
}

/* A member that is not a known key as nearly all are written. */
static int scan_odd_member(struct tp_chrome_members *m, struct tp_json *c,
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
        m->n_args = m->args_shape = 0;
    return scan_other(m, c, key, err);
}

/* One member of the event; the cursor is on its key. */
HOT int scan_member(struct tp_chrome_members *m, struct tp_json *c, struct tp_err *err)
{
    struct tp_json copy = *c;
    const enum tp_chrome_key which = quick_key(c);
    int rc;

    if (which < TP_CHROME_KEYS)
        return scan_value(m, c, 1, &m->values[which], err);
    if (which == TP_CHROME_ARGS && *c->p == '{') {
        copy.p = c->p;
        rc = scan_args(m, &copy, err);
    } else {
        rc = scan_odd_member(m, &copy, err);
    }
    *c = copy;
    return rc;
}

int tp_chrome_members_parse(struct tp_chrome_members *m, struct tp_json *cursor,
                            struct tp_err *err)
{
    struct tp_json c = *cursor;
    bool is_closed = false;
    int rc;

    for (int i = 0; i < TP_CHROME_KEYS; i++)
        m->values[i].kind = TP_CHROME_NONE;
    m->n_args = 0;
    m->args_shape = 0;
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
