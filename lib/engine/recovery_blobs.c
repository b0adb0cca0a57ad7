/*
 * Blobs and rows brought together: rows say what should be there, blobs what is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/outcome.h"
#include "engine/life.h"
#include "engine/objects.h"
#include "engine/persist.h"
#include "engine/recovery.h"
#include "engine/settle.h"
#include "engine/stream_blobs.h"
#include "store/store.h"

/* The names that are to go: removing while listing is not allowed. */
struct orphans {
    struct tp_engine *e;
    char **names;
    size_t n;
};

static bool belongs(struct tp_engine *e, const char *name, uint64_t size_bytes)
{
    char id[TP_TRACE_ID_BYTES];
    enum tp_blob_kind kind;
    const struct tp_trace *t;
    struct tp_stream *s;
    uint32_t no;

    if (!tp_stream_blob_parse(name, id, &no, &kind))
        return false;
    t = tp_strmap_get(&e->traces, id, strlen(id));
    if (t == NULL || t->is_purging || no > t->n_streams)
        return false;
    s = t->streams[no - 1];
    if (s->state == TP_STREAM_HIDDEN)
        return false;
    /* A log beside a seal that a row tells of, and a seal that none does. */
    if (kind == TP_BLOB_LOG)
        return s->state != TP_STREAM_SEALED;
    s->found_bytes += size_bytes;
    return s->state == TP_STREAM_SEALED;
}

static int note_orphan(const char *name, uint64_t size_bytes, void *arg)
{
    struct orphans *o = arg;
    char **names;

    if (belongs(o->e, name, size_bytes))
        return TP_OK;
    names = realloc(o->names, (o->n + 1) * sizeof(*names));
    if (names == NULL)
        return TP_ENOMEM;
    o->names = names;
    names[o->n] = strdup(name);
    if (names[o->n] == NULL)
        return TP_ENOMEM;
    o->n++;
    return TP_OK;
}

static int remove_orphans(struct tp_engine *e, uint64_t *n_removed, struct tp_err *err)
{
    const struct tp_blobs *blobs = e->opts.blobs;
    struct orphans o = {.e = e};
    int rc = blobs->list(blobs->ctx, "traces/", note_orphan, &o, err);

    if (rc == TP_ENOMEM)
        tp_fail(err, TP_ENOMEM, "no memory for the list of blobs");
    for (size_t i = 0; i < o.n; i++) {
        if (rc == TP_OK)
            rc = blobs->remove(blobs->ctx, o.names[i], err);
        *n_removed += rc == TP_OK;
        free(o.names[i]);
    }
    free(o.names);
    return rc;
}

/* The log is mended when this returns, so the row must say what was found: the next
 * start finds nothing any more. */
static int recover_stream(struct tp_stream *s, uint64_t *cut_bytes, struct tp_err *err)
{
    bool has_news = false;
    int rc = tp_stream_blobs_recover(s, cut_bytes, &has_news, err);

    if (rc != TP_OK)
        return rc;
    s->state = TP_STREAM_OPEN;
    return has_news ? tp_persist_stream(s->trace->engine, s, err) : TP_OK;
}

/* The logs of a trace that goes on, and the bytes that count against its limit. */
static int recover_trace(struct tp_trace *t, uint64_t *cut_bytes, struct tp_err *err)
{
    uint64_t bytes = 0;
    int rc = TP_OK;

    for (size_t i = 0; i < t->n_streams && rc == TP_OK; i++) {
        struct tp_stream *s = t->streams[i];

        if (s->state == TP_STREAM_OPEN || s->state == TP_STREAM_SEALING)
            rc = recover_stream(s, cut_bytes, err);
        bytes += s->counts.bytes;
    }
    t->quota.used = bytes;
    return rc;
}

/*
 * The log of a complete trace that was not sealed yet. What it has lost since is in its
 * row or is not: a start before this one may have been killed when it had mended the
 * log.
 *
 * is_worse  set when the trace is to tell it.
 */
