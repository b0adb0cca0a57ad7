/*
 * metrics.c - what is counted and how it is written.
 *
 * Statuses are few, so a request is counted in a small array by route and status. The
 * engine's own totals are read when somebody asks.
 */
#include "server/metrics.h"

#include <stddef.h>
#include <stdio.h>

#include "api/rest.h"
#include "engine/engine.h"

static const int statuses[] = {200, 201, 202, 204, 206, 304, 400, 403,
                               404, 405, 406, 409, 413, 415, 416, 417,
                               421, 422, 429, 431, 500, 503, 507};

#define N_STATUSES (sizeof(statuses) / sizeof(statuses[0]))
#define OTHER N_STATUSES

static const uint64_t bounds_us[TP_METRICS_BUCKETS] = {
    50, 100, 250, 500, 1000, 2500, 10000, 50000, 250000, 1000000, 10000000, 60000000};

static size_t status_index(int status)
{
    for (size_t i = 0; i < N_STATUSES; i++)
        if (statuses[i] == status)
            return i;
    return OTHER;
}

static size_t route_index(const struct tp_route *route)
{
    size_t n;

    return route == NULL ? TP_METRICS_ROUTES - 1 : (size_t)(route - tp_rest_routes(&n));
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void tp_metrics_request(struct tp_metrics *m, const struct tp_route *route, int status,
                        uint64_t duration_ns, uint64_t bytes_in, uint64_t bytes_out)
{
    size_t r = route_index(route);
    size_t b = 0;

    while (b < TP_METRICS_BUCKETS && duration_ns > bounds_us[b] * 1000)
        b++;
    add(&m->requests[r][status_index(status)], 1);
    add(&m->buckets[r][b], 1);
    add(&m->duration_ns[r], duration_ns);
    if (bytes_in > 0)
        add(&m->bytes_in, bytes_in);
    if (bytes_out > 0)
        add(&m->bytes_out, bytes_out);
}

/* A writer whose first failure sticks. */
struct writer {
    struct tp_buf *out;
    struct tp_err *err;
    int rc;
};

static void head(struct writer *w, const char *name, const char *type, const char *help)
{
    if (w->rc == TP_OK)
        w->rc = tp_buf_printf(w->out, w->err, "# HELP %s %s\n# TYPE %s %s\n", name,
                              help, name, type);
}

static void value(struct writer *w, const char *name, const char *labels, uint64_t v)
{
    if (w->rc == TP_OK)
        w->rc = tp_buf_printf(w->out, w->err, "%s%s %llu\n", name, labels,
                              (unsigned long long)v);
}

static void seconds(struct writer *w, const char *name, const char *labels, uint64_t ns)
{
    if (w->rc == TP_OK)
        w->rc = tp_buf_printf(w->out, w->err, "%s%s %llu.%09llu\n", name, labels,
                              (unsigned long long)(ns / 1000000000u),
                              (unsigned long long)(ns % 1000000000u));
}

static const char *operation_of(size_t route)
{
    size_t n;
    const struct tp_route *routes = tp_rest_routes(&n);

    return route < n ? routes[route].operation : "none";
}

static void write_requests(struct writer *w, struct tp_metrics *m)
{
    char labels[96];

    head(w, "traceplane_http_requests_total", "counter",
         "HTTP requests answered, by operation and status.");
    for (size_t r = 0; r < TP_METRICS_ROUTES; r++) {
        for (size_t s = 0; s <= OTHER; s++) {
            uint64_t v = atomic_load_explicit(&m->requests[r][s], memory_order_relaxed);

            if (v == 0)
                continue;
            if (s == OTHER)
                snprintf(labels, sizeof(labels), "{operation=\"%s\",status=\"other\"}",
                         operation_of(r));
            else
                snprintf(labels, sizeof(labels), "{operation=\"%s\",status=\"%d\"}",
                         operation_of(r), statuses[s]);
            value(w, "traceplane_http_requests_total", labels, v);
        }
    }
}

static void write_histogram(struct writer *w, struct tp_metrics *m, size_t r)
{
    static const char name[] = "traceplane_http_request_duration_seconds";
    char series[96];
    char labels[96];
    uint64_t sum = 0;

    snprintf(series, sizeof(series), "%s_bucket", name);
    for (size_t b = 0; b <= TP_METRICS_BUCKETS; b++) {
        sum += atomic_load_explicit(&m->buckets[r][b], memory_order_relaxed);
        if (b == TP_METRICS_BUCKETS)
            snprintf(labels, sizeof(labels), "{operation=\"%s\",le=\"+Inf\"}",
                     operation_of(r));
        else
            snprintf(labels, sizeof(labels), "{operation=\"%s\",le=\"%g\"}",
                     operation_of(r), (double)bounds_us[b] / 1e6);
        value(w, series, labels, sum);
    }
    snprintf(labels, sizeof(labels), "{operation=\"%s\"}", operation_of(r));
    snprintf(series, sizeof(series), "%s_sum", name);
    seconds(w, series, labels, atomic_load(&m->duration_ns[r]));
    snprintf(series, sizeof(series), "%s_count", name);
    value(w, series, labels, sum);
}

static void write_durations(struct writer *w, struct tp_metrics *m)
{
    head(w, "traceplane_http_request_duration_seconds", "histogram",
         "Time from the headers of a request to the end of its answer.");
    for (size_t r = 0; r < TP_METRICS_ROUTES; r++) {
        uint64_t n = 0;

        for (size_t b = 0; b <= TP_METRICS_BUCKETS; b++)
            n += atomic_load_explicit(&m->buckets[r][b], memory_order_relaxed);
        if (n > 0)
            write_histogram(w, m, r);
    }
}

/* One number of struct tp_engine_stats. Rows of one name follow each other. */
struct stat_row {
    const char *name;
    const char *type;
    const char *labels;
    const char *help;
    size_t offset;
};

#define STAT(field) offsetof(struct tp_engine_stats, field)

static const struct stat_row stat_rows[] = {
    {"traceplane_jobs", "gauge", "", "Jobs known.", STAT(jobs)},
    {"traceplane_types", "gauge", "", "Custom activity types registered.", STAT(types)},
    {"traceplane_producers", "gauge", "", "Producers attached.", STAT(producers)},
    {"traceplane_producers_stale", "gauge", "",
     "Producers that have not been heard of for too long.", STAT(producers_stale)},
    {"traceplane_traces", "gauge", "", "Traces kept.", STAT(traces)},
    {"traceplane_active_traces", "gauge", "", "Traces that have not ended.",
     STAT(active_traces)},
    {"traceplane_streams", "gauge", "", "Streams of all traces kept.", STAT(streams)},
    {"traceplane_uploads_open", "gauge", "", "Uploads in progress.",
     STAT(uploads_open)},
    {"traceplane_downloads_open", "gauge", "", "Downloads in progress.",
     STAT(downloads_open)},
    {"traceplane_seal_backlog", "gauge", "", "Streams waiting to be sealed.",
     STAT(work_waiting)},
    {"traceplane_seals_running", "gauge", "", "Streams being sealed.",
     STAT(work_running)},
    {"traceplane_stored_bytes", "gauge", "", "Bytes of all traces kept.",
     STAT(stored_bytes)},
    {"traceplane_traces_created_total", "counter", "", "Traces created.",
     STAT(traces_created)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"complete\"}",
     "Traces that have ended, by outcome.", STAT(traces_complete)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"lossy\"}", "",
     STAT(traces_lossy)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"partial\"}", "",
     STAT(traces_partial)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"empty\"}", "",
     STAT(traces_empty)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"failed\"}", "",
     STAT(traces_failed)},
    {"traceplane_traces_finished_total", "counter", "{outcome=\"cancelled\"}", "",
     STAT(traces_cancelled)},
    {"traceplane_traces_deleted_total", "counter", "", "Traces deleted.",
     STAT(traces_deleted)},
    {"traceplane_types_registered_total", "counter", "", "Activity types registered.",
     STAT(types_registered)},
    {"traceplane_types_refused_total", "counter", "{reason=\"collision\"}",
     "Registrations refused, by reason.", STAT(types_refused_collision)},
    {"traceplane_types_refused_total", "counter", "{reason=\"frozen\"}", "",
     STAT(types_refused_frozen)},
    {"traceplane_batches_total", "counter", "{result=\"stored\"}",
     "Batches of events, by result.", STAT(batches)},
    {"traceplane_batches_total", "counter", "{result=\"duplicate\"}", "",
     STAT(duplicate_batches)},
    {"traceplane_batches_total", "counter", "{result=\"refused\"}", "",
     STAT(refused_batches)},
    {"traceplane_files_total", "counter", "{result=\"stored\"}",
     "Whole files, by result.", STAT(files)},
    {"traceplane_files_total", "counter", "{result=\"refused\"}", "",
     STAT(refused_files)},
    {"traceplane_events_posted_total", "counter", "", "Events received.",
     STAT(events_posted)},
    {"traceplane_events_total", "counter", "{result=\"stored\"}",
     "What became of the events received.", STAT(events_stored)},
    {"traceplane_events_total", "counter", "{result=\"filtered\"}", "",
     STAT(events_filtered)},
    {"traceplane_events_total", "counter", "{result=\"dropped\"}", "",
     STAT(events_dropped)},
    {"traceplane_events_waiting", "gauge", "",
     "Events that the storage has refused and that are to be sent again.",
     STAT(events_waiting)},
    {"traceplane_events_repaired_total", "counter", "",
     "Events stored in which something was repaired.", STAT(events_repaired)},
    {"traceplane_events_untyped_total", "counter", "",
     "Events stored whose category is no known type.", STAT(events_untyped)},
    {"traceplane_uploaded_bytes_total", "counter", "",
     "Bytes of events and files as received.", STAT(uploaded_bytes)},
    {"traceplane_log_bytes_total", "counter", "", "Bytes appended to logs of streams.",
     STAT(log_bytes)},
    {"traceplane_seals_total", "counter", "{result=\"done\"}",
     "Streams sealed, by result.", STAT(seals)},
    {"traceplane_seals_total", "counter", "{result=\"failed\"}", "",
     STAT(seal_failures)},
    {"traceplane_sealed_events_total", "counter", "", "Events in sealed streams.",
     STAT(sealed_events)},
    {"traceplane_syncs_total", "counter", "", "Calls of sync by producers.",
     STAT(syncs)},
    {"traceplane_commands_sent_total", "counter", "", "Commands given to producers.",
     STAT(commands_sent)},
    {"traceplane_storage_failures_total", "counter", "{where=\"rows\"}",
     "Failures of the storage, by place.", STAT(store_failures)},
    {"traceplane_storage_failures_total", "counter", "{where=\"blobs\"}", "",
     STAT(blob_failures)},
};

static void write_engine(struct writer *w, struct tp_engine *engine)
{
    struct tp_engine_stats stats = {0};

    tp_engine_stats(engine, &stats);
    for (size_t i = 0; i < sizeof(stat_rows) / sizeof(stat_rows[0]); i++) {
        const struct stat_row *row = &stat_rows[i];

        if (row->help[0] != '\0')
            head(w, row->name, row->type, row->help);
        value(w, row->name, row->labels,
              *(const uint64_t *)(const void *)((const char *)&stats + row->offset));
    }
}

/* What was answered to Kineto processes, and what was not. */
static void write_kineto(struct writer *w, struct tp_engine *engine)
{
    static const char *const answers[TP_KINETO_ANSWERS] = {
        [TP_KINETO_ANSWER_NONE_BAD] = "{answer=\"none-bad\"}",
        [TP_KINETO_ANSWER_NONE_FLOOD] = "{answer=\"none-flood\"}",
        [TP_KINETO_ANSWER_NONE_SKIPPED] = "{answer=\"none-skipped\"}",
        [TP_KINETO_ANSWER_EMPTY] = "{answer=\"empty\"}",
        [TP_KINETO_ANSWER_EMPTY_UNKNOWN] = "{answer=\"empty-unknown\"}",
        [TP_KINETO_ANSWER_COUNT] = "{answer=\"count\"}",
        [TP_KINETO_ANSWER_ORDER] = "{answer=\"order\"}",
    };
    struct tp_kineto_stats stats;
    char why[8];

    tp_engine_kineto_stats(engine, &stats);
    if (tp_engine_kineto_files(engine, why, sizeof(why))) {
        head(w, "traceplane_kineto_files_usable", "gauge",
             "Whether PyTorch processes can leave files: 1, or 0.");
        value(w, "traceplane_kineto_files_usable", "", *why == '\0');
        tp_engine_kineto_sockets(engine, why, sizeof(why));
        head(w, "traceplane_kineto_sockets_usable", "gauge",
             "Whether PyTorch processes are heard at each socket: 1, or 0.");
        value(w, "traceplane_kineto_sockets_usable", "", *why == '\0');
    }
    head(w, "traceplane_kineto_processes", "gauge", "PyTorch processes that ask.");
    value(w, "traceplane_kineto_processes", "", stats.n_targets);
    head(w, "traceplane_kineto_datagrams_total", "counter",
         "Datagrams of PyTorch processes, by what was answered.");
    for (int i = 0; i < TP_KINETO_ANSWERS; i++)
        value(w, "traceplane_kineto_datagrams_total", answers[i], stats.answers[i]);
    head(w, "traceplane_kineto_unsent_total", "counter",
         "Answers that could not be sent.");
    value(w, "traceplane_kineto_unsent_total", "", stats.unsent);
}

static void gauge(struct writer *w, const char *name, const char *help,
                  _Atomic int64_t *v)
{
    int64_t n = atomic_load_explicit(v, memory_order_relaxed);

    head(w, name, "gauge", help);
    value(w, name, "", n < 0 ? 0 : (uint64_t)n);
}

static void counter(struct writer *w, const char *name, const char *help,
                    _Atomic uint64_t *v)
{
    head(w, name, "counter", help);
    value(w, name, "", atomic_load_explicit(v, memory_order_relaxed));
}

int tp_metrics_write(struct tp_metrics *m, struct tp_engine *engine,
                     const char *version, struct tp_buf *out, struct tp_err *err)
{
    struct writer w = {out, err, TP_OK};
    char labels[64];

    head(&w, "traceplane_build_info", "gauge",
         "Always 1; the version is in the label.");
    snprintf(labels, sizeof(labels), "{version=\"%.32s\"}", version);
    value(&w, "traceplane_build_info", labels, 1);
    gauge(&w, "traceplane_http_connections", "Connections open.", &m->connections);
    gauge(&w, "traceplane_http_waiting", "Calls that are held: long polls and watches.",
          &m->waiting);
    gauge(&w, "traceplane_http_watches", "Watches open.", &m->watches);
    counter(&w, "traceplane_http_connections_refused_total",
            "Connections refused because of a limit.", &m->refused);
    counter(&w, "traceplane_http_received_bytes_total", "Bytes of bodies received.",
            &m->bytes_in);
    counter(&w, "traceplane_http_sent_bytes_total", "Bytes of bodies sent.",
            &m->bytes_out);
    counter(&w, "traceplane_http_broken_off_total",
            "Answers that were broken off before their end.", &m->broken_off);
    write_requests(&w, m);
    write_durations(&w, m);
    write_engine(&w, engine);
    write_kineto(&w, engine);
    return w.rc;
}
