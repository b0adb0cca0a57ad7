/*
 * blob_fs.h - blobs as files of one directory.
 *
 * Implements struct tp_blobs of base/blob.h with a directory descriptor and openat(),
 * so that a later rename or mount of the path changes nothing. It knows no trace and no
 * format. The thread rules are those of base/blob.h.
 */
#ifndef TP_SERVER_BLOB_FS_H
#define TP_SERVER_BLOB_FS_H

#include <stdbool.h>

#include "base/blob.h"

/*
 * Use a directory, making it (mode 0700, with the folders above it) when absent.
 *
 * dir         a path; copied.
 * is_durable  whether creation, rename and removal are made to survive a loss of power
 *             at once; the content is by sync() of the interface.
 * out         release with tp_blob_fs_close(), when no blob of it is open any more.
 *
 * TP_EIO     the directory cannot be made or opened; the message says why.
 * TP_ENOMEM  nothing is open.
 */
int tp_blob_fs_open(const char *dir, bool is_durable, struct tp_blobs **out,
                    struct tp_err *err);

/* Release what tp_blob_fs_open() gave. NULL is allowed. */
void tp_blob_fs_close(struct tp_blobs *blobs);

/*
 * Make a directory with the folders above it, mode 0700; one that exists is fine.
 *
 * TP_EIO  it is not there afterwards; folders above it may have been made.
 */
int tp_blob_fs_make_dir(const char *dir, struct tp_err *err);

#endif
