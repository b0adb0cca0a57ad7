/*
 * Why a trace is as good as it is, in one sentence for people, from the same facts as
 * the verdict of core/outcome.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "core/outcome.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/streams.h"

#define NAMES_SHOWN 3

struct text {
    char *out;
    size_t size;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t,
                                                      const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->out + t->len, t->size - t->len, format, args);
    va_end(args);
    if (n > 0)
        t->len = t->len + (size_t)n < t->size ? t->len + (size_t)n : t->size - 1;
}

static const char *separator(const struct text *t)
{
    return t->len == 0 ? "" : "; ";
}

static bool is_missing(const struct tp_member *m)
{
    return tp_life_has_missed(m) ||
           (m->state != TP_MEMBER_UNMATCHED && m->state != TP_MEMBER_DONE &&
            !tp_member_has_posted(m));
}

static bool is_late(const struct tp_member *m)
{
    return tp_member_has_posted(m) &&
           (tp_life_is_awaited(m) || m->state == TP_MEMBER_LOST);
}

/* "2 producers sent nothing: rank-3, rank-5" */
static void say_members(struct text *out, const struct tp_trace *t, uint64_t n,
                        bool (*is)(const struct tp_member *), const char *what)
{
    unsigned shown = 0;

    if (n == 0)
        return;
    say(out, "%s%llu producer%s %s:", separator(out), (unsigned long long)n,
        n == 1 ? "" : "s", what);
    for (size_t i = 0; i < t->n_members && shown <= NAMES_SHOWN; i++) {
        const struct tp_member *m = t->members[i];

        if (!is(m))
            continue;
        if (shown == NAMES_SHOWN)
            say(out, ", ...");
        else
            say(out, "%s %s", shown == 0 ? "" : ",", m->who.name);
        if (shown < NAMES_SHOWN && m->reason[0] != '\0')
            say(out, " (%s)", m->reason);
        shown++;
    }
}

/* Data that came, or was on its way, when none was taken any more. */
static void say_too_late(struct text *out, const struct tp_trace *t)
{
    unsigned long long late = t->late_batches, open = t->n_uploads;

    if (late > 0)
        say(out, "%s%llu batch%s came too late", separator(out), late,
            late == 1 ? "" : "es");
    if (open > 0)
        say(out, "%s%llu upload%s not done in time", separator(out), open,
            open == 1 ? " was" : "s were");
}

static void say_drops(struct text *out, const struct tp_counts *c)
{
    uint64_t n = tp_counts_dropped(c);
    const char *comma = "";

    if (n == 0)
        return;
    say(out, "%s%llu event%s dropped (", separator(out), (unsigned long long)n,
        n == 1 ? "" : "s");
    for (int i = 0; i < TP_DROP_CAUSES; i++) {
        if (c->dropped[i] == 0)
            continue;
        say(out, "%s%s", comma, tp_drop_cause_name(i));
        if (c->dropped[i] != n)
            say(out, " %llu", (unsigned long long)c->dropped[i]);
        comma = ", ";
    }
    say(out, ")");
}

static void say_damage(struct text *out, const struct tp_trace *t)
{
    unsigned shown = 0;

    for (size_t i = 0; i < t->n_streams && shown < NAMES_SHOWN; i++) {
        const struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_FAILED)
            say(out, "%sthe data of %s cannot be read: %s", separator(out), s->who.name,
                s->reason);
        else if (s->damage[0] != '\0')
            say(out, "%sthe data of %s is damaged: %s", separator(out), s->who.name,
                s->damage);
        else if (tp_stream_gaps(s) > 0)
            say(out, "%s%llu of the batches of %s never came", separator(out),
                (unsigned long long)tp_stream_gaps(s), s->who.name);
        else
            continue;
        shown++;
    }
}

static void say_nothing(struct text *out, const struct tp_outcome_facts *f,
                        unsigned why)
{
    unsigned long long emitted = f->counts.emitted;

    if ((why & TP_REASON_FILTERED) != 0 && (why & TP_REASON_DROPPED) != 0)
        say(out, "0 of %llu events are left: %llu did not pass the filter", emitted,
            (unsigned long long)f->counts.filtered); /* the drops follow */
    else if ((why & TP_REASON_FILTERED) != 0)
        say(out, "0 of %llu events passed the filter", emitted);
    else if ((why & TP_REASON_NO_PRODUCERS) != 0)
        say(out, "no producer took part and nothing was posted");
    else if ((why & TP_REASON_NOTHING_EMITTED) != 0 && f->n_damaged == 0)
        say(out, "the producers recorded nothing");
}

/* Who took part: matched producers, and streams that belong to none of them. */
static void gather(const struct tp_trace *t, struct tp_outcome_facts *f)
{
    tp_life_totals(t, &f->counts);
    f->n_late = t->late_batches + t->n_uploads;
    for (size_t i = 0; i < t->n_members; i++) {
        const struct tp_member *m = t->members[i];

        f->n_participants += m->state != TP_MEMBER_UNMATCHED &&
                             !tp_member_has_posted(m);
        f->n_missing += is_missing(m);
        f->n_late += is_late(m);
    }
    for (size_t i = 0; i < t->n_streams; i++) {
        const struct tp_stream *s = t->streams[i];

        f->n_participants += s->state != TP_STREAM_HIDDEN;
        f->n_damaged += s->state == TP_STREAM_FAILED || s->damage[0] != '\0' ||
                        tp_stream_gaps(s) > 0;
    }
}

void tp_life_judge(struct tp_trace *t)
{
    struct text out = {t->reason, sizeof(t->reason), 0};
    struct tp_outcome_facts facts = {0};
    enum tp_outcome outcome;
    unsigned why = 0;

    gather(t, &facts);
    outcome = tp_outcome_judge(&facts, &why);
    snprintf(t->outcome, sizeof(t->outcome), "%s", tp_outcome_name(outcome));
    t->reason[0] = '\0';
    if (outcome == TP_OUTCOME_EMPTY)
        say_nothing(&out, &facts, why);
    say_members(&out, t, facts.n_missing, is_missing, "sent nothing");
    say_members(&out, t, facts.n_late - t->late_batches - t->n_uploads, is_late,
                "not done in time");
    say_too_late(&out, t);
    say_damage(&out, t);
    say_drops(&out, &facts.counts);
}

void tp_life_worsen(struct tp_trace *t, const struct tp_stream *s)
{
    char old[sizeof(t->reason)];
    struct text out = {t->reason, sizeof(t->reason), 0};

    if (tp_outcome_find(tp_str_of(t->outcome)) < (int)TP_OUTCOME_PARTIAL)
        snprintf(t->outcome, sizeof(t->outcome), "%s",
                 tp_outcome_name(TP_OUTCOME_PARTIAL));
    memcpy(old, t->reason, sizeof(old));
    say(&out, "the data of %s is damaged: %s", s->who.name, s->damage);
    if (strstr(old, t->reason) != NULL)
        memcpy(t->reason, old, sizeof(old)); /* it is told already */
    else if (old[0] != '\0')
        say(&out, "; %s", old);
}
