/*
 * join.c - three passes over the identities of a view, each sorted for it.
 *
 *   by key, else by id   --> parties: what is one process for sure
 *   by host and pid      --> a native and a Kineto party without two keys become one
 *   by party             --> ranks are shared, disagreements noted
 */
#include "engine/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strmap.h"
#include "engine/kineto_model.h"
#include "engine/pool.h"
#include "engine/trace_views.h"

#define NOTE_BYTES 320

struct item {
    struct tp_identity_view *who;
    bool is_kineto;
    uint32_t party; /* from 1 */
};

/* The items of a view, and memory for what is said of them. */
struct join {
    struct item *items;
    size_t n;
    struct tp_pool *pool;
};

static bool is_kind(const struct tp_identity_view *who, const char *kind)
{
    return strcmp(who->kind, kind) == 0;
}

static void collect(struct join *j, struct tp_identity_view *who)
{
    bool is_kineto = is_kind(who, "kineto");

    if (who->id[0] != '\0' && (is_kineto || is_kind(who, "native")))
        j->items[j->n++] = (struct item){.who = who, .is_kineto = is_kineto};
}

static int by_key(const void *a, const void *b)
{
    const struct tp_identity_view *x = ((const struct item *)a)->who;
    const struct tp_identity_view *y = ((const struct item *)b)->who;
    int order = strcmp(x->process, y->process);

    return order != 0 ? order : strcmp(x->id, y->id);
}

static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = strcmp(x->who->host, y->who->host);

    if (order != 0)
        return order;
    if (x->who->pid != y->who->pid)
        return x->who->pid < y->who->pid ? -1 : 1;
    return x->party < y->party ? -1 : x->party > y->party;
}

static int by_party(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->party != y->party)
        return x->party < y->party ? -1 : 1;
    return strcmp(x->who->id, y->who->id);
}

/* Equal keys are one party; without a key, so are members and streams of one id. */
static void number_parties(struct join *j)
{
    uint32_t party = 0;

    qsort(j->items, j->n, sizeof(j->items[0]), by_key);
    for (size_t i = 0; i < j->n; i++) {
        const struct tp_identity_view *x = j->items[i].who;
        const struct tp_identity_view *y = i == 0 ? NULL : j->items[i - 1].who;

        if (y == NULL || strcmp(x->process, y->process) != 0 ||
            (x->process[0] == '\0' && strcmp(x->id, y->id) != 0))
            party++;
        j->items[i].party = party;
    }
}

static const char *note(struct join *j, const struct tp_identity_view *who,
                        const char *text)
{
    char both[NOTE_BYTES];

    if (who->join_note[0] == '\0')
        return tp_pool_text(j->pool, text);
    if (strstr(who->join_note, text) != NULL)
        return who->join_note;
    snprintf(both, sizeof(both), "%.150s; %.150s", who->join_note, text);
    return tp_pool_text(j->pool, both);
}

/* Say why n items of one host and pid stay apart. */
static void note_apart(struct join *j, struct item *items, size_t n, bool is_ambiguous)
{
    char text[NOTE_BYTES];

    for (size_t i = 0; i < n; i++) {
        const struct item *other = &items[0];

        for (size_t k = 0; k < n && other->party == items[i].party; k++)
            other = &items[k];
        snprintf(text, sizeof(text),
                 is_ambiguous
                     ? "not joined with %.100s: others have the same host and pid, too"
                     : "not joined with %.100s: it has the same host and pid, but is "
                       "another process",
                 other->who->name);
        items[i].who->join_note = note(j, items[i].who, text);
    }
}

/* What the parties of one host and pid are. */
struct place {
    size_t n_parties, n_keyless;
    size_t n_native, n_kineto, n_both; /* parties with items of these kinds */
};

static struct place look_at(const struct item *items, size_t n)
{
    struct place p = {0};
    size_t n_same = 1;

