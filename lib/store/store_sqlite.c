/*
 * Statements are made from the tables of sqlite_rows.c when they are first used, and
 * kept. Writes are upserts and not REPLACE, which would delete the row first and take
 * with it, by the foreign keys, all that belongs to a trace.
 */
#include "store/store_sqlite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "store/migrations.h"
#include "store/sqlite_lists.h"
#include "store/sqlite_rows.h"

#define BUSY_TIMEOUT_MS 3000

/* What else is asked besides putting and reading rows. */
enum query {
    BEGIN,
    COMMIT,
    DROP_PRODUCER,
    DROP_TRACE,
    DROP_STREAM,
    DROP_KEYS,
    QUERIES
};

static const char *const queries[QUERIES] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [DROP_PRODUCER] = "DELETE FROM producers WHERE producer_id = ?1",
    [DROP_TRACE] = "DELETE FROM traces WHERE id = ?1",
    [DROP_STREAM] = "DELETE FROM streams WHERE trace = ?1 AND no = ?2",
    [DROP_KEYS] = "DELETE FROM keys WHERE created_ns < ?1",
};

struct sqlite_store {
    struct tp_store base;
    sqlite3 *db;
    sqlite3_stmt *puts[TP_SQLITE_TABLES];
    sqlite3_stmt *reads[TP_SQLITE_TABLES];
    sqlite3_stmt *others[QUERIES];
};

static struct sqlite_store *of(struct tp_store *s)
{
    return (struct sqlite_store *)s;
}

static int fail(struct sqlite_store *s, const char *what, struct tp_err *err)
{
    int code = tp_sqlite_fail(s->db, what, err);

    /* A busy database is a state only at open; later it is a failure of the store. */
    return code == TP_ESTATE ? tp_fail(err, TP_EIO, "%s: the store is busy", what)
                             : code;
}

/* "INSERT INTO t(a,b) VALUES(?,?) ON CONFLICT(a) DO UPDATE SET a=excluded.a,..." */
static int build_put(const struct tp_sqlite_table_info *t, struct tp_buf *sql,
                     struct tp_err *err)
{
    const char *separator = "";
    int rc =
        tp_buf_printf(sql, err, "INSERT INTO %s(%s) VALUES(?", t->name, t->columns);

    for (const char *p = t->columns; *p != '\0' && rc == TP_OK; p++) {
        if (*p == ',')
            rc = tp_buf_append_str(sql, ",?", err);
    }
    if (rc == TP_OK)
        rc = tp_buf_printf(sql, err, ") ON CONFLICT(%s) DO UPDATE SET ", t->key);
    for (const char *p = t->columns; *p != '\0' && rc == TP_OK;) {
        int n = (int)strcspn(p, ",");

        rc = tp_buf_printf(sql, err, "%s%.*s=excluded.%.*s", separator, n, p, n, p);
        separator = ",";
        p += n + (p[n] == ',');
    }
    return rc;
}

static int build_read(const struct tp_sqlite_table_info *t, struct tp_buf *sql,
                      struct tp_err *err)
{
    return tp_buf_printf(sql, err, "SELECT %s FROM %s ORDER BY %s", t->columns, t->name,
                         t->order);
}

/* The statement in *slot, made when it is not there. */
static int prepare(struct sqlite_store *s, sqlite3_stmt **slot, const char *sql,
                   size_t n, struct tp_err *err)
{
    if (sqlite3_prepare_v3(s->db, sql, (int)n, SQLITE_PREPARE_PERSISTENT, slot, NULL) ==
        SQLITE_OK)
        return TP_OK;
    return fail(s, "cannot prepare a statement", err);
}

static int prepare_table(struct sqlite_store *s, enum tp_sqlite_table table,
                         sqlite3_stmt **slot,
                         int (*build)(const struct tp_sqlite_table_info *,
                                      struct tp_buf *, struct tp_err *),
                         struct tp_err *err)
{
    struct tp_buf sql = {0};
    int rc = TP_OK;

    if (*slot != NULL)
        return TP_OK;
    rc = build(tp_sqlite_table(table), &sql, err);
    if (rc == TP_OK)
        rc = prepare(s, slot, sql.data, sql.len, err);
    tp_buf_fini(&sql);
    return rc;
}

/* Run a bound statement that gives no rows. */
static int run(struct sqlite_store *s, sqlite3_stmt *stmt, int bound, const char *what,
               struct tp_err *err)
{
    int rc = TP_OK;

