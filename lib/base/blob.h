/*
 * blob.h - named, append-only byte storage, as an interface.
 *
 * The rooms of lib/ never open a file: they are given a struct tp_blobs. The
 * server implements it on a directory, tests in memory with faults. Names are
 * relative, made by us, of [a-z0-9./_-], without ".." and never by a client.
 * Different blobs may be used from different threads; one blob by one thread at
 * a time, except pread, which any number of threads may call together.
 */
#ifndef TP_BASE_BLOB_H
#define TP_BASE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tp_blobs;

/* An open blob. Implementations embed this as their first member. */
struct tp_blob {
    const struct tp_blobs *home; /* whose operations to use */
};

/* Called for each name of a listing; a non-zero answer ends it and is returned. */
typedef int (*tp_blob_name_fn)(const char *name, uint64_t size_bytes, void *arg);

/*
 * The operations. All return TP_OK or a code with a message in err. Besides what
 * is said at each: TP_ENOMEM, TP_EIO (the medium failed), TP_EQUOTA (it is full).
 */
struct tp_blobs {
    void *ctx; /* the implementation's own; passed to the operations below */

    /* Open for append and read, making it when absent (folders too). A NULL name
     * makes an anonymous blob that is gone when closed. */
    int (*open_append)(void *ctx, const char *name, struct tp_blob **out,
                       struct tp_err *err);
    /* Open for reading only. TP_ENOTFOUND: no such blob. */
    int (*open_read)(void *ctx, const char *name, struct tp_blob **out,
                     struct tp_err *err);
    /* Append all n bytes, or nothing: on failure the old size is restored. */
    int (*append)(struct tp_blob *blob, const void *p, size_t n, struct tp_err *err);
    /* Append the first n bytes of another blob of the same home; all or nothing. */
    int (*append_blob)(struct tp_blob *blob, struct tp_blob *from, uint64_t n,
                       struct tp_err *err);
    /* Overwrite n bytes that exist already. */
    int (*pwrite)(struct tp_blob *blob, uint64_t offset, const void *p, size_t n,
                  struct tp_err *err);
    /* Read up to n bytes; *got is smaller only at the end of the blob. */
    int (*pread)(struct tp_blob *blob, uint64_t offset, void *p, size_t n, size_t *got,
                 struct tp_err *err);
    /* Cut to size_bytes, which is not beyond the present size. */
    int (*truncate)(struct tp_blob *blob, uint64_t size_bytes, struct tp_err *err);
    /* Make what was written survive a loss of power. */
    int (*sync)(struct tp_blob *blob, struct tp_err *err);
    /* The present size in bytes. */
    uint64_t (*size)(struct tp_blob *blob);
    /* The file descriptor behind it, or -1; it stays the blob's. */
    int (*fd)(struct tp_blob *blob);
    /* Close and release; NULL is allowed. */
    void (*close)(void *ctx, struct tp_blob *blob);
    /* Replace `to` by `from` at once; both in this home. TP_ENOTFOUND: no `from`. */
    int (*rename)(void *ctx, const char *from, const char *to, struct tp_err *err);
    /* Remove a blob, or a whole folder when the name ends in '/'. An absent one is
     * fine. */
    int (*remove)(void *ctx, const char *name, struct tp_err *err);
    /* Name every blob below a folder ("traces/"), in no order. */
    int (*list)(void *ctx, const char *folder, tp_blob_name_fn fn, void *arg,
                struct tp_err *err);
};

#endif
