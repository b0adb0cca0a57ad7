/*
 * registry.c - an open-addressing table whose hash function is the RFC's.
 *
 *   by_id     [50 .. 254] -> type       the slot is the id: home = 50 + hash % 205
 *   in_order  [0 .. n_types) -> type    order of registration
 *
 * Types are immutable and never removed, so a reader needs no lock: it loads a pointer
 * with acquire, which pairs with the release of the one that published it, and sees a
 * complete type or none. Writers are rare and take the lock. A read-write lock would do
 * too, but then every `POST /types` of a known type and every batch of events would
 * write to one shared cache line.
 *
 * A batch is planned as a whole under the lock (ids chosen, memory taken) and published
 * only then, so a reader never sees a type that is taken back.
 *
 * Probing: the step is derived from the part of the hash that the home does not use,
 * and has no common divisor with 205 = 5 * 41, so it comes past every slot. Types that
 * share a home then mostly go different ways.
 */
#include "core/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

#define SHOWN_BYTES 200 /* of an unknown name, in a message */

typedef _Atomic(const struct tp_type *) type_ref;

struct tp_registry {
    enum tp_collision_policy on_collision; /* these two never change */
    size_t max_types;

    pthread_mutex_t lock; /* guards every write to what follows */
    type_ref by_id[TP_ACTIVITY_IDS];
    type_ref in_order[TP_ACTIVITY_CUSTOM_COUNT];
    _Atomic size_t n_types;
    _Atomic unsigned n_freezes;
};

int tp_registry_new(const struct tp_registry_options *options, struct tp_registry **out,
                    struct tp_err *err)
{
    struct tp_registry *r;
    size_t max_types = options == NULL ? 0 : options->max_types;

    if (max_types > TP_ACTIVITY_CUSTOM_COUNT)
        return tp_fail(err, TP_EINVAL, "%zu types do not fit into %u ids", max_types,
                       TP_ACTIVITY_CUSTOM_COUNT);
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a registry");
    r->on_collision = options == NULL ? TP_COLLISION_REJECT : options->on_collision;
    r->max_types = max_types == 0 ? TP_ACTIVITY_CUSTOM_COUNT : max_types;
    pthread_mutex_init(&r->lock, NULL); /* cannot fail for a default mutex on Linux */
    *out = r;
    return TP_OK;
}

void tp_registry_free(struct tp_registry *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n_types; i++)
        free((void *)(uintptr_t)atomic_load(&r->in_order[i]));
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void tp_registry_hold(struct tp_registry *r)
{
    pthread_mutex_lock(&r->lock);
}

void tp_registry_let_go(struct tp_registry *r)
{
    pthread_mutex_unlock(&r->lock);
}

size_t tp_registry_len(const struct tp_registry *r)
{
    return atomic_load_explicit(&r->n_types, memory_order_acquire);
}

const struct tp_type *tp_registry_at(const struct tp_registry *r, unsigned id)
{
    if (r == NULL || id >= TP_ACTIVITY_IDS)
        return NULL;
    return atomic_load_explicit(&r->by_id[id], memory_order_acquire);
}

const char *tp_registry_cat(const struct tp_registry *r, unsigned id)
{
    const struct tp_type *t = tp_registry_at(r, id);

    return t == NULL ? NULL : t->name;
}

size_t tp_registry_entries(const struct tp_registry *r, const struct tp_type **out)
{
    size_t n = tp_registry_len(r);

    /* The places below n were written before n: its acquire covers them. */
    for (size_t i = 0; i < n; i++)
        out[i] = atomic_load_explicit(&r->in_order[i], memory_order_relaxed);
    return n;
}

static bool is_type(const struct tp_type *t, uint32_t hash, struct tp_str plugin,
                    struct tp_str type_name)
{
    return t->hash == hash &&
           tp_str_equal((struct tp_str){t->plugin, t->plugin_bytes}, plugin) &&
           tp_str_equal(tp_type_bare_name(t), type_name);
}

