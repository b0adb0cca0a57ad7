/*
 * treehash.c - hash and compress a directory tree with several threads, traceable.
 *
 * treehash [--url URL] [--job NAME] [--rank R --world-size N] [--threads T]
 *          [--seconds S] DIR
 *
 * One thread walks the tree, the others read each file, take its SHA-256 and compress
 * it with zstd; the walk is repeated until S seconds have passed. Ranks share the work:
 * rank R takes every Nth file. The program registers its own activity types with
 * Traceplane and can be traced at any moment while it runs: it is a stand-in for a
 * training job whose accelerator backend brings its own categories.
 */
#include <ftw.h>
#include <getopt.h>
#include <gnutls/crypto.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <traceplane/traceplane.h>
#include <zstd.h>

enum { READ, HASH, COMPRESS, FILE_DONE, QUEUE_DEPTH, TYPES };

#define PLUGIN "treehash"
#define QUEUE_SLOTS 256
#define FILE_MAX_BYTES (4u << 20) /* larger files are cut: this is about the trace */
#define MAX_THREADS 16
#define OPEN_FOLDERS 16
#define ZSTD_LEVEL 3

/* A file on its way from the walker to a worker. */
struct task {
    char *path;
    uint64_t id;
};

static struct {
    pthread_mutex_t lock; /* guards the queue and the sums */
    pthread_cond_t changed;
    struct task slots[QUEUE_SLOTS];
    size_t head, n;
    bool is_closed;
    uint64_t files, bytes_in, bytes_out;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* What is recorded, and whom it is recorded with: tp_client_off when nobody can. */
static struct tp_client *client = &tp_client_off;
static unsigned types[TYPES] = {TP_TYPE_NONE, TP_TYPE_NONE, TP_TYPE_NONE, TP_TYPE_NONE,
                                TP_TYPE_NONE};

static struct {
    const char *url, *job, *dir;
    int rank, world_size, threads, seconds;
    uint64_t deadline_ns, n_seen;
} run = {.url = "http://127.0.0.1:8750",
         .job = "treehash",
         .world_size = 1,
         .threads = 2,
         .seconds = 10};

/* Record what began at start_ns and ends now. path  names the file; may be NULL. */
static void record(int type, uint32_t name, uint64_t start_ns, uint64_t bytes,
                   const char *path)
{
    struct tp_interval when = {.start_ns = start_ns,
                               .duration_ns = tp_now() - start_ns};
    struct tp_field items[] = {TP_INT("bytes", bytes), TP_COPY("file", path)};
    struct tp_fields fields = {items, path == NULL ? 1 : 2};

    if (tp_enabled(client, types[type]))
        tp_complete(client, types[type], name, &when, fields);
}

/* An arrow from where a file was found to where it is worked on. */
static void record_flow(enum tp_phase phase, uint64_t id, uint64_t at_ns)
{
    struct tp_flow_point point = {.id = id, .phase = phase, .time_ns = at_ns};

    if (tp_enabled(client, types[FILE_DONE]))
        tp_flow(client, types[FILE_DONE], TP_NAME("file"), &point);
}

static void push(const char *path)
{
    struct task t = {.path = strdup(path), .id = run.n_seen};
    size_t depth;

    pthread_mutex_lock(&queue.lock);
    while (queue.n == QUEUE_SLOTS)
        pthread_cond_wait(&queue.changed, &queue.lock);
    queue.slots[(queue.head + queue.n++) % QUEUE_SLOTS] = t;
    depth = queue.n;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    TP_COUNTER(client, types[QUEUE_DEPTH], "queue", (double)depth);
}

/* The next file; false when there is none and there will be none. */
static bool pop(struct task *t)
{
    bool has_one;

    pthread_mutex_lock(&queue.lock);
    while (queue.n == 0 && !queue.is_closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    has_one = queue.n > 0;
    if (has_one) {
        *t = queue.slots[queue.head];
        queue.head = (queue.head + 1) % QUEUE_SLOTS;
        queue.n--;
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.lock);
    return has_one;
}

static size_t read_file(const char *path, char *data)
{
    uint64_t start_ns = tp_now();
    FILE *f = fopen(path, "rb");
    size_t n = 0;

    if (f != NULL) {
        n = fread(data, 1, FILE_MAX_BYTES, f);
        fclose(f);
    }
    record(READ, TP_NAME("fread"), start_ns, n, NULL);
    return n;
}

static void work_on(const struct task *t, char *data, char *packed, size_t packed_max)
{
    uint64_t file_ns = tp_now(), start_ns;
    const char *name = strrchr(t->path, '/');
    unsigned char digest[32];
    size_t n = read_file(t->path, data), out;

    start_ns = tp_now();
    gnutls_hash_fast(GNUTLS_DIG_SHA256, data, n, digest);
    record(HASH, TP_NAME("sha256"), start_ns, n, NULL);

    start_ns = tp_now();
    out = ZSTD_compress(packed, packed_max, data, n, ZSTD_LEVEL);
    record(COMPRESS, TP_NAME("zstd"), start_ns, n, NULL);
    record(FILE_DONE, TP_NAME("file"), file_ns, n, name == NULL ? t->path : name + 1);
    record_flow(TP_PHASE_END, t->id, file_ns);

    pthread_mutex_lock(&queue.lock);
    queue.files++;
    queue.bytes_in += n;
    queue.bytes_out += ZSTD_isError(out) ? 0 : out;
    pthread_mutex_unlock(&queue.lock);
}

static void *run_worker(void *arg)
{
    size_t packed_max = ZSTD_compressBound(FILE_MAX_BYTES);
    char *data = malloc(FILE_MAX_BYTES), *packed = malloc(packed_max);
    char name[32];
    struct task t;

    snprintf(name, sizeof(name), "worker %d", (int)(intptr_t)arg);
    pthread_setname_np(pthread_self(), name);
    if (data == NULL || packed == NULL)
        abort();
    while (pop(&t)) {
        work_on(&t, data, packed, packed_max);
        free(t.path);
    }
    free(data);
    free(packed);
    return NULL;
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    uint64_t start_ns = tp_now();

    (void)where;
    if (start_ns > run.deadline_ns)
        return 1;
    if (kind != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    if (run.n_seen++ % (uint64_t)run.world_size != (uint64_t)run.rank)
        return 0;
    push(path);
    record(FILE_DONE, TP_NAME("enqueue"), start_ns, (uint64_t)st->st_size, NULL);
    record_flow(TP_PHASE_START, run.n_seen - 1, start_ns);
    return 0;
}

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"url", 1, NULL, 'u'},     {"job", 1, NULL, 'j'},
        {"rank", 1, NULL, 'r'},    {"world-size", 1, NULL, 'w'},
        {"threads", 1, NULL, 't'}, {"seconds", 1, NULL, 's'},
        {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'u':
            run.url = optarg;
            break;
        case 'j':
            run.job = optarg;
            break;
        case 'r':
            run.rank = (int)strtol(optarg, NULL, 10);
            break;
        case 'w':
            run.world_size = (int)strtol(optarg, NULL, 10);
            break;
        case 't':
            run.threads = (int)strtol(optarg, NULL, 10);
            break;
        case 's':
            run.seconds = (int)strtol(optarg, NULL, 10);
            break;
        default:
            return false;
        }
    }
    run.dir = optind == argc - 1 ? argv[optind] : NULL;
    return run.dir != NULL && run.world_size >= 1 && run.rank >= 0 &&
           run.rank < run.world_size && run.threads >= 1 && run.threads <= MAX_THREADS;
}

