#include "store/sqlite_lists.h"

#include "base/buf.h"
#include "base/err.h"
#include "store/migrations.h"
#include "store/sqlite_rows.h"

/* Run SQL with up to two texts bound. */
static int run(sqlite3 *db, const char *sql, struct tp_str a, struct tp_str b,
               struct tp_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text64(stmt, 1, a.ptr, a.len, SQLITE_STATIC, SQLITE_UTF8);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(stmt) > 1)
        rc = sqlite3_bind_text64(stmt, 2, b.ptr, b.len, SQLITE_STATIC, SQLITE_UTF8);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
    rc = rc == SQLITE_OK ? TP_OK : tp_sqlite_fail(db, "cannot write the store", err);
    sqlite3_finalize(stmt);
    return rc;
}

int tp_sqlite_list_put(sqlite3 *db, struct tp_str trace, size_t n,
                       tp_nth_row_member_fn nth, void *arg, struct tp_err *err)
{
    struct tp_buf sql = {0}, list = {0};
    int rc = tp_buf_printf(&sql, err, "INSERT INTO member_lists VALUES(?1,'%s',?2)",
                           tp_sqlite_table(TP_SQLITE_MEMBERS)->columns);

    if (rc == TP_OK)
        rc = tp_buf_append(&sql, "", 1, err);
    for (size_t i = 0; i < n && rc == TP_OK; i++) {
        struct tp_row_member row = {0};

        rc = nth(arg, i, &row, err);
        if (rc == TP_OK)
            rc = tp_buf_append(&list, i == 0 ? "[" : ",", 1, err);
        if (rc == TP_OK)
            rc = tp_sqlite_list_member(&row, &list, err);
    }
    if (rc == TP_OK)
        rc = tp_buf_append_str(&list, n == 0 ? "[]" : "]", err);
    if (rc == TP_OK)
        rc = run(db, sql.data, trace, (struct tp_str){list.data, list.len}, err);
    tp_buf_fini(&list);
    tp_buf_fini(&sql);
    return rc;
}

int tp_sqlite_list_drop(sqlite3 *db, struct tp_str trace, struct tp_err *err)
{
    return run(db, "DELETE FROM member_lists WHERE trace = ?1", trace,
               (struct tp_str){0}, err);
}

/* "INSERT INTO members(a,b) SELECT json_extract(value,...),... WHERE there is none" */
static int build_unfold(const char *columns, struct tp_buf *sql, struct tp_err *err)
{
    int rc = tp_buf_printf(sql, err,
                           "INSERT INTO members(%s) SELECT json_extract(value,'$[0]')",
                           columns);
    int n = 0;

    for (const char *p = columns; *p != '\0' && rc == TP_OK; p++) {
        if (*p == ',')
            rc = tp_buf_printf(sql, err, ",json_extract(value,'$[%d]')", ++n);
    }
    if (rc == TP_OK)
        rc = tp_buf_append_str(
            sql,
            " FROM json_each((SELECT rows FROM member_lists WHERE trace = ?1)) "
            "WHERE true ON CONFLICT(trace,producer_id) DO NOTHING",
            err);
    return rc == TP_OK ? tp_buf_append(sql, "", 1, err) : rc;
}

static int unfold(sqlite3 *db, struct tp_str trace, const char *columns,
                  struct tp_err *err)
{
    struct tp_buf sql = {0};
    int rc = build_unfold(columns, &sql, err);

    if (rc == TP_OK)
        rc = run(db, sql.data, trace, (struct tp_str){0}, err);
    tp_buf_fini(&sql);
    return rc;
}

static int unfold_all(sqlite3 *db, struct tp_err *err)
{
    static const char select[] = "SELECT trace, columns FROM member_lists";
    sqlite3_stmt *stmt = NULL;
    int rc = TP_OK, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(db, select, -1, &stmt, NULL) != SQLITE_OK)
        return tp_sqlite_fail(db, "cannot read the store", err);
    while (rc == TP_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *trace = (const char *)sqlite3_column_text(stmt, 0);
        const char *columns = (const char *)sqlite3_column_text(stmt, 1);

        rc = trace == NULL || columns == NULL
                 ? tp_fail(err, TP_ENOMEM, "no memory for a list of the store")
                 : unfold(db, tp_str_of(trace), columns, err);
    }
    if (rc == TP_OK && step != SQLITE_DONE)
        rc = tp_sqlite_fail(db, "cannot read the store", err);
    sqlite3_finalize(stmt);
    if (rc == TP_OK &&
        sqlite3_exec(db, "DELETE FROM member_lists", NULL, NULL, NULL) != SQLITE_OK)
        rc = tp_sqlite_fail(db, "cannot write the store", err);
    return rc;
}

int tp_sqlite_lists_unfold(sqlite3 *db, struct tp_err *err)
{
    int rc;

    if (sqlite3_exec(db, "SAVEPOINT unfold", NULL, NULL, NULL) != SQLITE_OK)
        return tp_sqlite_fail(db, "cannot write the store", err);
    rc = unfold_all(db, err);
    if (rc == TP_OK &&
        sqlite3_exec(db, "RELEASE unfold", NULL, NULL, NULL) == SQLITE_OK)
        return TP_OK;
    if (rc == TP_OK)
        rc = tp_sqlite_fail(db, "cannot write the store", err);
    sqlite3_exec(db, "ROLLBACK TO unfold; RELEASE unfold", NULL, NULL, NULL);
    return rc;
}
