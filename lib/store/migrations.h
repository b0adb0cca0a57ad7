/*
 * migrations.h - the versions of the SQLite schema and the way from one to the next.
 *
 * A version that was released is never changed; what comes later is a new step. One
 * thread at a time.
 */
#ifndef TP_STORE_MIGRATIONS_H
#define TP_STORE_MIGRATIONS_H

#include <stddef.h>

#include <sqlite3.h>

struct tp_err;

/* Step i, from 0, makes version i + 1 out of version i: SQL texts. *n gets how many
 * there are. Static. */
const char *const *tp_migrations(size_t *n);

/*
 * Bring a database to version n: each missing step in a transaction of its own, so that
 * a kill leaves it at one version or another.
 *
 * steps  as tp_migrations(), which a test may have made longer.
 *
 * TP_EINVAL  the database is of a version above n, or holds tables that are not ours;
 * it is as it was. TP_ESTATE  another process has it open. TP_EIO, TP_EQUOTA, TP_ENOMEM
 *  it is at the version that it had reached.
 */
int tp_migrations_run(sqlite3 *db, const char *const *steps, size_t n,
                      struct tp_err *err);

/* Fail with the code that belongs to the last error of db: TP_EQUOTA for a full disk,
 * TP_ENOMEM, TP_ESTATE when another process has it open, else TP_EIO. */
int tp_sqlite_fail(sqlite3 *db, const char *what, struct tp_err *err);

#endif