static void walk_until_deadline(void)
{
    run.deadline_ns = tp_now() + (uint64_t)run.seconds * 1000000000u;
    pthread_setname_np(pthread_self(), "walker");
    while (tp_now() < run.deadline_ns)
        if (nftw(run.dir, visit, OPEN_FOLDERS, FTW_PHYS) != 0)
            break;
    pthread_mutex_lock(&queue.lock);
    queue.is_closed = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

/* Become traceable. The program runs on just the same when that fails. */
static void open_client(void)
{
    static const struct {
        const char *name, *unit;
        enum tp_kind kind;
    } wanted[TYPES] = {
        [READ] = {"READ", NULL, TP_KIND_SLICE},
        [HASH] = {"HASH", NULL, TP_KIND_SLICE},
        [COMPRESS] = {"COMPRESS", NULL, TP_KIND_SLICE},
        [FILE_DONE] = {"FILE", NULL, TP_KIND_SLICE},
        [QUEUE_DEPTH] = {"QUEUE_DEPTH", "files", TP_KIND_COUNTER},
    };
    struct tp_options options = {.options_bytes = sizeof(options),
                                 .url = run.url,
                                 .job = run.job,
                                 .has_rank = true,
                                 .rank = (uint32_t)run.rank,
                                 .world_size = (uint32_t)run.world_size,
                                 .backend = PLUGIN};
    struct tp_err err = {0};

    if (tp_open(&options, &client, &err) != TP_OK)
        fprintf(stderr, "treehash: not traceable: %s\n", err.message);
    for (int i = 0; i < TYPES && client != &tp_client_off; i++)
        if (tp_register_type(client, PLUGIN, wanted[i].name, wanted[i].kind,
                             wanted[i].unit, &types[i], &err) != TP_OK)
            fprintf(stderr, "treehash: %s\n", err.message);
}

int main(int argc, char **argv)
{
    pthread_t workers[MAX_THREADS];

    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: treehash [--url URL] [--job NAME] [--rank R --world-size N] "
                "[--threads T] [--seconds S] DIR\n");
        return 2;
    }
    open_client();
    for (int i = 0; i < run.threads; i++)
        if (pthread_create(&workers[i], NULL, run_worker, (void *)(intptr_t)i) != 0)
            return 1;
    walk_until_deadline();
    for (int i = 0; i < run.threads; i++)
        pthread_join(workers[i], NULL);
    tp_close(client);
    printf("rank %d: %llu files, %llu bytes in, %llu bytes out\n", run.rank,
           (unsigned long long)queue.files, (unsigned long long)queue.bytes_in,
           (unsigned long long)queue.bytes_out);
    return 0;
}
