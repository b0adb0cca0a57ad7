/*
 * notes.c - notes as metadata events.
 *
 * A member's value is put into an array of one, since arguments know arrays and objects
 * as JSON text but not scalars: "[" and "]" are put on and taken off as bytes, and the
 * value between them comes back as it was written in the source.
 */
#include "trace/notes.h"

#include <assert.h>

#define NAME_PREFIX "traceplane."

static struct tp_name name_of(const char *s)
{
    return (struct tp_name){s, (uint32_t)strlen(s), 0};
}

static bool name_is(const struct tp_name *name, const char *s)
{
    return tp_str_is((struct tp_str){name->ptr, name->len}, s);
}

static void add_int(struct tp_note_event *out, const char *key, uint64_t v)
{
    struct tp_arg *a = &out->args[out->ev.n_args++];

    *a = (struct tp_arg){.key = name_of(key), .kind = TP_ARG_INT};
    a->i = v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static void add_text(struct tp_note_event *out, const char *key, enum tp_arg_kind kind,
                     struct tp_str s)
{
    struct tp_arg *a = &out->args[out->ev.n_args++];

    *a = (struct tp_arg){.key = name_of(key), .kind = kind};
    a->s = s;
}

static int write_member(const struct tp_note *note, struct tp_note_event *out,
                        struct tp_err *err)
{
    int rc = tp_buf_append(&out->text, "[", 1, err);

    if (rc == TP_OK)
        rc = tp_buf_append(&out->text, note->json.ptr, note->json.len, err);
    if (rc == TP_OK)
        rc = tp_buf_append(&out->text, "]", 1, err);
    if (rc != TP_OK)
        return rc;
    out->ev.name = name_of(NAME_PREFIX "member");
    add_text(out, "key", TP_ARG_STRING, note->key);
    add_text(out, "value", TP_ARG_JSON, (struct tp_str){out->text.data, out->text.len});
    return TP_OK;
}

static int write_damage(const struct tp_note *note, struct tp_note_event *out,
                        struct tp_err *err)
{
    int rc = tp_buf_append(&out->text, "[", 1, err);

    for (uint32_t i = 0; rc == TP_OK && i < note->n_offsets; i++)
        rc = tp_buf_printf(&out->text, err, "%s%llu", i == 0 ? "" : ",",
                           (unsigned long long)note->offsets[i]);
    if (rc == TP_OK)
        rc = tp_buf_append(&out->text, "]", 1, err);
    if (rc != TP_OK)
        return rc;
    out->ev.name = name_of(NAME_PREFIX "damage");
    add_int(out, "places", note->damages);
    add_int(out, "truncated", note->is_truncated);
    add_int(out, "members_left_out", note->members_left_out);
    add_text(out, "offsets", TP_ARG_JSON,
             (struct tp_str){out->text.data, out->text.len});
    return TP_OK;
}

int tp_note_write(const struct tp_note *note, const struct tp_track *track,
                  struct tp_note_event *out, struct tp_err *err)
{
    assert(note->kind != TP_NOTE_NONE);
    out->text.len = 0;
    out->ev = (struct tp_event){
        .kind = TP_EVENT_META, .phase = 'M', .track = track, .args = out->args};
    if (note->kind == TP_NOTE_MEMBER)
        return write_member(note, out, err);
    if (note->kind == TP_NOTE_DAMAGE)
        return write_damage(note, out, err);
    out->ev.name = name_of(NAME_PREFIX "base");
    out->args[0] = (struct tp_arg){.key = name_of("base_ns"), .kind = TP_ARG_INT};
    out->args[0].i = note->base_ns;
    out->ev.n_args = 1;
    return TP_OK;
}

static const struct tp_arg *find_arg(const struct tp_event *ev, const char *key,
                                     enum tp_arg_kind kind)
{
    for (uint32_t i = 0; i < ev->n_args; i++)
        if (ev->args[i].kind == kind && name_is(&ev->args[i].key, key))
            return &ev->args[i];
    return NULL;
}

static uint64_t find_count(const struct tp_event *ev, const char *key)
{
    const struct tp_arg *a = find_arg(ev, key, TP_ARG_INT);

    return a == NULL || a->i < 0 ? 0 : (uint64_t)a->i;
}

static void read_member(const struct tp_event *ev, struct tp_note *out)
{
    const struct tp_arg *key = find_arg(ev, "key", TP_ARG_STRING);
    const struct tp_arg *value = find_arg(ev, "value", TP_ARG_JSON);

    if (key == NULL || value == NULL || value->s.len < 3 || value->s.ptr[0] != '[' ||
        value->s.ptr[value->s.len - 1] != ']')
        return;
    out->kind = TP_NOTE_MEMBER;
    out->key = key->s;
    out->json = (struct tp_str){value->s.ptr + 1, value->s.len - 2};
}

/* The numbers of "[1,22,333]": what is no digit parts them. */
static void read_offsets(struct tp_str s, struct tp_note *out)
{
    bool is_in_number = false;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            is_in_number = false;
            continue;
        }
        if (!is_in_number && out->n_offsets == TP_NOTE_OFFSETS_MAX)
            return;
        if (!is_in_number)
            out->offsets[out->n_offsets++] = 0;
        is_in_number = true;
        out->offsets[out->n_offsets - 1] = out->offsets[out->n_offsets - 1] * 10 +
                                           (uint64_t)(s.ptr[i] - '0');
    }
}

static void read_damage(const struct tp_event *ev, struct tp_note *out)
{
    const struct tp_arg *offsets = find_arg(ev, "offsets", TP_ARG_JSON);

    out->kind = TP_NOTE_DAMAGE;
    out->damages = find_count(ev, "places");
    out->is_truncated = find_count(ev, "truncated") != 0;
    out->members_left_out = find_count(ev, "members_left_out");
    if (offsets != NULL)
        read_offsets(offsets->s, out);
}

bool tp_note_read(const struct tp_event *ev, struct tp_note *out)
{
    const struct tp_arg *base;

    if (ev->kind != TP_EVENT_META || ev->name.len < sizeof(NAME_PREFIX) - 1 ||
        memcmp(ev->name.ptr, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0)
        return false;
    *out = (struct tp_note){.kind = TP_NOTE_NONE};
    if (name_is(&ev->name, NAME_PREFIX "member")) {
        read_member(ev, out);
    } else if (name_is(&ev->name, NAME_PREFIX "damage")) {
        read_damage(ev, out);
    } else if (name_is(&ev->name, NAME_PREFIX "base")) {
        base = find_arg(ev, "base_ns", TP_ARG_INT);
        out->kind = base == NULL ? TP_NOTE_NONE : TP_NOTE_BASE;
        out->base_ns = base == NULL ? 0 : base->i;
    } else {
        return false;
    }
    return true;
}
