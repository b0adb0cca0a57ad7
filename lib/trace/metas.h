/*
 * metas.h - puts metadata events and notes of a log into the index of its stream.
 *
 * Part of a seal. All M events are kept up to a limit; beyond it a later one of the
 * same name, pid and tid replaces the earlier, and others are left out and counted. Of
 * the top-level members the last of each key stays. One thread at a time.
 */
#ifndef TP_TRACE_METAS_H
#define TP_TRACE_METAS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "trace/event.h"
#include "trace/stream_index.h"

/* Embed it; set the first three fields, zero the rest. */
struct tp_metas {
    struct tp_stream_index *index; /* gets metas, members, base and damage */
    uint64_t metas_max;
    size_t bytes_max;            /* of metas and of members, each */
    struct tp_strmap last_metas; /* (name, pid, tid) -> place in index->metas */
    struct tp_strmap members;    /* key -> place in index->members */
    size_t meta_bytes, member_bytes;
    struct tp_buf text; /* scratch */
};

/* Release what it owns; the index stays. All-zero is allowed. */
void tp_metas_fini(struct tp_metas *m);

/*
 * Take a META event.
 *
 * ts_ns    its absolute time; has_ts: whether it had one.
 * is_note  set to whether it was a note of ours (notes.h) and no event of anybody.
 * is_kept  set to false when it, or one before it, had to go.
 *
 * TP_ENOMEM  the index holds what it held, or half of the event's data.
 */
int tp_metas_add(struct tp_metas *m, const struct tp_event *ev, int64_t ts_ns,
                 bool has_ts, bool *is_note, bool *is_kept, struct tp_err *err);

#endif
