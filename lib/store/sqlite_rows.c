/*
 * Columns in the order of the tables. A struct walk goes along a statement, or writes
 * the same values as an array of JSON, and keeps the first failure, so that the
 * functions below read as lists.
 */
#include "store/sqlite_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_write.h"

#define IDENTITY \
    "producer_id,name,kind,host,backend,device,rank,pid,world_size,process,"
#define COUNTS "emitted,stored,filtered,dropped,repaired,untyped,bytes,"

static const struct tp_sqlite_table_info tables[TP_SQLITE_TABLES] = {
    [TP_SQLITE_JOBS] = {"jobs", "name", "name", "name,created_ns"},
    [TP_SQLITE_TYPES] = {"types", "job,id", "n",
                         "job,id,plugin,type_name,description,unit,kind,created_ns"},
    [TP_SQLITE_PRODUCERS] = {"producers", "producer_id", "producer_id",
                             IDENTITY "job,capabilities,registered_ns,seen_ns"},
    [TP_SQLITE_TRACES] = {"traces", "id", "id",
                          "id,job,state,spec,n_types,version,created_ns,start_at_ns,"
                          "deadline_ns,outcome,reason,late_batches,late_events"},
    [TP_SQLITE_MOVES] = {"moves", "trace,no", "trace,no",
                         "trace,no,state,wall_ns,cause"},
    [TP_SQLITE_MEMBERS] = {"members", "trace,producer_id", "trace,name,rank",
                           "trace," IDENTITY
                           "is_matched,state,reason,stream_no,step,started_ns," COUNTS
                           "has_clock,clock_offset_ns,clock_error_ns,type_counts,uid,"
                           "folder_key,interval_ns"},
    [TP_SQLITE_STREAMS] = {"streams", "trace,no", "trace,no",
                           "trace,no," IDENTITY
                           "is_file,file_name,state,reason,damage," COUNTS
                           "batches,duplicates,has_times,first_ns,last_ns,refusals"},
    [TP_SQLITE_KEYS] = {"keys", "key", "key", "key,fingerprint,trace,created_ns"},
};

const struct tp_sqlite_table_info *tp_sqlite_table(enum tp_sqlite_table table)
{
    return &tables[table];
}

struct walk {
    sqlite3_stmt *stmt;
    int column;
    int rc;
    struct tp_buf *list; /* NULL: to or from stmt */
};

/* The value that was just appended to a list needs a comma; its code is ours. */
static int listed(struct walk *w, int rc)
{
    if (rc == TP_OK)
        rc = tp_buf_append(w->list, ",", 1, NULL);
    return rc == TP_OK ? SQLITE_OK : SQLITE_NOMEM;
}

static void put_int(struct walk *w, int64_t v)
{
    w->column++;
    if (w->rc == SQLITE_OK && w->list != NULL)
        w->rc = listed(w, tp_json_write_i64(w->list, v, NULL));
    else if (w->rc == SQLITE_OK)
        w->rc = sqlite3_bind_int64(w->stmt, w->column, v);
}

/* Above INT64_MAX it wraps, and take_u64() wraps it back. */
static void put_u64(struct walk *w, uint64_t v)
{
    put_int(w, (int64_t)v);
}

static void put_text(struct walk *w, struct tp_str s)
{
    w->column++;
    if (w->rc == SQLITE_OK && w->list != NULL)
        w->rc = listed(w, tp_json_write_string(w->list, s, NULL));
    else if (w->rc == SQLITE_OK)
        w->rc = sqlite3_bind_text64(w->stmt, w->column, s.len == 0 ? "" : s.ptr, s.len,
                                    SQLITE_STATIC, SQLITE_UTF8);
}

static int64_t take_int(struct walk *w)
{
    return sqlite3_column_int64(w->stmt, w->column++);
}

static uint64_t take_u64(struct walk *w)
{
    return (uint64_t)take_int(w);
}

static struct tp_str take_text(struct walk *w)
{
    const char *p = (const char *)sqlite3_column_text(w->stmt, w->column);
    int n = sqlite3_column_bytes(w->stmt, w->column);

    w->column++;
    return (struct tp_str){p, p == NULL ? 0 : (size_t)n};
}

/* Causes by name ("unmatched-end=3 over-limit=1"), since numbers are for streams. */
static void put_causes(struct walk *w, const uint64_t *dropped)
{
    char text[TP_DROP_CAUSES * 48] = "";
    size_t len = 0;

    for (int i = 0; i < TP_DROP_CAUSES; i++) {
        if (dropped[i] == 0)
            continue;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s=%llu",
                                len == 0 ? "" : " ", tp_drop_cause_name(i),
                                (unsigned long long)dropped[i]);
    }
    if (w->list != NULL) {
        put_text(w, (struct tp_str){text, len});
        return;
    }
    w->column++;
    if (w->rc == SQLITE_OK)
        w->rc = sqlite3_bind_text(w->stmt, w->column, text, (int)len, SQLITE_TRANSIENT);
}

/* A cause that this version does not know is left out: an older program never gets this
 * far, since the schema version stops it. */