const struct tp_type *tp_registry_find(const struct tp_registry *r,
                                       struct tp_str plugin, struct tp_str type_name)
{
    uint32_t hash = tp_activity_hash(plugin, type_name);
    unsigned home = TP_ACTIVITY_CUSTOM_BASE + hash % TP_ACTIVITY_CUSTOM_COUNT;
    const struct tp_type *t = tp_registry_at(r, home);
    size_t n;

    if (t != NULL && is_type(t, hash, plugin, type_name))
        return t;
    /* Moved away by probing, or by a restart under another policy, or not there. */
    n = r == NULL ? 0 : tp_registry_len(r);
    for (size_t i = 0; i < n; i++) {
        t = atomic_load_explicit(&r->in_order[i], memory_order_relaxed);
        if (is_type(t, hash, plugin, type_name))
            return t;
    }
    return NULL;
}

static const struct tp_type *find_planned(const struct tp_registry_plan *plan,
                                          const struct tp_type_spec *spec)
{
    uint32_t hash = tp_activity_hash(spec->plugin, spec->type_name);

    for (size_t i = 0; i < plan->n; i++) {
        if (is_type(plan->types[i], hash, spec->plugin, spec->type_name))
            return plan->types[i];
    }
    return NULL;
}

/* The type that has an id or will have it, or NULL. */
static const struct tp_type *holder_of(const struct tp_registry *r,
                                       const struct tp_registry_plan *plan, unsigned id)
{
    for (size_t i = 0; i < plan->n; i++) {
        if (plan->types[i]->id == id)
            return plan->types[i];
    }
    return tp_registry_at(r, id);
}

static unsigned probe_step(uint32_t hash)
{
    unsigned step = 1 + hash / TP_ACTIVITY_CUSTOM_COUNT %
                            (TP_ACTIVITY_CUSTOM_COUNT - 1); /* 1 - 204 */

    while (step % 5 == 0 || step % 41 == 0)
        step++;
    return step;
}

static int fail_collision(const struct tp_type_spec *spec, const struct tp_type *holder,
                          struct tp_registry_detail *detail, struct tp_err *err)
{
    tp_detail_init(detail, TP_REGISTRY_COLLISION);
    if (detail != NULL) {
        detail->id = holder->id;
        detail->holder_id = holder->id;
        memcpy(detail->holder_name, holder->name, sizeof(holder->name));
    }
    return tp_fail(err, TP_EEXIST, "'%.*s.%.*s' has id %u, which '%s' holds",
                   (int)spec->plugin.len, spec->plugin.ptr, (int)spec->type_name.len,
                   spec->type_name.ptr, holder->id, holder->name);
}

/* Choose the id of a new type. One is free: the caller has checked the count. */
static int choose_id(const struct tp_registry *r, const struct tp_registry_plan *plan,
                     const struct tp_type_spec *spec, unsigned *out,
                     struct tp_registry_detail *detail, struct tp_err *err)
{
    uint32_t hash = tp_activity_hash(spec->plugin, spec->type_name);
    unsigned slot = hash % TP_ACTIVITY_CUSTOM_COUNT;
    const struct tp_type *holder = holder_of(r, plan, TP_ACTIVITY_CUSTOM_BASE + slot);

    if (holder != NULL && r->on_collision == TP_COLLISION_REJECT)
        return fail_collision(spec, holder, detail, err);
    while (holder_of(r, plan, TP_ACTIVITY_CUSTOM_BASE + slot) != NULL)
        slot = (slot + probe_step(hash)) % TP_ACTIVITY_CUSTOM_COUNT;
    *out = TP_ACTIVITY_CUSTOM_BASE + slot;
    return TP_OK;
}

/* A type as the spec describes it, in one allocation. */
static struct tp_type *make_type(const struct tp_type_spec *spec, unsigned id)
{
    struct tp_type *t = calloc(1, sizeof(*t) + spec->description.len + 1);
    char *description = (char *)(t + 1);
    size_t plugin_bytes = spec->plugin.len;

