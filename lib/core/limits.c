/*
 * limits.c - the table. Defaults suit one service with jobs of a few thousand ranks.
 * The range of each row is what the code that enforces it can keep, so that no setting
 * can turn a limit into an overflow.
 */
#include "core/limits.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define HOUR_MS UINT64_C(3600000)

#define ROW(field, flag, unit, def, min, max, help)                               \
    {                                                                             \
        "max-" flag, unit, help, def, min, max, offsetof(struct tp_limits, field) \
    }

/* clang-format off */
static const struct tp_limit_info table[] = {
    ROW(body_bytes, "body-bytes", "bytes", MIB, KIB, 256 * MIB,
        "Size of a control request's body."),
    ROW(header_bytes, "header-bytes", "bytes", 32 * KIB, KIB, MIB,
        "Size of the request line and all headers."),
    ROW(events_body_bytes, "events-body-bytes", "bytes", 64 * MIB, KIB, 16 * GIB,
        "Size of one POST of events, as sent."),
    ROW(file_bytes, "file-bytes", "bytes", 8 * GIB, KIB, TIB,
        "Size of an uploaded or collected trace file, as sent."),
    ROW(file_inflated_bytes, "file-inflated-bytes", "bytes", 64 * GIB, KIB, 16 * TIB,
        "Size of such a file after decompression."),
    ROW(inflate_ratio, "inflate-ratio", "times", 1100, 2, 100000,
        "Decompressed bytes for each compressed byte; gzip itself ends at 1032."),
    ROW(connections, "connections", "connections", 4096, 1, 1000000,
        "Connections open at once, on all listeners."),
    ROW(connections_per_peer, "connections-per-peer", "connections", 1024, 1, 1000000,
        "Connections open at once from one address or user."),
    ROW(requests_per_s, "requests-per-s", "requests/s", 0, 0, 10000000,
        "Requests a second from one peer; 0 is no limit."),
    ROW(list_items, "list-items", "items", 1000, 1, 100000,
        "Items in one page of a list."),
    ROW(json_depth, "json-depth", "levels", 64, 4, 512,
        "Arrays and objects inside each other."),
    ROW(name_bytes, "name-bytes", "bytes", 64 * KIB, 64, MIB,
        "An event's name or category, or the key of an argument."),
    ROW(label_bytes, "label-bytes", "bytes", 256, 16, 4 * KIB,
        "A trace's label, or the name of a job, host or backend."),
    ROW(metadata_bytes, "metadata-bytes", "bytes", 64 * KIB, 256, 16 * MIB,
        "The metadata of one trace, as JSON text."),
    ROW(event_bytes, "event-bytes", "bytes", MIB, KIB, 256 * MIB,
        "One event with everything in it."),
    ROW(args_per_event, "args-per-event", "arguments", 256, 1, 65536,
        "Arguments of one event."),
    ROW(stream_metadata_bytes, "stream-metadata-bytes", "bytes",
        4 * MIB, KIB, 256 * MIB,
        "Top-level members of one source file besides its events."),
    ROW(stream_metadata_events, "stream-metadata-events", "events", 65536, 16, 16777216,
        "Metadata events (names and labels) of one stream."),
    ROW(stream_tracks, "stream-tracks", "tracks", 65536, 16, 16777215,
        "Different pairs of process and thread in one stream."),
    ROW(stream_names, "stream-names", "names", 65536, 16, 16777216,
        "Names that one stream stores once; others are stored each time."),
    ROW(stream_names_bytes, "stream-names-bytes", "bytes", 8 * MIB, KIB, GIB,
        "Bytes of those names."),
    ROW(open_slices, "open-slices", "slices", 1048576, 16, 67108864,
        "Begins of one stream that wait for their end."),
    ROW(spill_bytes, "spill-bytes", "bytes", 64 * MIB, MIB, 4 * GIB,
        "Memory for sorting one stream before it goes to disk."),
    ROW(trace_bytes, "trace-bytes", "bytes", 64 * GIB, MIB, 64 * TIB,
        "Stored data of one trace."),
    ROW(trace_duration_ms, "trace-duration-ms", "ms", HOUR_MS, 1, 24 * 365 * HOUR_MS,
        "How long a trace may record."),
    ROW(trace_prepared_ms, "trace-prepared-ms", "ms", HOUR_MS, 1, 24 * 365 * HOUR_MS,
        "How long a prepared trace may wait for its start."),
    ROW(trace_arming_ms, "trace-arming-ms", "ms", 2000, 1, HOUR_MS,
        "How long a trace with `require` waits for producers to be armed."),
    ROW(trace_stopping_ms, "trace-stopping-ms", "ms", 60000, 1, 24 * HOUR_MS,
        "How long a stopped trace waits for what producers still have."),
    ROW(streams_per_trace, "streams-per-trace", "streams", 4096, 1, 65535,
        "Producers with data in one trace."),
    ROW(active_traces, "active-traces", "traces", 256, 1, 65536,
        "Traces that are not finished, over all jobs."),
    ROW(stored_traces, "stored-traces", "traces", 100000, 1, 100000000,
        "Traces that are kept, finished ones included."),
    ROW(jobs, "jobs", "jobs", 1024, 1, 1000000,
        "Jobs known at once."),
    ROW(types_per_job, "types-per-job", "types", 205, 1, 205,
        "Custom activity types of one job; there are 205 ids."),
    ROW(types_per_request, "types-per-request", "types", 1024, 1, 65536,
        "Types in one registration request."),
    ROW(producers_per_job, "producers-per-job", "producers", 4096, 1, 1000000,
        "Producers of one job that are attached at once."),
    ROW(producer_silence_ms, "producer-silence-ms", "ms", 60000, 1000, 24 * HOUR_MS,
        "How long a producer may be silent before it counts as gone."),
    ROW(filter_entries, "filter-entries", "entries", 256, 1, 65536,
        "Entries in each list of a filter."),
    ROW(filter_entry_bytes, "filter-entry-bytes", "bytes", 256, 16, 64 * KIB,
        "One entry of a filter."),
    ROW(select_entries, "select-entries", "entries", 4096, 1, 1000000,
        "Entries in each list of a selection of producers."),
    ROW(watchers, "watchers", "watchers", 256, 1, 65536,
        "Clients that watch traces at once."),
    ROW(live_downloads, "live-downloads", "downloads", 16, 1, 4096,
        "Downloads and summaries of active traces being prepared at once."),
    ROW(idempotency_keys, "idempotency-keys", "keys", 4096, 1, 1000000,
        "Answers that are remembered by Idempotency-Key."),
    ROW(idempotency_ms, "idempotency-ms", "ms", 24 * HOUR_MS, 1000, 24 * 365 * HOUR_MS,
        "How long they are remembered."),
};
/* clang-format on */

