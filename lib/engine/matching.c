#include "engine/matching.h"

#include <stdio.h>

#include "engine/join.h"
#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/objects.h"

bool tp_match_is_live_kind(const struct tp_producer *p)
{
    return p->has_synced || tp_identity_is_native(&p->who) || tp_kineto_is(p);
}

static bool has_rank(const struct tp_spec *spec, int64_t rank)
{
    for (size_t i = 0; i < spec->n_ranks; i++) {
        if ((int64_t)spec->ranks[i] == rank)
            return true;
    }
    return spec->n_ranks == 0;
}

static bool has_text(const struct tp_str *items, size_t n, const char *a, const char *b)
{
    for (size_t i = 0; i < n; i++) {
        if (tp_str_is(items[i], a) || tp_str_is(items[i], b))
            return true;
    }
    return n == 0;
}

uint64_t tp_match_silent_ns(const struct tp_producer *p, struct tp_now now)
{
    return now.mono_ns > p->seen_mono_ns ? now.mono_ns - p->seen_mono_ns : 0;
}

uint64_t tp_match_gone_at_ns(const struct tp_producer *p)
{
    return p->seen_mono_ns + p->silence_ns;
}

bool tp_match(const struct tp_spec *spec, const struct tp_producer *p,
              struct tp_now now, char *reason)
{
    uint64_t silent_ns = tp_match_silent_ns(p, now);
    int64_t rank = spec->n_ranks == 0 ? p->who.rank : tp_join_rank(p);

    reason[0] = '\0';
    if (!has_rank(spec, rank) && rank < 0)
        snprintf(reason, TP_MATCH_REASON_BYTES, "not selected: it has no rank");
    else if (!has_rank(spec, rank))
        snprintf(reason, TP_MATCH_REASON_BYTES, "not selected: rank %lld",
                 (long long)rank);
    else if (!has_text(spec->hosts, spec->n_hosts, p->who.host, p->who.host))
        snprintf(reason, TP_MATCH_REASON_BYTES, "not selected: host %s",
                 p->who.host[0] == '\0' ? "unknown" : p->who.host);
    else if (!has_text(spec->producers, spec->n_producers, p->who.name, p->who.id))
        snprintf(reason, TP_MATCH_REASON_BYTES, "not selected: producer");
    else if (tp_match_is_live_kind(p) && silent_ns >= p->silence_ns)
        snprintf(reason, TP_MATCH_REASON_BYTES, "stale %llu s",
                 (unsigned long long)(silent_ns / 1000000000));
    return reason[0] == '\0';
}

/* Where its file is and whose it must be, and how often it asks, when the process is
 * not there any more, or not yet again. */
static void note_folder(struct tp_member *m, const struct tp_producer *p)
{
    if (p->kineto == NULL)
        return;
    tp_kineto_draw_key(m);
    m->is_dirty = m->is_dirty || !m->has_uid || m->uid != p->kineto->seen.peer.uid;
    m->uid = p->kineto->seen.peer.uid;
    m->has_uid = true;
    tp_kineto_note_interval(m, &p->kineto->seen);
}

/* Add one producer as a member. */
static int add_member(struct tp_trace *t, struct tp_producer *p, struct tp_now now,
                      struct tp_member **out, struct tp_err *err)
{
    struct tp_row_identity who = tp_identity_row(&p->who);
    int rc = tp_member_add(t, &who, out, err);

    if (rc != TP_OK)
        return rc;
    (*out)->made_of = p;
    (*out)->state = tp_match(&t->spec, p, now, (*out)->reason) &&
                            tp_kineto_can(t, p, (*out)->reason)
                        ? TP_MEMBER_WAITING
                        : TP_MEMBER_UNMATCHED;
    note_folder(*out, p);
    if (p->kineto != NULL)
        tp_kineto_note_step(*out, &p->kineto->seen);
    (*out)->has_clock = p->has_clock;
    (*out)->clock_offset_ns = p->clock_offset_ns;
    (*out)->clock_error_ns = p->clock_error_ns;
    return TP_OK;
}

int tp_match_all(struct tp_trace *t, struct tp_now now, size_t *n_matched,
                 struct tp_err *err)
{
    size_t cursor = 0;
    void *p;
    int rc = TP_OK;

    *n_matched = 0;
    tp_bulk_reserve(&t->objects, tp_spare_wanted(t->job));
    if (t->job->n_producers >= TP_SPARE_MANY) { /* without memory they grow */
        tp_strmap_reserve(&t->by_producer, t->job->n_producers, NULL);
        tp_strmap_reserve(&t->by_key, t->job->n_producers, NULL);
    }
    while (rc == TP_OK && tp_strmap_next(&t->engine->producers, &cursor, NULL, &p)) {
        struct tp_member *m;

        if (((struct tp_producer *)p)->job != t->job)
            continue;
        rc = add_member(t, p, now, &m, err);
        if (rc == TP_OK)
            *n_matched += m->state == TP_MEMBER_WAITING;
    }
    return rc;
}

void tp_match_attach(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];
        struct tp_producer *p = tp_member_producer(m);

        m->made_of = NULL;
        if (p != NULL && m->state != TP_MEMBER_UNMATCHED)
            tp_member_attach(m, p);
    }
}

int tp_match_join(struct tp_producer *p, struct tp_now now, struct tp_err *err)
{
    struct tp_trace *t = p->job->active;
    char reason[TP_MATCH_REASON_BYTES];
    struct tp_member *m;
    int rc = TP_OK;

    if (t == NULL || t->session.state == TP_SESSION_STOPPING || p->member != NULL ||
        !tp_match(&t->spec, p, now, reason) || !tp_kineto_can(t, p, reason))
        return TP_OK;
    m = tp_member_find(t, p->who.id);
    if (m != NULL && m->kineto.phase == TP_KINETO_PHASE_SETTLED)
        return TP_OK; /* a Kineto process is told once */
    if (m == NULL)
        rc = add_member(t, p, now, &m, err);
    if (rc != TP_OK)
        return rc;
    if (m->state == TP_MEMBER_UNMATCHED || m->state == TP_MEMBER_LOST) {
        m->state = TP_MEMBER_WAITING;
        m->reason[0] = '\0';
        tp_member_changed(m);
    }
    note_folder(m, p);
    tp_member_attach(m, p);
    if (t->start_at_ns != 0)
        tp_kineto_begin(t, now);
    tp_life_touch(t);
    return TP_OK;
}