    if (t == NULL)
        return NULL;
    t->id = id;
    t->hash = tp_activity_hash(spec->plugin, spec->type_name);
    t->is_resolved = id != tp_activity_compute_id(spec->plugin, spec->type_name);
    t->kind = spec->kind == TP_TYPE_KIND_UNSET ? TP_TYPE_SLICE : spec->kind;
    t->plugin_bytes = (uint16_t)plugin_bytes;
    t->name_bytes = (uint16_t)(plugin_bytes + 1 + spec->type_name.len);
    memcpy(t->plugin, spec->plugin.ptr, plugin_bytes);
    memcpy(t->name, spec->plugin.ptr, plugin_bytes);
    t->name[plugin_bytes] = '.';
    t->type_name = t->name + plugin_bytes + 1;
    memcpy(t->name + plugin_bytes + 1, spec->type_name.ptr, spec->type_name.len);
    if (spec->unit.len != 0)
        memcpy(t->unit, spec->unit.ptr, spec->unit.len);
    if (spec->description.len != 0)
        memcpy(description, spec->description.ptr, spec->description.len);
    t->description = description;
    return t;
}

/* Whether one more type may be added to those that are there and planned. */
static int check_room(const struct tp_registry *r, const struct tp_registry_plan *plan,
                      struct tp_registry_detail *detail, struct tp_err *err)
{
    if (r->n_types + plan->n < r->max_types)
        return TP_OK;
    tp_detail_init(detail, TP_REGISTRY_FULL);
    return tp_fail(err, TP_EQUOTA, "the limit of %zu custom types is reached",
                   r->max_types);
}

static int check_not_frozen(const struct tp_registry *r,
                            const struct tp_type_spec *spec,
                            struct tp_registry_detail *detail, struct tp_err *err)
{
    if (r->n_freezes == 0)
        return TP_OK;
    tp_detail_init(detail, TP_REGISTRY_FROZEN);
    return tp_fail(err, TP_ESTATE, "a trace is active, so '%.*s.%.*s' cannot be added",
                   (int)spec->plugin.len, spec->plugin.ptr, (int)spec->type_name.len,
                   spec->type_name.ptr);
}

/* Add a type with this id to the plan. */
static int plan_type(struct tp_registry_plan *plan, const struct tp_type_spec *spec,
                     unsigned id, struct tp_registry_detail *detail, struct tp_err *err)
{
    struct tp_type *t = make_type(spec, id);

    if (t == NULL) {
        tp_detail_init(detail, TP_REGISTRY_NO_REASON);
        return tp_fail(err, TP_ENOMEM, "no memory for an activity type");
    }
    plan->types[plan->n++] = t;
    return TP_OK;
}

/* Say what the request and the type that was there first disagree on. */
static void note_differences(const struct tp_type_spec *spec,
                             struct tp_registration *out)
{
    const struct tp_type *t = out->type;

    out->kind_differs = spec->kind != TP_TYPE_KIND_UNSET && spec->kind != t->kind;
    out->unit_differs = spec->unit.len != 0 && !tp_str_is(spec->unit, t->unit);
    out->description_differs = spec->description.len != 0 &&
                               !tp_str_is(spec->description, t->description);
}

/* Find a spec's type or plan it. Under the lock. */
static int plan_spec(const struct tp_registry *r, struct tp_registry_plan *plan,
                     const struct tp_type_spec *spec, struct tp_registration *out,
                     struct tp_registry_detail *detail, struct tp_err *err)
{
    unsigned id = 0;
    int rc;

    out->type = tp_registry_find(r, spec->plugin, spec->type_name);
    if (out->type == NULL)
        out->type = find_planned(plan, spec);
    if (out->type != NULL) {
        note_differences(spec, out);
        out->id = out->type->id;
        return TP_OK;
    }
    rc = check_not_frozen(r, spec, detail, err);
    if (rc == TP_OK)
        rc = check_room(r, plan, detail, err);
    if (rc == TP_OK)
        rc = choose_id(r, plan, spec, &id, detail, err);
    if (rc == TP_OK)
        rc = plan_type(plan, spec, id, detail, err);
    if (rc != TP_OK)
        return rc;
    out->type = plan->types[plan->n - 1];
    out->id = id;
    out->is_new = true;
    return TP_OK;
}

