/*
 * chrome_reading.c - one reading after the other, compared with the first.
 */
#include "support/chrome_reading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_string.h"

static void put(struct tp_buf *b, const char *s)
{
    assert_int_equal(tp_buf_append_str(b, s, NULL), TP_OK);
}

static void put_text(struct tp_buf *b, struct tp_str s)
{
    assert_int_equal(tp_buf_reserve(b, TP_JSON_WRITE_BYTES(s.len), NULL), TP_OK);
    b->len += tp_json_string_write(s, b->data + b->len);
}

static void put_name(struct tp_buf *b, const char *label, const struct tp_name *name)
{
    if (name->ptr == NULL)
        return;
    put(b, label);
    put_text(b, (struct tp_str){name->ptr, name->len});
}

static void put_id(struct tp_buf *b, const struct tp_id *id)
{
    if (id->kind == TP_ID_NUMBER)
        tp_buf_printf(b, NULL, "%lld", (long long)id->number);
    else if (id->kind == TP_ID_TEXT)
        put_text(b, id->text);
    else
        put(b, "-");
}

static void put_arg(struct tp_buf *b, const struct tp_arg *arg)
{
    put_text(b, (struct tp_str){arg->key.ptr, arg->key.len});
    switch (arg->kind) {
    case TP_ARG_INT:
        tp_buf_printf(b, NULL, "=i%lld", (long long)arg->i);
        break;
    case TP_ARG_UINT:
        tp_buf_printf(b, NULL, "=u%llu", (unsigned long long)arg->u);
        break;
    case TP_ARG_DOUBLE:
        tp_buf_printf(b, NULL, "=d%.17g", arg->d);
        break;
    case TP_ARG_BOOL:
        put(b, arg->b ? "=true" : "=false");
        break;
    case TP_ARG_STRING:
        put(b, "=s");
        put_text(b, arg->s);
        break;
    case TP_ARG_JSON:
        tp_buf_printf(b, NULL, "=j%.*s", (int)arg->s.len, arg->s.ptr);
        break;
    }
}

/* "X 12500+3000 1/2 name="k" cat="c" id=5 scope=g bp a=i1,b=s"x" extra=..." */
int chrome_show_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct tp_buf *b = &((struct chrome_reading *)arg)->text;

    (void)err;
    tp_buf_printf(b, NULL, "%c%s %lld", ev->phase,
                  ev->kind == TP_EVENT_OTHER ? "?" : "", (long long)ev->ts_ns);
    if (ev->kind == TP_EVENT_SLICE)
        tp_buf_printf(b, NULL, "+%lld", (long long)ev->dur_ns);
    put(b, " ");
    put_id(b, &ev->track->pid);
    put(b, "/");
    put_id(b, &ev->track->tid);
    put_name(b, " name=", &ev->name);
    put_name(b, " cat=", &ev->cat);
    if (ev->id.kind != TP_ID_NONE) {
        put(b, " id=");
        put_id(b, &ev->id);
    }
    if (ev->scope != '\0')
        tp_buf_printf(b, NULL, " scope=%c", ev->scope);
    if (ev->binds_enclosing)
        put(b, " bp");
    for (uint32_t i = 0; i < ev->n_args; i++) {
        put(b, i == 0 ? " " : ",");
        put_arg(b, &ev->args[i]);
    }
    if (ev->extra.len > 0)
        tp_buf_printf(b, NULL, " extra=%.*s", (int)ev->extra.len, ev->extra.ptr);
    put(b, "\n");
    return TP_OK;
}

static int show_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                       void *arg)
{
    struct tp_buf *b = &((struct chrome_reading *)arg)->text;

    (void)err;
    put(b, "# ");
    put_text(b, key);
    tp_buf_printf(b, NULL, ": %.*s\n", (int)json.len, json.ptr);
    return TP_OK;
}

/* Feed n bytes as a heap block of exactly that size. */
int chrome_feed_copy(struct tp_chrome_reader *r, const char *p, size_t n,
                     struct tp_err *err)
{
    char *copy = malloc(n == 0 ? 1 : n);
    int rc;

    assert_non_null(copy);
    memcpy(copy, p, n);
    rc = tp_chrome_reader_feed(r, copy, n, err);
    free(copy);
    return rc;
}

