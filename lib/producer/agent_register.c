/*
 * agent_register.c - types first, so that a trace finds them; then the producer.
 *
 * All types that are new go in one request. When that is refused they go one by one: a
 * type that collides with another job's must not keep the rest from being known. A
 * registry that a trace has frozen is asked again later: when we hear of its end, and
 * now and then, since we may have no part in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/registry.h"
#include "producer/agent_state.h"

#define CALL_MS 10000
#define EXCHANGES 4           /* at attach; the best one counts */
#define TYPES_MAX 64          /* in one request */
#define FROZEN_NS 1000000000u /* the first wait for a trace of others; it doubles */
#define FROZEN_MOST_NS (32 * (uint64_t)FROZEN_NS)
#define REMEMBERED_NS (10 * UINT64_C(1000000000)) /* for long: not again and again */

static struct tp_type_spec spec_of(const struct tp_type *t)
{
    return (struct tp_type_spec){.plugin = {t->plugin, t->plugin_bytes},
                                 .type_name = tp_type_bare_name(t),
                                 .description = tp_str_of(t->description),
                                 .unit = tp_str_of(t->unit),
                                 .kind = t->kind};
}

static bool send_call(struct tp_agent *a, enum tp_agent_call call, const char *path)
{
    struct tp_link_request request = {.method = "POST",
                                      .path = path,
                                      .body = {a->call_body.data, a->call_body.len},
                                      .timeout_ms = CALL_MS};

    if (tp_link_begin(a->link, TP_LINK_REPORT, &request, NULL) != TP_OK)
        return false;
    a->call = call;
    return true;
}

static bool register_types(struct tp_agent *a)
{
    struct tp_registry *registry = tp_recorder_registry(a->recorder);
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    struct tp_type_spec specs[TYPES_MAX];
    size_t n = tp_registry_entries(registry, types);
    size_t most = a->one_by_one ? 1 : TYPES_MAX;

    n = n - a->n_types_known > most ? most : n - a->n_types_known;
    for (size_t i = 0; i < n; i++)
        specs[i] = spec_of(types[a->n_types_known + i]);
    a->n_types_asked = n;
    a->call_body.len = 0;
    return tp_wire_write_types(a->settings.job, specs, n, &a->call_body, NULL) ==
               TP_OK &&
           send_call(a, TP_CALL_TYPES, "/v1/types");
}

static bool register_producer(struct tp_agent *a)
{
    a->call_body.len = 0;
    return tp_wire_write_producer(&a->settings, a->own_id, a->wire_age, &a->call_body,
                                  NULL) == TP_OK &&
           send_call(a, TP_CALL_PRODUCER, "/v1/producers");
}

bool tp_agent_register(struct tp_agent *a, uint64_t now_ns)
{
    size_t n = tp_registry_len(tp_recorder_registry(a->recorder));

    if (n > a->n_types_known && now_ns >= a->types_retry_ns)
        return register_types(a);
    return a->id[0] == '\0' && register_producer(a);
}

/*
 * A service that was restarted without its data forgets us once, and wants its
 * producers back. One that does so again before long never remembers: two of them
 * behind a balancer, each of which knows the half. Without a wait it would be all that
 * either of us does.
 */
void tp_agent_forget(struct tp_agent *a, uint64_t now_ns)
{
    bool is_first = a->n_forgotten++ == 0 || now_ns - a->known_ns > REMEMBERED_NS;

    if (is_first)
        tp_backoff_reset(&a->forgotten);
    a->again_ns = is_first ? 0 : now_ns + tp_agent_wait_ns(a, &a->forgotten, 0);
    a->is_anew = true;
    a->id[0] = '\0';
    a->wire_age = TP_WIRE_NOW; /* it may be a newer service that knows nothing of us */
    a->is_plain_service = false;
    a->n_types_known = 0;
    a->n_types_refused = 0;
    a->types_retry_ns = a->types_wait_ns = 0;
    memset(a->local_ids, 0, sizeof(a->local_ids));
}

/* From now on an id of the service, which may have given that of our type to another
 * one, is our type. The trace at hand may ask for it,
 * since another process registered it, or since we hear late that we did. */
static void take_type(struct tp_agent *a, unsigned service_id, unsigned id)
{
    a->local_ids[service_id] = (unsigned char)id;
    if (tp_typeset_has(&a->asked, service_id))
        tp_recorder_add_type(a->recorder, id);
}

/* The service's ids of the types that were asked for. One that took them and does not
 * say under which ids has them under those of the RFC's function, as we do. */
