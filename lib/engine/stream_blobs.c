#include "engine/stream_blobs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "engine/refusals.h"
#include "trace/ingest.h"
#include "trace/stream_log.h"

static const char *const endings[TP_BLOB_KINDS] = {
    [TP_BLOB_LOG] = ".log", [TP_BLOB_SEALED] = ".pftrace", [TP_BLOB_INDEX] = ".index"};

#define FOLDER "traces/"

void tp_stream_blob_name(const char *trace_id, uint32_t no, enum tp_blob_kind kind,
                         char *out)
{
    snprintf(out, TP_BLOB_NAME_BYTES, FOLDER "%s/%u%s", trace_id, no, endings[kind]);
}

bool tp_stream_blob_parse(const char *name, char *trace_id, uint32_t *no,
                          enum tp_blob_kind *kind)
{
    const size_t folder = sizeof(FOLDER) - 1, id = TP_TRACE_ID_BYTES - 1;
    unsigned long number;
    char *end;

    if (strncmp(name, FOLDER, folder) != 0 || strlen(name) <= folder + id + 1 ||
        name[folder + id] != '/')
        return false;
    number = strtoul(name + folder + id + 1, &end, 10);
    if (number == 0 || number > 65535)
        return false;
    for (int i = 0; i < TP_BLOB_KINDS; i++) {
        if (strcmp(end, endings[i]) != 0)
            continue;
        memcpy(trace_id, name + folder, id);
        trace_id[id] = '\0';
        *no = (uint32_t)number;
        *kind = (enum tp_blob_kind)i;
        return true;
    }
    return false;
}

void tp_stream_blobs_close(struct tp_stream *s)
{
    tp_stream_log_close(s->log);
    s->log = NULL;
}

bool tp_stream_blobs_drop_log(struct tp_stream *s)
{
    const struct tp_blobs *blobs = s->trace->engine->opts.blobs;
    char name[TP_BLOB_NAME_BYTES];

    tp_stream_blobs_close(s);
    tp_stream_blob_name(s->trace->id, s->no, TP_BLOB_LOG, name);
    return blobs->remove(blobs->ctx, name, NULL) == TP_OK;
}

bool tp_stream_blobs_remove(struct tp_trace *t)
{
    const struct tp_blobs *blobs = t->engine->opts.blobs;
    char name[TP_BLOB_NAME_BYTES];

    for (size_t i = 0; i < t->n_streams; i++)
        tp_stream_blobs_close(t->streams[i]);
    snprintf(name, sizeof(name), FOLDER "%s/", t->id);
    if (blobs->remove(blobs->ctx, name, NULL) == TP_OK)
        return true;
    t->engine->stats.blob_failures++;
    return false;
}

static int open_log(struct tp_stream *s, struct tp_stream_log_report *report,
                    struct tp_err *err)
{
    char name[TP_BLOB_NAME_BYTES];

    tp_stream_blob_name(s->trace->id, s->no, TP_BLOB_LOG, name);
    return tp_stream_log_open(s->trace->engine->opts.blobs, name, &s->log, report, err);
}

bool tp_stream_blobs_has(struct tp_stream *s, uint64_t seq)
{
    struct tp_counts counts;

    return s->log != NULL && tp_stream_log_find(s->log, seq, &counts, NULL) == TP_OK;
}

int tp_stream_blobs_append(struct tp_stream *s, const struct tp_ingest_result *batch,
                           bool has_seq, uint64_t seq, struct tp_counts *counts,
                           bool *is_duplicate, struct tp_err *err)
{
    struct tp_frame frame = {.has_seq = has_seq,
                             .seq = seq,
                             .has_base = batch->has_clock,
                             .base_ns = batch->add_ns,
                             .is_native = batch->is_native,
                             .counts = batch->counts};
    struct tp_stream_payload payload = {0};
    int rc = TP_OK;

    if (batch->spill != NULL) {
        payload.spill = batch->spill;
        payload.spill_bytes = batch->payload_bytes;
        payload.spill_crc32c = batch->crc32c;
    } else {
        payload.p = batch->payload;
        payload.n = batch->payload_bytes;
    }
    if (s->log == NULL)
        rc = open_log(s, NULL, err);
    if (rc == TP_OK)
        rc = tp_stream_log_append(s->log, &frame, &payload, counts, is_duplicate, err);
    if (rc == TP_OK && s->trace->engine->opts.sync_events)
        rc = tp_stream_log_sync(s->log, err);
    return rc;
}

uint64_t tp_stream_blobs_log_bytes(const struct tp_stream *s)
{
    return s->log == NULL ? 0 : tp_stream_log_size(s->log);
}

/*
 * What the start found, in words. A row tells of a log that had a batch before the row
 * was written: an empty one has lost it. A torn frame was never acknowledged, and its
 * sender still has it. How many of the events in any other cut had been, nobody can
 * tell.
 */
static bool describe_recovery(struct tp_stream *s,
                              const struct tp_stream_log_report *report)
{
    unsigned long long cut = report->cut_bytes, lost = report->lost.emitted;

    if (cut > 0 && report->is_torn)
        snprintf(s->reason, sizeof(s->reason),
                 "the service was killed: %llu bytes of an unfinished batch, "
                 "which was not acknowledged, were cut",
                 cut);
    else if (cut > 0)
        snprintf(s->damage, sizeof(s->damage),
                 "%llu bytes of it were cut, with at least %llu events (%.90s)", cut,
                 lost, report->why_cut);
    else if (report->blanked_frames > 0)
        snprintf(s->damage, sizeof(s->damage), "%llu batches were damaged on disk",
                 (unsigned long long)report->blanked_frames);
    else if (report->frames == 0 && s->counts.emitted == 0)
        snprintf(s->damage, sizeof(s->damage), "its log was lost with all batches");
    else
        return false;
    return true;
}

int tp_stream_blobs_recover(struct tp_stream *s, uint64_t *cut_bytes, bool *has_news,
                            struct tp_err *err)
{
    struct tp_stream_log_report report = {0};
    int rc = open_log(s, &report, err);

    if (rc != TP_OK)
        return rc;
    *cut_bytes += report.cut_bytes;
    s->counts = report.counts;
    s->counts.bytes = report.kept_bytes;
    tp_refusals_restore(s);
    s->batches = report.frames;
    s->log_bytes = report.kept_bytes;
    s->has_seq = report.has_seq;
    s->seq = report.last_seq;
    *has_news = describe_recovery(s, &report);
    return TP_OK;
}
