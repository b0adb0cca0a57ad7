/*
 * kineto_tasks.c - what needs files: tasks out, reports in.
 */
#include <stdio.h>

#include "engine/kineto_model.h"
#include "engine/life.h"
#include "engine/objects.h"

static bool describe_task(struct tp_kineto *k, struct tp_kineto_task *out)
{
    size_t cursor = 0;
    void *found;

    while (tp_strmap_next(&k->links, &cursor, NULL, &found)) {
        struct tp_kineto_link *link = found;

        if (!link->needs_describe)
            continue;
        link->needs_describe = false;
        link->is_described = true;
        *out = (struct tp_kineto_task){.kind = TP_KINETO_TASK_DESCRIBE,
                                       .target = link->seen.id,
                                       .pid = link->seen.peer.pid,
                                       .uid = link->seen.peer.uid,
                                       .gid = link->seen.peer.gid};
        return true;
    }
    return false;
}

/* What is to be done for a member itself. One whose process is not there (a restart)
 * has no user to make a folder for, and maybe a folder. Returns whether there is. */
static bool task_of(struct tp_member *m, struct tp_kineto_task *out)
{
    const struct tp_producer *p = tp_kineto_producer(m);

    if (m->kineto.needs_find) {
        m->kineto.needs_find = false;
        *out = (struct tp_kineto_task){.kind = TP_KINETO_TASK_FIND,
                                       .pid = m->who.pid > 0 ? (int32_t)m->who.pid : 0,
                                       .uid = m->uid,
                                       .has_uid = m->has_uid};
        snprintf(out->process, sizeof(out->process), "%s", m->who.process);
        return true;
    }
    if (!m->kineto.needs_task || p == NULL)
        return false;
    m->kineto.needs_task = false;
    tp_kineto_draw_key(m); /* its row is of a version without */
    *out = (struct tp_kineto_task){.kind = TP_KINETO_TASK_FOLDER,
                                   .pid = p->kineto->seen.peer.pid,
                                   .uid = p->kineto->seen.peer.uid,
                                   .gid = p->kineto->seen.peer.gid};
    return true;
}

static bool folder_task(struct tp_trace *t, struct tp_kineto_task *out)
{
    for (size_t i = 0; i < t->n_members; i++) {
        struct tp_member *m = t->members[i];

        if (!task_of(m, out))
            continue;
        memcpy(out->trace_id, t->id, sizeof(out->trace_id));
        snprintf(out->producer_id, sizeof(out->producer_id), "%s", m->who.id);
        tp_kineto_folder(m, out->folder);
        if (*t->spec.log_file != '\0') /* what is too long was refused before */
            tp_kineto_log_file_name(tp_str_of(t->spec.log_file), m->who.name,
                                    out->log_file, NULL);
        return true;
    }
    return false;
}

bool tp_engine_kineto_next_task(struct tp_engine *e, struct tp_kineto_task *out)
{
    bool has_one = false;
    struct tp_trace *t;
    size_t cursor = 0;

    if (e->kineto == NULL)
        return false;
    tp_lock_take(&e->lock);
    if (e->kineto->has_tasks) {
        has_one = describe_task(e->kineto, out);
        while (!has_one && (t = tp_trace_next_active(e, &cursor)) != NULL)
            has_one = folder_task(t, out);
        e->kineto->has_tasks = has_one;
    }
    tp_lock_give(&e->lock);
    return has_one;
}

static struct tp_member *find_member(struct tp_engine *e, const char *trace_id,
                                     const char *producer_id)
{
    struct tp_trace *t = tp_strmap_get(&e->traces, trace_id, strlen(trace_id));
    struct tp_member *m =
        t == NULL || !tp_trace_is_active(t) ? NULL : tp_member_find(t, producer_id);

    return m == NULL || m->kineto.phase == TP_KINETO_PHASE_NONE ||
                   m->kineto.phase == TP_KINETO_PHASE_SETTLED
               ? NULL
               : m;
}