/* Show the planned types to readers. Under the lock. */
static void publish(struct tp_registry *r, const struct tp_registry_plan *plan)
{
    size_t n = r->n_types;

    for (size_t i = 0; i < plan->n; i++) {
        const struct tp_type *t = plan->types[i];

        /* Release: who finds the pointer sees the bytes that it points to. */
        atomic_store_explicit(&r->in_order[n + i], t, memory_order_release);
        atomic_store_explicit(&r->by_id[t->id], t, memory_order_release);
    }
    atomic_store_explicit(&r->n_types, n + plan->n, memory_order_release);
}

void tp_registry_drop(struct tp_registry_plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        free(plan->types[i]);
    plan->n = 0;
}

static int check_spec(const struct tp_type_spec *spec, size_t index,
                      struct tp_registry_detail *detail, struct tp_err *err)
{
    const char *field = "";
    int rc = tp_type_check(spec, &field, err);

    if (rc == TP_OK || detail == NULL)
        return rc;
    tp_detail_init(detail, TP_REGISTRY_BAD_SPEC);
    detail->field = field;
    detail->index = index;
    return rc;
}

static int check_specs(const struct tp_type_spec *specs, size_t n,
                       struct tp_registry_detail *detail, struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; i < n && rc == TP_OK; i++)
        rc = check_spec(&specs[i], i, detail, err);
    return rc;
}

/* Plan all specs or none. Under the lock. */
static int plan_specs(const struct tp_registry *r, const struct tp_type_spec *specs,
                      size_t n, struct tp_registration *out,
                      struct tp_registry_plan *plan, struct tp_registry_detail *detail,
                      struct tp_err *err)
{
    int rc = TP_OK;

    plan->n = 0;
    plan->n_before = r->n_types;
    for (size_t i = 0; i < n && rc == TP_OK; i++) {
        rc = plan_spec(r, plan, &specs[i], &out[i], detail, err);
        if (rc != TP_OK && detail != NULL)
            detail->index = i;
    }
    if (rc == TP_OK)
        return TP_OK;
    tp_registry_drop(plan);
    if (n > 0)
        memset(out, 0, n * sizeof(*out));
    return rc;
}

/* Clear what will be told of n types and check them. */
static int begin_many(const struct tp_type_spec *specs, size_t n,
                      struct tp_registration *out, struct tp_registry_detail *detail,
                      struct tp_err *err)
{
    if (n > 0)
        memset(out, 0, n * sizeof(*out));
    return check_specs(specs, n, detail, err);
}

int tp_registry_plan(struct tp_registry *r, const struct tp_type_spec *specs, size_t n,
                     struct tp_registration *out, struct tp_registry_plan *plan,
                     struct tp_registry_detail *detail, struct tp_err *err)
{
    int rc = begin_many(specs, n, out, detail, err);

    if (rc != TP_OK)
        return rc;
    pthread_mutex_lock(&r->lock);
    rc = plan_specs(r, specs, n, out, plan, detail, err);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void tp_registry_publish(struct tp_registry *r, struct tp_registry_plan *plan)
{
    pthread_mutex_lock(&r->lock);
    assert(plan->n_before == r->n_types);
    publish(r, plan);
    pthread_mutex_unlock(&r->lock);
    plan->n = 0;
}

int tp_registry_register_many(struct tp_registry *r, const struct tp_type_spec *specs,
                              size_t n, struct tp_registration *out,
                              struct tp_registry_detail *detail, struct tp_err *err)
{
    struct tp_registry_plan plan;
    int rc = begin_many(specs, n, out, detail, err);

    if (rc != TP_OK)
        return rc;
    pthread_mutex_lock(&r->lock);
    rc = plan_specs(r, specs, n, out, &plan, detail, err);
    if (rc == TP_OK)
        publish(r, &plan);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int tp_registry_register(struct tp_registry *r, const struct tp_type_spec *spec,
                         struct tp_registration *out, struct tp_registry_detail *detail,
                         struct tp_err *err)
{
    return tp_registry_register_many(r, spec, 1, out, detail, err);
}

/* Plan a type at a given id, if it is not there at that id. Under the lock. */
static int plan_restored(const struct tp_registry *r, struct tp_registry_plan *plan,
                         const struct tp_type_spec *spec, unsigned id,
                         struct tp_registry_detail *detail, struct tp_err *err)
{
    const struct tp_type *known = tp_registry_find(r, spec->plugin, spec->type_name);
    const struct tp_type *holder = known != NULL ? known : tp_registry_at(r, id);
    int rc;

