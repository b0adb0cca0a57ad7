/*
 * source_rank.h - who a stream's own data says it is from.
 *
 * A file of Kineto's says so in top-level members: rank, world size and backend in
 * "distributedInfo", the host in "host_name". What a producer or the request has said
 * counts more. One thread at a time.
 */
#ifndef TP_ENGINE_SOURCE_RANK_H
#define TP_ENGINE_SOURCE_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_identity;
struct tp_stream_index;

/* What was said; start with tp_source_says_init(). Plain data. */
struct tp_source_says {
    int64_t rank; /* -1 = not said */
    uint32_t world_size;
    char backend[128]; /* "" = not said */
    char host[256];
};

/* Nothing was said yet. */
void tp_source_says_init(struct tp_source_says *says);

/* Take what a top-level member says; what is not sensible is passed over. */
void tp_source_says_member(struct tp_source_says *says, struct tp_str key,
                           struct tp_str json);

/* The same for all members of an index. */
void tp_source_says_index(struct tp_source_says *says,
                          const struct tp_stream_index *ix);

/*
 * Whether the rank or world size that was said is not the one of an identity.
 *
 * out, size  set to a sentence about it if so.
 */
bool tp_source_disagrees(const struct tp_source_says *says,
                         const struct tp_identity *who, char *out, size_t size);

/*
 * Fill in what is not known of an identity.
 *
 * TP_ENOMEM  who is as it was.
 */
int tp_source_fill_in(const struct tp_source_says *says, struct tp_identity *who,
                      struct tp_err *err);

#endif
