/*
 * post_native.c - posts native batches of 0.6 MiB to a trace, which are 1 MiB with the
 * ends of slices, over as many connections as told, and adds up what the service says.
 *
 * post_native PORT TRACE CONNECTIONS BATCHES
 *
 * Each connection is a producer with a rank, which learns its stream from an empty
 * batch and then, when all have, posts the same bytes under new numbers. A slice is
 * what a linked backend records most: a type, one of 300 names, one of four threads.
 * Prints "posted accepted body_bytes nanoseconds", the last from then until all was
 * taken; exits with 1 when a batch was not taken, with all its slices.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "loopback.h"
#include "support/native_form.h"
#include "trace/native_batch.h"
#include "trace/pf_writer.h"

#define BATCH_BYTES ((1u << 20) - 256) /* about: what a producer sends at most */
#define MAX_CONNECTIONS 64
#define NAMES 300
#define THREADS 4

struct job {
    pthread_t thread;
    pthread_barrier_t *ready;
    int port;
    const char *trace;
    int rank;
    long n_batches;
    uint64_t posted, accepted, bytes;
    bool has_failed;
};

/* Send a body under a number; false: it was not taken. */
static bool post(struct job *j, int fd, const char *type, long seq,
                 const struct tp_buf *body, char *reply, size_t cap)
{
    char head[512];
    int n = snprintf(head, sizeof(head),
                     "POST /traces/%s/events?producer=rank-%d&rank=%d&seq=%ld HTTP/1.1"
                     "\r\nHost: localhost\r\nContent-Type: %s\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     j->trace, j->rank, j->rank, seq, type, body->len);

    if (loopback_send(fd, head, (size_t)n) &&
        loopback_send(fd, body->data, body->len) && loopback_receive(fd, reply, cap) &&
        strncmp(reply, "HTTP/1.1 2", 10) == 0)
        return true;
    fprintf(stderr, "post_native: batch %ld of rank %d: %.600s\n", seq, j->rank, reply);
    return false;
}

static bool write_slice(struct tp_pf_writer *w, int rank, unsigned i,
                        struct tp_buf *out)
{
    struct tp_track track = {.index = i % THREADS,
                             .pid = {TP_ID_NUMBER, 4000 + rank, {NULL, 0}},
                             .tid = {TP_ID_NUMBER, i % THREADS, {NULL, 0}}};
    char name[32];
    struct tp_event ev = {.kind = TP_EVENT_SLICE,
                          .phase = 'X',
                          .ts_ns = 1795982590884123457LL + 1000LL * i,
                          .dur_ns = 500 + i % 400,
                          .cat = {"cpu_op", 6, 1},
                          .track = &track};

    snprintf(name, sizeof(name), "gemm_bf16_%03u", i % NAMES);
    ev.name = (struct tp_name){name, (uint32_t)strlen(name), 1 + i % NAMES};
    return tp_pf_writer_event(w, &ev, out, NULL) == TP_OK;
}

/* A batch for a stream; returns how many slices it has, 0 without memory. */
static unsigned make_batch(struct tp_buf *out, int rank, uint32_t stream_no)
{
    struct tp_pf_writer_opts opts = {.stream_no = stream_no};
    struct tp_native_head head = {.stream_no = stream_no};
    char bytes[TP_NATIVE_HEAD_BYTES] = {0};
    struct tp_pf_writer *w;
    unsigned n = 0;
    bool is_fine = tp_pf_writer_new(&opts, &w, NULL) == TP_OK;

    out->len = 0;
    is_fine = is_fine && tp_buf_append(out, bytes, sizeof(bytes), NULL) == TP_OK;
    while (is_fine && out->len < BATCH_BYTES)
        is_fine = write_slice(w, rank, n++, out);
    tp_pf_writer_free(w);
    if (!is_fine)
        return 0;
    head.n_events = n;
    tp_native_head_put(out->data, &head);
    native_form_leave_out_ends(out, 0);
    return n;
}

static void *run(void *arg)
{
    struct job *j = arg;
    struct tp_buf body = {0};
    char reply[8192] = "";
    int fd = loopback_connect(j->port);
    unsigned n = 0;

    if (fd >= 0 && tp_buf_append(&body, "[]", 2, NULL) == TP_OK &&
        post(j, fd, "application/json", 0, &body, reply, sizeof(reply)))
        n = make_batch(&body, j->rank, (uint32_t)loopback_number(reply, "\"stream\""));
    j->has_failed = n == 0;
    pthread_barrier_wait(j->ready);
    for (long b = 1; b <= j->n_batches && !j->has_failed; b++) {
        j->has_failed = !post(j, fd, "application/x-perfetto-trace", b, &body, reply,
                              sizeof(reply));
        j->posted += n;
        j->bytes += body.len;
        j->accepted += j->has_failed ? 0 : loopback_number(reply, "\"accepted\"");
    }
    tp_buf_fini(&body);
    if (fd >= 0)
        close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct job jobs[MAX_CONNECTIONS];
    struct job all = {0};
    pthread_barrier_t ready;
    struct timespec start, end;
    long n_connections, n_batches;

    if (argc != 5) {
        fprintf(stderr, "usage: post_native PORT TRACE CONNECTIONS BATCHES\n");
        return 2;
    }
    n_connections = strtol(argv[3], NULL, 10);
    n_batches = strtol(argv[4], NULL, 10);
    if (n_connections < 1 || n_connections > MAX_CONNECTIONS ||
        n_batches < n_connections)
        return 2;
    pthread_barrier_init(&ready, NULL, (unsigned)n_connections + 1);
    for (long c = 0; c < n_connections; c++) {
        jobs[c] = (struct job){.ready = &ready,
                               .port = (int)strtol(argv[1], NULL, 10),
                               .trace = argv[2],
                               .rank = (int)c,
                               .n_batches = n_batches / n_connections};
        if (pthread_create(&jobs[c].thread, NULL, run, &jobs[c]) != 0)
            return 1;
    }
    pthread_barrier_wait(&ready);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long c = 0; c < n_connections; c++) {
        pthread_join(jobs[c].thread, NULL);
        all.posted += jobs[c].posted;
        all.accepted += jobs[c].accepted;
        all.bytes += jobs[c].bytes;
        all.has_failed |= jobs[c].has_failed;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%llu %llu %llu %lld\n", (unsigned long long)all.posted,
           (unsigned long long)all.accepted, (unsigned long long)all.bytes,
           (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
    if (all.accepted != all.posted)
        fprintf(stderr, "post_native: %llu of %llu slices were accepted\n",
                (unsigned long long)all.accepted, (unsigned long long)all.posted);
    return all.has_failed || all.accepted != all.posted;
}