    for (size_t i = 0; i < n; i += n_same) {
        size_t n_kineto = items[i].is_kineto;

        for (n_same = 1; i + n_same < n && items[i + n_same].party == items[i].party;)
            n_kineto += items[i + n_same++].is_kineto;
        p.n_parties++;
        p.n_keyless += items[i].who->process[0] == '\0';
        p.n_native += n_kineto == 0;
        p.n_kineto += n_kineto == n_same;
        p.n_both += n_kineto > 0 && n_kineto < n_same;
    }
    return p;
}

/* n items of one host and pid, in order of party: join them if there are two parties of
 * different kinds, of which one at least has no key that says otherwise. */
static void join_place(struct join *j, struct item *items, size_t n)
{
    const struct place p = look_at(items, n);

    if (p.n_parties < 2 || p.n_native == p.n_parties || p.n_kineto == p.n_parties)
        return;
    if (p.n_parties > 2 || p.n_both > 0 || p.n_keyless == 0) {
        note_apart(j, items, n, p.n_keyless > 0);
        return;
    }
    for (size_t i = 1; i < n; i++)
        items[i].party = items[0].party;
}

static void join_places(struct join *j)
{
    size_t n = 1;

    qsort(j->items, j->n, sizeof(j->items[0]), by_place);
    for (size_t i = 0; i < j->n; i += n) {
        const struct tp_identity_view *first = j->items[i].who;

        for (n = 1; i + n < j->n; n++) {
            const struct tp_identity_view *next = j->items[i + n].who;

            if (next->pid != first->pid || strcmp(next->host, first->host) != 0)
                break;
        }
        if (first->pid > 0 && first->host[0] != '\0')
            join_place(j, j->items + i, n);
    }
}

/* A number that producers of one process know: the only one, or that they disagree. */
struct shared {
    int64_t value; /* -1 = nobody knows it */
    bool is_disputed;
};

static void share(struct shared *s, int64_t value)
{
    if (value < 0)
        return;
    s->is_disputed = s->is_disputed || (s->value >= 0 && s->value != value);
    s->value = value;
}

static int64_t world_of(const struct tp_identity_view *who)
{
    return who->world_size == 0 ? -1 : (int64_t)who->world_size;
}

/* The pid that the process has in its own events: the native producer says it. */
static int64_t own_pid(const struct item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].is_kineto && items[i].who->pid > 0)
            return items[i].who->pid;
    }
    return 0;
}

/* Say of an item with which value another one disagrees. */
static void note_dispute(struct join *j, struct item *items, size_t n, struct item *of,
                         const char *what,
                         int64_t (*get)(const struct tp_identity_view *))
{
    int64_t own = get(of->who);
    char text[NOTE_BYTES];

    for (size_t i = 0; i < n; i++) {
        int64_t other = get(items[i].who);

        if (own < 0 || other < 0 || other == own)
            continue;
        snprintf(text, sizeof(text), "%s %lld here, %lld as %.80s says", what,
                 (long long)own, (long long)other, items[i].who->name);
        of->who->join_note = note(j, of->who, text);
        return;
    }
}

static int64_t rank_of(const struct tp_identity_view *who)
{
    return who->rank;
}

/* n items that are one process, in order of id. */
static void settle(struct join *j, struct item *items, size_t n)
{
    struct shared rank = {-1, false}, world = {-1, false};
    bool has_several = strcmp(items[0].who->id, items[n - 1].who->id) != 0;
    bool has_kineto = false;

    for (size_t i = 0; i < n; i++) {
        share(&rank, items[i].who->rank);
        share(&world, world_of(items[i].who));
        has_kineto = has_kineto || items[i].is_kineto;
    }
    if (!has_kineto && rank.is_disputed)
        return; /* one process that plays several ranks: each is to be seen */
    for (size_t i = 0; i < n && (has_kineto || has_several); i++) {
        struct tp_identity_view *who = items[i].who;
        bool is_first = strcmp(who->id, items[0].who->id) == 0;

        if (rank.is_disputed)
            note_dispute(j, items, n, &items[i], "rank", rank_of);
        else
            who->rank = rank.value;
        if (world.is_disputed)
            note_dispute(j, items, n, &items[i], "world size", world_of);
        else if (world.value > 0)
            who->world_size = (uint32_t)world.value;
        if (!has_several)
            continue;
        who->process_no = items[i].party;
        who->process_pid = own_pid(items, n);
        who->joined_with = items[is_first ? n - 1 : 0].who->id;
    }
}