#define N_ROWS (sizeof(table) / sizeof(table[0]))

/* A field without a row would have no default, no flag and no documentation. */
_Static_assert(N_ROWS == sizeof(struct tp_limits) / sizeof(uint64_t),
               "each field of struct tp_limits has one row");

static uint64_t *field_of(struct tp_limits *limits, const struct tp_limit_info *info)
{
    return (uint64_t *)(void *)((char *)limits + info->offset);
}

struct tp_limits tp_limits_default(void)
{
    struct tp_limits limits;

    for (size_t i = 0; i < N_ROWS; i++)
        *field_of(&limits, &table[i]) = table[i].default_value;
    return limits;
}

const struct tp_limit_info *tp_limits_table(size_t *n)
{
    *n = N_ROWS;
    return table;
}

const struct tp_limit_info *tp_limits_find(struct tp_str name)
{
    const size_t prefix_bytes = sizeof("max-") - 1;

    for (size_t i = 0; i < N_ROWS; i++) {
        struct tp_str flag = tp_str_of(table[i].name);
        struct tp_str rest = {flag.ptr + prefix_bytes, flag.len - prefix_bytes};

        if (tp_str_equal(name, flag) || tp_str_equal(name, rest))
            return &table[i];
    }
    return NULL;
}

uint64_t tp_limits_get(const struct tp_limits *limits, const struct tp_limit_info *info)
{
    uint64_t value;

    memcpy(&value, (const char *)limits + info->offset, sizeof(value));
    return value;
}

/* What a suffix multiplies by, or 0 if it is none of this unit. */
static uint64_t scale_of(struct tp_str suffix, const char *unit)
{
    static const struct {
        const char *unit;
        const char *suffix;
        uint64_t scale;
    } scales[] = {
        {"bytes", "B", 1},     {"bytes", "K", KIB},  {"bytes", "KB", KIB},
        {"bytes", "KiB", KIB}, {"bytes", "M", MIB},  {"bytes", "MB", MIB},
        {"bytes", "MiB", MIB}, {"bytes", "G", GIB},  {"bytes", "GB", GIB},
        {"bytes", "GiB", GIB}, {"bytes", "T", TIB},  {"bytes", "TB", TIB},
        {"bytes", "TiB", TIB}, {"ms", "ms", 1},      {"ms", "s", 1000},
        {"ms", "m", 60000},    {"ms", "h", HOUR_MS},
    };

    if (suffix.len == 0)
        return 1;
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        if (strcmp(scales[i].unit, unit) == 0 && tp_str_is(suffix, scales[i].suffix))
            return scales[i].scale;
    }
    return 0;
}

static bool parse_quantity(struct tp_str text, const char *unit, uint64_t *out)
{
    uint64_t value = 0;
    uint64_t scale;
    size_t i = 0;

    for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value))
            return false;
    }
    if (i == 0)
        return false;
    scale = scale_of((struct tp_str){text.ptr + i, text.len - i}, unit);
    return scale != 0 && !__builtin_mul_overflow(value, scale, out);
}

int tp_limits_set(struct tp_limits *limits, struct tp_str name, struct tp_str text,
                  struct tp_err *err)
{
    const struct tp_limit_info *info = tp_limits_find(name);
    uint64_t value = 0;

    if (info == NULL)
        return tp_fail(err, TP_ENOTFOUND, "no limit is called '%.*s'", (int)name.len,
                       name.ptr);
    if (!parse_quantity(text, info->unit, &value) || value < info->min ||
        value > info->max)
        return tp_fail(err, TP_EINVAL,
                       "%s '%.*s' is not a number of %s from %llu to %llu", info->name,
                       (int)text.len, text.ptr, info->unit,
                       (unsigned long long)info->min, (unsigned long long)info->max);
    *field_of(limits, info) = value;
    return TP_OK;
}