static void take_causes(struct walk *w, uint64_t *dropped)
{
    struct tp_str s = take_text(w);
    const char *p = s.ptr, *end = s.ptr + s.len;

    while (p < end) {
        const char *eq = memchr(p, '=', (size_t)(end - p));
        char *after = NULL;
        int cause;

        if (eq == NULL)
            return;
        cause = tp_drop_cause_find((struct tp_str){p, (size_t)(eq - p)});
        if (cause >= 0)
            dropped[cause] = strtoull(eq + 1, &after, 10);
        else
            strtoull(eq + 1, &after, 10);
        p = after < end ? after + 1 : end;
    }
}

static void put_identity(struct walk *w, const struct tp_row_identity *who)
{
    put_text(w, who->producer_id);
    put_text(w, who->name);
    put_text(w, who->kind);
    put_text(w, who->host);
    put_text(w, who->backend);
    put_text(w, who->device);
    put_int(w, who->rank);
    put_int(w, who->pid);
    put_u64(w, who->world_size);
    put_text(w, who->process);
}

static void take_identity(struct walk *w, struct tp_row_identity *who)
{
    who->producer_id = take_text(w);
    who->name = take_text(w);
    who->kind = take_text(w);
    who->host = take_text(w);
    who->backend = take_text(w);
    who->device = take_text(w);
    who->rank = take_int(w);
    who->pid = take_int(w);
    who->world_size = (uint32_t)take_int(w);
    who->process = take_text(w);
}

static void put_counts(struct walk *w, const struct tp_counts *c)
{
    put_u64(w, c->emitted);
    put_u64(w, c->stored);
    put_u64(w, c->filtered);
    put_causes(w, c->dropped);
    put_u64(w, c->repaired);
    put_u64(w, c->untyped);
    put_u64(w, c->bytes);
}

static void take_counts(struct walk *w, struct tp_counts *c)
{
    c->emitted = take_u64(w);
    c->stored = take_u64(w);
    c->filtered = take_u64(w);
    take_causes(w, c->dropped);
    c->repaired = take_u64(w);
    c->untyped = take_u64(w);
    c->bytes = take_u64(w);
}

int tp_sqlite_bind_job(sqlite3_stmt *stmt, const struct tp_row_job *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->name);
    put_u64(&w, row->created_ns);
    return w.rc;
}

void tp_sqlite_take_job(sqlite3_stmt *stmt, struct tp_row_job *row)
{
    struct walk w = {.stmt = stmt};

    row->name = take_text(&w);
    row->created_ns = take_u64(&w);
}

int tp_sqlite_bind_type(sqlite3_stmt *stmt, const struct tp_row_type *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->job);
    put_u64(&w, row->id);
    put_text(&w, row->plugin);
    put_text(&w, row->type_name);
    put_text(&w, row->description);
    put_text(&w, row->unit);
    put_text(&w, row->kind);
    put_u64(&w, row->created_ns);
    return w.rc;
}

void tp_sqlite_take_type(sqlite3_stmt *stmt, struct tp_row_type *row)
{
    struct walk w = {.stmt = stmt};

    row->job = take_text(&w);
    row->id = (unsigned)take_int(&w);
    row->plugin = take_text(&w);
    row->type_name = take_text(&w);
    row->description = take_text(&w);
    row->unit = take_text(&w);
    row->kind = take_text(&w);
    row->created_ns = take_u64(&w);
}

int tp_sqlite_bind_producer(sqlite3_stmt *stmt, const struct tp_row_producer *row)
{
    struct walk w = {.stmt = stmt};

    put_identity(&w, &row->who);
    put_text(&w, row->job);
    put_text(&w, row->capabilities);
    put_u64(&w, row->registered_ns);
    put_u64(&w, row->seen_ns);
    return w.rc;
}

void tp_sqlite_take_producer(sqlite3_stmt *stmt, struct tp_row_producer *row)
{
    struct walk w = {.stmt = stmt};

    take_identity(&w, &row->who);
    row->job = take_text(&w);
    row->capabilities = take_text(&w);
    row->registered_ns = take_u64(&w);
    row->seen_ns = take_u64(&w);
}

int tp_sqlite_bind_trace(sqlite3_stmt *stmt, const struct tp_row_trace *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->id);
    put_text(&w, row->job);
    put_text(&w, row->state);
    put_text(&w, row->spec);
    put_u64(&w, row->n_types);
    put_u64(&w, row->version);
    put_u64(&w, row->created_ns);
    put_u64(&w, row->start_at_ns);
    put_u64(&w, row->deadline_ns);
    put_text(&w, row->outcome);
    put_text(&w, row->reason);
    put_u64(&w, row->late_batches);
    put_u64(&w, row->late_events);
    return w.rc;
}

void tp_sqlite_take_trace(sqlite3_stmt *stmt, struct tp_row_trace *row)
{
    struct walk w = {.stmt = stmt};

    row->id = take_text(&w);
    row->job = take_text(&w);
    row->state = take_text(&w);
    row->spec = take_text(&w);
    row->n_types = (uint32_t)take_int(&w);
    row->version = take_u64(&w);
    row->created_ns = take_u64(&w);
    row->start_at_ns = take_u64(&w);
    row->deadline_ns = take_u64(&w);
    row->outcome = take_text(&w);
    row->reason = take_text(&w);
    row->late_batches = take_u64(&w);
    row->late_events = take_u64(&w);
}

