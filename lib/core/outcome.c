#include "core/outcome.h"

#include <stddef.h>

static const char *const outcome_names[TP_OUTCOMES] = {
    [TP_OUTCOME_COMPLETE] = "complete",
    [TP_OUTCOME_LOSSY] = "lossy",
    [TP_OUTCOME_PARTIAL] = "partial",
    [TP_OUTCOME_EMPTY] = "empty",
};

static const struct {
    unsigned bit;
    const char *name;
} reasons_table[] = {
    {TP_REASON_DROPPED, "dropped"},
    {TP_REASON_MISSING, "missing"},
    {TP_REASON_LATE, "late"},
    {TP_REASON_DAMAGED, "damaged"},
    {TP_REASON_NO_PRODUCERS, "no-producers"},
    {TP_REASON_FILTERED, "filtered"},
    {TP_REASON_NOTHING_EMITTED, "nothing-emitted"},
};

const char *tp_outcome_name(enum tp_outcome outcome)
{
    return (unsigned)outcome < TP_OUTCOMES ? outcome_names[outcome] : "unknown";
}

int tp_outcome_find(struct tp_str name)
{
    for (int i = 0; i < TP_OUTCOMES; i++) {
        if (tp_str_is(name, outcome_names[i]))
            return i;
    }
    return -1;
}

const char *tp_outcome_reason_name(unsigned reason)
{
    for (size_t i = 0; i < sizeof(reasons_table) / sizeof(reasons_table[0]); i++) {
        if (reasons_table[i].bit == reason)
            return reasons_table[i].name;
    }
    return "unknown";
}

/* Why nothing at all is stored. */
static unsigned reasons_of_nothing(const struct tp_outcome_facts *f)
{
    if (f->n_participants == 0 && f->counts.emitted == 0)
        return TP_REASON_NO_PRODUCERS;
    if (f->counts.emitted == 0)
        return f->n_missing == f->n_participants ? 0 : TP_REASON_NOTHING_EMITTED;
    return f->counts.filtered > 0 ? TP_REASON_FILTERED : 0;
}

enum tp_outcome tp_outcome_judge(const struct tp_outcome_facts *f, unsigned *reasons)
{
    const unsigned partial = TP_REASON_MISSING | TP_REASON_LATE | TP_REASON_DAMAGED;
    unsigned why = 0;

    if (tp_counts_dropped(&f->counts) > 0)
        why |= TP_REASON_DROPPED;
    if (f->n_missing > 0)
        why |= TP_REASON_MISSING;
    if (f->n_late > 0)
        why |= TP_REASON_LATE;
    if (f->n_damaged > 0 || f->counts.dropped[TP_DROP_DAMAGED] > 0)
        why |= TP_REASON_DAMAGED;
    if (f->counts.stored == 0)
        why |= reasons_of_nothing(f);
    if (reasons != NULL)
        *reasons = why;
    if (f->counts.stored == 0)
        return TP_OUTCOME_EMPTY;
    if ((why & partial) != 0)
        return TP_OUTCOME_PARTIAL;
    return why == 0 ? TP_OUTCOME_COMPLETE : TP_OUTCOME_LOSSY;
}
