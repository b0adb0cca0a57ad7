/*
 * fuzz_chrome_reader.c - any bytes, cut anywhere, give the same events or error.
 *
 * The first byte chooses form, salvage and limits, the second how the text is cut. What
 * is handed over must be valid: UTF-8 texts, JSON where JSON is promised.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/utf8.h"
#include "trace/chrome_reader.h"

struct reading {
    uint64_t hash; /* of all that was handed over */
    int rc;
    struct tp_err err;
    struct tp_chrome_stats stats;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void add(struct reading *r, const void *p, size_t n)
{
    const unsigned char *bytes = p;

    for (size_t i = 0; i < n; i++)
        r->hash = (r->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    r->hash = (r->hash ^ n) * UINT64_C(0x100000001b3);
}

static void add_text(struct reading *r, const char *p, size_t n)
{
    require(n == 0 || tp_utf8_is_valid(p, n));
    add(r, p, n);
}

/* JSON that needs no repair, on one line. */
static void add_json(struct reading *r, struct tp_str json)
{
    char *whole = malloc(json.len + 1);
    unsigned oddities = 0;
    struct tp_json c;

    require(whole != NULL && json.len > 0);
    memcpy(whole, json.ptr, json.len);
    whole[json.len] = '\n';
    c = (struct tp_json){.p = whole, .end = whole + json.len + 1};
    require(tp_json_skip(&c, TP_JSON_DEPTH_MAX, &oddities) == TP_OK);
    require(oddities == 0 && c.p == whole + json.len);
    add_text(r, json.ptr, json.len);
    free(whole);
}

static void add_extra(struct reading *r, struct tp_str extra)
{
    char *object = malloc(extra.len + 2);

    require(object != NULL);
    object[0] = '{';
    if (extra.len > 0)
        memcpy(object + 1, extra.ptr, extra.len);
    object[extra.len + 1] = '}';
    add_json(r, (struct tp_str){object, extra.len + 2});
    free(object);
}

static void add_id(struct reading *r, const struct tp_id *id)
{
    add(r, &id->kind, sizeof(id->kind));
    if (id->kind == TP_ID_NUMBER)
        add(r, &id->number, sizeof(id->number));
    if (id->kind == TP_ID_TEXT)
        add_text(r, id->text.ptr, id->text.len);
}

static void add_arg(struct reading *r, const struct tp_arg *arg)
{
    add_text(r, arg->key.ptr, arg->key.len);
    add(r, &arg->kind, sizeof(arg->kind));
    switch (arg->kind) {
    case TP_ARG_STRING:
        add_text(r, arg->s.ptr, arg->s.len);
        break;
    case TP_ARG_JSON:
        add_json(r, arg->s);
        break;
    case TP_ARG_BOOL:
        add(r, &arg->b, sizeof(arg->b));
        break;
    default:
        add(r, &arg->u, sizeof(arg->u));
        break;
    }
}

static int on_event(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct reading *r = arg;

    (void)err;
    require(ev->dur_ns >= 0 && (ev->dur_ns == 0 || ev->kind == TP_EVENT_SLICE));
    add(r, &ev->kind, sizeof(ev->kind));
    add(r, &ev->phase, 1);
    add(r, &ev->scope, 1);
    add(r, &ev->ts_ns, sizeof(ev->ts_ns));
    add(r, &ev->dur_ns, sizeof(ev->dur_ns));
    add(r, &ev->track->index, sizeof(ev->track->index));
    add_id(r, &ev->track->pid);
    add_id(r, &ev->track->tid);
    add_id(r, &ev->id);
    add_text(r, ev->name.ptr, ev->name.len);
    add_text(r, ev->cat.ptr, ev->cat.len);
    for (uint32_t i = 0; i < ev->n_args; i++)
        add_arg(r, &ev->args[i]);
    add_extra(r, ev->extra);
    return TP_OK;
}

static int on_member(struct tp_str key, struct tp_str json, struct tp_err *err,
                     void *arg)
{
    (void)err;
    add_text(arg, key.ptr, key.len);
    add_json(arg, json);
    return TP_OK;
}

static struct tp_chrome_reader_opts options(unsigned char choice)
{
    struct tp_chrome_reader_opts o = {.on_event = on_event, .on_member = on_member};

    o.form = (choice & 1) != 0 ? TP_CHROME_NDJSON : TP_CHROME_JSON;
    o.salvage = (choice & 2) != 0;
    if ((choice & 4) != 0) {
        o.depth_max = 4;
        o.args_max = 3;
        o.name_bytes = 8;
        o.tracks_max = 2;
    }
    if ((choice & 8) != 0) {
        o.event_bytes = 48;
        o.member_bytes = 24;
        o.members_bytes = 64;
    }
    return o;
}

/* Read it in pieces of `piece` bytes, each a heap block of its own. */
static void read_pieces(unsigned char choice, const char *p, size_t n, size_t piece,
                        struct reading *out)
{
    struct tp_chrome_reader_opts o = options(choice);
    struct tp_chrome_reader *r;

    memset(out, 0, sizeof(*out));
    o.arg = out;
    require(tp_chrome_reader_new(&o, &r, NULL) == TP_OK);
    for (size_t i = 0; i < n && out->rc == TP_OK; i += piece) {
        const size_t len = piece < n - i ? piece : n - i;
        char *copy = malloc(len);

        require(copy != NULL);
        memcpy(copy, p + i, len);
        out->rc = tp_chrome_reader_feed(r, copy, len, &out->err);
        free(copy);
    }
    if (out->rc == TP_OK)
        out->rc = tp_chrome_reader_finish(r, &out->err);
    out->stats = *tp_chrome_reader_stats(r);
    tp_chrome_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reading whole;
    static struct reading cut;
    const char *text = (const char *)data + 2;

    if (size < 2)
        return 0;
    size -= 2;
    read_pieces(data[0], text, size, size == 0 ? 1 : size, &whole);
    read_pieces(data[0], text, size, 1 + data[1] % 64U, &cut);
    require(whole.rc == cut.rc && whole.hash == cut.hash);
    require(strcmp(whole.err.message, cut.err.message) == 0);
    require(memcmp(&whole.stats, &cut.stats, sizeof(cut.stats)) == 0);
    require(whole.rc == TP_OK || whole.rc == TP_EINVAL);
    return 0;
}
