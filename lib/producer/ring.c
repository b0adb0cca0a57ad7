/*
 * ring.c - the pool of rings, and what ends with a thread.
 *
 * A thread keeps the rings that it holds in a list; a destructor of thread-specific
 * data gives them back. The pool prefers a free ring of the same recorder, whatever is
 * in it: the mark of the next thread parts the two. Only when there is none does it
 * take one that no living recorder has, and only then does it map memory.
 *
 * The limit is one of memory in use. An idle ring has none: one that no recorder has,
 * or one of another recorder that is free and drained when the limit is met. It stays
 * what it is, and its memory comes back, within the limit, with its next thread.
 */
#include "producer/ring.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SLACK_WORDS (2 * TP_RECORD_WORDS_MAX)
#define SLACK_BYTES (SLACK_WORDS * sizeof(uint64_t))
#define STACK_BYTES (TP_RING_STACK_WORDS * sizeof(uint64_t))
#define HEAD_BYTES (((sizeof(struct tp_ring) - 1) | 4095) + 1)

static struct tp_ring none; /* of session 0, which no recorder has */

_Thread_local struct tp_ring *tp_ring_here = &none;
static _Thread_local struct tp_ring *mine __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct tp_ring *all;
static size_t all_bytes; /* of those that are not idle */
static size_t n_all;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static size_t ring_bytes(const struct tp_ring *g)
{
    return (g->mask + 1) * sizeof(uint64_t);
}

/* Turn what is still open into records: it will never end. */
static void close_stack(struct tp_ring *g)
{
    unsigned depth =
        (unsigned)(atomic_load_explicit(&g->n_open, memory_order_relaxed) & 0xffff);

    for (unsigned i = 0; i < depth; i++) {
        const uint64_t *from = g->stack + g->starts[i];
        uint64_t head = atomic_load_explicit(&g->head, memory_order_relaxed);
        uint64_t tail = atomic_load_explicit(&g->tail, memory_order_acquire);
        unsigned n = TP_RECORD_WORDS(from[0]);
        uint64_t after = tp_ring_after(g, head, n);
        uint64_t *to = g->words + (head & g->mask);

        if (n == 0) /* the client was closed, and the stack emptied with it */
            break;
        if (after - tail > g->mask + 1) {
            tp_ring_count(g, TP_RING_DROP_FULL, TP_RECORD_TYPE(from[0]));
            continue;
        }
        memcpy(to, from, n * sizeof(*to));
        to[0] = (to[0] & ~0xffULL) | TP_RECORD_OPEN;
        atomic_store_explicit(&g->head, after, memory_order_release);
    }
    g->top = 0;
    atomic_fetch_and_explicit(&g->n_open, ~0xffffULL, memory_order_release);
}

/* What a thread leaves. */
static void end_thread(void *unused)
{
    (void)unused;
    tp_ring_here = &none;
    while (mine != NULL) {
        struct tp_ring *g = mine;

        mine = g->next_of_thread;
        close_stack(g);
        pthread_mutex_lock(&lock);
        g->is_held = false;
        pthread_mutex_unlock(&lock);
    }
}

static void make_key(void)
{
    pthread_key_create(&key, end_thread);
}

