/*
 * micro_pf.c - nanoseconds of CPU time an event for writing and reading our streams.
 *
 *     micro_pf [EVENTS]     default 2000000
 *
 * The event is what Kineto writes most: a slice with a name of 300, a category and
 * three arguments, one of them JSON text. Prints a line "name value unit" for each
 * number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

#define NAMES 300
#define BUFFER_BYTES ((size_t)8 << 20) /* what a batch of a producer may come to */
#define BUFFER_EVENTS 65536u           /* that are read: less than BUFFER_BYTES */
#define ROUNDS 10
#define BATCH 64 /* events that are made before they are written: as many as fit L1 */

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const struct tp_err *err)
{
    fprintf(stderr, "micro_pf: %s\n", err->message);
    exit(1);
}

/* The event number i. Texts lie where a parser would have them: in a new place each. */
static void make_event(struct tp_event *ev, struct tp_arg *args, char *text, unsigned i,
                       const struct tp_track *track, bool has_iids)
{
    int n = snprintf(text, 64, "aten::convolution_backward_%u", i % NAMES);

    *ev = (struct tp_event){.kind = TP_EVENT_SLICE,
                            .phase = 'X',
                            .ts_ns = 1795982590884123457LL + 1000LL * i,
                            .dur_ns = 500 + i % 1000,
                            .name = {text, (uint32_t)n, has_iids ? 10 + i % NAMES : 0},
                            .cat = {"cpu_op", 6, has_iids ? 1 : 0},
                            .track = track,
                            .args = args,
                            .n_args = 3};
    args[0] = (struct tp_arg){.key = {"External id", 11, has_iids ? 2 : 0},
                              .kind = TP_ARG_INT,
                              .i = (int64_t)i};
    args[1] = (struct tp_arg){.key = {"Input Dims", 10, has_iids ? 3 : 0},
                              .kind = TP_ARG_JSON,
                              .s = {"[[64, 64], [64, 64], []]", 24}};
    args[2] = (struct tp_arg){.key = {"Record function id", 18, has_iids ? 4 : 0},
                              .kind = TP_ARG_INT,
                              .i = 0};
}

static double time_writing(unsigned n, bool has_one_reader, struct tp_buf *out,
                           const struct tp_track *track)
{
    static struct tp_event events[BATCH];
    static struct tp_arg args[BATCH][3];
    static char texts[BATCH][64];
    struct tp_pf_writer_opts opts = {.stream_no = 1,
                                     .is_sealed = true,
                                     .has_one_reader = has_one_reader};
    struct tp_pf_writer *w = NULL;
    struct tp_err err;
    double spent = 0;

    if (tp_pf_writer_new(&opts, &w, &err) != TP_OK)
        die(&err);
    out->len = 0;
    for (unsigned i = 0; i < n; i += BATCH) {
        double start;

        for (unsigned k = 0; k < BATCH; k++)
            make_event(&events[k], args[k], texts[k], i + k, track, has_one_reader);
        start = cpu_ns();
        for (unsigned k = 0; k < BATCH; k++) {
            if (tp_pf_writer_event(w, &events[k], out, &err) != TP_OK)
                die(&err);
        }
        spent += cpu_ns() - start;
        if (out->len > BUFFER_BYTES)
            out->len = 0;
    }
    tp_pf_writer_free(w);
    return spent;
}

/* Read the buffer ROUNDS times: all of its events come back. Returns the time for an
 * event. */
static double time_reading(const struct tp_buf *in, bool is_trusted,
                           const struct tp_track *track)
{
    struct tp_pf_reader_opts opts = {.is_trusted = is_trusted};
    struct tp_pf_reader *r = NULL;
    enum tp_pf_item item;
    struct tp_event ev;
    struct tp_err err;
    unsigned n_events = 0;
    double start;

    if (tp_pf_reader_new(&opts, &r, &err) != TP_OK ||
        tp_pf_reader_add_track(r, tp_pf_track_uuid(1, 0, 0), 0, &track->pid,
                               &track->tid, &err) != TP_OK)
        die(&err);
    start = cpu_ns();
    for (int round = 0; round < ROUNDS; round++) {
        struct tp_pf_cursor c = {in->data, in->data + in->len};
        int rc;

        while ((rc = tp_pf_reader_next(r, &c, &item, &ev, &err)) == TP_OK)
            n_events++;
        if (rc != TP_EAGAIN)
            die(&err);
    }
    start = cpu_ns() - start;
    tp_pf_reader_free(r);
    if (n_events != BUFFER_EVENTS * ROUNDS) {
        fprintf(stderr, "micro_pf: %u of %u events were read\n", n_events,
                BUFFER_EVENTS * ROUNDS);
        exit(1);
    }
    return start / n_events;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000000;
    struct tp_track track = {.pid = {TP_ID_NUMBER, 4037, {NULL, 0}},
                             .tid = {TP_ID_NUMBER, 7, {NULL, 0}}};
    struct tp_buf out = {0};
    double spent;

    n = (n + BATCH - 1) / BATCH * BATCH;
    time_writing(n, false, &out, &track); /* page the buffer in */
    spent = time_writing(n, false, &out, &track);
    printf("pf_write %.1f ns/event\n", spent / n);
    spent = time_writing(n, true, &out, &track);
    printf("pf_write_iids %.1f ns/event\n", spent / n);
    time_writing(BUFFER_EVENTS, true, &out, &track);
    printf("pf_size %.1f bytes/event\n", (double)out.len / BUFFER_EVENTS);
    printf("pf_read_trusted %.1f ns/event\n", time_reading(&out, true, &track));
    printf("pf_read %.1f ns/event\n", time_reading(&out, false, &track));
    tp_buf_fini(&out);
    return 0;
}