    if (bound != SQLITE_OK || sqlite3_step(stmt) != SQLITE_DONE)
        rc = fail(s, what, err);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc;
}

static int run_query(struct sqlite_store *s, enum query q, struct tp_str text,
                     uint64_t number, struct tp_err *err)
{
    int bound = SQLITE_OK, n, rc;

    if (s->others[q] == NULL) {
        rc = prepare(s, &s->others[q], queries[q], strlen(queries[q]), err);
        if (rc != TP_OK)
            return rc;
    }
    n = sqlite3_bind_parameter_count(s->others[q]);
    if (n > 0 && q != DROP_KEYS)
        bound = sqlite3_bind_text64(s->others[q], 1, text.len == 0 ? "" : text.ptr,
                                    text.len, SQLITE_STATIC, SQLITE_UTF8);
    if (bound == SQLITE_OK && (n > 1 || q == DROP_KEYS))
        bound = sqlite3_bind_int64(s->others[q], n, (sqlite3_int64)number);
    return run(s, s->others[q], bound, "cannot write the store", err);
}

static int begin_tx(struct tp_store *s, struct tp_err *err)
{
    return run_query(of(s), BEGIN, (struct tp_str){0}, 0, err);
}

static int commit_tx(struct tp_store *s, struct tp_err *err)
{
    return run_query(of(s), COMMIT, (struct tp_str){0}, 0, err);
}

static void rollback_tx(struct tp_store *s)
{
    if (!sqlite3_get_autocommit(of(s)->db))
        sqlite3_exec(of(s)->db, "ROLLBACK", NULL, NULL, NULL);
}

static int remove_producer(struct tp_store *s, struct tp_str id, struct tp_err *err)
{
    return run_query(of(s), DROP_PRODUCER, id, 0, err);
}

static int remove_trace(struct tp_store *s, struct tp_str id, struct tp_err *err)
{
    return run_query(of(s), DROP_TRACE, id, 0, err);
}

static int remove_stream(struct tp_store *s, struct tp_str trace, uint32_t no,
                         struct tp_err *err)
{
    return run_query(of(s), DROP_STREAM, trace, no, err);
}

static int remove_keys(struct tp_store *s, uint64_t before_ns, struct tp_err *err)
{
    return run_query(of(s), DROP_KEYS, (struct tp_str){0}, before_ns, err);
}

/* Whether there is a next row; *rc gets a failure. */
static bool next_row(struct sqlite_store *s, sqlite3_stmt *stmt, int *rc,
                     struct tp_err *err)
{
    int step;

    if (*rc != TP_OK)
        return false;
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        return true;
    if (step != SQLITE_DONE)
        *rc = fail(s, "cannot read the store", err);
    return false;
}

/* What has to be done before rows are read. */
static int prepare_read(struct sqlite_store *s, enum tp_sqlite_table table,
                        struct tp_err *err)
{
    int rc = table == TP_SQLITE_MEMBERS ? tp_sqlite_lists_unfold(s->db, err) : TP_OK;

    return rc == TP_OK ? prepare_table(s, table, &s->reads[table], build_read, err)
                       : rc;
}

/* The two operations of a kind of row, which differ in types only. */
#define ROW_OPERATIONS(kind, table)                                                 \
    static int put_##kind(struct tp_store *base, const struct tp_row_##kind *row,   \
                          struct tp_err *err)                                       \
    {                                                                               \
        struct sqlite_store *s = of(base);                                          \
        int rc = prepare_table(s, table, &s->puts[table], build_put, err);          \
                                                                                    \
        if (rc != TP_OK)                                                            \
            return rc;                                                              \
        return run(s, s->puts[table], tp_sqlite_bind_##kind(s->puts[table], row),   \
                   "cannot write the store", err);                                  \
    }                                                                               \
                                                                                    \
    static int each_##kind(struct tp_store *base, tp_row_##kind##_fn fn, void *arg, \
                           struct tp_err *err)                                      \
    {                                                                               \
        struct sqlite_store *s = of(base);                                          \
        int rc = prepare_read(s, table, err);                                       \
                                                                                    \
        while (next_row(s, s->reads[table], &rc, err)) {                            \
            struct tp_row_##kind row = {0};                                         \
                                                                                    \
            tp_sqlite_take_##kind(s->reads[table], &row);                           \
            rc = fn(&row, err, arg);                                                \
        }                                                                           \
        sqlite3_reset(s->reads[table]);                                             \
        return rc;                                                                  \
    }

