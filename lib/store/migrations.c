/*
 * The schema by versions. Table schema_version has one row. A database without that
 * table is new when it is empty, and somebody else's when it is not.
 */
#include "store/migrations.h"

#include <errno.h>
#include <stdbool.h>

#include "base/err.h"

/* clang-format off */
#define IDENTITY \
    "producer_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL," \
    "host TEXT NOT NULL, backend TEXT NOT NULL, device TEXT NOT NULL," \
    "rank INTEGER NOT NULL, pid INTEGER NOT NULL, world_size INTEGER NOT NULL,"
#define COUNTS \
    "emitted INTEGER NOT NULL, stored INTEGER NOT NULL, filtered INTEGER NOT NULL," \
    "dropped TEXT NOT NULL, repaired INTEGER NOT NULL, untyped INTEGER NOT NULL," \
    "bytes INTEGER NOT NULL,"
#define OF_TRACE \
    "trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"

static const char version_1[] =
    "CREATE TABLE jobs(name TEXT PRIMARY KEY, created_ns INTEGER NOT NULL);"

    "CREATE TABLE types(n INTEGER PRIMARY KEY,"
    "job TEXT NOT NULL REFERENCES jobs(name), id INTEGER NOT NULL,"
    "plugin TEXT NOT NULL, type_name TEXT NOT NULL, description TEXT NOT NULL,"
    "unit TEXT NOT NULL, kind TEXT NOT NULL, created_ns INTEGER NOT NULL,"
    "UNIQUE(job, id), UNIQUE(job, plugin, type_name));"

    "CREATE TABLE producers(" IDENTITY
    "job TEXT NOT NULL REFERENCES jobs(name), capabilities TEXT NOT NULL,"
    "registered_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL,"
    "PRIMARY KEY(producer_id));"

    "CREATE TABLE traces(id TEXT PRIMARY KEY,"
    "job TEXT NOT NULL REFERENCES jobs(name), state TEXT NOT NULL,"
    "spec TEXT NOT NULL, n_types INTEGER NOT NULL, version INTEGER NOT NULL,"
    "created_ns INTEGER NOT NULL, start_at_ns INTEGER NOT NULL,"
    "deadline_ns INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,"
    "late_batches INTEGER NOT NULL, late_events INTEGER NOT NULL);"

    "CREATE TABLE moves(" OF_TRACE
    "no INTEGER NOT NULL, state TEXT NOT NULL, wall_ns INTEGER NOT NULL,"
    "cause TEXT NOT NULL, PRIMARY KEY(trace, no)) WITHOUT ROWID;"

    "CREATE TABLE members(" OF_TRACE IDENTITY
    "is_matched INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,"
    "stream_no INTEGER NOT NULL, step INTEGER NOT NULL, started_ns INTEGER NOT NULL,"
    COUNTS
    "has_clock INTEGER NOT NULL, clock_offset_ns INTEGER NOT NULL,"
    "clock_error_ns INTEGER NOT NULL, PRIMARY KEY(trace, producer_id)) WITHOUT ROWID;"

    "CREATE TABLE streams(" OF_TRACE
    "no INTEGER NOT NULL," IDENTITY
    "is_file INTEGER NOT NULL, file_name TEXT NOT NULL, state TEXT NOT NULL,"
    "reason TEXT NOT NULL, damage TEXT NOT NULL," COUNTS
    "batches INTEGER NOT NULL, duplicates INTEGER NOT NULL,"
    "has_times INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,"
    "PRIMARY KEY(trace, no)) WITHOUT ROWID;"

    "CREATE TABLE keys(key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL," OF_TRACE
    "created_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX keys_by_trace ON keys(trace);"
    "CREATE INDEX keys_by_time ON keys(created_ns);";

static const char version_2[] =
    "ALTER TABLE members ADD COLUMN type_counts TEXT NOT NULL DEFAULT '';";

static const char version_3[] =
    "ALTER TABLE producers ADD COLUMN process TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE members ADD COLUMN process TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE streams ADD COLUMN process TEXT NOT NULL DEFAULT '';";

static const char version_4[] =
    "ALTER TABLE members ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;";

static const char version_5[] =
    "CREATE TABLE member_lists("
    "trace TEXT PRIMARY KEY REFERENCES traces(id) ON DELETE CASCADE,"
    "columns TEXT NOT NULL, rows TEXT NOT NULL);";

