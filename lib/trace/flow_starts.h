/*
 * flow_starts.h - which flows of a stream have begun already.
 *
 * Readers of Perfetto traces report an error for a second start of a flow with the same
 * id, name and type. Bounded: beyond so many flows new ones are taken for first ones.
 * One thread at a time.
 */
#ifndef TP_TRACE_FLOW_STARTS_H
#define TP_TRACE_FLOW_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/event.h"

#define TP_FLOW_STARTS_MAX (1u << 20) /* flows remembered */

/* Embed it; the zero value is valid and empty. All fields are private. */
struct tp_flow_starts {
    uint64_t *hashes; /* of 0 = free */
    size_t n_places;  /* 0 or a power of two */
    size_t n;
};

/* Release it. All-zero is allowed. */
void tp_flow_starts_fini(struct tp_flow_starts *s);

/*
 * Note the start of a flow.
 *
 * is_first  set to whether no such flow has been noted.
 *
 * TP_ENOMEM  it was not noted.
 */
int tp_flow_starts_add(struct tp_flow_starts *s, const struct tp_event *ev,
                       bool *is_first, struct tp_err *err);

#endif
