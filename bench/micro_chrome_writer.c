/*
 * micro_chrome_writer.c - how fast events become Chrome JSON, without any input.
 *
 * Events as Kineto writes them for operators and kernels: interned names, five args. It
 * prints the bytes of an event, ns an event and GB/s, the median of five rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "trace/chrome_writer.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

#define N_EVENTS 2000000
#define N_ROUNDS 5
#define N_NAMES 200

static const char *const keys[] = {"External id", "correlation", "stream", "Input Dims",
                                   "est. achieved occupancy %"};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* per core */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fill_args(struct tp_arg args[5], int64_t i)
{
    for (uint32_t k = 0; k < 5; k++) {
        args[k].key = (struct tp_name){keys[k], (uint32_t)strlen(keys[k]), k + 1};
        args[k].kind = TP_ARG_INT;
        args[k].i = i % (k == 2 ? 30 : 100000) + 7;
    }
    args[3].kind = TP_ARG_JSON;
    args[3].s = tp_str_of("[[64, 64], []]");
    args[4].kind = TP_ARG_DOUBLE;
    args[4].d = (double)(i % 101);
}

/* One round; returns seconds. *bytes is what was written. */
static double run(struct tp_chrome_writer *w, const struct tp_track *tracks,
                  char names[][32], size_t *bytes)
{
    struct tp_buf out = {0};
    struct tp_arg args[5];
    struct tp_err err;
    double start = now_s();

    *bytes = 0;
    for (int64_t i = 0; i < N_EVENTS; i++) {
        char *name = names[i % N_NAMES];
        struct tp_event ev = {.kind = TP_EVENT_SLICE,
                              .phase = 'X',
                              .ts_ns = 5125564884121327 + i * 1713,
                              .dur_ns = i % 100000,
                              .name = {name, (uint32_t)strlen(name),
                                       (uint32_t)(i % N_NAMES) + 1},
                              .cat = {"kernel", 6, 1},
                              .track = &tracks[i % 8],
                              .args = args,
                              .n_args = 5};

        fill_args(args, i);
        if (tp_chrome_writer_event(w, &ev, &out, &err) != TP_OK) {
            fprintf(stderr, "micro_chrome_writer: %s\n", err.message);
            exit(1);
        }
        if (out.len > 262144) {
            *bytes += out.len;
            out.len = 0;
        }
    }
    *bytes += out.len;
    tp_buf_fini(&out);
    return now_s() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    static struct tp_index_track index_tracks[8];
    static struct tp_track tracks[8];
    static char names[N_NAMES][32];
    struct tp_stream_index index = {.stream_no = 1,
                                    .tracks = index_tracks,
                                    .n_tracks = 8};
    struct tp_producer_info producer = {0};
    struct tp_merge_stream stream = {&index, &producer};
    struct tp_merge *merge = NULL;
    struct tp_chrome_writer *w = NULL;
    struct tp_err err;
    double seconds[N_ROUNDS];
    size_t bytes = 0;

    for (uint32_t i = 0; i < 8; i++) {
        tracks[i].index = i;
        tracks[i].pid = (struct tp_id){.kind = TP_ID_NUMBER, .number = 3113936};
        tracks[i].tid = (struct tp_id){.kind = TP_ID_NUMBER, .number = 3113936 + i};
        index_tracks[i].pid = tracks[i].pid;
        index_tracks[i].tid = tracks[i].tid;
    }
    for (int i = 0; i < N_NAMES; i++)
        snprintf(names[i], sizeof(names[i]), "aten::operator_number_%d", i);
    if (tp_merge_new(&stream, 1, &merge, &err) != TP_OK ||
        tp_chrome_writer_new(merge, 0, &w, &err) != TP_OK) {
        fprintf(stderr, "micro_chrome_writer: %s\n", err.message);
        return 1;
    }
    for (int i = 0; i < N_ROUNDS; i++)
        seconds[i] = run(w, tracks, names, &bytes);
    qsort(seconds, N_ROUNDS, sizeof(*seconds), compare);
    printf("chrome_writer: %zu bytes an event, %.0f ns an event, %.2f GB/s\n",
           bytes / N_EVENTS, seconds[N_ROUNDS / 2] / N_EVENTS * 1e9,
           (double)bytes / seconds[N_ROUNDS / 2] / 1e9);
    tp_chrome_writer_free(w);
    tp_merge_free(merge);
    return 0;
}
