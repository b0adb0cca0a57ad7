/*
 * kineto_arm.c - who can take part, when all can start, and what each is told.
 *
 * A process hears of a trace when it next asks, up to five seconds later, and then
 * needs its warm-up and two ticks. So the start is planned when the trace is made, from
 * the rhythm of every process that takes part; everybody else of the trace starts at
 * that time, too.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/activity.h"
#include "core/filter.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/matching.h"
#include "engine/objects.h"
#include "kineto/config_text.h"

/* From the plan to the moment at which a process can be answered: its folder has to be
 * made. */
#define LEAD_NS (TP_KINETO_SECOND_NS * 3 / 20)
/* A process that is armed has begun so long after its start, or never will. */
#define BEGIN_NS (2 * TP_KINETO_SECOND_NS)
#define SHORTEST_MS 50
#define HOST_SHOWN 40

uint64_t tp_kineto_warmup_ns(const struct tp_trace *t)
{
    const struct tp_kineto_options *o = &t->spec.kineto_options;

    return o->iterations > 0 ? 0 : o->warmup_ms * TP_NS_PER_MS;
}

/* Types that are included by name, not by a pattern. */
static struct tp_typeset named_types(const struct tp_trace *t)
{
    struct tp_typeset named = {0};

    for (size_t i = 0; i < t->spec.n_lists[TP_FILTER_INCLUDE]; i++) {
        unsigned id;

        if (tp_activity_from_string(NULL, t->spec.lists[TP_FILTER_INCLUDE][i], &id,
                                    NULL, NULL) == TP_OK)
            tp_typeset_add(&named, id);
    }
    return named;
}

/* What a process may be told to record. Not everything that is not excluded: that would
 * be more than it records by itself, and what costs most. And a type that its release
 * may not know is for who names it, since it can cost the whole request. */
static struct tp_typeset types_to_ask(const struct tp_trace *t, bool is_old)
{
    struct tp_typeset all = tp_kineto_known_types(is_old);
    struct tp_typeset named = named_types(t), some = {0};

    if (!is_old)
        tp_typeset_add_all(&all, &named);
    if (t->spec.n_lists[TP_FILTER_INCLUDE] > 0)
        return all;
    for (unsigned id = 0; id < TP_ACTIVITY_DEFAULT_COUNT; id++) {
        if (tp_typeset_has(&all, id))
            tp_typeset_add(&some, id);
    }
    return some;
}

/* What a process is to record; false when the filter does not say. */
static bool types_of(const struct tp_trace *t, bool is_old, struct tp_typeset *out)
{
    struct tp_typeset may = types_to_ask(t, is_old);
    const struct tp_typeset *requested = tp_filter_requested(t->filter);

    for (int i = 0; i < 4; i++)
        out->bits[i] = requested->bits[i] & may.bits[i];
    return t->spec.n_lists[TP_FILTER_INCLUDE] > 0 ||
           t->spec.n_lists[TP_FILTER_EXCLUDE] > 0;
}

bool tp_kineto_is_allowed(const struct tp_kineto_opts *o, uint32_t uid)
{
    for (size_t i = 0; i < o->n_uids; i++) {
        if (o->uids[i] == uid)
            return true;
    }
    return o->any_uid;
}

bool tp_kineto_can(const struct tp_trace *t, const struct tp_producer *p, char *reason)
{
    const struct tp_kineto_link *link = p->kineto;
    struct tp_typeset types;

    if (!tp_kineto_is(p))
        return true;
    if (link == NULL)
        snprintf(reason, TP_MATCH_REASON_BYTES,
                 "lost: it has not asked since it ended or the service started");
    else if (tp_kineto_has_ended(t->engine, p))
        snprintf(reason, TP_MATCH_REASON_BYTES, "lost: process ended");
    else if (!tp_kineto_is_allowed(&t->engine->kineto->opts, link->seen.peer.uid))
        snprintf(reason, TP_MATCH_REASON_BYTES,
                 "not allowed: it belongs to user %u (kineto-allow-uid)",
                 link->seen.peer.uid);
    else if (link->seen.is_busy)
        snprintf(reason, TP_MATCH_REASON_BYTES,
                 "busy: the application is profiling itself");
    else if (t->engine->kineto->no_files[0] != '\0')
        snprintf(reason, TP_MATCH_REASON_BYTES, "no file: %.110s",
                 t->engine->kineto->no_files);
    else if (link->seen.state == TP_KINETO_ARMED)
        snprintf(reason, TP_MATCH_REASON_BYTES, "busy: a request is pending in it");
    else if (types_of(t, link->seen.is_old, &types) && tp_typeset_is_empty(&types))
        snprintf(reason, TP_MATCH_REASON_BYTES,
                 "the filter names no type that Kineto records");
    return reason[0] == '\0';
}

