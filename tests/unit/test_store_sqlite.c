/*
 * The SQLite store: rows in and out, transactions, versions, and what others left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>
#include <cmocka.h>

#include "base/err.h"
#include "store/migrations.h"
#include "store/store_sqlite.h"
#include "support/fault.h"
#include "support/tmpdir.h"

static struct tp_str str(const char *s)
{
    return tp_str_of(s);
}

static int setup(void **state)
{
    struct tp_store *s;

    assert_int_equal(tp_store_sqlite_open(":memory:", false, &s, NULL), TP_OK);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    tp_store_close(*state);
    return 0;
}

static void put_job(struct tp_store *s, const char *name)
{
    struct tp_row_job row = {.name = str(name), .created_ns = 5};

    assert_int_equal(s->ops->put_job(s, &row, NULL), TP_OK);
}

static void put_trace(struct tp_store *s, const char *id, const char *state)
{
    struct tp_row_trace row = {.id = str(id),
                               .job = str("j"),
                               .state = str(state),
                               .spec = str("{}"),
                               .n_types = 3,
                               .version = UINT64_MAX,
                               .created_ns = 1,
                               .start_at_ns = 2,
                               .deadline_ns = 3,
                               .outcome = str("lossy"),
                               .reason = str("why"),
                               .late_batches = 4,
                               .late_events = 5};

    assert_int_equal(s->ops->put_trace(s, &row, NULL), TP_OK);
}

static void put_stream(struct tp_store *s, const char *trace, uint32_t no)
{
    struct tp_row_stream row = {
        .trace = str(trace),
        .no = no,
        .who = {.producer_id = str("id"),
                .name = str("n\xc3\xa4me"),
                .kind = str("http"),
                .host = str("h"),
                .backend = str("b"),
                .device = str("d"),
                .rank = -1,
                .pid = 77,
                .world_size = 8,
                .process = str("boot/ns/77/1")},
        .is_file = true,
        .file_name = str("f.json"),
        .state = str("sealed"),
        .reason = str("r"),
        .damage = str("2 places"),
        .counts = {.emitted = 10,
                   .stored = 5,
                   .filtered = 1,
                   .dropped = {[TP_DROP_UNMATCHED_END] = 3, [TP_DROP_LOST] = 1},
                   .repaired = 2,
                   .untyped = 1,
                   .bytes = 99},
        .batches = 6,
        .duplicates = 7,
        .has_times = true,
        .first_ns = -5,
        .last_ns = INT64_MAX,
        .refusals = str("5 0 7=20w\nwhy"),
    };

    assert_int_equal(s->ops->put_stream(s, &row, NULL), TP_OK);
}

static int check_trace(const struct tp_row_trace *row, struct tp_err *err, void *arg)
{
    int *n = arg;

    (void)err;
    assert_true(tp_str_is(row->id, *n == 0 ? "t1" : "t2"));
    assert_true(tp_str_is(row->state, *n == 0 ? "complete" : "recording"));
    assert_true(tp_str_is(row->job, "j"));
    assert_true(tp_str_is(row->spec, "{}"));
    assert_true(row->version == UINT64_MAX);
    assert_int_equal(row->n_types, 3);
    assert_int_equal(row->start_at_ns, 2);
    assert_int_equal(row->deadline_ns, 3);
    assert_true(tp_str_is(row->outcome, "lossy"));
    assert_true(tp_str_is(row->reason, "why"));
    assert_int_equal(row->late_batches, 4);
    assert_int_equal(row->late_events, 5);
    (*n)++;
    return TP_OK;
}

static int check_stream(const struct tp_row_stream *row, struct tp_err *err, void *arg)
{
    int *n = arg;

    (void)err;
    assert_int_equal(row->no, *n + 1);
    assert_true(tp_str_is(row->who.name, "n\xc3\xa4me"));
    assert_int_equal(row->who.rank, -1);
    assert_int_equal(row->who.pid, 77);
    assert_int_equal(row->who.world_size, 8);
    assert_true(tp_str_is(row->who.process, "boot/ns/77/1"));
    assert_true(row->is_file);
    assert_true(tp_str_is(row->damage, "2 places"));
    assert_int_equal(tp_counts_check(&row->counts, err), TP_OK);
    assert_int_equal(row->counts.dropped[TP_DROP_UNMATCHED_END], 3);
    assert_int_equal(row->counts.dropped[TP_DROP_LOST], 1);
    assert_int_equal(row->counts.bytes, 99);
    assert_int_equal(row->duplicates, 7);
    assert_true(row->has_times);
    assert_int_equal(row->first_ns, -5);
    assert_true(row->last_ns == INT64_MAX);
    assert_true(tp_str_is(row->refusals, "5 0 7=20w\nwhy"));
    (*n)++;
    return TP_OK;
}

static int count_move(const struct tp_row_move *row, struct tp_err *err, void *arg)
{
    (void)row;
    (void)err;
    (*(int *)arg)++;
    return TP_OK;
}

static void test_rows_come_back_as_they_were_put(void **state)
{
    struct tp_store *s = *state;
    int n = 0;

    put_job(s, "j");
    put_trace(s, "t2", "recording");
    put_trace(s, "t1", "recording");
    put_stream(s, "t1", 2);
    put_stream(s, "t1", 1);
    put_trace(s, "t1", "complete"); /* a put again keeps what belongs to it */
    assert_int_equal(s->ops->each_trace(s, check_trace, &n, NULL), TP_OK);
    assert_int_equal(n, 2);
    n = 0;
    assert_int_equal(s->ops->each_stream(s, check_stream, &n, NULL), TP_OK);
    assert_int_equal(n, 2);
}

