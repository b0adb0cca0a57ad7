/*
 * events.c - events as hostile as an event may be: each field absent, empty, short,
 * long, at the borders of its type.
 */
#include "support/events.h"

#include <string.h>

/* splitmix64. */
uint64_t events_random(struct events *g, uint64_t n)
{
    uint64_t x = g->random += 0x9e3779b97f4a7c15ULL;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (x ^ (x >> 31)) % n;
}

static int64_t any_int(struct events *g)
{
    static const int64_t borders[] = {0,   1,         -1,        127,
                                      128, INT64_MAX, INT64_MIN, 1LL << 40};

    if (events_random(g, 3) == 0)
        return borders[events_random(g, 8)];
    return (int64_t)(events_random(g, UINT64_MAX) >> events_random(g, 64));
}

/* Random valid UTF-8 of at most max bytes in g->text. */
static struct tp_str any_text(struct events *g, size_t max)
{
    static const char *const characters[] = {"a",    "Z", "0",  " ", "\"",   "\\", "\n",
                                             "\x01", "ä", "中", "😀", "\x7f", "/",  ":"};
    size_t n = events_random(g, max + 1);
    struct tp_str s = {g->text + g->used, 0};

    if (n > EVENTS_TEXT_BYTES - g->used)
        n = EVENTS_TEXT_BYTES - g->used;
    for (;;) {
        const char *c = characters[events_random(g, 14)];

        if (s.len + strlen(c) > n)
            break;
        memcpy(g->text + g->used, c, strlen(c));
        g->used += (uint32_t)strlen(c);
        s.len += strlen(c);
    }
    return s;
}

static struct tp_name any_name(struct events *g, bool may_be_absent)
{
    static const char *const common[] = {"aten::mm",   "kernel", "",
                                         "Input Dims", "value",  "correlation",
                                         "read",       "write"};
    struct tp_str s;

    if (may_be_absent && events_random(g, 8) == 0)
        return (struct tp_name){NULL, 0, 0};
    s = tp_str_of(common[events_random(g, 8)]);
    if (events_random(g, 4) == 0)
        s = any_text(g, events_random(g, 10) == 0 ? 3000 : 40);
    return (struct tp_name){s.ptr, (uint32_t)s.len, 0};
}

static struct tp_id any_id(struct events *g)
{
    struct tp_id id = {.kind = (enum tp_id_kind)events_random(g, 3)};

    if (id.kind == TP_ID_NUMBER)
        id.number = any_int(g);
    if (id.kind == TP_ID_TEXT)
        id.text = any_text(g, 20);
    return id;
}

static double any_double(struct events *g)
{
    static const double some[] = {0.0, -0.0, 1.5e-7, 68.5, -1e300, 5e-324, 0.1, 1e22};

    return some[events_random(g, 8)];
}

static void any_arg(struct events *g, struct tp_arg *a)
{
    static const char *const json[] = {
        "null",   "[]", "[[64,64],[],{\"a\":\"b\"}]", "{}", "18446744073709551616",
        "[1e999]"};

    memset(a, 0, sizeof(*a));
    a->key = any_name(g, false);
    a->kind = (enum tp_arg_kind)events_random(g, 6);
    switch (a->kind) {
    case TP_ARG_INT:
        a->i = any_int(g);
        break;
    case TP_ARG_UINT:
        a->u = (1ULL << 63) + events_random(g, 1000);
        break;
    case TP_ARG_DOUBLE:
        a->d = any_double(g);
        break;
    case TP_ARG_BOOL:
        a->b = events_random(g, 2) == 0;
        break;
    case TP_ARG_STRING:
        a->s = any_text(g, events_random(g, 20) == 0 ? 20000 : 60);
        break;
    case TP_ARG_JSON:
        a->s = tp_str_of(json[events_random(g, 6)]);
        break;
    }
}

void events_init(struct events *g, uint64_t seed)
{
    memset(g, 0, sizeof(*g));
    g->random = seed;
    for (uint32_t i = 0; i < EVENTS_TRACKS; i++) {
        static char names[8][16];

        g->tracks[i].index = i;
        g->tracks[i].pid = (struct tp_id){TP_ID_NUMBER, i / 4, {NULL, 0}};
        g->tracks[i].tid = (struct tp_id){TP_ID_NUMBER, (int64_t)i * 7 - 14, {NULL, 0}};
        if (i % 8 == 3) {
            memcpy(names[i / 8], "stream 7", 9);
            names[i / 8][7] = (char)('0' + i / 8);
            g->tracks[i].tid = (struct tp_id){TP_ID_TEXT, 0, {names[i / 8], 8}};
        }
        if (i % 8 == 5)
            g->tracks[i].tid = (struct tp_id){TP_ID_NONE, 0, {NULL, 0}};
        if (i % 8 == 6)
            g->tracks[i].pid = (struct tp_id){TP_ID_TEXT, 0, {"Spans", 5}};
        if (i == 23)
            g->tracks[i].pid = (struct tp_id){TP_ID_NONE, 0, {NULL, 0}};
    }
}