static void settle_all(struct join *j)
{
    size_t n = 1;

    qsort(j->items, j->n, sizeof(j->items[0]), by_party);
    for (size_t i = 0; i < j->n; i += n) {
        for (n = 1; i + n < j->n && j->items[i + n].party == j->items[i].party;)
            n++;
        settle(j, j->items + i, n);
    }
}

/* Views are written by nobody but their maker, who calls this. */
static void *writable(const void *part)
{
    return (void *)(uintptr_t)part;
}

/* Whether there may be anything to join: a Kineto process, or producers of one key. */
static bool has_shared(const struct join *j)
{
    struct tp_strmap ids = {0};
    bool is_found = false;

    for (size_t i = 0; i < j->n && !is_found; i++)
        is_found = j->items[i].is_kineto;
    if (!is_found)
        tp_strmap_reserve(&ids, j->n, NULL);
    for (size_t i = 0; i < j->n && !is_found; i++) {
        struct tp_identity_view *who = j->items[i].who;
        size_t n = strlen(who->process);
        const char *id = n == 0 ? NULL : tp_strmap_get(&ids, who->process, n);

        if (n == 0)
            continue;
        if (id != NULL)
            is_found = strcmp(id, who->id) != 0;
        else /* without memory there may be */
            is_found = tp_strmap_put(&ids, who->process, n, writable(who->id), NULL) !=
                       TP_OK;
    }
    tp_strmap_fini(&ids);
    return is_found;
}

void tp_join_view(struct tp_trace_view *v)
{
    struct join j = {.pool = v->pool};

    j.items = tp_pool_array(v->pool, v->n_members + v->n_streams, sizeof(j.items[0]));
    if (j.items == NULL)
        return;
    for (size_t i = 0; i < v->n_members; i++)
        collect(&j, writable(&v->members[i].who));
    for (size_t i = 0; i < v->n_streams; i++)
        collect(&j, writable(&v->streams[i].who));
    if (!has_shared(&j))
        return; /* as in most traces */
    number_parties(&j);
    join_places(&j);
    settle_all(&j);
}

/* Who tells the rank in the process of p. */
static struct tp_producer *first_ranked(const struct tp_producer *p)
{
    const char *key = p->who.process;

    return key[0] == '\0' ? NULL : tp_strmap_get(&p->job->ranked, key, strlen(key));
}

void tp_join_tell_rank(struct tp_producer *p)
{
    struct tp_producer *first = first_ranked(p);
    const char *key = p->who.process;

    p->next_ranked = NULL;
    if (p->who.rank < 0 || key[0] == '\0')
        return;
    if (first == NULL) {
        tp_strmap_put(&p->job->ranked, key, strlen(key), p, NULL);
    } else {
        p->next_ranked = first->next_ranked;
        first->next_ranked = p;
    }
}

void tp_join_untell_rank(struct tp_producer *p)
{
    struct tp_producer *first = first_ranked(p), *q = first;
    const char *key = p->who.process;

    while (q != NULL && q != p && q->next_ranked != p)
        q = q->next_ranked;
    if (q == NULL)
        return;
    if (q != p)
        q->next_ranked = p->next_ranked;
    else if (p->next_ranked == NULL)
        tp_strmap_remove(&p->job->ranked, key, strlen(key));
    else /* the key is there: it takes no memory */
        tp_strmap_put(&p->job->ranked, key, strlen(key), p->next_ranked, NULL);
    p->next_ranked = NULL;
}

int64_t tp_join_rank(const struct tp_producer *p)
{
    struct shared rank = {-1, false};

    if (p->who.rank >= 0)
        return p->who.rank;
    for (const struct tp_producer *q = first_ranked(p); q != NULL && !rank.is_disputed;
         q = q->next_ranked)
        share(&rank, q->who.rank);
    return rank.is_disputed ? -1 : rank.value;
}