int tp_sqlite_bind_move(sqlite3_stmt *stmt, const struct tp_row_move *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->trace);
    put_u64(&w, row->no);
    put_text(&w, row->state);
    put_int(&w, row->wall_ns);
    put_text(&w, row->cause);
    return w.rc;
}

void tp_sqlite_take_move(sqlite3_stmt *stmt, struct tp_row_move *row)
{
    struct walk w = {.stmt = stmt};

    row->trace = take_text(&w);
    row->no = (uint32_t)take_int(&w);
    row->state = take_text(&w);
    row->wall_ns = take_int(&w);
    row->cause = take_text(&w);
}

static void put_member(struct walk *w, const struct tp_row_member *row)
{
    put_text(w, row->trace);
    put_identity(w, &row->who);
    put_int(w, row->is_matched);
    put_text(w, row->state);
    put_text(w, row->reason);
    put_u64(w, row->stream_no);
    put_u64(w, row->step);
    put_u64(w, row->started_ns);
    put_counts(w, &row->reported);
    put_int(w, row->has_clock);
    put_int(w, row->clock_offset_ns);
    put_u64(w, row->clock_error_ns);
    put_text(w, row->type_counts);
    put_int(w, row->uid);
    put_text(w, row->folder_key);
    put_u64(w, row->interval_ns);
}

int tp_sqlite_bind_member(sqlite3_stmt *stmt, const struct tp_row_member *row)
{
    struct walk w = {.stmt = stmt};

    put_member(&w, row);
    return w.rc;
}

int tp_sqlite_list_member(const struct tp_row_member *row, struct tp_buf *out,
                          struct tp_err *err)
{
    struct walk w = {.list = out};
    int rc = tp_buf_append(out, "[", 1, err);

    if (rc != TP_OK)
        return rc;
    put_member(&w, row);
    if (w.rc != SQLITE_OK)
        return tp_fail(err, TP_ENOMEM, "no memory for a list of the store");
    out->data[out->len - 1] = ']'; /* which was a comma */
    return TP_OK;
}

void tp_sqlite_take_member(sqlite3_stmt *stmt, struct tp_row_member *row)
{
    struct walk w = {.stmt = stmt};

    row->trace = take_text(&w);
    take_identity(&w, &row->who);
    row->is_matched = take_int(&w) != 0;
    row->state = take_text(&w);
    row->reason = take_text(&w);
    row->stream_no = (uint32_t)take_int(&w);
    row->step = take_u64(&w);
    row->started_ns = take_u64(&w);
    take_counts(&w, &row->reported);
    row->has_clock = take_int(&w) != 0;
    row->clock_offset_ns = take_int(&w);
    row->clock_error_ns = take_u64(&w);
    row->type_counts = take_text(&w);
    row->uid = take_int(&w);
    row->folder_key = take_text(&w);
    row->interval_ns = take_u64(&w);
}

int tp_sqlite_bind_stream(sqlite3_stmt *stmt, const struct tp_row_stream *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->trace);
    put_u64(&w, row->no);
    put_identity(&w, &row->who);
    put_int(&w, row->is_file);
    put_text(&w, row->file_name);
    put_text(&w, row->state);
    put_text(&w, row->reason);
    put_text(&w, row->damage);
    put_counts(&w, &row->counts);
    put_u64(&w, row->batches);
    put_u64(&w, row->duplicates);
    put_int(&w, row->has_times);
    put_int(&w, row->first_ns);
    put_int(&w, row->last_ns);
    put_text(&w, row->refusals);
    return w.rc;
}

void tp_sqlite_take_stream(sqlite3_stmt *stmt, struct tp_row_stream *row)
{
    struct walk w = {.stmt = stmt};

    row->trace = take_text(&w);
    row->no = (uint32_t)take_int(&w);
    take_identity(&w, &row->who);
    row->is_file = take_int(&w) != 0;
    row->file_name = take_text(&w);
    row->state = take_text(&w);
    row->reason = take_text(&w);
    row->damage = take_text(&w);
    take_counts(&w, &row->counts);
    row->batches = take_u64(&w);
    row->duplicates = take_u64(&w);
    row->has_times = take_int(&w) != 0;
    row->first_ns = take_int(&w);
    row->last_ns = take_int(&w);
    row->refusals = take_text(&w);
}

int tp_sqlite_bind_key(sqlite3_stmt *stmt, const struct tp_row_key *row)
{
    struct walk w = {.stmt = stmt};

    put_text(&w, row->key);
    put_text(&w, row->fingerprint);
    put_text(&w, row->trace);
    put_u64(&w, row->created_ns);
    return w.rc;
}

void tp_sqlite_take_key(sqlite3_stmt *stmt, struct tp_row_key *row)
{
    struct walk w = {.stmt = stmt};

    row->key = take_text(&w);
    row->fingerprint = take_text(&w);
    row->trace = take_text(&w);
    row->created_ns = take_u64(&w);
}
