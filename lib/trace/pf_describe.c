/*
 * pf_describe.c - track descriptors, ours and those of others.
 *
 * Ours name the exact pid and tid in private fields; in a download of several streams
 * the pid that viewers see counts, since only that one is unique. From others come
 * pids, tids, names and parents. The names of processes and threads become the metadata
 * events that Chrome's format has for them.
 */
#include "trace/pf_descriptor.h"
#include "trace/pf_fields.h"
#include "trace/pf_reader_state.h"

/* A descriptor as it is on the wire. */
struct descriptor {
    uint64_t uuid;
    uint64_t parent_uuid;
    struct tp_str name;
    struct tp_str process, thread, counter; /* messages; ptr NULL when absent */
    struct tp_id own_pid, own_tid;
    struct tp_str series;
    struct tp_str own_name;
    uint32_t lane;
    uint32_t kind;
    bool is_ours;
};

static void take_private(const struct tp_pb_field *f, struct descriptor *d)
{
    struct tp_str text = {f->bytes, f->bytes == NULL ? 0 : f->value};

    switch (f->number) {
    case TP_PF_X_TRACK_KIND:
        d->is_ours = true;
        d->kind = (uint32_t)f->value;
        break;
    case TP_PF_X_TRACK_PID_NUMBER:
        d->own_pid =
            (struct tp_id){.kind = TP_ID_NUMBER, .number = tp_pb_unzigzag(f->value)};
        break;
    case TP_PF_X_TRACK_PID_TEXT:
        d->own_pid = (struct tp_id){.kind = TP_ID_TEXT, .text = text};
        break;
    case TP_PF_X_TRACK_TID_NUMBER:
        d->own_tid =
            (struct tp_id){.kind = TP_ID_NUMBER, .number = tp_pb_unzigzag(f->value)};
        break;
    case TP_PF_X_TRACK_TID_TEXT:
        d->own_tid = (struct tp_id){.kind = TP_ID_TEXT, .text = text};
        break;
    case TP_PF_X_TRACK_LANE:
        d->lane = (uint32_t)f->value;
        break;
    case TP_PF_X_TRACK_SERIES:
        d->series = text;
        break;
    case TP_PF_X_TRACK_OWN_NAME:
        d->own_name = text;
        break;
    default:
        break;
    }
}

static bool read_descriptor(struct tp_str bytes, struct descriptor *d)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr + bytes.len};
    struct tp_pb_field f;

    *d = (struct descriptor){0};
    while (c.p < c.end) {
        struct tp_str text;

        if (!tp_pb_get_field(&c, &f))
            return false;
        text = (struct tp_str){f.bytes, f.bytes == NULL ? 0 : f.value};
        if (f.number == TP_PF_TRACK_UUID)
            d->uuid = f.value;
        else if (f.number == TP_PF_TRACK_PARENT)
            d->parent_uuid = f.value;
        else if (f.number == TP_PF_TRACK_NAME || f.number == TP_PF_TRACK_STATIC_NAME)
            d->name = text;
        else if (f.number == TP_PF_TRACK_PROCESS)
            d->process = text;
        else if (f.number == TP_PF_TRACK_THREAD)
            d->thread = text;
        else if (f.number == TP_PF_TRACK_COUNTER)
            d->counter = text;
        else
            take_private(&f, d);
    }
    return true;
}

/* Two numbers and a text of a process, thread or counter message. */
struct details {
    int64_t first, second;
    struct tp_str name;
};

static bool read_details(struct tp_str bytes, uint32_t first, uint32_t second,
                         uint32_t name, struct details *out)
{
    struct tp_pb c = {bytes.ptr, bytes.ptr};
    struct tp_pb_field f;

    *out = (struct details){0};
    if (bytes.ptr != NULL)
        c.end += bytes.len;
    while (c.p < c.end) {
        if (!tp_pb_get_field(&c, &f))
            return false;
        if (f.number == first && f.wire == TP_PB_VARINT)
            out->first = (int64_t)f.value;
        if (f.number == second && f.wire == TP_PB_VARINT)
            out->second = (int64_t)f.value;
        if (f.number == name && f.wire == TP_PB_BYTES)
            out->name = (struct tp_str){f.bytes, f.value};
    }
    return true;
}

