/*
 * native_tally.c - sums, the set of tracks, and the readings of the clock.
 *
 * The seal leaves events out that are over a limit of the whole stream. Of these limits
 * only those of tracks and of metadata can be met by events that each batch may have,
 * so those are counted. Tracks are told apart by uuid, as the reader of the seal does.
 * What could still be left out, by a producer that gives one uuid to many threads, is
 * counted when the seal finds it.
 */
#include "trace/native_tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/limits.h"
#include "trace/clock_line.h"
#include "trace/ingest.h"
#include "trace/intern.h"
#include "trace/native_check.h"

struct tp_native_tally {
    struct tp_intern tracks; /* their uuids */
    struct tp_clock_line clock;
    uint64_t metas_max, meta_bytes_max;
    uint64_t n_batches;
    uint64_t n_metas, meta_bytes;
    bool is_spoilt;
    bool is_finished; /* the line of the clock is drawn */
    bool has_times;
    int64_t first_ns, last_ns; /* by the producer's clock */
    uint64_t by_type[TP_ACTIVITY_IDS];
};

int tp_native_tally_new(const struct tp_limits *limits, struct tp_native_tally **out,
                        struct tp_err *err)
{
    struct tp_native_tally *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the counts of a stream");
    t->tracks.n_max = (uint32_t)limits->stream_tracks;
    t->tracks.bytes_max = (size_t)limits->stream_tracks * sizeof(uint64_t);
    t->metas_max = limits->stream_metadata_events;
    t->meta_bytes_max = limits->stream_metadata_bytes;
    *out = t;
    return TP_OK;
}

void tp_native_tally_free(struct tp_native_tally *t)
{
    if (t == NULL)
        return;
    tp_intern_fini(&t->tracks);
    tp_clock_line_fini(&t->clock);
    free(t);
}

/* Returns whether all tracks of a batch are among those of the stream. */
static bool add_tracks(struct tp_native_tally *t, const struct tp_native_check *c)
{
    const uint32_t n = tp_native_check_tracks(c);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t uuid = tp_native_check_track(c, i);
        struct tp_err ignored;
        uint32_t iid;

        if (tp_intern_add(&t->tracks, (struct tp_str){(char *)&uuid, sizeof(uuid)},
                          &iid, &ignored) != TP_OK ||
            iid == 0)
            return false;
    }
    return true;
}

static void add_times(struct tp_native_tally *t, const struct tp_native_found *found)
{
    if (!found->has_times)
        return;
    if (!t->has_times || found->first_ns < t->first_ns)
        t->first_ns = found->first_ns;
    if (!t->has_times || found->last_ns > t->last_ns)
        t->last_ns = found->last_ns;
    t->has_times = true;
}

/* Returns whether the tally can speak for the batch. */
static bool add_batch(struct tp_native_tally *t, const struct tp_native_check *c)
{
    const struct tp_native_found *found = tp_native_check_found(c);
    struct tp_err ignored;

    if (!found->is_plain || !add_tracks(t, c))
        return false;
    if (found->head.has_clock &&
        tp_clock_line_add(&t->clock, &found->head.clock, &ignored) != TP_OK)
        return false;
    add_times(t, found);
    t->n_metas += found->n_metas;
    t->meta_bytes += found->meta_bytes;
    for (size_t i = 0; i < TP_ACTIVITY_IDS; i++)
        t->by_type[i] += found->by_type[i];
    return t->n_metas <= t->metas_max && t->meta_bytes < t->meta_bytes_max;
}

bool tp_native_tally_add(struct tp_native_tally *t,
                         const struct tp_ingest_result *batch)
{
    bool is_empty = !batch->is_native && batch->payload_bytes == 0;

    t->n_batches++;
    if (!is_empty && !t->is_spoilt)
        t->is_spoilt = batch->as_is == NULL || !add_batch(t, batch->as_is);
    return !t->is_spoilt;
}

/* Move the times onto the service's clock. Returns whether that needs no clamping. */
static bool place(struct tp_native_tally *t, struct tp_native_sum *out)
{
    out->first_ns = t->first_ns;
    out->last_ns = t->last_ns;
    if (t->clock.n > 0) {
        out->first_ns = tp_clock_line_map(&t->clock, t->first_ns);
        out->last_ns = tp_clock_line_map(&t->clock, t->last_ns);
    }
    return out->first_ns >= 0 && out->last_ns >= out->first_ns &&
           out->last_ns < INT64_MAX;
}

bool tp_native_tally_finish(struct tp_native_tally *t, uint64_t n_batches,
                            struct tp_native_sum *out)
{
    struct tp_native_sum sum = {.has_times = t->has_times, .by_type = t->by_type};

    if (t->is_spoilt || t->n_batches != n_batches)
        return false;
    if (!t->is_finished)
        tp_clock_line_finish(&t->clock);
    t->is_finished = true;
    if (t->has_times && !place(t, &sum))
        return false;
    *out = sum;
    return true;
}
