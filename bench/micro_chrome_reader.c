/*
 * micro_chrome_reader.c - what reading Chrome JSON costs, in CPU time of one thread.
 *
 *   micro_chrome_reader [FILE.json]
 *
 * Without a file it reads synthetic events like those of Kineto, compact and as Kineto
 * prints them; with one, the file. Each line is the median of several rounds. The
 * events are only looked at, not stored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "trace/chrome_reader.h"

enum { ROUNDS = 15, EVENTS = 200000, CHUNK_BYTES = 64 << 10 };

/* 183 bytes with typical numbers. */
static const char compact[] =
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::copy_\",\"pid\":%d,\"tid\":%d,"
    "\"ts\":%lld.%03d,\"dur\":%d.%03d,\"args\":{\"External id\":%d,"
    "\"Record function id\":%d,\"Input Dims\":[[64,64],[64,64],[]]}},\n";

static const char spread[] =
    "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::copy_\", "
    "\"pid\": %d, \"tid\": %d,\n    \"ts\": %lld.%03d, \"dur\": %d.%03d,\n    "
    "\"args\": {\n      \"External id\": %d,\"Record function id\": %d, "
    "\"Input Dims\": [[64, 64], [64, 64], []]\n    }\n  },\n";

static int look(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    uint64_t *sum = arg;

    (void)err;
    *sum += (uint64_t)ev->ts_ns + ev->name.len + ev->n_args + ev->track->index;
    return TP_OK;
}

static int append_event(struct tp_buf *b, const char *format, int i)
{
    const long long us = 5125564901937LL + i * 7LL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return tp_buf_printf(b, NULL, format, 12559, 12562 + (i / 50) % 3, us, i % 1000,
                         5 + i % 90, i % 1000, 8737 + i, 8000 + i % 1000);
#pragma GCC diagnostic pop
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Read the text once. Returns how many events it has, 0 when it cannot be read. */
static uint64_t read_once(struct tp_chrome_reader *r, const char *p, size_t n)
{
    struct tp_err err = {0};
    int rc = TP_OK;

    tp_chrome_reader_reset(r);
    for (size_t i = 0; i < n && rc == TP_OK; i += CHUNK_BYTES)
        rc = tp_chrome_reader_feed(r, p + i, n - i < CHUNK_BYTES ? n - i : CHUNK_BYTES,
                                   &err);
    if (rc == TP_OK)
        rc = tp_chrome_reader_finish(r, &err);
    if (rc == TP_OK)
        return tp_chrome_reader_stats(r)->events;
    fprintf(stderr, "micro_chrome_reader: %s\n", err.message);
    return 0;
}

static int measure(const char *what, const char *p, size_t n)
{
    uint64_t sum = 0;
    struct tp_chrome_reader_opts opts = {.on_event = look, .arg = &sum};
    struct tp_chrome_reader *r;
    double rounds[ROUNDS];
    uint64_t events = 0;
    double s;

    if (tp_chrome_reader_new(&opts, &r, NULL) != TP_OK)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = cpu_s();

        events = read_once(r, p, n);
        rounds[i] = cpu_s() - start;
        if (events == 0)
            break;
    }
    tp_chrome_reader_free(r);
    if (events == 0)
        return 1;
    qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
    s = rounds[ROUNDS / 2];
    printf("chrome_reader %s: %.0f ns/event (best %.0f), %.2f M events/s, %.0f MB/s, "
           "%.0f bytes/event\n",
           what, s * 1e9 / (double)events, rounds[0] * 1e9 / (double)events,
           (double)events / s * 1e-6, (double)n / s * 1e-6, (double)n / (double)events);
    return 0;
}

static int measure_synthetic(const char *what, const char *format)
{
    struct tp_buf b = {0};
    int rc = tp_buf_append_str(&b, "{\"schemaVersion\":1,\"traceEvents\":[\n", NULL);

    for (int i = 0; i < EVENTS && rc == TP_OK; i++)
        rc = append_event(&b, format, i);
    if (rc == TP_OK)
        rc = tp_buf_append_str(&b, "]}\n", NULL);
    if (rc == TP_OK)
        rc = measure(what, b.data, b.len);
    tp_buf_fini(&b);
    return rc;
}

static int measure_file(const char *path)
{
    struct tp_buf b = {0};
    char chunk[4096];
    FILE *f = fopen(path, "rb");
    size_t n;
    int rc = TP_OK;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    while (rc == TP_OK && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        rc = tp_buf_append(&b, chunk, n, NULL);
    fclose(f);
    if (rc == TP_OK)
        rc = measure(path, b.data, b.len);
    tp_buf_fini(&b);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (argc > 1)
        return measure_file(argv[1]) == 0 ? 0 : 1;
    rc |= measure_synthetic("compact", compact);
    rc |= measure_synthetic("as Kineto prints", spread);
    return rc == 0 ? 0 : 1;
}
