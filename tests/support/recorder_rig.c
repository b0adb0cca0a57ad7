#include "support/recorder_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/typemap.h"

#define STREAM 3

void recorder_rig_init(struct recorder_rig *rig, const struct tp_recorder_opts *opts)
{
    struct tp_err err;

    assert_int_equal(tp_recorder_new(opts, &rig->recorder, &err), TP_OK);
    rig->client = tp_recorder_client(rig->recorder);
    assert_int_equal(tp_register_type(rig->client, "ascend", "KERNEL", TP_KIND_SLICE,
                                      NULL, &rig->kernel, &err),
                     TP_OK);
    assert_int_equal(tp_register_type(rig->client, "ascend", "COPY", TP_KIND_SLICE,
                                      NULL, &rig->copy, &err),
                     TP_OK);
    assert_int_equal(
        tp_typemap_new(tp_recorder_registry(rig->recorder), &rig->types, &err), TP_OK);
    rig->stream.opts = (struct tp_ingest_opts){.form = TP_INGEST_PERFETTO,
                                               .encoding = TP_INGEST_IDENTITY,
                                               .stream_no = STREAM,
                                               .types = rig->types};
    rig->drain.stream_no = STREAM;
}

void recorder_rig_fini(struct recorder_rig *rig)
{
    stream_rig_fini(&rig->stream);
    tp_typemap_unref(rig->types);
    tp_recorder_free(rig->recorder);
}

void recorder_rig_start(struct recorder_rig *rig)
{
    struct tp_typeset types = {0};

    tp_typeset_add(&types, rig->kernel);
    tp_typeset_add(&types, rig->copy);
    tp_recorder_arm(rig->recorder, &types, 0);
    tp_recorder_start(rig->recorder, tp_now());
    memset(rig->drained, 0, sizeof(rig->drained));
    rig->n_drained = 0;
}

/* As the service would: the batch is native and nothing of it is written anew. */
static void store(struct recorder_rig *rig, const struct tp_buf *batch)
{
    struct tp_err err = {0};

    if (stream_rig_post(&rig->stream, batch->data, batch->len, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_true(rig->stream.is_native);
    assert_true(rig->stream.is_as_it_came);
    assert_int_equal(rig->stream.counts.untyped, 0);
    assert_int_equal(tp_counts_dropped(&rig->stream.counts), 0);
    rig->n_batches++;
}

void recorder_rig_drain(struct recorder_rig *rig)
{
    struct tp_drain_result result;
    struct tp_err err = {0};

    do {
        struct tp_buf batch = {0};

        if (tp_recorder_drain(rig->recorder, &rig->drain, &batch, &result, &err) !=
            TP_OK)
            fail_msg("%s", err.message);
        if (result.n_events > 0)
            store(rig, &batch);
        assert_int_equal(result.n_events == 0, batch.len == 0);
        rig->n_drained += result.n_events - result.by_type[TP_TYPE_NONE];
        for (int type = 0; type < 256; type++)
            rig->drained[type] += result.by_type[type];
        tp_buf_fini(&batch);
    } while (result.has_more);
}

static void finish(struct recorder_rig *rig)
{
    tp_recorder_stop(rig->recorder, 0);
    rig->drain.is_last = true;
    recorder_rig_drain(rig);
    rig->drain.is_last = false;
}

/* The line of an event without what differs from run to run. */
static int add_line(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct tp_track track = *ev->track;
    struct tp_event copy = *ev;

    if (ev->kind == TP_EVENT_META)
        return TP_OK;
    copy.ts_ns = 0;
    copy.dur_ns = 0;
    if (track.pid.number == getpid() && track.tid.number == gettid()) {
        track.pid.kind = TP_ID_NONE;
        track.tid.kind = TP_ID_NONE;
    }
    copy.track = &track;
    return stream_rig_line(&copy, arg, err);
}

void recorder_rig_expect(struct recorder_rig *rig, const char *lines)
{
    struct tp_buf text = {0};
    struct tp_err err = {0};
    int rc;

    finish(rig);
    rc = stream_rig_seal(&rig->stream, &err);
    if (rc == TP_OK)
        rc = stream_rig_each(&rig->stream, add_line, &text, &err);
    if (rc == TP_OK)
        rc = tp_buf_append(&text, "", 1, &err);
    if (rc != TP_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text.data, lines);
    tp_buf_fini(&text);
}

void recorder_rig_conserved(struct recorder_rig *rig, uint64_t *dropped)
{
    struct tp_recorder_totals *totals = calloc(1, sizeof(*totals));
    uint64_t all = 0;

    assert_non_null(totals);
    finish(rig);
    tp_recorder_totals(rig->recorder, totals);
    for (unsigned type = 0; type < 256; type++) {
        uint64_t n = totals->filtered[type] + rig->drained[type];

        for (int cause = 0; cause < TP_DROP_CAUSES; cause++) {
            n += totals->dropped[cause][type];
            all += totals->dropped[cause][type];
        }
        if (totals->emitted[type] != n)
            fail_msg("type %u: %llu emitted, %llu accounted for", type,
                     (unsigned long long)totals->emitted[type], (unsigned long long)n);
    }
    free(totals);
    if (dropped != NULL)
        *dropped = all;
}
