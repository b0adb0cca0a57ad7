/*
 * test_registry_threads.c - eight threads register the same and different types while
 * others read: all see the same ids, and nobody a half-made type. SAN=thread watches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "core/registry.h"

enum { N_THREADS = 8, N_SHARED = 40, N_OWN = 20 };

/* What one thread does and what it has seen. Asserts happen in the main thread. */
struct worker {
    pthread_t thread;
    struct tp_registry *registry;
    pthread_barrier_t *barrier;
    unsigned number;
    unsigned shared_ids[N_SHARED];
    unsigned own_ids[N_OWN];
    unsigned n_new;
    unsigned n_failures;
};

static unsigned register_one(struct worker *w, const char *plugin, unsigned i)
{
    char name[32];
    struct tp_type_spec spec = {.plugin = tp_str_of(plugin)};
    struct tp_registration reg;

    snprintf(name, sizeof(name), "TYPE_%u", i);
    spec.type_name = tp_str_of(name);
    if (tp_registry_register(w->registry, &spec, &reg, NULL, NULL) != TP_OK ||
        reg.type->id != reg.id || !tp_str_is(tp_type_bare_name(reg.type), name))
        w->n_failures++;
    w->n_new += reg.is_new;
    return reg.id;
}

/* Every type that a reader can see is complete and found under all its keys. */
static void read_all(struct worker *w)
{
    const struct tp_type *entries[TP_ACTIVITY_CUSTOM_COUNT];
    size_t n = tp_registry_entries(w->registry, entries);

    for (size_t i = 0; i < n; i++) {
        const struct tp_type *t = entries[i];
        const struct tp_type *found = NULL;

        if (tp_registry_at(w->registry, t->id) != t ||
            tp_registry_lookup(w->registry, tp_str_of(t->name), &found, NULL, NULL) !=
                TP_OK ||
            found != t)
            w->n_failures++;
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    char plugin[32];

    snprintf(plugin, sizeof(plugin), "own%u", w->number);
    pthread_barrier_wait(w->barrier);
    for (unsigned i = 0; i < N_SHARED; i++) {
        unsigned at = (i + w->number * 5) % N_SHARED; /* each thread starts elsewhere */

        w->shared_ids[at] = register_one(w, "shared", at);
        if (i % 2 == 0)
            w->own_ids[i / 2] = register_one(w, plugin, i / 2);
        read_all(w);
    }
    return NULL;
}

static void test_all_threads_see_the_same_ids(void **state)
{
    const struct tp_registry_options options = {.on_collision = TP_COLLISION_PROBE};
    struct worker workers[N_THREADS] = {0};
    pthread_barrier_t barrier;
    struct tp_registry *r = NULL;
    bool is_taken[TP_ACTIVITY_IDS] = {false};
    unsigned n_new = 0;

    (void)state;
    assert_int_equal(tp_registry_new(&options, &r, NULL), TP_OK);
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i].registry = r;
        workers[i].barrier = &barrier;
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
                         0);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < N_THREADS; i++) {
        assert_int_equal(workers[i].n_failures, 0);
        assert_memory_equal(workers[i].shared_ids, workers[0].shared_ids,
                            sizeof(workers[0].shared_ids));
        n_new += workers[i].n_new;
        for (unsigned k = 0; k < N_OWN; k++) {
            unsigned id = workers[i].own_ids[k];

            if (is_taken[id])
                fail_msg("thread %u shares id %u with another", i, id);
            is_taken[id] = true;
        }
    }
    assert_int_equal(n_new, N_SHARED + N_THREADS * N_OWN);
    assert_int_equal(tp_registry_len(r), N_SHARED + N_THREADS * N_OWN);
    pthread_barrier_destroy(&barrier);
    tp_registry_free(r);
}

/* While one thread freezes and thaws, a type is either there for good or refused. */
static void *freeze_and_thaw(void *arg)
{
    struct worker *w = arg;

    pthread_barrier_wait(w->barrier);
    for (int i = 0; i < 2000; i++) {
        size_t before;

        tp_registry_freeze(w->registry);
        before = tp_registry_len(w->registry);
        if (tp_registry_len(w->registry) != before)
            w->n_failures++;
        tp_registry_unfreeze(w->registry);
    }
    return NULL;
}

static void test_no_type_appears_while_frozen(void **state)
{
    const struct tp_registry_options options = {.on_collision = TP_COLLISION_PROBE};
    struct worker w = {0};
    pthread_barrier_t barrier;
    unsigned n_registered = 0;

    (void)state;
    assert_int_equal(tp_registry_new(&options, &w.registry, NULL), TP_OK);
    pthread_barrier_init(&barrier, NULL, 2);
    w.barrier = &barrier;
    assert_int_equal(pthread_create(&w.thread, NULL, freeze_and_thaw, &w), 0);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 150; i++) {
        char name[32];
        struct tp_type_spec spec = {.plugin = tp_str_of("p")};
        struct tp_registration reg;
        int rc;

        snprintf(name, sizeof(name), "T%u", i);
        spec.type_name = tp_str_of(name);
        rc = tp_registry_register(w.registry, &spec, &reg, NULL, NULL);
        if (rc != TP_OK)
            assert_int_equal(rc, TP_ESTATE);
        n_registered += rc == TP_OK;
    }
    pthread_join(w.thread, NULL);
    assert_int_equal(w.n_failures, 0);
    assert_int_equal(tp_registry_len(w.registry), n_registered);
    pthread_barrier_destroy(&barrier);
    tp_registry_free(w.registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_threads_see_the_same_ids),
        cmocka_unit_test(test_no_type_appears_while_frozen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
