/*
 * fuzz_ingest.c - any bytes through ingest, log, seal and back: nothing crashes,
 * nothing is lost uncounted, and what is sealed is in order.
 *
 * The first byte chooses the form, salvage, the size of pieces and the filter; the rest
 * is posted twice, so that begins meet ends of another batch.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/filter.h"
#include "core/typemap.h"
#include "support/blob_mem.c"
#include "support/stream_rig.c"

struct seen {
    int64_t last_ns;
    uint64_t n;
};

static int see(const struct tp_event *ev, struct tp_err *err, void *arg)
{
    struct seen *seen = arg;

    (void)err;
    if (ev->ts_ns < seen->last_ns || ev->dur_ns < 0 || ev->kind == TP_EVENT_END)
        abort();
    seen->last_ns = ev->ts_ns;
    seen->n++;
    return TP_OK;
}

static struct tp_filter *filter_of(uint8_t how)
{
    static struct tp_str names[] = {{"a*", 2}};
    static struct tp_str types[] = {{"kernel", 6}};
    struct tp_filter_spec spec = {.min_duration_ns = how & 1 ? 2 : 0};
    struct tp_filter *filter = NULL;

    spec.lists[TP_FILTER_NAMES_INCLUDE].items = names;
    spec.lists[TP_FILTER_NAMES_INCLUDE].n = how == 3;
    spec.lists[TP_FILTER_INCLUDE].items = types;
    spec.lists[TP_FILTER_INCLUDE].n = how == 2;
    if (how != 0 && tp_filter_new(&spec, NULL, NULL, &filter, NULL, NULL) != TP_OK)
        abort();
    return filter;
}

/* Seal what was stored and hold the counts against what is read back. */
static void check(struct stream_rig *rig)
{
    struct seen seen = {.last_ns = 0};
    struct tp_buf doc = {0};
    struct tp_stream_index back;
    struct tp_err err;

    if (stream_rig_seal(rig, &err) != TP_OK ||
        stream_rig_each(rig, see, &seen, &err) != 0)
        abort();
    if (seen.n != rig->sealed.index.n_events)
        abort();
    if (tp_stream_index_write(&rig->sealed.index, &doc, &err) != TP_OK ||
        tp_stream_index_read(doc.data, doc.len, &back, &err) != TP_OK ||
        back.n_tracks != rig->sealed.index.n_tracks)
        abort();
    tp_stream_index_fini(&back);
    tp_buf_fini(&doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {0, 1, 7, 100};
    struct tp_typemap *types = NULL;
    struct stream_rig rig = {0};
    struct tp_err err;

    if (size == 0)
        return 0;
    if (tp_typemap_new(NULL, &types, &err) != TP_OK)
        abort();
    rig.opts.form = (enum tp_ingest_form)(data[0] % 3);
    rig.opts.salvage = (data[0] >> 2 & 1) != 0;
    rig.opts.types = types;
    rig.opts.filter = filter_of(data[0] >> 3 & 3);
    rig.opts.inflated_bytes = 1 << 20;
    rig.opts.spill_bytes = 256;
    rig.piece_bytes = pieces[data[0] >> 5 & 3];
    rig.seal_opts.memory_bytes = 64 << 10;
    rig.seal_opts.min_duration_ns = data[0] >> 3 & 1 ? 2 : 0;
    (void)stream_rig_post(&rig, data + 1, size - 1, &err);
    (void)stream_rig_post(&rig, data + 1, size - 1, &err);
    if (rig.counts.emitted > 0)
        check(&rig);
    tp_filter_unref((struct tp_filter *)(uintptr_t)rig.opts.filter);
    stream_rig_fini(&rig);
    tp_typemap_unref(types);
    return 0;
}