/* Read the text, the first piece `first` bytes long, the others `piece` bytes. */
struct chrome_reading chrome_read_pieces(const struct tp_chrome_reader_opts *opts,
                                         const char *p, size_t n, size_t first,
                                         size_t piece)
{
    struct tp_chrome_reader_opts o = *opts;
    struct chrome_reading reading = {0};
    struct tp_chrome_reader *r;
    size_t done = 0;

    o.on_event = chrome_show_event;
    o.on_member = show_member;
    o.arg = &reading;
    assert_int_equal(tp_chrome_reader_new(&o, &r, NULL), TP_OK);
    while (done < n && reading.rc == TP_OK) {
        const size_t want = done == 0 ? first : piece;
        const size_t take = want < n - done ? want : n - done;

        reading.rc = chrome_feed_copy(r, p + done, take, &reading.err);
        done += take;
    }
    if (reading.rc == TP_OK)
        reading.rc = tp_chrome_reader_finish(r, &reading.err);
    reading.stats = *tp_chrome_reader_stats(r);
    if (reading.rc != TP_OK) {
        struct tp_err again = {0};

        assert_int_equal(tp_chrome_reader_feed(r, "[]", 2, &again), reading.rc);
        assert_string_equal(again.message, reading.err.message);
    }
    tp_chrome_reader_free(r);
    put(&reading.text, "");
    assert_int_equal(tp_buf_append(&reading.text, "", 1, NULL), TP_OK);
    return reading;
}

static void check_same(const struct chrome_reading *a, const struct chrome_reading *b,
                       const char *input, size_t n, size_t first, size_t piece)
{
    if (a->rc == b->rc && strcmp(a->text.data, b->text.data) == 0 &&
        strcmp(a->err.message, b->err.message) == 0 &&
        memcmp(&a->stats, &b->stats, sizeof(a->stats)) == 0)
        return;
    fail_msg("%.*s\nin pieces of %zu, %zu bytes gives\n%s(%d %s)\nand not\n%s(%d %s)",
             (int)(n < 500 ? n : 500), input, first, piece, b->text.data, b->rc,
             b->err.message, a->text.data, a->rc, a->err.message);
}

/* Read the text in all manners and check that they agree. */
struct chrome_reading chrome_read(const struct tp_chrome_reader_opts *opts,
                                  const char *p, size_t n)
{
    static const size_t pieces[] = {1, 2, 3, 7, 16};
    struct chrome_reading whole = chrome_read_pieces(opts, p, n, n == 0 ? 1 : n, 1);

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct chrome_reading other =
            chrome_read_pieces(opts, p, n, pieces[i], pieces[i]);

        check_same(&whole, &other, p, n, pieces[i], pieces[i]);
        tp_buf_fini(&other.text);
    }
    for (size_t first = 1; first < n && n < 400; first++) {
        struct chrome_reading other = chrome_read_pieces(opts, p, n, first, n);

        check_same(&whole, &other, p, n, first, n);
        tp_buf_fini(&other.text);
    }
    return whole;
}

struct chrome_reading chrome_expect_with(const struct tp_chrome_reader_opts *opts,
                                         const char *p, size_t n, const char *expected)
{
    struct chrome_reading got = chrome_read(opts, p, n);

    if (got.rc != TP_OK)
        fail_msg("%s\nis refused: %s", p, got.err.message);
    if (strcmp(got.text.data, expected) != 0)
        fail_msg("%s\ngives\n%s\nand not\n%s", p, got.text.data, expected);
    tp_buf_fini(&got.text);
    return got;
}

/* The text is accepted and gives these lines. */
struct chrome_reading chrome_expect(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {0};

    return chrome_expect_with(&opts, text, strlen(text), expected);
}

struct chrome_reading chrome_expect_salvaged(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {.salvage = true};

    return chrome_expect_with(&opts, text, strlen(text), expected);
}

struct chrome_reading chrome_expect_lines(const char *text, const char *expected)
{
    const struct tp_chrome_reader_opts opts = {.form = TP_CHROME_NDJSON};

    return chrome_expect_with(&opts, text, strlen(text), expected);
}

void chrome_refuse_with(const struct tp_chrome_reader_opts *opts, const char *text,
                        const char *message, const char *before)
{
    struct chrome_reading got = chrome_read(opts, text, strlen(text));

    if (got.rc != TP_EINVAL || strcmp(got.err.message, message) != 0)
        fail_msg("%s\nends with %d (%s) and not with: %s", text, got.rc,
                 got.err.message, message);
    assert_string_equal(got.text.data, before);
    tp_buf_fini(&got.text);
}

/* The text is refused with this message, after these lines. */
void chrome_refuse(const char *text, const char *message, const char *before)
{
    const struct tp_chrome_reader_opts opts = {0};

    chrome_refuse_with(&opts, text, message, before);
}

struct chrome_reading chrome_limited(struct tp_chrome_reader_opts opts,
                                     const char *text, const char *expected)
{
    return chrome_expect_with(&opts, text, strlen(text), expected);
}
