/*
 * sqlite_rows.h - the tables of SQLite: their columns, and rows to and from statements.
 *
 * One pair of functions a kind of row; both walk the columns in the order that the
 * table below names them. One thread at a time.
 */
#ifndef TP_STORE_SQLITE_ROWS_H
#define TP_STORE_SQLITE_ROWS_H

#include <sqlite3.h>

#include "store/rows.h"

struct tp_buf;
struct tp_err;

enum tp_sqlite_table {
    TP_SQLITE_JOBS,
    TP_SQLITE_TYPES,
    TP_SQLITE_PRODUCERS,
    TP_SQLITE_TRACES,
    TP_SQLITE_MOVES,
    TP_SQLITE_MEMBERS,
    TP_SQLITE_STREAMS,
    TP_SQLITE_KEYS,
    TP_SQLITE_TABLES
};

/* Plain data: what the statements of a table are made of. */
struct tp_sqlite_table_info {
    const char *name;
    const char *key;     /* columns of the unique key, with commas */
    const char *order;   /* columns to read by */
    const char *columns; /* with commas, no blanks */
};

/* The row of a table. Static. */
const struct tp_sqlite_table_info *tp_sqlite_table(enum tp_sqlite_table table);

/* Bind a row to a put statement. Texts are borrowed until it is reset. Returns
 * SQLITE_OK or the first failure. */
int tp_sqlite_bind_job(sqlite3_stmt *stmt, const struct tp_row_job *row);
/* Likewise. */
int tp_sqlite_bind_type(sqlite3_stmt *stmt, const struct tp_row_type *row);
/* Likewise. */
int tp_sqlite_bind_producer(sqlite3_stmt *stmt, const struct tp_row_producer *row);
/* Likewise. */
int tp_sqlite_bind_trace(sqlite3_stmt *stmt, const struct tp_row_trace *row);
/* Likewise. */
int tp_sqlite_bind_move(sqlite3_stmt *stmt, const struct tp_row_move *row);
/* Likewise. */
int tp_sqlite_bind_member(sqlite3_stmt *stmt, const struct tp_row_member *row);
/* Likewise. */
int tp_sqlite_bind_stream(sqlite3_stmt *stmt, const struct tp_row_stream *row);
/* Likewise. */
int tp_sqlite_bind_key(sqlite3_stmt *stmt, const struct tp_row_key *row);

/* Append a row as a JSON array of what is bound, in the same order. TP_ENOMEM: some of
 * it may be there. */
int tp_sqlite_list_member(const struct tp_row_member *row, struct tp_buf *out,
                          struct tp_err *err);

/* Read the present row of a statement. Texts live until it is stepped. */
void tp_sqlite_take_job(sqlite3_stmt *stmt, struct tp_row_job *row);
/* Likewise. */
void tp_sqlite_take_type(sqlite3_stmt *stmt, struct tp_row_type *row);
/* Likewise. */
void tp_sqlite_take_producer(sqlite3_stmt *stmt, struct tp_row_producer *row);
/* Likewise. */
void tp_sqlite_take_trace(sqlite3_stmt *stmt, struct tp_row_trace *row);
/* Likewise. */
void tp_sqlite_take_move(sqlite3_stmt *stmt, struct tp_row_move *row);
/* Likewise. */
void tp_sqlite_take_member(sqlite3_stmt *stmt, struct tp_row_member *row);
/* Likewise. */
void tp_sqlite_take_stream(sqlite3_stmt *stmt, struct tp_row_stream *row);
/* Likewise. */
void tp_sqlite_take_key(sqlite3_stmt *stmt, struct tp_row_key *row);

#endif
