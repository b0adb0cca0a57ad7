/*
 * chrome_members.c - what is rare in an event: repairs, further members, rejections.
 *
 * Everything is borrowed from the text where it can be; what must be written anew goes
 * to the arena, and further members to `extra`, where the written key finds one that
 * was there before.
 */
#include "trace/chrome_members.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_scan.h"

#define FIRST_CAP 16U

void tp_chrome_members_fini(struct tp_chrome_members *m)
{
    if (m == NULL)
        return;
    tp_chrome_names_fini(&m->names);
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

int tp_chrome_members_grow_args(struct tp_chrome_members *m, struct tp_err *err)
{
    void *args = grow(m->args, &m->args_cap, sizeof(*m->args), err);

    if (args == NULL)
        return TP_ENOMEM;
    m->args = args;
    return TP_OK;
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

int tp_chrome_members_nested(struct tp_chrome_members *m, struct tp_json *c,
                             unsigned depth, struct tp_str *out, struct tp_err *err)
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

/* --- extra ------------------------------------------------------------------------ */

void tp_chrome_members_drop(struct tp_chrome_members *m, const char *key,
                            size_t key_bytes)
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
    tp_chrome_members_drop(m, m->extra.data + m->extra.len, span.key_bytes);
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