static void test_a_trace_goes_with_all_that_is_its(void **state)
{
    struct tp_store *s = *state;
    struct tp_row_move move = {.trace = str("t1"),
                               .state = str("prepared"),
                               .cause = str("c")};
    struct tp_row_key key = {.key = str("k"), .trace = str("t1")};
    int n = 0;

    put_job(s, "j");
    put_trace(s, "t1", "complete");
    put_stream(s, "t1", 1);
    assert_int_equal(s->ops->put_move(s, &move, NULL), TP_OK);
    assert_int_equal(s->ops->put_key(s, &key, NULL), TP_OK);
    assert_int_equal(s->ops->remove_trace(s, str("t1"), NULL), TP_OK);
    assert_int_equal(s->ops->remove_trace(s, str("t1"), NULL), TP_OK);
    assert_int_equal(s->ops->each_move(s, count_move, &n, NULL), TP_OK);
    assert_int_equal(s->ops->each_stream(s, check_stream, &n, NULL), TP_OK);
    assert_int_equal(n, 0);
}

static int count_job(const struct tp_row_job *row, struct tp_err *err, void *arg)
{
    (void)row;
    (void)err;
    (*(int *)arg)++;
    return TP_OK;
}

static void test_a_rollback_undoes_and_a_commit_keeps(void **state)
{
    struct tp_store *s = *state;
    int n = 0;

    s->ops->rollback(s);
    assert_int_equal(s->ops->begin(s, NULL), TP_OK);
    put_job(s, "a");
    s->ops->rollback(s);
    assert_int_equal(s->ops->begin(s, NULL), TP_OK);
    put_job(s, "b");
    assert_int_equal(s->ops->commit(s, NULL), TP_OK);
    assert_int_equal(s->ops->each_job(s, count_job, &n, NULL), TP_OK);
    assert_int_equal(n, 1);
}

/* The members of a trace by number: "m0", "m1", ... */
static int nth_member(void *arg, size_t i, struct tp_row_member *out,
                      struct tp_err *err)
{
    static char name[16];

