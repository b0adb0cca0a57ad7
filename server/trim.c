/*
 * trim.c - malloc_trim() after a second without work.
 */
#include "server/trim.h"

#include <malloc.h>

#include "engine/engine.h"

#define QUIET_NS UINT64_C(1000000000)

bool tp_trim_look(struct tp_trim *t, struct tp_engine *engine, uint64_t now_ns)
{
    struct tp_engine_stats s;
    uint64_t sum;

    tp_engine_stats(engine, &s);
    sum = s.uploaded_bytes + s.batches + s.files + s.seals + s.sealed_events;
    if (sum != t->seen || s.uploads_open + s.downloads_open + s.work_running > 0) {
        t->seen = sum;
        t->since_ns = now_ns;
        t->is_due = true;
    }
    if (!t->is_due || now_ns - t->since_ns < QUIET_NS)
        return false;
    t->is_due = false;
    malloc_trim(0);
    return true;
}