static void take_report(struct tp_member *m, enum tp_kineto_event event,
                        const char *text, struct tp_now now)
{
    struct tp_kineto_part *part = &m->kineto;

    switch (event) {
    case TP_KINETO_FOLDER_READY:
        part->needs_task = false;
        if (part->phase == TP_KINETO_PHASE_FOLDER) {
            part->phase = TP_KINETO_PHASE_READY;
            tp_kineto_arm(m, now);
        }
        break;
    case TP_KINETO_FOLDER_FAILED:
        tp_kineto_settle(m, TP_MEMBER_REFUSED, text);
        break;
    case TP_KINETO_FILE_BEGUN:
        part->has_begun_file = true;
        tp_kineto_taken(m);
        break;
    case TP_KINETO_FILE_FOUND:
        part->has_file = true;
        tp_kineto_through(m, now);
        tp_kineto_taken(m);
        break;
    case TP_KINETO_FILE_WAITS:
        snprintf(m->reason, sizeof(m->reason), "collecting: %s", text);
        tp_member_changed(m);
        tp_life_touch(m->trace);
        break;
    case TP_KINETO_FILE_TAKEN:
        tp_kineto_settle(m, TP_MEMBER_DONE, text == NULL ? "" : text);
        break;
    case TP_KINETO_FILE_REFUSED:
        tp_kineto_settle(m, TP_MEMBER_LOST, text);
        break;
    case TP_KINETO_PROCESS_ENDED:
        if (!part->has_file)
            tp_kineto_settle(m, TP_MEMBER_LOST, "process ended");
        break;
    default:
        break;
    }
}

void tp_engine_kineto_report(struct tp_engine *e, const char *trace_id,
                             const char *producer_id, enum tp_kineto_event event,
                             const char *text, struct tp_now now)
{
    struct tp_member *m;

    tp_lock_take(&e->lock);
    m = find_member(e, trace_id, producer_id);
    if (m != NULL) {
        take_report(m, event, text, now);
        m->trace->has_kineto_news = true;
        tp_kineto_follow(m->trace, now);
    }
    tp_lock_give(&e->lock);
}

void tp_engine_kineto_set_sockets(struct tp_engine *e, const char *why)
{
    if (e->kineto == NULL)
        return;
    tp_lock_take(&e->kineto->lock);
    snprintf(e->kineto->no_sockets, sizeof(e->kineto->no_sockets), "%s", why);
    tp_lock_give(&e->kineto->lock);
}

bool tp_engine_kineto_sockets(struct tp_engine *e, char *why, size_t size)
{
    snprintf(why, size, "%s", "");
    if (e->kineto == NULL)
        return false;
    tp_lock_take(&e->kineto->lock);
    snprintf(why, size, "%s", e->kineto->no_sockets);
    tp_lock_give(&e->kineto->lock);
    return true;
}

void tp_engine_kineto_set_files(struct tp_engine *e, const char *why)
{
    if (e->kineto == NULL)
        return;
    tp_lock_take(&e->lock);
    snprintf(e->kineto->no_files, sizeof(e->kineto->no_files), "%s", why);
    tp_lock_give(&e->lock);
}

bool tp_engine_kineto_files(struct tp_engine *e, char *why, size_t size)
{
    snprintf(why, size, "%s", "");
    if (e->kineto == NULL)
        return false;
    tp_lock_take(&e->lock);
    snprintf(why, size, "%s", e->kineto->no_files);
    tp_lock_give(&e->lock);
    return true;
}

bool tp_engine_kineto_takes_files(struct tp_engine *e, const char *trace_id)
{
    const struct tp_trace *t;
    bool takes;

    tp_lock_take(&e->lock);
    t = tp_strmap_get(&e->traces, trace_id, strlen(trace_id));
    takes = t != NULL && tp_trace_is_active(t) &&
            t->session.state != TP_SESSION_PREPARED;
    tp_lock_give(&e->lock);
    return takes;
}

bool tp_engine_kineto_is_wanted(struct tp_engine *e, const char *trace_id,
                                const char *producer_id)
{
    bool is_wanted;

    tp_lock_take(&e->lock);
    is_wanted = find_member(e, trace_id, producer_id) != NULL;
    tp_lock_give(&e->lock);
    return is_wanted;
}

bool tp_engine_kineto_wants_folder(struct tp_engine *e, const char *name)
{
    char trace_id[TP_TRACE_ID_BYTES] = "", producer_id[TP_TRACE_ID_BYTES] = "";
    size_t n = TP_TRACE_ID_BYTES - 1, len = strlen(name);
    const struct tp_member *m;
    char folder[256] = "";

    if (len < 2 * n + 1 || name[n] != '-' ||
        (len > 2 * n + 1 && name[2 * n + 1] != '-'))
        return true;
    memcpy(trace_id, name, n);
    memcpy(producer_id, name + n + 1, n);
    tp_lock_take(&e->lock);
    m = find_member(e, trace_id, producer_id);
    if (m != NULL)
        tp_kineto_folder(m, folder);
    tp_lock_give(&e->lock);
    return strcmp(folder, name) == 0;
}