    (void)err;
    snprintf(name, sizeof(name), "m%zu", i);
    *out = (struct tp_row_member){
        .trace = str(arg),
        .who = {.producer_id = str(name),
                .name = str("a \"n\xc3\xa4me\" \\ \x01'"),
                .kind = str("native"),
                .rank = (int64_t)i,
                .pid = INT64_MIN,
                .world_size = UINT32_MAX,
                .process = str("boot/ns/77/1")},
        .is_matched = i != 1,
        .state = str("waiting"),
        .reason = str("12"),
        .stream_no = (uint32_t)i + 1,
        .step = UINT64_MAX,
        .reported = {.emitted = 4,
                     .dropped = {[TP_DROP_LOST] = 3, [TP_DROP_UNMATCHED_END] = 1}},
        .has_clock = true,
        .clock_offset_ns = -5,
        .clock_error_ns = 7,
        .type_counts = str("1 2 3\n"),
        .uid = 1000,
        .folder_key = str("k"),
        .interval_ns = 20000000000,
    };
    return TP_OK;
}

/* Every field of every row of traces "t1" and "t2", but for the state. */
static int check_member(const struct tp_row_member *row, struct tp_err *err, void *arg)
{
    struct tp_row_member want;
    int *n = arg;

    (void)err;
    nth_member("", (size_t)row->who.rank, &want, NULL);
    assert_true(tp_str_is(row->trace, *n < 3 ? "t1" : "t2"));
    assert_int_equal(row->who.rank, *n % 3);
    assert_true(tp_str_equal(row->who.producer_id, want.who.producer_id));
    assert_true(tp_str_equal(row->who.name, want.who.name));
    assert_true(tp_str_is(row->who.kind, "native"));
    assert_true(tp_str_is(row->who.host, ""));
    assert_true(row->who.pid == want.who.pid);
    assert_true(row->who.world_size == want.who.world_size);
    assert_true(tp_str_equal(row->who.process, want.who.process));
    assert_int_equal(row->is_matched, want.is_matched);
    assert_true(tp_str_is(row->reason, "12"));
    assert_int_equal(row->stream_no, want.stream_no);
    assert_true(row->step == want.step);
    assert_memory_equal(&row->reported, &want.reported, sizeof(want.reported));
    assert_true(row->has_clock);
    assert_int_equal(row->clock_offset_ns, -5);
    assert_int_equal(row->clock_error_ns, 7);
    assert_true(tp_str_equal(row->type_counts, want.type_counts));
    assert_int_equal(row->uid, 1000);
    assert_true(tp_str_is(row->folder_key, "k"));
    assert_true(row->interval_ns == 20000000000);
    assert_true(tp_str_is(row->state, *n == 4 ? "recording" : "waiting"));
    (*n)++;
    return TP_OK;
}

static void test_members_that_were_put_as_a_list_are_rows(void **state)
{
    struct tp_store *s = *state;
    struct tp_row_member newer;
    int n = 0;

    put_job(s, "j");
    put_trace(s, "t1", "recording");
    put_trace(s, "t2", "recording");
    put_trace(s, "t3", "recording");
    assert_int_equal(s->ops->put_member_list(s, str("t1"), 3, nth_member, "t1", NULL),
                     TP_OK);
    assert_int_equal(s->ops->put_member_list(s, str("t2"), 3, nth_member, "t2", NULL),
                     TP_OK);
    assert_int_equal(s->ops->put_member_list(s, str("t3"), 3, nth_member, "t3", NULL),
                     TP_OK);
    /* What a member has got since is newer, and stays when the list goes. */
    nth_member("t2", 1, &newer, NULL);
    newer.state = str("recording");
    assert_int_equal(s->ops->put_member(s, &newer, NULL), TP_OK);
    assert_int_equal(s->ops->remove_trace(s, str("t3"), NULL), TP_OK);
    for (int again = 0; again < 2; again++) {
        n = 0;
        assert_int_equal(s->ops->each_member(s, check_member, &n, NULL), TP_OK);
        assert_int_equal(n, 6);
    }
}

static int count_member(const struct tp_row_member *row, struct tp_err *err, void *arg)
{
    (void)row;
    (void)err;
    (*(int *)arg)++;
    return TP_OK;
}

