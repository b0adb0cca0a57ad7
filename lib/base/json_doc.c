/*
 * json_doc.c - a comma is written when something follows, never behind the last.
 */
#include "base/json_doc.h"

#include <assert.h>

#include "base/buf.h"
#include "base/json_write.h"

void tp_json_doc_init(struct tp_json_doc *d, struct tp_buf *out, struct tp_err *err)
{
    *d = (struct tp_json_doc){.out = out, .err = err};
}

int tp_json_doc_end(struct tp_json_doc *d)
{
    assert(d->depth == 0 || d->rc != TP_OK);
    return d->rc;
}

static void put(struct tp_json_doc *d, const char *p, size_t n)
{
    if (d->rc == TP_OK)
        d->rc = tp_buf_append(d->out, p, n, d->err);
}

static void begin_line(struct tp_json_doc *d)
{
    put(d, "\n", 1);
    for (unsigned i = 0; i < d->n_blanks; i++)
        put(d, " ", 1);
    d->needs_line = false;
}

/* Write what is due before a key or a value. */
static void separate(struct tp_json_doc *d)
{
    if (d->needs_comma)
        put(d, ", ", d->needs_line ? 1 : 2);
    if (d->needs_line)
        begin_line(d);
    d->needs_comma = false;
}

static void open_one(struct tp_json_doc *d, char opener, char closer)
{
    assert(d->depth < TP_JSON_DOC_DEPTH);
    separate(d);
    put(d, &opener, 1);
    d->closers[d->depth++] = closer;
}

void tp_json_doc_object(struct tp_json_doc *d)
{
    open_one(d, '{', '}');
}

void tp_json_doc_array(struct tp_json_doc *d)
{
    open_one(d, '[', ']');
}

void tp_json_doc_close(struct tp_json_doc *d)
{
    assert(d->depth > 0);
    d->depth--;
    if (d->needs_line)
        begin_line(d);
    put(d, &d->closers[d->depth], 1);
    d->needs_comma = true;
}

void tp_json_doc_key_str(struct tp_json_doc *d, struct tp_str key)
{
    separate(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_string(d->out, key, d->err);
    put(d, ": ", 2);
}

void tp_json_doc_key(struct tp_json_doc *d, const char *key)
{
    tp_json_doc_key_str(d, tp_str_of(key));
}

void tp_json_doc_line(struct tp_json_doc *d, unsigned n_blanks)
{
    d->needs_line = true;
    d->n_blanks = n_blanks;
}

void tp_json_doc_str(struct tp_json_doc *d, struct tp_str s)
{
    separate(d);
    if (d->rc == TP_OK)
        d->rc = tp_json_write_string(d->out, s, d->err);
    d->needs_comma = true;
}

void tp_json_doc_raw(struct tp_json_doc *d, struct tp_str json)
{
    assert(json.len > 0);
    separate(d);
    put(d, json.ptr, json.len);
    d->needs_comma = true;
}

void tp_json_doc_u64(struct tp_json_doc *d, uint64_t v)
{
    char text[TP_JSON_U64_BYTES];

    tp_json_doc_raw(d,
                    (struct tp_str){text, (size_t)(tp_json_put_u64(text, v) - text)});
}

void tp_json_doc_i64(struct tp_json_doc *d, int64_t v)
{
    char text[TP_JSON_I64_BYTES];

    tp_json_doc_raw(d,
                    (struct tp_str){text, (size_t)(tp_json_put_i64(text, v) - text)});
}

void tp_json_doc_bool(struct tp_json_doc *d, bool v)
{
    tp_json_doc_raw(d, tp_str_of(v ? "true" : "false"));
}

void tp_json_doc_member_str(struct tp_json_doc *d, const char *key, struct tp_str s)
{
    tp_json_doc_key(d, key);
    tp_json_doc_str(d, s);
}

void tp_json_doc_member_raw(struct tp_json_doc *d, const char *key, struct tp_str json)
{
    tp_json_doc_key(d, key);
    tp_json_doc_raw(d, json);
}

void tp_json_doc_member_u64(struct tp_json_doc *d, const char *key, uint64_t v)
{
    tp_json_doc_key(d, key);
    tp_json_doc_u64(d, v);
}

void tp_json_doc_member_i64(struct tp_json_doc *d, const char *key, int64_t v)
{
    tp_json_doc_key(d, key);
    tp_json_doc_i64(d, v);
}

void tp_json_doc_member_bool(struct tp_json_doc *d, const char *key, bool v)
{
    tp_json_doc_key(d, key);
    tp_json_doc_bool(d, v);
}
