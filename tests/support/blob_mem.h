/*
 * blob_mem.h - a struct tp_blobs in memory, with failures on demand.
 *
 * Behaves as the interface of base/blob.h says and as a file system does: a blob that
 * is removed or replaced while open lives on until it is closed. Its own allocations
 * count for fault.h and answer TP_ENOMEM. Safe from any thread: one lock guards all.
 */
#ifndef TP_SUPPORT_BLOB_MEM_H
#define TP_SUPPORT_BLOB_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/blob.h"

/* An empty home. Ends the program when there is no memory: call it unarmed. */
struct tp_blobs *blob_mem_new(void);

/* Release the home and all content. Every blob must be closed. NULL is allowed. */
void blob_mem_free(struct tp_blobs *blobs);

/*
 * Let n operations pass and fail the next one with TP_EIO; it changes nothing. What
 * counts is open_append, open_read, append, append_blob, pwrite, pread, truncate, sync,
 * rename, remove and list, in the order of their calls. Exactly one fails.
 *
 * n  how many pass first; 0 fails the very next one.
 */
void blob_mem_fail_after(struct tp_blobs *blobs, int n);

/* As blob_mem_fail_after(), but from then on every operation fails until
 * blob_mem_disarm(): a medium that is gone. */
void blob_mem_break_after(struct tp_blobs *blobs, int n);

/* Stop failing. Returns whether a failure was delivered since it was armed. */
bool blob_mem_disarm(struct tp_blobs *blobs);

/*
 * Limit the bytes of all content together: what would go over it is TP_EQUOTA and
 * changes nothing, as on a full disk. 0 = no limit.
 */
void blob_mem_limit(struct tp_blobs *blobs, size_t limit_bytes);

/* Call fn before the next append does anything, once and without the lock: what others
 * do at that moment. fn gets arg. */
void blob_mem_meanwhile(struct tp_blobs *blobs, void (*fn)(void *arg), void *arg);

/* Make name hold exactly these n bytes, past faults and limits; unarmed only. */
void blob_mem_put(struct tp_blobs *blobs, const char *name, const void *p, size_t n);

/*
 * The content of a name, or NULL when there is none. *n is its size unless n is NULL.
 * The pointer lives until the next operation that changes the blob; the bytes may be
 * written to, for tests that damage them.
 */
char *blob_mem_data(struct tp_blobs *blobs, const char *name, size_t *n);

/* How many names there are. */
size_t blob_mem_names(struct tp_blobs *blobs);

/* How many blobs are open: 0 at the end of a test, or somebody forgot one. */
size_t blob_mem_open(struct tp_blobs *blobs);

#endif