static int fail_at_2(void *arg, size_t i, struct tp_row_member *out, struct tp_err *err)
{
    nth_member(arg, i, out, err);
    return i < 2 ? TP_OK : tp_fail(err, TP_ENOMEM, "no more");
}

static void test_a_list_that_was_dropped_or_not_put_has_no_rows(void **state)
{
    struct tp_store *s = *state;
    int n = 0;

    put_job(s, "j");
    put_trace(s, "t1", "recording");
    assert_int_equal(s->ops->drop_member_list(s, str("t1"), NULL), TP_OK);
    assert_int_equal(s->ops->put_member_list(s, str("t1"), 3, fail_at_2, "t1", NULL),
                     TP_ENOMEM);
    assert_int_equal(s->ops->put_member_list(s, str("no"), 3, nth_member, "no", NULL),
                     TP_EIO);
    assert_int_equal(s->ops->put_member_list(s, str("t1"), 0, nth_member, "t1", NULL),
                     TP_OK);
    assert_int_equal(s->ops->drop_member_list(s, str("t1"), NULL), TP_OK);
    assert_int_equal(s->ops->put_member_list(s, str("t1"), 3, nth_member, "t1", NULL),
                     TP_OK);
    assert_int_equal(s->ops->drop_member_list(s, str("t1"), NULL), TP_OK);
    assert_int_equal(s->ops->each_member(s, count_member, &n, NULL), TP_OK);
    assert_int_equal(n, 0);
}

static int expect_no_interval(const struct tp_row_member *row, struct tp_err *err,
                              void *arg)
{
    (void)err;
    assert_true(row->interval_ns == 0);
    assert_true(tp_str_is(row->folder_key, "k"));
    (*(int *)arg)++;
    return TP_OK;
}

/* A newer program, whose rows have one column more, reads a list of this one. */
static void test_a_list_of_an_older_version_has_the_defaults_of_the_newer(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "t.db");
    struct tp_store *s;
    sqlite3 *db;
    int n = 0;

    (void)state;
    assert_int_equal(tp_store_sqlite_open(path, false, &s, NULL), TP_OK);
    put_job(s, "j");
    put_trace(s, "t1", "recording");
    assert_int_equal(s->ops->put_member_list(s, str("t1"), 3, nth_member, "t1", NULL),
                     TP_OK);
    tp_store_close(s);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "UPDATE member_lists SET rows = "
                     "json_remove(rows, '$[0][#-1]', '$[1][#-1]',"
                     "'$[2][#-1]'), columns = replace(columns, ',interval_ns', '')",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(tp_store_sqlite_open(path, false, &s, NULL), TP_OK);
    assert_int_equal(s->ops->each_member(s, expect_no_interval, &n, NULL), TP_OK);
    assert_int_equal(n, 3);
    tp_store_close(s);
    free(path);
    tmpdir_remove(dir);
}

static void test_a_row_of_nobody_is_refused(void **state)
{
    struct tp_store *s = *state;
    struct tp_row_move move = {.trace = str("nobody"), .state = str("prepared")};
    struct tp_err err;

    assert_int_equal(s->ops->put_move(s, &move, &err), TP_EIO);
    assert_non_null(strstr(err.message, "FOREIGN KEY"));
}

static void test_rows_outlive_the_store_and_a_second_one_is_refused(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "t.db");
    struct tp_store *s, *second;
    struct tp_err err;
    int n = 0;

    (void)state;
    assert_int_equal(tp_store_sqlite_open(path, true, &s, &err), TP_OK);
    put_job(s, "j");
    assert_int_equal(tp_store_sqlite_open(path, true, &second, &err), TP_ESTATE);
    tp_store_close(s);
    assert_int_equal(tp_store_sqlite_open(path, false, &s, &err), TP_OK);
    assert_int_equal(s->ops->each_job(s, count_job, &n, NULL), TP_OK);
    assert_int_equal(n, 1);
    tp_store_close(s);
    free(path);
    tmpdir_remove(dir);
}

