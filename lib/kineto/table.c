/*
 * table.c - a table from its making to its end: orders, news, and what time brings.
 *
 *   entries.c  who is in it      answer.c  what a datagram does
 */
#include "kineto/table.h"

#include <stdlib.h>

#include "base/err.h"
#include "kineto/datagram.h"
#include "kineto/entries.h"

int tp_kineto_table_new(struct tp_kineto_table **out, struct tp_err *err)
{
    struct tp_kineto_table *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a table of Kineto processes");
    t->last_news = &t->first_news;
    t->sweep_ns = UINT64_MAX;
    /* Room for any answer, so that answering allocates nothing. */
    if (tp_buf_reserve(&t->out, TP_KINETO_HEADER_BYTES + TP_KINETO_ORDER_MAX_BYTES,
                       err) != TP_OK) {
        free(t);
        return TP_ENOMEM;
    }
    *out = t;
    return TP_OK;
}

void tp_kineto_table_free(struct tp_kineto_table *t)
{
    size_t cursor = 0;
    void *e;

    if (t == NULL)
        return;
    while (tp_strmap_next(&t->by_id, &cursor, NULL, &e))
        tp_kineto_entry_free(e);
    tp_strmap_fini(&t->by_key);
    tp_strmap_fini(&t->by_id);
    tp_strmap_fini(&t->by_pid);
    tp_strmap_fini(&t->by_uid);
    tp_buf_fini(&t->out);
    free(t);
}

int tp_kineto_table_order(struct tp_kineto_table *t, uint64_t target,
                          const struct tp_kineto_order *order, struct tp_err *err)
{
    struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, target);
    char *text;

    if (e == NULL || e->seen.state == TP_KINETO_GONE)
        return tp_fail(err, TP_ENOTFOUND, "there is no such Kineto process");
    if (e->seen.state == TP_KINETO_ARMED || e->seen.state == TP_KINETO_BUSY)
        return tp_fail(err, TP_ESTATE, "the Kineto process is %s",
                       tp_kineto_state_name(e->seen.state));
    if (order->text.len == 0 || order->text.len > TP_KINETO_ORDER_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "a configuration has 1 to %d bytes, not %zu",
                       TP_KINETO_ORDER_MAX_BYTES, order->text.len);
    text = malloc(order->text.len);
    if (text == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a configuration");
    memcpy(text, order->text.ptr, order->text.len);
    tp_kineto_entry_forget_order(e);
    e->text = text;
    e->text_bytes = order->text.len;
    e->serve_until_ns = order->serve_until_ns;
    e->begin_until_ns = order->begin_until_ns;
    e->seen.has_order = true;
    e->seen.served_ns = 0;
    tp_kineto_entry_sweep_by(t, order->serve_until_ns + 1);
    return TP_OK;
}

bool tp_kineto_table_withdraw(struct tp_kineto_table *t, uint64_t target)
{
    struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, target);

    if (e == NULL || !e->seen.has_order)
        return false;
    tp_kineto_entry_forget_order(e);
    return true;
}

void tp_kineto_table_through(struct tp_kineto_table *t, uint64_t target,
                             uint64_t end_ns)
{
    struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, target);

    if (e == NULL)
        return;
    e->seen.rhythm.tick_ns = end_ns;
    e->seen.is_busy = false; /* as of its last request, which was before the end */
    if (e->seen.state != TP_KINETO_ARMED && e->seen.state != TP_KINETO_BUSY)
        return;
    tp_kineto_entry_move(e, TP_KINETO_IDLE);
    tp_kineto_entry_forget_order(e);
}

bool tp_kineto_table_get(const struct tp_kineto_table *t, uint64_t target,
                         struct tp_kineto_target *out)
{
    const struct tp_kineto_entry *e = tp_kineto_entry_by_id(t, target);

    if (e != NULL)
        *out = e->seen;
    return e != NULL;
}

bool tp_kineto_table_next_news(struct tp_kineto_table *t, struct tp_kineto_target *out)
{
    struct tp_kineto_entry *e = t->first_news;

    if (e == NULL)
        return false;
    t->first_news = e->next_news;
    if (t->first_news == NULL)
        t->last_news = &t->first_news;
    e->is_queued = false;
    *out = e->seen;
    e->seen.news = 0;
    if (e->seen.state == TP_KINETO_GONE) {
        tp_strmap_remove(&t->by_id, (const char *)&e->seen.id, 8);
        tp_kineto_entry_free(e);
    }
    return true;
}

static uint64_t sweep_entry(struct tp_kineto_table *t, struct tp_kineto_entry *e,
                            uint64_t now_ns)
{
    uint64_t gone_ns = e->seen.rhythm.last_ns + TP_KINETO_SILENCE_NS;

    if (now_ns >= gone_ns) {
        tp_kineto_entry_let_go(t, e);
        return UINT64_MAX;
    }
    if (e->seen.has_order && now_ns > e->serve_until_ns) {
        tp_kineto_entry_forget_order(e);
        tp_kineto_entry_tell(t, e, TP_KINETO_NEWS_MISSED);
    }
    return e->seen.has_order && e->serve_until_ns < gone_ns ? e->serve_until_ns + 1
                                                            : gone_ns;
}

uint64_t tp_kineto_table_sweep(struct tp_kineto_table *t, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    size_t cursor = 0;
    void *e;

    if (now_ns < t->sweep_ns)
        return t->sweep_ns;
    while (tp_strmap_next(&t->by_key, &cursor, NULL, &e)) {
        uint64_t at_ns = sweep_entry(t, e, now_ns);

        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    t->sweep_ns = next_ns;
    return next_ns;
}

void tp_kineto_table_stats(const struct tp_kineto_table *t, struct tp_kineto_stats *out)
{
    *out = t->stats;
}