/* Map a ring. The memory is zero and takes no room until it is touched. */
static struct tp_ring *map_ring(size_t bytes)
{
    char *p = mmap(NULL, HEAD_BYTES + bytes + SLACK_BYTES + STACK_BYTES,
                   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    struct tp_ring *g = (struct tp_ring *)p;

    if (p == MAP_FAILED)
        return NULL;
    g->words = (uint64_t *)(p + HEAD_BYTES);
    g->mask = bytes / sizeof(uint64_t) - 1;
    g->stack = g->words + bytes / sizeof(uint64_t) + SLACK_WORDS;
    return g;
}

/* Whether more than half of a ring waits to be drained. */
static bool is_half_full(const struct tp_ring *g)
{
    return atomic_load_explicit(&g->head, memory_order_relaxed) -
               atomic_load_explicit(&g->tail, memory_order_acquire) >
           (g->mask + 1) / 2;
}

/* Give the memory of a ring back that nobody writes to nor reads from. */
static void make_idle(struct tp_ring *g)
{
    if (g->is_idle)
        return;
    /* The pages come back as zeros when they are touched again. */
    madvise(g->words, ring_bytes(g) + SLACK_BYTES + STACK_BYTES, MADV_DONTNEED);
    g->is_idle = true;
    all_bytes -= ring_bytes(g);
}

static bool is_drained(const struct tp_ring *g)
{
    return atomic_load_explicit(&g->head, memory_order_relaxed) ==
           atomic_load_explicit(&g->tail, memory_order_acquire);
}

/* Whether so many bytes more may be used; free rings that others do not need make room
 * for them. */
static bool has_room(const struct tp_ring_owner *owner, size_t bytes)
{
    for (struct tp_ring *g = all; g != NULL && all_bytes + bytes > owner->all_bytes_max;
         g = g->next_of_pool) {
        if (!g->is_held && g->recorder_id != owner->recorder_id && is_drained(g))
            make_idle(g);
    }
    return all_bytes + bytes <= owner->all_bytes_max;
}

/* Use the memory of a ring again. Returns false when the limit does not allow it. */
static bool use_again(const struct tp_ring_owner *owner, struct tp_ring *g)
{
    if (!g->is_idle)
        return true;
    if (!has_room(owner, ring_bytes(g)))
        return false;
    g->is_idle = false;
    all_bytes += ring_bytes(g);
    return true;
}

/* A free ring of that size: of the owner, or of nobody (id 0). */
static struct tp_ring *find_free(const struct tp_ring_owner *owner, uint64_t id,
                                 bool takes_full)
{
    for (struct tp_ring *g = all; g != NULL; g = g->next_of_pool) {
        if (!g->is_held && g->recorder_id == id && ring_bytes(g) == owner->ring_bytes &&
            (takes_full || !is_half_full(g)) && use_again(owner, g))
            return g;
    }
    return NULL;
}

/* A ring that belonged to nobody becomes one of the owner. */
static void give_to(struct tp_ring *g, struct tp_ring_owner *owner)
{
    uint64_t head = atomic_load_explicit(&g->head, memory_order_relaxed);

    atomic_store_explicit(&g->tail, head, memory_order_relaxed);
    tp_ring_set_limit(g, head, head + (g->mask + 1) / 2);
    g->told_session = 0;
    g->recorder_id = owner->recorder_id;
    atomic_store_explicit(&g->session, 0, memory_order_relaxed);
    atomic_store_explicit(&g->next_of_recorder,
                          atomic_load_explicit(&owner->rings, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&owner->rings, g, memory_order_release);
}

/* A ring that did not exist before, if the limit and the memory allow it. */
static struct tp_ring *add_ring(struct tp_ring_owner *owner)
{
    struct tp_ring *g;

    if (!has_room(owner, owner->ring_bytes) ||
        (g = map_ring(owner->ring_bytes)) == NULL)
        return NULL;
    g->next_of_pool = all;
    all = g;
    all_bytes += owner->ring_bytes;
    n_all++;
    return g;
}

/* Under the lock. */
static struct tp_ring *take(struct tp_ring_owner *owner)
{
    struct tp_ring *g = find_free(owner, owner->recorder_id, false);

    if (g == NULL) {
        g = find_free(owner, 0, true);
        if (g == NULL)
            g = add_ring(owner);
        if (g != NULL)
            give_to(g, owner);
        else
            g = find_free(owner, owner->recorder_id, true);
    }
    if (g != NULL)
        g->is_held = true;
    return g;
}

/* Note who the calling thread is, by now: in the child of a fork it has another number,
 * and its name may be a new one at any time. */
static void identify(struct tp_ring *g)
{
    g->tid = (uint64_t)gettid();
    memset(g->thread_name, 0, sizeof(g->thread_name));
    prctl(PR_GET_NAME, g->thread_name);
}

/* Make the thread that has just taken a ring known to it. */
static void settle(struct tp_ring *g)
{
    identify(g);
    g->top = 0;
    g->next_of_thread = mine;
    mine = g;
}

/* A ring that this thread holds already, if only of a recorder that is gone. */
static struct tp_ring *find_mine(struct tp_ring_owner *owner)
{
    struct tp_ring *spare = NULL;

    for (struct tp_ring *g = mine; g != NULL; g = g->next_of_thread) {
        if (g->recorder_id == owner->recorder_id)
            return g;
        if (spare == NULL && g->recorder_id == 0 &&
            ring_bytes(g) == owner->ring_bytes && use_again(owner, g))
            spare = g;
    }
    if (spare != NULL)
        give_to(spare, owner);
    return spare;
}

/* Nobody else writes the list, nor the session but when its owner is released. */
struct tp_ring *tp_rings_in_session(uint64_t session)
{
    struct tp_ring *g = mine;

    while (g != NULL &&
           atomic_load_explicit(&g->session, memory_order_relaxed) != session)
        g = g->next_of_thread;
    return g;
}

struct tp_ring *tp_rings_of_thread(struct tp_ring_owner *owner)
{
    struct tp_ring *g;
    uint64_t session;

    pthread_once(&key_once, make_key);
    pthread_mutex_lock(&lock);
    g = find_mine(owner);
    if (g != NULL) {
        pthread_mutex_unlock(&lock);
        return g;
    }
    g = take(owner);
    pthread_mutex_unlock(&lock);
    if (g == NULL)
        return NULL;
    pthread_setspecific(key, g);
    settle(g);
    /* The one who had it before may have been in the same session: tell who is next. */
    session = atomic_load_explicit(&g->session, memory_order_relaxed);
    if (session != 0 && !tp_ring_mark(g, session))
        atomic_store_explicit(&g->session, 0, memory_order_relaxed);
    return g;
}

bool tp_ring_mark(struct tp_ring *g, uint64_t session)
{
    uint64_t head = atomic_load_explicit(&g->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&g->tail, memory_order_acquire);
    uint64_t after = tp_ring_after(g, head, TP_RECORD_MARK_WORDS);
    uint64_t *to = g->words + (head & g->mask);

    if (after - tail > g->mask + 1)
        return false;
    to[0] = TP_RECORD_HEADER(TP_RECORD_MARK, 0, 0, TP_RECORD_MARK_WORDS, 0);
    to[1] = session;
    to[2] = g->tid;
    memcpy(to + 3, g->thread_name, sizeof(g->thread_name));
    atomic_store_explicit(&g->head, after, memory_order_release);
    return true;
}

/* A full set of counts is zero before it says that it is of the session. */
static void count_anew(struct tp_ring *g, uint64_t session)
{
    if (atomic_load_explicit(&g->counted_session, memory_order_relaxed) == session)
        return;
    for (int cause = 0; cause < TP_RING_DROPS; cause++) {
        for (int type = 0; type < 256; type++)
            atomic_store_explicit(&g->dropped[cause][type], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&g->counted_session, session, memory_order_release);
}

bool tp_ring_enter(struct tp_ring *g, uint64_t session)
{
    identify(g);
    if (!tp_ring_mark(g, session))
        return false;
    g->top = 0;
    atomic_fetch_and_explicit(&g->n_open, ~0xffffULL, memory_order_release);
    count_anew(g, session);
    atomic_store_explicit(&g->session, session, memory_order_release);
    return true;
}

void tp_rings_release(struct tp_ring_owner *owner)
{
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&owner->rings, NULL, memory_order_relaxed);
    for (struct tp_ring *g = all; g != NULL; g = g->next_of_pool) {
        if (g->recorder_id != owner->recorder_id)
            continue;
        g->recorder_id = 0;
        atomic_store_explicit(&g->session, 0, memory_order_relaxed);
        make_idle(g);
    }
    pthread_mutex_unlock(&lock);
}

size_t tp_rings_bytes(size_t *n_rings)
{
    size_t bytes;

    pthread_mutex_lock(&lock);
    bytes = all_bytes;
    *n_rings = n_all;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void tp_rings_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tp_rings_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void tp_rings_forked(void)
{
    tp_ring_here = &none;
    for (struct tp_ring *g = all; g != NULL; g = g->next_of_pool) {
        uint64_t head = atomic_load_explicit(&g->head, memory_order_relaxed);

        g->is_held = false;
        g->top = 0;
        tp_ring_set_limit(g, head, head + (g->mask + 1) / 2);
        atomic_store_explicit(&g->n_open, 0, memory_order_relaxed);
        atomic_store_explicit(&g->tail, head, memory_order_relaxed);
        atomic_store_explicit(&g->session, 0, memory_order_relaxed);
    }
    for (struct tp_ring *g = mine; g != NULL; g = g->next_of_thread)
        g->is_held = true;
}