/* Texts of our own descriptor may come from a foreign hand. */
static int fix_id(struct tp_pf_reader *r, struct tp_id *id, struct tp_err *err)
{
    return id->kind == TP_ID_TEXT ? tp_pf_reader_fix(r, id->text, &id->text, err)
                                  : TP_OK;
}

/* The pid of a track of a merged download: it is in the descriptor or its parent's. */
static bool find_shown_pid(struct tp_pf_reader *r, struct descriptor *d)
{
    const struct tp_pf_place *parent = tp_pf_places_find(&r->places, d->parent_uuid);
    struct details process;
    struct details thread;

    if (!read_details(d->process, TP_PF_PROCESS_PID, 0, 0, &process) ||
        !read_details(d->thread, TP_PF_THREAD_PID, 0, 0, &thread))
        return false;
    if (d->process.ptr != NULL || d->thread.ptr != NULL)
        d->own_pid = (struct tp_id){.kind = TP_ID_NUMBER,
                                    .number = d->thread.ptr != NULL ? thread.first
                                                                    : process.first};
    else if (parent != NULL && parent->track != NULL)
        d->own_pid = parent->track->pid;
    return true;
}

static int place_ours(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                      struct descriptor *d, struct tp_err *err)
{
    struct tp_str series = {"", 0};
    struct tp_pf_place *place = NULL;
    const struct tp_track *track = NULL;
    struct tp_name name;
    int rc;

    if (q->is_merged && !find_shown_pid(r, d))
        return tp_fail(err, TP_EINVAL, "a track descriptor is damaged");
    rc = fix_id(r, &d->own_pid, err);
    if (rc == TP_OK)
        rc = fix_id(r, &d->own_tid, err);
    if (rc == TP_OK && d->series.len > 0)
        rc = tp_pf_reader_fix(r, d->series, &series, err);
    if (rc == TP_OK)
        rc = tp_pf_places_track(&r->places, &d->own_pid, &d->own_tid, d->lane, &track,
                                err);
    if (rc == TP_OK)
        rc = tp_pf_sequences_name(&r->sequences, series, &name, err);
    if (rc == TP_OK && name.iid == 0)
        rc = tp_pf_places_text(&r->places, series, &series, err);
    if (rc == TP_OK)
        rc = tp_pf_places_add(&r->places, d->uuid, &place, err);
    if (rc != TP_OK)
        return rc;
    if (name.iid == 0)
        name.ptr = series.ptr;
    *place = (struct tp_pf_place){.uuid = d->uuid,
                                  .track = track,
                                  .is_known = true,
                                  .is_ours = true,
                                  .told = place->told,
                                  .is_counter = d->kind == TP_PF_KIND_SERIES,
                                  .name = name};
    return TP_OK;
}

static uint64_t hash_text(struct tp_str s)
{
    uint64_t h = 0xcbf29ce484222325ULL;

    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3ULL;
    return h | 1;
}

/* Make *ev the metadata event that names a process or thread. */
static int tell_name(struct tp_pf_reader *r, uint64_t uuid, const char *what,
                     struct tp_str text, struct tp_event *ev, bool *is_event,
                     struct tp_err *err)
{
    struct tp_pf_place *place = tp_pf_places_find(&r->places, uuid);
    uint64_t hash = hash_text(text);
    struct tp_str fixed;
    int rc;

    if (text.len == 0 || place->told == hash)
        return TP_OK;
    rc = tp_pf_reader_fix(r, text, &fixed, err);
    if (rc == TP_OK)
        rc = tp_pf_reader_reserve_args(r, 1, err);
    if (rc == TP_OK)
        rc = tp_pf_places_resolve(&r->places, uuid, &ev->track, err);
    if (rc != TP_OK)
        return rc;
    tp_pf_places_find(&r->places, uuid)->told = hash;
    r->args[0] =
        (struct tp_arg){.key = {"name", 4, 0}, .kind = TP_ARG_STRING, .s = fixed};
    ev->kind = TP_EVENT_META;
    ev->phase = 'M';
    ev->name = (struct tp_name){what, (uint32_t)strlen(what), 0};
    ev->args = r->args;
    ev->n_args = 1;
    *is_event = true;
    return TP_OK;
}

