/*
 * blob_folder.h - trees of folders: make, list, remove.
 *
 * Names are paths below a folder that is given by its descriptor. Links are never
 * followed, and entries that start with a dot are left alone. Any thread.
 */
#ifndef TP_SERVER_BLOB_FOLDER_H
#define TP_SERVER_BLOB_FOLDER_H

#include <stdbool.h>

#include "base/blob.h"

struct tp_err;

/*
 * Fail with the code that errno stands for: TP_EQUOTA for a disk that is full,
 * TP_ENOMEM, TP_ENOTFOUND, or TP_EIO.
 *
 * what, name  give the message "cannot <what> '<name>': ...".
 */
int tp_blob_fail_errno(struct tp_err *err, const char *what, const char *name);

/*
 * Remove a file, or a folder with all that is in it. What is absent is fine.
 *
 * TP_EIO  a part may be removed.
 */
int tp_blob_folder_remove(int home_fd, const char *name, bool is_folder,
                          struct tp_err *err);

/*
 * Call fn for each file in a folder ("." is the home itself) and the folders in it. An
 * absent one is empty.
 *
 * TP_EIO, and what fn returns other than TP_OK, which ends it.
 */
int tp_blob_folder_list(int home_fd, const char *folder, tp_blob_name_fn fn, void *arg,
                        struct tp_err *err);

/*
 * Make a directory with the folders above it, mode 0700; one that exists is fine.
 *
 * TP_EIO  it is not there afterwards; folders above it may have been made.
 */
int tp_blob_folder_make(const char *dir, struct tp_err *err);

#endif