bool tp_kineto_is_waiting(const struct tp_member *m)
{
    return tp_kineto_is_member(m) && m->state == TP_MEMBER_WAITING;
}

size_t tp_kineto_waiting(const struct tp_trace *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_members; i++)
        n += tp_kineto_is_waiting(t->members[i]);
    return n;
}

static const struct tp_kineto_link *link_of(const struct tp_member *m)
{
    const struct tp_producer *p =
        tp_strmap_get(&m->trace->engine->producers, m->who.id, strlen(m->who.id));

    return p == NULL ? NULL : p->kineto;
}

/* As wall time, in whole milliseconds, which is what libkineto takes. */
uint64_t tp_kineto_to_wall(uint64_t at_ns, struct tp_now now)
{
    uint64_t wall_ns = now.wall_ns + (at_ns - now.mono_ns);

    return (wall_ns + TP_NS_PER_MS - 1) / TP_NS_PER_MS * TP_NS_PER_MS;
}

/* The rhythms of all that wait. Returns how many. */
static size_t gather(const struct tp_trace *t, struct tp_kineto_rhythm *out)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_kineto_link *link = link_of(t->members[i]);

        if (tp_kineto_is_waiting(t->members[i]) && link != NULL)
            out[n++] = link->seen.rhythm;
    }
    return n;
}

int tp_kineto_plan(const struct tp_trace *t, struct tp_now now, uint64_t *out,
                   struct tp_err *err)
{
    struct tp_kineto_rhythm *rhythms;
    size_t n = tp_kineto_waiting(t);

    *out = 0;
    if (t->spec.kineto_options.iterations > 0 || n == 0)
        return TP_OK; /* they start with an iteration of theirs */
    rhythms = calloc(n, sizeof(*rhythms));
    if (rhythms == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to plan a start");
    n = gather(t, rhythms);
    if (n > 0)
        *out =
            tp_kineto_to_wall(tp_kineto_common_start(rhythms, n, now.mono_ns + LEAD_NS,
                                                     tp_kineto_warmup_ns(t)),
                              now);
    free(rhythms);
    return TP_OK;
}

/* When the trace is to end, in wall nanoseconds; 0 = it is not known. */
static uint64_t end_of(const struct tp_trace *t)
{
    return t->start_at_ns == 0 ? 0
                               : t->start_at_ns + t->spec.duration_ms * TP_NS_PER_MS;
}

/* Monotonic; a time that has passed gives now. */
uint64_t tp_kineto_to_mono(uint64_t wall_ns, struct tp_now now)
{
    return wall_ns > now.wall_ns ? now.mono_ns + (wall_ns - now.wall_ns) : now.mono_ns;
}

/* A member that begins when the common start is too near has one of its own. */
void tp_kineto_set_times(struct tp_member *m, struct tp_now now)
{
    const struct tp_trace *t = m->trace;
    const struct tp_kineto_link *link = link_of(m);
    struct tp_kineto_part *part = &m->kineto;
    uint64_t end_ns = end_of(t), duration_ms = t->spec.kineto_duration_ms;

    part->start_wall_ns = t->start_at_ns;
    if (link != NULL && !tp_kineto_can_keep(&link->seen.rhythm, now.mono_ns + LEAD_NS,
                                            tp_kineto_to_mono(t->start_at_ns, now),
                                            tp_kineto_warmup_ns(t)))
        part->start_wall_ns = tp_kineto_to_wall(
            tp_kineto_common_start(&link->seen.rhythm, 1, now.mono_ns + LEAD_NS,
                                   tp_kineto_warmup_ns(t)),
            now);
    part->duration_ms = duration_ms;
    if (end_ns != 0 && part->start_wall_ns + duration_ms * TP_NS_PER_MS > end_ns)
        part->duration_ms = end_ns > part->start_wall_ns
                                ? (end_ns - part->start_wall_ns) / TP_NS_PER_MS
                                : 0;
}

void tp_kineto_begin(struct tp_trace *t, struct tp_now now)
{
    struct tp_kineto *k = t->engine->kineto;

    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        if (k == NULL || !tp_kineto_is_waiting(m) ||
            m->kineto.phase != TP_KINETO_PHASE_NONE)
            continue;
        tp_kineto_set_times(m, now);
        if (m->kineto.duration_ms < SHORTEST_MS &&
            t->spec.kineto_options.iterations == 0) {
            tp_kineto_settle(m, TP_MEMBER_REFUSED,
                             "too late: the trace ends before it could start");
            continue;
        }
        m->kineto.phase = TP_KINETO_PHASE_FOLDER;
        m->kineto.needs_task = true;
        k->has_tasks = true;
    }
}

