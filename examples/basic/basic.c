/*
 * basic.c - the smallest program that can be traced: one type, slices with arguments,
 * a counter, steps.
 *
 * basic [SECONDS]
 *
 * Start a service, start this, and ask for a trace while it runs:
 *
 *     curl -d '{"stop": {"duration_ms": 1000}}' localhost:8750/traces
 *
 * Outside of this tree: cc basic.c $(pkg-config --cflags --libs traceplane)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <traceplane/traceplane.h>

#define SIZE 20000
#define NS_PER_S 1000000000u

static double work(int n)
{
    double sum = 0;

    for (int i = 1; i <= n; i++)
        sum += sqrt(i);
    return sum;
}

int main(int argc, char **argv)
{
    struct tp_client *client = &tp_client_off;
    unsigned kernel = TP_TYPE_NONE, memory = TP_TYPE_NONE;
    struct tp_err err = {0};
    uint64_t end_ns = tp_now() +
                      NS_PER_S * (argc > 1 ? strtoul(argv[1], NULL, 10) : 10);
    double total = 0;

    /* Where the service is comes from TRACEPLANE_URL; a failure here costs the trace
     * and nothing else: all calls below do nothing then. */
    if (tp_open(NULL, &client, &err) != TP_OK ||
        tp_register_type(client, "basic", "KERNEL", TP_KIND_SLICE, NULL, &kernel,
                         &err) != TP_OK ||
        tp_register_type(client, "basic", "MEMORY", TP_KIND_COUNTER, "bytes", &memory,
                         &err) != TP_OK)
        fprintf(stderr, "basic: not traceable: %s\n", err.message);

    while (tp_now() < end_ns) {
        uint64_t step = tp_step(client);

        TP_BEGIN(client, kernel, "step", TP_INT("step", step),
                 TP_TEXT("shape", "wide"));
        for (int i = 1; i <= 4; i++) {
            TP_SCOPE(client, kernel, "part", TP_INT("size", i * SIZE));

            total += work(i * SIZE);
        }
        TP_ADD(client, kernel, TP_DOUBLE("total", total));
        TP_END(client, kernel);
        TP_COUNTER(client, memory, "in use", (double)(step % 64) * SIZE);
    }
    tp_close(client);
    printf("%g\n", total);
    return 0;
}
