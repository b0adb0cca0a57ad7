/*
 * stream_blobs.h - the blobs of a stream: its log, its sealed form, its index.
 *
 *   traces/<trace>/<no>.log  .pftrace  .index
 *
 * Names come from ids and numbers of ours only.
 */
#ifndef TP_ENGINE_STREAM_BLOBS_H
#define TP_ENGINE_STREAM_BLOBS_H

#include "engine/model.h"

struct tp_ingest_result;

#define TP_BLOB_NAME_BYTES 64

enum tp_blob_kind { TP_BLOB_LOG, TP_BLOB_SEALED, TP_BLOB_INDEX, TP_BLOB_KINDS };

/* Write the name of a blob; out has TP_BLOB_NAME_BYTES. */
void tp_stream_blob_name(const char *trace_id, uint32_t no, enum tp_blob_kind kind,
                         char *out);

/*
 * Read a name back.
 *
 * trace_id  TP_TRACE_ID_BYTES.
 *
 * Returns false when it is none of ours.
 */
bool tp_stream_blob_parse(const char *name, char *trace_id, uint32_t *no,
                          enum tp_blob_kind *kind);

/* Close the logs of a trace and remove all its blobs. Returns false, and counts it,
 * when that failed. The control lock is held, and nobody may be appending. */
bool tp_stream_blobs_remove(struct tp_trace *t);

/* Whether a batch with this number is in the log of a stream that takes data. The
 * stream's lock is held, and its trace is not sealed meanwhile. */
bool tp_stream_blobs_has(struct tp_stream *s, uint64_t seq);

/*
 * Append a batch to the log of a stream, which is made when it is new. The stream's
 * lock is held, the control lock is not.
 *
 * counts        set to what is stored for the batch, or was for a repeat.
 * is_duplicate  set when a batch of that seq is there: nothing was appended.
 *
 * TP_ESTATE  the seq is too old to tell. TP_EIO, TP_EQUOTA, TP_ENOMEM. The log is as
 * before.
 */
int tp_stream_blobs_append(struct tp_stream *s, const struct tp_ingest_result *batch,
                           bool has_seq, uint64_t seq, struct tp_counts *counts,
                           bool *is_duplicate, struct tp_err *err);

/* The size of the log in bytes; 0 when it is not open. The stream's lock is held. */
uint64_t tp_stream_blobs_log_bytes(const struct tp_stream *s);

/*
 * Open the log of a stream after a start: cut its torn tail, count what is in it.
 *
 * Sets counts and batches of the stream, and adds to cut_bytes. What was acknowledged
 * and is lost goes to its damage; a torn batch, which was not, to its reason.
 *
 * has_news  set when damage or reason was.
 *
 * TP_EIO, TP_ENOMEM.
 */
int tp_stream_blobs_recover(struct tp_stream *s, uint64_t *cut_bytes, bool *has_news,
                            struct tp_err *err);

/* Close the log of a stream. Nobody may be appending. */
void tp_stream_blobs_close(struct tp_stream *s);

/* Close the log and remove it. Returns false when it is still there. Nobody may be
 * appending. */
bool tp_stream_blobs_drop_log(struct tp_stream *s);

#endif