void tp_kineto_draw_key(struct tp_member *m)
{
    const struct tp_engine *e = m->trace->engine;
    uint8_t bytes[TP_KINETO_FOLDER_KEY_BYTES / 2];

    if (m->folder_key[0] != '\0')
        return;
    e->opts.random(bytes, sizeof(bytes), e->opts.random_arg);
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(m->folder_key + 2 * i, 3, "%02x", bytes[i]);
    tp_member_changed(m);
    m->trace->news_ns = 0;
}

void tp_kineto_folder(const struct tp_member *m, char *out)
{
    const char *key = m->folder_key;

    snprintf(out, 256, "%s-%s%s%s", m->trace->id, m->who.id, *key == '\0' ? "" : "-",
             key);
}

/* "node-7_r3.pt.trace.json", of characters that libkineto takes. */
static int put_file_name(const struct tp_member *m, struct tp_buf *out,
                         struct tp_err *err)
{
    char host[HOST_SHOWN + 1] = "host";
    size_t n = 0;

    for (const char *p = m->who.host; *p != '\0' && n < HOST_SHOWN; p++) {
        bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                        (*p >= '0' && *p <= '9');

        host[n++] = is_plain ? *p : '-';
        host[n] = '\0';
    }
    if (m->who.rank >= 0)
        return tp_buf_printf(out, err, "%s_r%lld" TP_KINETO_SUFFIX, host,
                             (long long)m->who.rank);
    return tp_buf_printf(out, err, "%s" TP_KINETO_SUFFIX, host);
}

static int put_path(const struct tp_member *m, struct tp_buf *out, struct tp_err *err)
{
    char folder[256];
    int rc;

    tp_kineto_folder(m, folder);
    rc = tp_buf_printf(out, err, "%s/%s/", m->trace->engine->kineto->opts.trace_dir,
                       folder);
    return rc == TP_OK ? put_file_name(m, out, err) : rc;
}

/* What the member is told. */
static int write_text(const struct tp_member *m, const struct tp_kineto_link *link,
                      struct tp_buf *out, struct tp_err *err)
{
    const struct tp_trace *t = m->trace;
    const struct tp_kineto_options *o = &t->spec.kineto_options;
    bool by_time = o->iterations == 0;
    struct tp_buf path = {0};
    struct tp_kineto_config c = {
        .folder = tp_str_of(t->engine->kineto->opts.root_dir),
        .start_wall_ms = by_time ? m->kineto.start_wall_ns / TP_NS_PER_MS : 0,
        .duration_ms = by_time ? m->kineto.duration_ms : 0,
        .warmup_s = tp_kineto_warmup_ns(t) / TP_KINETO_SECOND_NS,
        .iterations = o->iterations,
        .iteration_roundup = o->iteration_roundup,
        .record_shapes = o->record_shapes,
        .profile_memory = o->profile_memory,
        .with_stack = o->with_stack,
        .with_flops = o->with_flops,
        .with_modules = o->with_modules,
        .trace_id = tp_str_of(t->id),
    };
    int rc = put_path(m, &path, err);

    c.has_types = types_of(t, link->seen.is_old, &c.types);
    c.log_file = (struct tp_str){path.data, path.len};
    if (rc == TP_OK)
        rc = tp_kineto_config_write(&c, out, err);
    tp_buf_fini(&path);
    return rc;
}

static struct tp_kineto_order order_of(const struct tp_member *m, struct tp_now now)
{
    uint64_t start_ns = tp_kineto_to_mono(m->kineto.start_wall_ns, now);
    bool by_time = m->trace->spec.kineto_options.iterations == 0;