static void test_nobody_else_can_read_the_files(void **state)
{
    static const char *const files[] = {"t.db", "t.db-wal"};
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "t.db");
    mode_t mask = umask(0);
    struct tp_store *s;
    struct stat st;

    (void)state;
    assert_int_equal(tp_store_sqlite_open(path, false, &s, NULL), TP_OK);
    put_job(s, "j");
    umask(mask);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *file = tmpdir_path(dir, files[i]);

        if (stat(file, &st) != 0 || (st.st_mode & 0777) != 0600)
            fail_msg("%s has mode %o", files[i], st.st_mode & 0777);
        free(file);
    }
    tp_store_close(s);
    free(path);
    tmpdir_remove(dir);
}

/* Open a store and write and read a few rows. */
static int use_once(const char *path, struct tp_err *err)
{
    struct tp_row_trace trace = {.id = str("t"), .job = str("j"), .state = str("s")};
    struct tp_row_job row = {.name = str("j"), .created_ns = 5};
    struct tp_store *s = NULL;
    int n = 0;
    int rc = tp_store_sqlite_open(path, false, &s, err);

    if (rc != TP_OK) {
        assert_null(s);
        return rc;
    }
    rc = s->ops->put_job(s, &row, err);
    if (rc == TP_OK)
        rc = s->ops->put_trace(s, &trace, err);
    if (rc == TP_OK)
        rc = s->ops->drop_member_list(s, trace.id, err);
    if (rc == TP_OK)
        rc = s->ops->put_member_list(s, trace.id, 3, nth_member, "t", err);
    if (rc == TP_OK)
        rc = s->ops->each_member(s, count_member, &n, err);
    if (rc == TP_OK)
        rc = s->ops->each_job(s, count_job, &n, err);
    tp_store_close(s);
    return rc;
}

static void test_each_allocation_failure_is_told_and_the_next_try_works(void **state)
{
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "t.db");
    struct tp_err err;

    (void)state;
    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = use_once(path, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_true(n >= 3); /* the store and its two statements */
            break;
        }
        if (rc != TP_ENOMEM)
            fail_msg("allocation %d: %d", n, rc);
        assert_int_equal(use_once(path, &err), TP_OK);
    }
    free(path);
    tmpdir_remove(dir);
}

/* A database file with one statement run on it. */
static void make_database(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_what_is_not_ours_is_refused_and_left_alone(void **state)
{
    static const struct {
        const char *sql;
        const char *says;
    } cases[] = {
        {"CREATE TABLE schema_version(version INTEGER); INSERT INTO schema_version "
         "VALUES(99)",
         "a newer program has used it"},
        {"CREATE TABLE cats(name TEXT)", "another program"},
    };
    char *dir = tmpdir_new();
    char *path = tmpdir_path(dir, "t.db");
    struct tp_store *s;
    struct tp_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_database(path, cases[i].sql);
        assert_int_equal(tp_store_sqlite_open(path, false, &s, &err), TP_EINVAL);
        if (strstr(err.message, cases[i].says) == NULL)
            fail_msg("case %zu: %s", i, err.message);
        tmpdir_remove(dir);
        free(path);
        dir = tmpdir_new();
        path = tmpdir_path(dir, "t.db");
    }
    tmpdir_write(dir, "t.db", "this is no database, as anybody can see at once........",
                 50);
    assert_int_equal(tp_store_sqlite_open(path, false, &s, &err), TP_EINVAL);
    free(path);
    tmpdir_remove(dir);
}

static void test_version_1_is_brought_up_to_date_step_by_step(void **state)
{
    size_t n;
    const char *const *known = tp_migrations(&n);
    const char *steps[8];
    sqlite3 *db;
    struct tp_err err;

    (void)state;
    assert_int_equal(n, 8);
    steps[0] = known[0];
    steps[1] = "CREATE TABLE more(a); INSERT INTO more VALUES(7)";
    steps[2] = "CREATE TABLE broken(";
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(tp_migrations_run(db, steps, 1, &err), TP_OK);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO jobs VALUES('j', 1)", NULL, NULL,
                                  NULL),
                     SQLITE_OK);
    /* A step that fails leaves the version before it, and all rows. */
    assert_int_equal(tp_migrations_run(db, steps, 3, &err), TP_EIO);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO more VALUES(8)", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(tp_migrations_run(db, steps, 2, &err), TP_OK);
    assert_int_equal(tp_migrations_run(db, steps, 1, &err), TP_EINVAL);
    sqlite3_close(db);
}