static const char version_6[] =
    "ALTER TABLE members ADD COLUMN folder_key TEXT NOT NULL DEFAULT '';";

static const char version_7[] =
    "ALTER TABLE members ADD COLUMN interval_ns INTEGER NOT NULL DEFAULT 0;";

/* What was refused was in the counts only, under a cause that batches have as well. */
static const char version_8[] =
    "ALTER TABLE streams ADD COLUMN refusals TEXT NOT NULL DEFAULT '';"
    "UPDATE streams SET refusals = CAST(substr(dropped, instr(dropped, 'over-limit=')"
    "+ 11) AS INTEGER) || ' 0' WHERE instr(dropped, 'over-limit=') > 0;";
/* clang-format on */

const char *const *tp_migrations(size_t *n)
{
    static const char *const steps[] = {version_1, version_2, version_3, version_4,
                                        version_5, version_6, version_7, version_8};

    *n = sizeof(steps) / sizeof(steps[0]);
    return steps;
}

/* SQLite takes only ENOSPC for a full disk; a quota and a limit of file sizes are as
 * full. It does not keep their errno, and nothing was called since the write. */
static bool is_full(sqlite3 *db)
{
    return sqlite3_extended_errcode(db) == SQLITE_IOERR_WRITE &&
           (errno == EDQUOT || errno == EFBIG);
}

int tp_sqlite_fail(sqlite3 *db, const char *what, struct tp_err *err)
{
    int code = TP_EIO;

    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_FULL:
        code = TP_EQUOTA;
        break;
    case SQLITE_IOERR:
        code = is_full(db) ? TP_EQUOTA : TP_EIO;
        break;
    case SQLITE_NOMEM:
        code = TP_ENOMEM;
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return tp_fail(err, TP_ESTATE, "%s: another process has the store open", what);
    default:
        break;
    }
    return tp_fail(err, code, "%s: %s", what, sqlite3_errmsg(db));
}

/* Read one number by SQL. */
static int read_number(sqlite3 *db, const char *sql, sqlite3_int64 *out,
                       struct tp_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = TP_OK;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return tp_sqlite_fail(db, "cannot read the store", err);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *out = sqlite3_column_int64(stmt, 0);
    else
        rc = tp_sqlite_fail(db, "cannot read the store", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int read_version(sqlite3 *db, sqlite3_int64 *version, struct tp_err *err)
{
    sqlite3_int64 n_ours = 0, n_tables = 0;
    int rc;

    rc = read_number(db, "SELECT count(*) FROM sqlite_master", &n_tables, err);
    if (rc == TP_OK)
        rc = read_number(db,
                         "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                         "name = 'schema_version'",
                         &n_ours, err);
    if (rc != TP_OK)
        return rc;
    if (n_ours == 0 && n_tables != 0)
        return tp_fail(err, TP_EINVAL,
                       "the store is a database that another program has made");
    *version = 0;
    if (n_ours == 0)
        return TP_OK;
    return read_number(db, "SELECT max(version) FROM schema_version", version, err);
}

/* Run one step and note its version, all or nothing. */
static int run_step(sqlite3 *db, const char *step, size_t version, struct tp_err *err)
{
    char note[160];
    int rc;

    sqlite3_snprintf((int)sizeof(note), note,
                     "CREATE TABLE IF NOT EXISTS schema_version(version INTEGER NOT "
                     "NULL); DELETE FROM schema_version;"
                     "INSERT INTO schema_version VALUES(%d);",
                     (int)version);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, step, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, note, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return TP_OK;
    rc = tp_sqlite_fail(db, "cannot bring the store up to date", err);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int tp_migrations_run(sqlite3 *db, const char *const *steps, size_t n,
                      struct tp_err *err)
{
    sqlite3_int64 version = 0;
    int rc = read_version(db, &version, err);

    if (rc != TP_OK)
        return rc;
    if (version < 0 || (size_t)version > n)
        return tp_fail(
            err, TP_EINVAL,
            "the store is of version %lld and this program knows versions up "
            "to %zu: a newer program has used it",
            version, n);
    for (size_t i = (size_t)version; i < n && rc == TP_OK; i++)
        rc = run_step(db, steps[i], i + 1, err);
    return rc;
}
