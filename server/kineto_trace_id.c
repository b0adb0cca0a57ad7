/*
 * kineto_trace_id.c - strings and depth, nothing else.
 *
 * The events are nearly all of a file and lie deeper than the member, so what is in
 * their strings is skipped with memchr().
 */
#include "server/kineto_trace_id.h"

#include <string.h>

/* A string has ended. */
static void take_string(struct tp_kineto_trace_id *s)
{
    bool fits = s->n < sizeof(s->text);

    s->in_string = false;
    if (s->depth != 1)
        return;
    s->text[fits ? s->n : sizeof(s->text) - 1] = '\0';
    if (s->is_value && fits && strcmp(s->text, s->wanted) == 0)
        s->is_found = true;
    else if (s->is_value)
        s->is_wrong = true;
    s->is_value = s->is_key && fits && strcmp(s->text, "trace_id") == 0;
    s->is_key = false;
}

/* Keep what may be the key or the id. */
static void keep(struct tp_kineto_trace_id *s, const char *p, size_t n)
{
    size_t room = s->n < sizeof(s->text) ? sizeof(s->text) - s->n : 0;

    if (s->depth == 1)
        memcpy(s->text + s->n, p, n < room ? n : room);
    s->n = n < room ? s->n + n : sizeof(s->text);
}

/* Returns how many bytes of the string were passed. */
static size_t pass_string(struct tp_kineto_trace_id *s, const char *p, size_t n)
{
    const char *quote = memchr(p, '"', n);
    size_t len = quote == NULL ? n : (size_t)(quote - p);
    size_t slashes = 0;

    while (slashes < len && p[len - slashes - 1] == '\\')
        slashes++;
    /* The one of the portion before escapes the first byte of this one. */
    if (slashes == len && s->is_escaped)
        slashes++;
    s->is_escaped = slashes % 2 != 0;
    keep(s, p, len);
    if (quote == NULL)
        return len;
    if (s->is_escaped) {
        s->is_escaped = false;
        keep(s, quote, 1);
    } else {
        take_string(s);
    }
    return len + 1;
}

static void take_byte(struct tp_kineto_trace_id *s, char c)
{
    switch (c) {
    case '"':
        s->in_string = true;
        s->is_escaped = false;
        s->n = 0;
        break;
    case '{':
    case '[':
        s->is_key = s->depth++ == 0 && c == '{';
        s->is_value = false;
        break;
    case '}':
    case ']':
        s->depth -= s->depth > 0;
        s->is_key = s->is_value = false;
        break;
    case ',':
        s->is_key = s->depth == 1;
        s->is_value = false;
        break;
    default:
        break;
    }
}

bool tp_kineto_trace_id_feed(struct tp_kineto_trace_id *s, const char *p, size_t n)
{
    for (size_t i = 0; i < n && !s->is_wrong;) {
        if (s->in_string)
            i += pass_string(s, p + i, n - i);
        else
            take_byte(s, p[i++]);
    }
    return !s->is_wrong;
}