static int take_ours(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                     struct descriptor *d, struct tp_event *ev, bool *is_event,
                     struct tp_err *err)
{
    int rc = place_ours(r, q, d, err);

    if (rc != TP_OK || d->kind == TP_PF_KIND_SERIES)
        return rc;
    return tell_name(r, d->uuid,
                     d->kind == TP_PF_KIND_PROCESS ? "process_name" : "thread_name",
                     d->own_name, ev, is_event, err);
}

/* Copy what is new of a descriptor of others into its place. */
static int fill_place(struct tp_pf_reader *r, const struct descriptor *d,
                      const struct details *process, const struct details *thread,
                      const struct details *counter, struct tp_err *err)
{
    struct tp_pf_place *place = NULL;
    struct tp_str name = {NULL, 0};
    int rc = tp_pf_places_add(&r->places, d->uuid, &place, err);

    if (rc == TP_OK && d->name.len > 0 && d->name.len <= UINT32_MAX) {
        rc = tp_pf_reader_fix(r, d->name, &name, err);
        if (rc == TP_OK &&
            !tp_str_equal(name, (struct tp_str){place->name.ptr, place->name.len})) {
            rc = tp_pf_places_text(&r->places, name, &name, err);
            if (rc == TP_OK)
                place->name = (struct tp_name){name.ptr, (uint32_t)name.len, 0};
        }
    }
    if (rc != TP_OK)
        return rc;
    if (!place->is_known)
        place->track = NULL; /* an event that came too early has guessed */
    place->is_known = true;
    place->parent_uuid = d->parent_uuid;
    place->is_counter = d->counter.ptr != NULL;
    place->has_pid = d->process.ptr != NULL || d->thread.ptr != NULL;
    place->has_tid = d->thread.ptr != NULL;
    place->pid = d->thread.ptr != NULL ? thread->first : process->first;
    place->tid = thread->second;
    place->multiplier = counter->first;
    place->is_incremental = counter->second != 0;
    return TP_OK;
}

static int take_others(struct tp_pf_reader *r, const struct descriptor *d,
                       struct tp_event *ev, bool *is_event, struct tp_err *err)
{
    struct details process;
    struct details thread;
    struct details counter;
    int rc;

    if (!read_details(d->process, TP_PF_PROCESS_PID, 0, TP_PF_PROCESS_NAME, &process) ||
        !read_details(d->thread, TP_PF_THREAD_PID, TP_PF_THREAD_TID, TP_PF_THREAD_NAME,
                      &thread) ||
        !read_details(d->counter, TP_PF_COUNTER_MULTIPLIER, TP_PF_COUNTER_INCREMENTAL,
                      0, &counter))
        return tp_fail(err, TP_EINVAL, "a track descriptor is damaged");
    rc = fill_place(r, d, &process, &thread, &counter, err);
    if (rc != TP_OK)
        return rc;
    if (d->thread.ptr != NULL)
        return tell_name(r, d->uuid, "thread_name",
                         thread.name.len > 0 ? thread.name : d->name, ev, is_event,
                         err);
    if (d->process.ptr != NULL)
        return tell_name(r, d->uuid, "process_name",
                         process.name.len > 0 ? process.name : d->name, ev, is_event,
                         err);
    return TP_OK;
}

int tp_pf_reader_describe(struct tp_pf_reader *r, const struct tp_pf_sequence *q,
                          struct tp_str bytes, struct tp_event *ev, bool *is_event,
                          struct tp_err *err)
{
    struct descriptor d;

    *is_event = false;
    if (!read_descriptor(bytes, &d))
        return tp_fail(err, TP_EINVAL, "a track descriptor is damaged");
    if (d.is_ours)
        return take_ours(r, q, &d, ev, is_event, err);
    return take_others(r, &d, ev, is_event, err);
}