static int recover_unsealed_stream(struct tp_stream *s, uint64_t *cut_bytes,
                                   bool *is_worse, struct tp_err *err)
{
    uint64_t before = s->counts.stored;
    bool has_news = false;
    int rc = tp_stream_blobs_recover(s, cut_bytes, &has_news, err);

    if (rc != TP_OK)
        return rc;
    s->is_settled = true;
    if (s->counts.stored < before && s->damage[0] == '\0')
        snprintf(s->damage, sizeof(s->damage), "%llu of its events are not there",
                 (unsigned long long)(before - s->counts.stored));
    has_news = has_news || s->counts.stored < before;
    *is_worse = s->damage[0] != '\0' &&
                (has_news || tp_outcome_find(tp_str_of(s->trace->outcome)) <
                                 (int)TP_OUTCOME_PARTIAL);
    return has_news ? tp_persist_stream(s->trace->engine, s, err) : TP_OK;
}

/* The logs of a complete trace. What one has lost, the trace has. */
static int recover_unsealed(struct tp_trace *t, struct tp_now now, uint64_t *cut_bytes,
                            struct tp_err *err)
{
    bool is_told = true;
    int rc = TP_OK;

    for (size_t i = 0; i < t->n_streams && rc == TP_OK; i++) {
        struct tp_stream *s = t->streams[i];
        bool is_worse = false;

        if (s->state == TP_STREAM_SEALING)
            rc = recover_unsealed_stream(s, cut_bytes, &is_worse, err);
        if (!is_worse)
            continue;
        is_told = false;
        tp_life_worsen(t, s);
    }
    tp_settle_later(t);
    return rc == TP_OK && !is_told ? tp_persist_trace(t->engine, t, now, err) : rc;
}

/* Whether the sealed blob and the index have the size that the row says. What is new
 * about it goes into the row, so that it stays said when only some of it comes back. */
static bool note_lost_seal(struct tp_stream *s)
{
    unsigned long long found = s->found_bytes, due = s->counts.bytes;
    char old[sizeof(s->damage)], text[80];

    if (s->state != TP_STREAM_SEALED || found == due)
        return false;
    snprintf(text, sizeof(text), "of its %llu sealed bytes, %llu are there", due,
             found);
    if (strncmp(s->damage, text, strlen(text)) == 0)
        return false;
    memcpy(old, s->damage, sizeof(old));
    snprintf(s->damage, sizeof(s->damage), "%s%s%.70s", text,
             old[0] == '\0' ? "" : "; ", old);
    return true;
}

/* The seals of a trace against their rows. A trace that has ended gets the outcome that
 * it would have now. */
static int check_seals(struct tp_trace *t, struct tp_now now, struct tp_err *err)
{
    bool has_news = false;
    int rc = TP_OK;

    for (size_t i = 0; i < t->n_streams && rc == TP_OK && !t->is_purging; i++) {
        struct tp_stream *s = t->streams[i];

        if (!note_lost_seal(s))
            continue;
        has_news = true;
        if (!tp_trace_is_active(t))
            tp_life_worsen(t, s);
        rc = tp_persist_stream(t->engine, s, err);
    }
    if (!has_news || rc != TP_OK)
        return rc;
    tp_life_touch(t);
    return tp_persist_trace(t->engine, t, now, err);
}

int tp_recovery_blobs(struct tp_engine *e, struct tp_now now,
                      struct tp_engine_recovery *found, struct tp_err *err)
{
    int rc = remove_orphans(e, &found->orphan_blobs, err);

    for (struct tp_trace *t = e->newest; t != NULL && rc == TP_OK; t = t->older) {
        if (tp_trace_is_active(t))
            rc = recover_trace(t, &found->cut_bytes, err);
        else if (t->session.state == TP_SESSION_COMPLETE)
            rc = recover_unsealed(t, now, &found->cut_bytes, err);
        if (rc == TP_OK)
            rc = check_seals(t, now, err);
    }
    return rc;
}
