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
#include <zstd.h>

#include "recorder.h"

enum { READ, HASH, COMPRESS, FILE_DONE, QUEUE_DEPTH };

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

static struct {
    const char *url, *job, *dir;
    int rank, world_size, threads, seconds;
    uint64_t deadline_ns, n_seen;
} run = {.url = "http://127.0.0.1:8750",
         .job = "treehash",
         .world_size = 1,
         .threads = 2,
         .seconds = 10};

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
    recorder_counter(QUEUE_DEPTH, "queue", depth);
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
    uint64_t start_ns = recorder_now_ns();
    FILE *f = fopen(path, "rb");
    size_t n = 0;

    if (f != NULL) {
        n = fread(data, 1, FILE_MAX_BYTES, f);
        fclose(f);
    }
    recorder_slice(READ, "fread", start_ns, n);
    return n;
}

static void work_on(const struct task *t, char *data, char *packed, size_t packed_max)
{
    uint64_t file_ns = recorder_now_ns(), start_ns;
    const char *name = strrchr(t->path, '/');
    unsigned char digest[32];
    size_t n = read_file(t->path, data), out;

    start_ns = recorder_now_ns();
    gnutls_hash_fast(GNUTLS_DIG_SHA256, data, n, digest);
    recorder_slice(HASH, "sha256", start_ns, n);

    start_ns = recorder_now_ns();
    out = ZSTD_compress(packed, packed_max, data, n, ZSTD_LEVEL);
    recorder_slice(COMPRESS, "zstd", start_ns, n);
    recorder_slice(FILE_DONE, name == NULL ? t->path : name + 1, file_ns, n);
    recorder_flow(false, t->id, file_ns);

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
    recorder_name_thread(name);
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
    uint64_t start_ns = recorder_now_ns();

    (void)where;
    if (start_ns > run.deadline_ns)
        return 1;
    if (kind != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    if (run.n_seen++ % (uint64_t)run.world_size != (uint64_t)run.rank)
        return 0;
    push(path);
    recorder_slice(FILE_DONE, "enqueue", start_ns, (uint64_t)st->st_size);
    recorder_flow(true, run.n_seen - 1, start_ns);
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
    run.deadline_ns = recorder_now_ns() + (uint64_t)run.seconds * 1000000000u;
    recorder_name_thread("walker");
    while (recorder_now_ns() < run.deadline_ns)
        if (nftw(run.dir, visit, OPEN_FOLDERS, FTW_PHYS) != 0)
            break;
    pthread_mutex_lock(&queue.lock);
    queue.is_closed = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

int main(int argc, char **argv)
{
    struct recorder_opts opts = {
        .plugin = PLUGIN,
        .n_types = 5,
        .types = {[READ] = {"READ", "a file is read", "slice", NULL},
                  [HASH] = {"HASH", "SHA-256 of a file", "slice", NULL},
                  [COMPRESS] = {"COMPRESS", "zstd of a file", "slice", NULL},
                  [FILE_DONE] = {"FILE", "all that is done to a file", "slice", NULL},
                  [QUEUE_DEPTH] = {"QUEUE_DEPTH", "files that wait for a worker",
                                   "counter", "files"}}};
    pthread_t workers[MAX_THREADS];

    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: treehash [--url URL] [--job NAME] [--rank R --world-size N] "
                "[--threads T] [--seconds S] DIR\n");
        return 2;
    }
    opts.url = run.url;
    opts.job = run.job;
    opts.rank = run.rank;
    opts.world_size = run.world_size;
    if (!recorder_start(&opts))
        fprintf(stderr, "treehash: not traceable: no service at %s\n", run.url);
    for (int i = 0; i < run.threads; i++)
        if (pthread_create(&workers[i], NULL, run_worker, (void *)(intptr_t)i) != 0)
            return 1;
    walk_until_deadline();
    for (int i = 0; i < run.threads; i++)
        pthread_join(workers[i], NULL);
    recorder_stop();
    printf("rank %d: %llu files, %llu bytes in, %llu bytes out\n", run.rank,
           (unsigned long long)queue.files, (unsigned long long)queue.bytes_in,
           (unsigned long long)queue.bytes_out);
    return 0;
}