/* The arguments of a counter event are mostly numbers. */
static void make_numeric(struct events *g, struct tp_arg *a)
{
    a->kind = events_random(g, 2) == 0 ? TP_ARG_INT : TP_ARG_DOUBLE;
    if (a->kind == TP_ARG_INT)
        a->i = any_int(g);
    else
        a->d = any_double(g);
}

void events_next(struct events *g, struct tp_event *ev)
{
    static const char usual[TP_EVENT_KINDS] = "XBEiCstfbneM";
    static const char scopes[] = {'\0', 'g', 'p', 't', 'x'};
    bool is_numeric = events_random(g, 3) != 0;

    memset(ev, 0, sizeof(*ev));
    g->used = 0;
    ev->kind = (enum tp_event_kind)events_random(g, TP_EVENT_KINDS);
    ev->phase = usual[ev->kind];
    if (ev->kind == TP_EVENT_OTHER || events_random(g, 10) == 0)
        ev->phase = (char)('!' + events_random(g, 90));
    if (events_random(g, 40) == 0)
        ev->phase = '\0';
    ev->ts_ns = events_random(g, 4) == 0 ? any_int(g) : 1795982590884123457LL;
    if (ev->kind == TP_EVENT_SLICE)
        ev->dur_ns = any_int(g) & INT64_MAX;
    if (ev->kind == TP_EVENT_INSTANT || events_random(g, 20) == 0)
        ev->scope = scopes[events_random(g, 5)];
    ev->binds_enclosing = events_random(g, 6) == 0;
    ev->is_unfinished = events_random(g, 6) == 0;
    ev->name = any_name(g, true);
    ev->cat = any_name(g, true);
    if (events_random(g, 3) == 0 || ev->kind >= TP_EVENT_FLOW_START)
        ev->id = any_id(g);
    ev->track = &g->tracks[events_random(g, EVENTS_TRACKS)];
    ev->args = g->args;
    ev->n_args = (uint32_t)events_random(g, EVENTS_ARGS_MAX + 1);
    for (uint32_t i = 0; i < ev->n_args; i++) {
        any_arg(g, &g->args[i]);
        if (ev->kind == TP_EVENT_COUNTER && is_numeric)
            make_numeric(g, &g->args[i]);
    }
    if (events_random(g, 5) == 0)
        ev->extra = tp_str_of("\"tts\":5,\"cname\":\"good\"");
}

static bool same_name(const struct tp_name *a, const struct tp_name *b)
{
    return (a->ptr == NULL) == (b->ptr == NULL) && a->len == b->len &&
           (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

static bool same_id(const struct tp_id *a, const struct tp_id *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TP_ID_NUMBER)
        return a->number == b->number;
    return a->kind == TP_ID_NONE || tp_str_equal(a->text, b->text);
}

static bool same_arg(const struct tp_arg *a, const struct tp_arg *b)
{
    if (a->kind != b->kind || !same_name(&a->key, &b->key))
        return false;
    switch (a->kind) {
    case TP_ARG_INT:
        return a->i == b->i;
    case TP_ARG_UINT:
        return a->u == b->u;
    case TP_ARG_DOUBLE:
        return memcmp(&a->d, &b->d, sizeof(a->d)) == 0;
    case TP_ARG_BOOL:
        return a->b == b->b;
    default:
        return tp_str_equal(a->s, b->s);
    }
}

static bool same_track(const struct tp_track *a, const struct tp_track *b)
{
    return a->lane == b->lane && same_id(&a->pid, &b->pid) && same_id(&a->tid, &b->tid);
}

bool events_equal(const struct tp_event *a, const struct tp_event *b, const char **why)
{
    *why = a->kind != b->kind                         ? "kind"
           : a->phase != b->phase                     ? "phase"
           : a->scope != b->scope                     ? "scope"
           : a->binds_enclosing != b->binds_enclosing ? "binds_enclosing"
           : a->is_unfinished != b->is_unfinished     ? "is_unfinished"
           : a->ts_ns != b->ts_ns                     ? "ts_ns"
           : a->dur_ns != b->dur_ns                   ? "dur_ns"
           : !same_name(&a->name, &b->name)           ? "name"
           : !same_name(&a->cat, &b->cat)             ? "cat"
           : !same_id(&a->id, &b->id)                 ? "id"
           : !same_track(a->track, b->track)          ? "track"
           : a->n_args != b->n_args                   ? "n_args"
           : !tp_str_equal(a->extra, b->extra)        ? "extra"
                                                      : NULL;
    for (uint32_t i = 0; *why == NULL && i < a->n_args; i++) {
        if (!same_arg(&a->args[i], &b->args[i]))
            *why = "args";
    }
    return *why == NULL;
}