    return (struct tp_kineto_order){
        .serve_until_ns =
            by_time ? tp_kineto_serve_until(start_ns, tp_kineto_warmup_ns(m->trace))
                    : UINT64_MAX / 2,
        .begin_until_ns = by_time ? start_ns + BEGIN_NS : UINT64_MAX / 2,
    };
}

/* The moment from which on it may be told; 0 = at once. */
static uint64_t hold_until(const struct tp_member *m, const struct tp_kineto_link *link,
                           struct tp_now now)
{
    struct tp_kineto_rhythm rhythm = link->seen.rhythm;

    if (m->trace->spec.kineto_options.iterations > 0)
        return 0;
    if (m->interval_ns > rhythm.interval_ns) /* which a restart may have forgotten */
        rhythm.interval_ns = m->interval_ns;
    return tp_kineto_hold_until(&rhythm,
                                tp_kineto_to_mono(m->kineto.start_wall_ns, now),
                                tp_kineto_warmup_ns(m->trace));
}

/* A start that was asked for stays, and one whose ticks are at it, so that it could
 * drop its request, begins a little sooner and ends when the others do. */
static void keep_away(struct tp_member *m, const struct tp_kineto_link *link,
                      struct tp_now now)
{
    const struct tp_trace *t = m->trace;
    struct tp_kineto_part *part = &m->kineto;
    uint64_t end_ns = part->start_wall_ns + part->duration_ms * TP_NS_PER_MS;

    if (t->spec.start != TP_START_AT || t->spec.kineto_options.iterations > 0 ||
        t->start_at_ns != t->spec.start_wall_ns || part->start_wall_ns > t->start_at_ns)
        return;
    part->start_wall_ns = t->start_at_ns -
                          tp_kineto_sooner(&link->seen.rhythm, now.mono_ns,
                                           tp_kineto_to_mono(t->start_at_ns, now),
                                           tp_kineto_warmup_ns(t));
    part->duration_ms = (end_ns - part->start_wall_ns) / TP_NS_PER_MS;
}

void tp_kineto_arm(struct tp_member *m, struct tp_now now)
{
    struct tp_producer *p = tp_kineto_producer(m);
    struct tp_kineto_order order;
    struct tp_buf text = {0};
    struct tp_err err = {0};
    int rc;

    if (p == NULL || m->kineto.phase != TP_KINETO_PHASE_READY)
        return;
    keep_away(m, p->kineto, now);
    order = order_of(m, now);
    m->kineto.serve_until_ns = order.serve_until_ns;
    m->kineto.hold_until_ns = hold_until(m, p->kineto, now);
    if (m->kineto.hold_until_ns > now.mono_ns)
        return; /* kineto_follow.c comes back to it */
    m->kineto.hold_until_ns = 0;
    rc = write_text(m, p->kineto, &text, &err);
    if (rc == TP_OK) {
        struct tp_kineto *k = m->trace->engine->kineto;

        order.text = (struct tp_str){text.data, text.len};
        tp_lock_take(&k->lock);
        rc = tp_kineto_table_order(k->table, p->kineto->seen.id, &order, &err);
        tp_lock_give(&k->lock);
    }
    tp_buf_fini(&text);
    if (rc == TP_OK)
        m->kineto.phase = TP_KINETO_PHASE_ORDERED;
    else if (rc == TP_EINVAL)
        tp_kineto_settle(m, TP_MEMBER_REFUSED, err.message);
    /* Anything else is tried again with its next request, as long as there is time. */
}

void tp_kineto_disarm(struct tp_producer *p)
{
    struct tp_kineto *k = p->member == NULL ? NULL : p->member->trace->engine->kineto;

    if (k == NULL || p->kineto == NULL)
        return;
    tp_lock_take(&k->lock);
    tp_kineto_table_withdraw(k->table, p->kineto->seen.id);
    tp_lock_give(&k->lock);
}

void tp_kineto_through(struct tp_member *m, struct tp_now now)
{
    struct tp_producer *p = tp_kineto_producer(m);
    struct tp_kineto *k = m->trace->engine->kineto;
    uint64_t end_wall_ns = m->kineto.start_wall_ns +
                           m->kineto.duration_ms * TP_NS_PER_MS;

    if (p == NULL)
        return;
    tp_lock_take(&k->lock);
    tp_kineto_table_through(k->table, p->kineto->seen.id,
                            now.mono_ns - (now.wall_ns - end_wall_ns));
    tp_kineto_table_get(k->table, p->kineto->seen.id, &p->kineto->seen);
    tp_lock_give(&k->lock);
}