ROW_OPERATIONS(job, TP_SQLITE_JOBS)
ROW_OPERATIONS(type, TP_SQLITE_TYPES)
ROW_OPERATIONS(producer, TP_SQLITE_PRODUCERS)
ROW_OPERATIONS(trace, TP_SQLITE_TRACES)
ROW_OPERATIONS(move, TP_SQLITE_MOVES)
ROW_OPERATIONS(member, TP_SQLITE_MEMBERS)
ROW_OPERATIONS(stream, TP_SQLITE_STREAMS)
ROW_OPERATIONS(key, TP_SQLITE_KEYS)

static int put_member_list(struct tp_store *s, struct tp_str trace, size_t n,
                           tp_nth_row_member_fn nth, void *arg, struct tp_err *err)
{
    return tp_sqlite_list_put(of(s)->db, trace, n, nth, arg, err);
}

static int drop_member_list(struct tp_store *s, struct tp_str trace, struct tp_err *err)
{
    return tp_sqlite_list_drop(of(s)->db, trace, err);
}

static int check(struct tp_store *base, struct tp_err *err)
{
    struct sqlite_store *s = of(base);
    const char *sql = "UPDATE schema_version SET version = version";

    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(s, "cannot write the store", err);
    return TP_OK;
}

static void close_store(struct tp_store *base)
{
    struct sqlite_store *s = of(base);

    for (int i = 0; i < TP_SQLITE_TABLES; i++) {
        sqlite3_finalize(s->puts[i]);
        sqlite3_finalize(s->reads[i]);
    }
    for (int i = 0; i < QUERIES; i++)
        sqlite3_finalize(s->others[i]);
    sqlite3_close(s->db);
    free(s);
}

static const struct tp_store_ops operations = {
    .begin = begin_tx,
    .commit = commit_tx,
    .rollback = rollback_tx,
    .put_job = put_job,
    .put_type = put_type,
    .put_producer = put_producer,
    .put_trace = put_trace,
    .put_move = put_move,
    .put_member = put_member,
    .put_member_list = put_member_list,
    .drop_member_list = drop_member_list,
    .put_stream = put_stream,
    .put_key = put_key,
    .remove_producer = remove_producer,
    .remove_trace = remove_trace,
    .remove_stream = remove_stream,
    .remove_keys = remove_keys,
    .each_job = each_job,
    .each_type = each_type,
    .each_producer = each_producer,
    .each_trace = each_trace,
    .each_move = each_move,
    .each_member = each_member,
    .each_stream = each_stream,
    .each_key = each_key,
    .check = check,
    .close = close_store,
};

/* The exclusive lock is taken with the first write and held: a second process that
 * worked on the same traces would ruin them. */
static int configure(sqlite3 *db, bool durable, struct tp_err *err)
{
    const char *sql = durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";

    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    sqlite3_extended_result_codes(db, 1);
    if (sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL) ==
            SQLITE_OK &&
        sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, "PRAGMA foreign_keys=ON", NULL, NULL, NULL) == SQLITE_OK)
        return TP_OK;
    if ((sqlite3_errcode(db) & 0xff) == SQLITE_NOTADB)
        return tp_fail(err, TP_EINVAL, "the store is not an SQLite database");
    return tp_sqlite_fail(db, "cannot open the store", err);
}

/*
 * Make the file, if there is none, for its owner alone: SQLite would let all users read
 * it, and gives its other files the mode of this one. What fails here fails there, too.
 * A file that exists is not opened: closing it would give up SQLite's locks on it.
 */
static void make_private(const char *path)
{
    int fd = path[0] == ':' ? -1 : open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

int tp_store_sqlite_open(const char *path, bool durable, struct tp_store **out,
                         struct tp_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    struct sqlite_store *s = calloc(1, sizeof(*s));
    const char *const *steps;
    size_t n_steps;
    int rc;

    if (s == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the store");
    s->base.ops = &operations;
    make_private(path);
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        rc = s->db == NULL ? tp_fail(err, TP_ENOMEM, "no memory for the store")
                           : tp_sqlite_fail(s->db, "cannot open the store", err);
        goto fail;
    }
    rc = configure(s->db, durable, err);
    if (rc != TP_OK)
        goto fail;
    steps = tp_migrations(&n_steps);
    rc = tp_migrations_run(s->db, steps, n_steps, err);
    if (rc == TP_OK)
        rc = check(&s->base, err);
    if (rc != TP_OK)
        goto fail;

    *out = &s->base;
    return TP_OK;

fail:
    close_store(&s->base);
    return rc;
}