static void take_types(struct tp_agent *a, struct tp_str body)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    unsigned ids[TYPES_MAX];
    struct tp_err err;

    a->types_wait_ns = 0;
    tp_registry_entries(tp_recorder_registry(a->recorder), types);
    if (tp_wire_read_types(body, a->n_types_asked, ids, &err) != TP_OK) {
        tp_agent_log(a, "%s", err.message);
        for (size_t i = 0; i < a->n_types_asked; i++)
            ids[i] = types[a->n_types_known + i]->id;
    }
    for (size_t i = 0; i < a->n_types_asked; i++)
        take_type(a, ids[i], types[a->n_types_known + i]->id);
    a->n_types_known += a->n_types_asked;
    a->one_by_one = a->one_by_one &&
                    a->n_types_known <
                        tp_registry_len(tp_recorder_registry(a->recorder));
}

/* Who misses a type in the trace that is on finds out here; each is told once. */
static void tell_frozen(struct tp_agent *a)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    size_t end = a->n_types_known + a->n_types_asked;

    tp_registry_entries(tp_recorder_registry(a->recorder), types);
    for (size_t i = a->n_types_known; i < end; i++)
        if (i >= a->n_types_told)
            tp_agent_log(a, "%s is not recorded before the trace that is on has ended",
                         types[i]->name);
    if (end > a->n_types_told)
        a->n_types_told = end;
}

/* The type that was asked for alone is never recorded. */
static void give_up_type(struct tp_agent *a, const struct tp_link_reply *reply)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    struct tp_str problem = tp_wire_problem(reply->body);

    tp_registry_entries(tp_recorder_registry(a->recorder), types);
    tp_agent_log(a, "%s is not recorded: the service refused it: %.*s %.*s",
                 types[a->n_types_known]->name, (int)problem.len, problem.ptr,
                 (int)(reply->body.len > 300 ? 300 : reply->body.len), reply->body.ptr);
    tp_recorder_remove_type(a->recorder, types[a->n_types_known]->id);
    a->n_types_known++;
    a->n_types_refused++;
}

static void take_types_refused(struct tp_agent *a, const struct tp_link_reply *reply,
                               uint64_t now_ns)
{
    struct tp_str problem = tp_wire_problem(reply->body);

    if (tp_str_is(problem, "registry-frozen")) {
        tell_frozen(a);
        a->types_wait_ns = a->types_wait_ns == 0 ? FROZEN_NS : 2 * a->types_wait_ns;
        if (a->types_wait_ns > FROZEN_MOST_NS)
            a->types_wait_ns = FROZEN_MOST_NS;
        a->types_retry_ns = now_ns + a->types_wait_ns;
        return;
    }
    if (a->n_types_asked > 1) {
        a->one_by_one = true;
        return;
    }
    give_up_type(a, reply);
}

static void take_producer(struct tp_agent *a, struct tp_str body, uint64_t now_ns)
{
    struct tp_err err;

    if (tp_wire_read_id(body, a->id, &err) != TP_OK) {
        struct tp_link_reply strange = {.why = err.message};

        tp_agent_failed(a, TP_LINK_REPORT, &strange, now_ns);
        return;
    }
    a->n_exchanges = EXCHANGES;
    a->known_ns = now_ns;
    tp_agent_log(a, "registered as %s", a->id);
}

/* What a request that is wrong in itself gets: asking again gives the same. */
static bool is_final(long status)
{
    return status == 400 || status == 404 || status == 409 || status == 413 ||
           status == 422;
}

void tp_agent_registered(struct tp_agent *a, const struct tp_link_reply *reply,
                         uint64_t now_ns)
{
    enum tp_agent_call call = a->call;

    a->call = TP_CALL_NONE;
    a->has_news = true;
    if (reply->status / 100 == 2) {
        tp_agent_succeeded(a);
        if (call == TP_CALL_TYPES)
            take_types(a, reply->body);
        else
            take_producer(a, reply->body, now_ns);
    } else if (call == TP_CALL_TYPES && is_final(reply->status)) {
        take_types_refused(a, reply, now_ns);
    } else if (call == TP_CALL_PRODUCER && a->wire_age != TP_WIRE_NO_PROCESS_KEYS &&
               tp_str_is(tp_wire_problem(reply->body), "unknown-field")) {
        a->wire_age++; /* an older service: once more without what is new */
    } else {
        tp_agent_failed(a, TP_LINK_REPORT, reply, now_ns);
    }
}
