/*
 * store_sqlite.h - the store in one SQLite file, the default.
 *
 * WAL, so that a kill loses nothing that was acknowledged; with durable = true neither
 * does a loss of power. One process at a time may have the file open.
 */
#ifndef TP_STORE_STORE_SQLITE_H
#define TP_STORE_STORE_SQLITE_H

#include <stdbool.h>

#include "store/store.h"

/*
 * Open a database, make it when it is new, and bring an older one up to date.
 *
 * path     the file, or ":memory:" for one that ends with the store. A new file is
 *          its owner's alone (mode 0600).
 * durable  wait for the disk at each commit (synchronous=FULL instead of NORMAL).
 * out      set only on success; release with tp_store_close().
 *
 * TP_EINVAL  the file is no database of ours, or of a newer version than this program
 * knows. TP_ESTATE  another process has it open. TP_EIO, TP_EQUOTA, TP_ENOMEM. An
 * existing file is as it was.
 */
int tp_store_sqlite_open(const char *path, bool durable, struct tp_store **out,
                         struct tp_err *err);

#endif