    if (known != NULL && known->id == id)
        return TP_OK;
    if (holder != NULL)
        return fail_collision(spec, holder, detail, err);
    rc = check_room(r, plan, detail, err);
    return rc != TP_OK ? rc : plan_type(plan, spec, id, detail, err);
}

int tp_registry_restore(struct tp_registry *r, const struct tp_type_spec *spec,
                        unsigned id, struct tp_registry_detail *detail,
                        struct tp_err *err)
{
    struct tp_registry_plan plan = {.n = 0};
    int rc = check_spec(spec, 0, detail, err);

    if (rc != TP_OK)
        return rc;
    if (!tp_activity_is_custom(id)) {
        tp_detail_init(detail, TP_REGISTRY_BAD_SPEC);
        if (detail != NULL)
            detail->field = "id";
        return tp_fail(err, TP_EINVAL, "id %u is not within 50 to 254", id);
    }
    pthread_mutex_lock(&r->lock);
    rc = plan_restored(r, &plan, spec, id, detail, err);
    if (rc == TP_OK)
        publish(r, &plan);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void tp_registry_freeze(struct tp_registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->n_freezes++;
    pthread_mutex_unlock(&r->lock);
}

void tp_registry_unfreeze(struct tp_registry *r)
{
    pthread_mutex_lock(&r->lock);
    assert(r->n_freezes > 0);
    r->n_freezes--;
    pthread_mutex_unlock(&r->lock);
}

bool tp_registry_is_frozen(const struct tp_registry *r)
{
    return atomic_load_explicit(&r->n_freezes, memory_order_acquire) != 0;
}

/* Find a type by its full name, split at the first `.`. */
static const struct tp_type *find_full(const struct tp_registry *r, struct tp_str name)
{
    const char *dot = name.len == 0 ? NULL : memchr(name.ptr, '.', name.len);
    size_t plugin_bytes;

    if (dot == NULL)
        return NULL;
    plugin_bytes = (size_t)(dot - name.ptr);
    return tp_registry_find(r, (struct tp_str){name.ptr, plugin_bytes},
                            (struct tp_str){dot + 1, name.len - plugin_bytes - 1});
}

static int fail_ambiguous(struct tp_str name, const struct tp_type *const *types,
                          size_t n, struct tp_registry_detail *detail,
                          struct tp_err *err)
{
    tp_detail_init(detail, TP_REGISTRY_AMBIGUOUS);
    for (size_t i = 0; i < n; i++)
        tp_detail_add(detail, tp_type_full_name(types[i]));
    return tp_fail(err, TP_EAMBIGUOUS, "'%.*s' can be '%s' or '%s'%s", (int)name.len,
                   name.ptr, types[0]->name, types[1]->name,
                   n > 2 ? " or another plugin's" : "");
}

int tp_registry_lookup(const struct tp_registry *r, struct tp_str name,
                       const struct tp_type **out, struct tp_registry_detail *detail,
                       struct tp_err *err)
{
    const struct tp_type *types[TP_ACTIVITY_CUSTOM_COUNT];
    const struct tp_type *full = find_full(r, name);
    size_t n = full != NULL || r == NULL ? 0 : tp_registry_entries(r, types);
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++) {
        if (tp_str_equal(tp_type_bare_name(types[i]), name))
            types[n_found++] = types[i];
    }
    if (n_found > 1)
        return fail_ambiguous(name, types, n_found, detail, err);
    if (full == NULL && n_found == 0) {
        tp_detail_suggest(detail, r, name);
        name = tp_utf8_cut(name, SHOWN_BYTES);
        return tp_fail(err, TP_ENOTFOUND, "no activity type '%.*s'", (int)name.len,
                       name.ptr);
    }
    *out = full != NULL ? full : types[0];
    return TP_OK;
}
