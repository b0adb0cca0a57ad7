/*
 * post_events.c - posts made events to a trace, as many connections as told, and adds
 * up what the service says of them.
 *
 * post_events PORT TRACE CONNECTIONS BATCHES EVENTS_PER_BATCH
 *
 * Each event is a Kineto kernel slice of 183 bytes, its time and ids its own; lanes and
 * names repeat as in real traces. Each connection is a producer with a rank and numbers
 * its batches. Prints "posted accepted filtered rejected body_bytes"; exits with 1 when
 * a batch was not taken.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loopback.h"

#define EVENT_BYTES 183
#define MAX_CONNECTIONS 64

struct job {
    pthread_t thread;
    int port;
    const char *trace;
    int rank;
    long n_batches;
    long n_events; /* a batch */
    uint64_t posted, accepted, filtered, rejected, bytes;
    bool has_failed;
};

/* One event, padded to EVENT_BYTES by its name; the separator is in front. */
static void write_event(char *p, bool is_first, int rank, uint64_t i)
{
    static const char *const names[] = {"gemm_bf16", "layer_norm", "softmax",
                                        "allreduce"};
    char text[EVENT_BYTES * 2];
    uint64_t ns = i * 1500;
    int n = snprintf(
        text, sizeof(text),
        "%c{\"ph\":\"X\",\"cat\":\"ascend.KERNEL\",\"name\":\"%s_%02d\",\"pid\":%d,"
        "\"tid\":%d,\"ts\":%llu.%03d,\"dur\":1.250,\"args\":{\"External id\":%llu,"
        "\"correlation\":%llu,\"Input Dims\":[[64],[]],\"p\":\"",
        is_first ? '[' : ',', names[i % 4], (int)(i % 37), 4000 + rank, (int)(i % 4),
        (unsigned long long)(ns / 1000), (int)(ns % 1000),
        (unsigned long long)i % 100000, (unsigned long long)i % 100000);

    assert(n <= EVENT_BYTES - 3); /* up to a million events of a rank */
    memset(p, 'x', EVENT_BYTES);
    memcpy(p, text, (size_t)n);
    memcpy(p + EVENT_BYTES - 3, "\"}}", 3);
}

static void *run(void *arg)
{
    struct job *j = arg;
    size_t bytes = (size_t)j->n_events * EVENT_BYTES + 1;
    char *body = malloc(bytes), head[512], reply[8192];
    int fd = loopback_connect(j->port);

    j->has_failed = body == NULL || fd < 0;
    for (long b = 0; b < j->n_batches && !j->has_failed; b++) {
        int n;

        for (long i = 0; i < j->n_events; i++)
            write_event(body + i * EVENT_BYTES, i == 0, j->rank,
                        (uint64_t)(b * j->n_events + i));
        body[bytes - 1] = ']';
        n = snprintf(
            head, sizeof(head),
            "POST /traces/%s/events?producer=rank-%d&rank=%d&seq=%ld HTTP/1.1\r\n"
            "Host: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\n\r\n",
            j->trace, j->rank, j->rank, b + 1, bytes);
        if (!loopback_send(fd, head, (size_t)n) || !loopback_send(fd, body, bytes) ||
            !loopback_receive(fd, reply, sizeof(reply)) ||
            strncmp(reply, "HTTP/1.1 2", 10) != 0) {
            fprintf(stderr, "post_events: batch %ld of rank %d: %.600s\n", b, j->rank,
                    reply);
            j->has_failed = true;
            break;
        }
        j->posted += (uint64_t)j->n_events;
        j->bytes += bytes;
        j->accepted += loopback_number(reply, "\"accepted\"");
        j->filtered += loopback_number(reply, "\"filtered\"");
        j->rejected += loopback_number(reply, "\"rejected\"");
    }
    free(body);
    if (fd >= 0)
        close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct job jobs[MAX_CONNECTIONS];
    struct job all = {0};
    long n_connections, n_batches;

    if (argc != 6) {
        fprintf(stderr, "usage: post_events PORT TRACE CONNECTIONS BATCHES EVENTS\n");
        return 2;
    }
    n_connections = strtol(argv[3], NULL, 10);
    n_batches = strtol(argv[4], NULL, 10);
    if (n_connections < 1 || n_connections > MAX_CONNECTIONS ||
        n_batches < n_connections)
        return 2;
    for (long c = 0; c < n_connections; c++) {
        jobs[c] = (struct job){.port = (int)strtol(argv[1], NULL, 10),
                               .trace = argv[2],
                               .rank = (int)c,
                               .n_batches = n_batches / n_connections,
                               .n_events = strtol(argv[5], NULL, 10)};
        if (pthread_create(&jobs[c].thread, NULL, run, &jobs[c]) != 0)
            return 1;
    }
    for (long c = 0; c < n_connections; c++) {
        pthread_join(jobs[c].thread, NULL);
        all.posted += jobs[c].posted;
        all.accepted += jobs[c].accepted;
        all.filtered += jobs[c].filtered;
        all.rejected += jobs[c].rejected;
        all.bytes += jobs[c].bytes;
        all.has_failed |= jobs[c].has_failed;
    }
    printf("%llu %llu %llu %llu %llu\n", (unsigned long long)all.posted,
           (unsigned long long)all.accepted, (unsigned long long)all.filtered,
           (unsigned long long)all.rejected, (unsigned long long)all.bytes);
    return all.has_failed;
}
