/*
 * source_rank.h - who a stream's own data says it is from.
 *
 * Pure functions over an index; safe from any thread.
 */
#ifndef TP_ENGINE_SOURCE_RANK_H
#define TP_ENGINE_SOURCE_RANK_H

struct tp_identity;
struct tp_stream_index;

/* Take rank and world size from the member "distributedInfo" of the source, where they
 * are there and sensible; else who stays as it is. */
void tp_source_identity(const struct tp_stream_index *ix, struct tp_identity *who);

#endif
