/*
 * sqlite_lists.h - the members of a new trace as one value, until they have rows.
 *
 * A row of its own costs four to six microseconds, and a new trace of thousands of
 * producers cannot begin before it is stored. So its members are first put as one list:
 * JSON text, an array of the columns for each, with the names of the columns beside it.
 * Whoever wants to read rows has the lists unfolded first; where a member has got a row
 * since, the row is newer. One thread at a time.
 *
 * Every function gives TP_OK, TP_EIO, TP_EQUOTA (the disk is full) or TP_ENOMEM, with
 * the store as it was.
 */
#ifndef TP_STORE_SQLITE_LISTS_H
#define TP_STORE_SQLITE_LISTS_H

#include <sqlite3.h>

#include "store/store.h"

/* Put the list of a trace that has none. */
int tp_sqlite_list_put(sqlite3 *db, struct tp_str trace, size_t n,
                       tp_nth_row_member_fn nth, void *arg, struct tp_err *err);

/* Remove the list of a trace; none is fine. */
int tp_sqlite_list_drop(sqlite3 *db, struct tp_str trace, struct tp_err *err);

/* Make rows of all lists, and remove them; all or nothing. */
int tp_sqlite_lists_unfold(sqlite3 *db, struct tp_err *err);

#endif
