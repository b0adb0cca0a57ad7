#include <stdlib.h>

#include "base/err.h"
#include "engine/downloads.h"
#include "engine/problem.h"
#include "engine/sources.h"
#include "trace/merge.h"
#include "trace/summary.h"

int tp_engine_summary(struct tp_engine *e, struct tp_str trace_id, struct tp_now now,
                      struct tp_summary **out, struct tp_problem *problem,
                      struct tp_err *err)
{
    struct tp_sources sources = {0};
    struct tp_merge_stream *streams = NULL;
    int rc;

    (void)now;
    tp_problem_clear(problem);
    rc = tp_sources_open(e, trace_id, &sources, problem, err);
    if (rc != TP_OK)
        goto out;
    streams = calloc(sources.n_items + 1, sizeof(*streams));
    if (streams == NULL) {
        rc = tp_fail(err, TP_ENOMEM, "no memory for a summary");
        goto out;
    }
    for (size_t i = 0; i < sources.n_items; i++) {
        streams[i].index = tp_source_index(&sources.items[i]);
        streams[i].producer = &sources.producers[i];
    }
    rc = tp_summary_new(streams, sources.n_items, 0, out, err);

out:
    free(streams);
    tp_sources_fini(&sources);
    return rc;
}
