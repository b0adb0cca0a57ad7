/*
 * metrics.h - numbers of the process and of the engine in the text format of
 * Prometheus.
 *
 * Counting is lock-free and allowed from any thread. It decides nothing.
 */
#ifndef TP_SERVER_METRICS_H
#define TP_SERVER_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"

struct tp_engine;
struct tp_route;

#define TP_METRICS_ROUTES 40 /* the last one stands for "no route" */
#define TP_METRICS_STATUSES 32
#define TP_METRICS_BUCKETS 12

/* Embed it; the zero value is ready. All fields are private but the gauges. */
struct tp_metrics {
    _Atomic uint64_t requests[TP_METRICS_ROUTES][TP_METRICS_STATUSES];
    _Atomic uint64_t buckets[TP_METRICS_ROUTES][TP_METRICS_BUCKETS + 1];
    _Atomic uint64_t duration_ns[TP_METRICS_ROUTES];
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t broken_off; /* answers that ended before their end */
    _Atomic uint64_t refused;    /* connections over a limit */
    _Atomic int64_t connections; /* open now */
    _Atomic int64_t waiting;     /* held calls and watches now */
    _Atomic int64_t watches;     /* of them: watches */
};

/* Count one request that has ended. route NULL: it matched none. */
void tp_metrics_request(struct tp_metrics *m, const struct tp_route *route, int status,
                        uint64_t duration_ns, uint64_t bytes_in, uint64_t bytes_out);

/*
 * Append all metrics.
 *
 * TP_ENOMEM, TP_EQUOTA  the text is incomplete.
 */
int tp_metrics_write(struct tp_metrics *m, struct tp_engine *engine,
                     const char *version, struct tp_buf *out, struct tp_err *err);

#endif