/* A member that an older version has written has no counts by type, no process, no
 * user, no key of its folder, and no interval. */
static void test_members_of_version_1_have_no_counts_by_type(void **state)
{
    size_t n;
    const char *const *known = tp_migrations(&n);
    const char *row = "INSERT INTO traces VALUES('t','j','complete','{}',0,1,1,0,0,'',"
                      "'',0,0);INSERT INTO members(trace,producer_id,name,kind,host,"
                      "backend,device,rank,pid,world_size,is_matched,state,reason,"
                      "stream_no,step,started_ns,emitted,stored,filtered,dropped,"
                      "repaired,untyped,bytes,has_clock,clock_offset_ns,"
                      "clock_error_ns) VALUES('t','p','n','http','','','',0,0,0,1,"
                      "'done','',0,0,0,0,0,0,'',0,0,0,0,0,0)";
    char *why = NULL;
    sqlite3 *db;
    sqlite3_stmt *stmt;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(tp_migrations_run(db, known, 1, NULL), TP_OK);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO jobs VALUES('j', 1)", NULL, NULL,
                                  NULL),
                     SQLITE_OK);
    if (sqlite3_exec(db, row, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    assert_int_equal(tp_migrations_run(db, known, n, NULL), TP_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT type_counts || process || uid || folder_key || "
                           "interval_ns FROM members",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "-10");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* Before version 8 what was refused was in the counts of a stream only. */
static void test_refused_events_of_version_7_stay_known(void **state)
{
    size_t n;
    const char *const *known = tp_migrations(&n);
    const char *rows =
        "INSERT INTO jobs VALUES('j', 1);"
        "INSERT INTO traces VALUES('t','j','recording','{}',0,1,1,0,0,'','',0,0);"
        "INSERT INTO streams VALUES('t',1,'','n','http','','','',0,0,0,0,'','open','',"
        "'',74,0,0,'malformed=4 over-limit=70 producer-lost=1',0,0,9,1,0,0,0,0,'');"
        "INSERT INTO streams VALUES('t',2,'','n','http','','','',0,0,0,0,'','open','',"
        "'',4,0,0,'malformed=4',0,0,9,1,0,0,0,0,'')";
    const char *const wanted[] = {"70 0", ""};
    char *why = NULL;
    sqlite3 *db;
    sqlite3_stmt *stmt;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(tp_migrations_run(db, known, 7, NULL), TP_OK);
    if (sqlite3_exec(db, rows, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    assert_int_equal(tp_migrations_run(db, known, n, NULL), TP_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT refusals FROM streams ORDER BY no",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(stmt, 0), wanted[i]);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_come_back_as_they_were_put, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_trace_goes_with_all_that_is_its, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_rollback_undoes_and_a_commit_keeps,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_members_that_were_put_as_a_list_are_rows,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_list_that_was_dropped_or_not_put_has_no_rows, setup, teardown),
        cmocka_unit_test(test_a_list_of_an_older_version_has_the_defaults_of_the_newer),
        cmocka_unit_test_setup_teardown(test_a_row_of_nobody_is_refused, setup,
                                        teardown),
        cmocka_unit_test(test_rows_outlive_the_store_and_a_second_one_is_refused),
        cmocka_unit_test(test_nobody_else_can_read_the_files),
        cmocka_unit_test(test_each_allocation_failure_is_told_and_the_next_try_works),
        cmocka_unit_test(test_what_is_not_ours_is_refused_and_left_alone),
        cmocka_unit_test(test_version_1_is_brought_up_to_date_step_by_step),
        cmocka_unit_test(test_members_of_version_1_have_no_counts_by_type),
        cmocka_unit_test(test_refused_events_of_version_7_stay_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
