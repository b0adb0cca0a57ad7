/*
 * Why a day, and why not always: docs/decisions/023.
 */
#include "engine/window.h"

#include "trace/ingest.h"

#define MARGIN_NS UINT64_C(86400000000000)

static uint64_t entered(const struct tp_trace *t, enum tp_session_state state,
                        uint64_t otherwise_ns)
{
    int64_t wall_ns = 0;

    return tp_session_entered_at(&t->session, state, &wall_ns) ? (uint64_t)wall_ns
                                                               : otherwise_ns;
}

/* From a day before the start to a day after the stop, or as they are known now. */
static struct tp_seal_window life_of(const struct tp_trace *t, struct tp_now now)
{
    uint64_t from = entered(t, TP_SESSION_RECORDING, t->created_ns);
    uint64_t to = entered(t, TP_SESSION_STOPPING, now.wall_ns);

    from = from > MARGIN_NS ? from - MARGIN_NS : 1;
    to = to < INT64_MAX - MARGIN_NS ? to + MARGIN_NS : INT64_MAX;
    return (struct tp_seal_window){(int64_t)from, (int64_t)to};
}

static bool is_within(const struct tp_seal_window *w, int64_t ts_ns)
{
    return ts_ns >= w->from_ns && ts_ns <= w->to_ns;
}

struct tp_seal_window tp_window_asked(const struct tp_stream *s, struct tp_now now)
{
    if (s->trace->is_timed || s->is_file)
        return (struct tp_seal_window){0};
    return life_of(s->trace, now);
}

void tp_window_note(struct tp_stream *s, const struct tp_ingest_result *batch)
{
    s->trace->is_timed = s->trace->is_timed || batch->is_in_life;
}

void tp_window_restore(struct tp_trace *t)
{
    for (size_t i = 0; i < t->n_members && !t->is_timed; i++)
        t->is_timed = t->members[i]->has_clock && t->members[i]->stream_no != 0;
}

struct tp_seal_window tp_window_of(const struct tp_stream *s, struct tp_now now)
{
    /* What was complete before its seal is all within. */
    if (s->is_file || !s->trace->is_timed || s->trace->is_unsealed)
        return (struct tp_seal_window){0};
    return life_of(s->trace, now);
}

bool tp_window_has(const struct tp_stream *s, int64_t first_ns, int64_t last_ns,
                   struct tp_now now)
{
    struct tp_seal_window w = tp_window_of(s, now);

    return w.to_ns == 0 || (is_within(&w, first_ns) && is_within(&w, last_ns));
}
