/*
 * merge_join.c - a map from the number of a process to who owns its pid.
 */
#include "trace/merge_join.h"

#include "base/strmap.h"
#include "trace/merge.h"
#include "trace/stream_index.h"
#include "trace/trace_info.h"

/* The place of the process of a stream that others may share; SIZE_MAX = none. */
static size_t shared_process(const struct tp_merge *m, size_t stream)
{
    const struct tp_producer_info *p = m->streams[stream].producer;
    const struct tp_id pid = {.kind = TP_ID_NUMBER, .number = p->process_pid};
    const struct tp_merge_process *found;

    if (p->process_no == 0 || p->process_pid <= 0)
        return SIZE_MAX;
    found = tp_merge_process(m, stream, &pid);
    return found == NULL ? SIZE_MAX : (size_t)(found - m->processes);
}

/* Let the streams of Kineto, or the others, own or share. */
static int join_streams(struct tp_merge *m, bool is_kineto, struct tp_strmap *owners,
                        struct tp_err *err)
{
    int rc = TP_OK;

    for (size_t i = 0; rc == TP_OK && i < m->n_streams; i++) {
        const struct tp_producer_info *p = m->streams[i].producer;
        const char *key = (const char *)&p->process_no;
        size_t process = shared_process(m, i);
        uint64_t owner;

        if (process == SIZE_MAX || tp_str_is(p->kind, "kineto") != is_kineto)
            continue;
        if (tp_strmap_get_u64(owners, key, sizeof(p->process_no), &owner))
            m->processes[process].owner = (size_t)owner;
        else
            rc = tp_strmap_put_u64(owners, key, sizeof(p->process_no), process, err);
    }
    return rc;
}

int tp_merge_join(struct tp_merge *m, struct tp_err *err)
{
    struct tp_strmap owners = {0};
    int rc;

    for (size_t i = 0; i < m->n_processes; i++)
        m->processes[i].owner = i;
    if (!m->is_merged)
        return TP_OK;
    rc = join_streams(m, true, &owners, err);
    if (rc == TP_OK)
        rc = join_streams(m, false, &owners, err);
    tp_strmap_fini(&owners);
    return rc;
}

bool tp_merge_is_joined(const struct tp_merge *m, size_t process)
{
    return m->processes[process].owner != process;
}

void tp_merge_join_names(struct tp_merge *m)
{
    for (size_t i = 0; i < m->n_processes; i++) {
        struct tp_merge_process *p = &m->processes[i];
        struct tp_merge_process *owner = &m->processes[p->owner];

        if (p == owner || owner->name != NULL)
            continue;
        owner->name = p->name; /* ownership passes */
        p->name = NULL;
    }
}

bool tp_merge_hides_meta(const struct tp_merge *m, size_t stream,
                         const struct tp_index_meta *meta)
{
    const struct tp_merge_process *p = tp_merge_process(m, stream, &meta->pid);

    return p != NULL && tp_merge_is_joined(m, (size_t)(p - m->processes)) &&
           m->processes[p->owner].has_metadata &&
           (tp_str_is(meta->name, "process_name") ||
            tp_str_is(meta->name, "process_labels") ||
            tp_str_is(meta->name, "process_sort_index"));
}

size_t tp_merge_only_source(const struct tp_merge *m)
{
    uint32_t no = m->n_streams == 0 ? 0 : m->streams[0].producer->process_no;
    size_t found = 0;

    if (m->n_streams == 1)
        return 0;
    for (size_t i = m->n_streams; i > 0; i--) {
        if (no == 0 || m->streams[i - 1].producer->process_no != no)
            return SIZE_MAX;
        if (m->streams[i - 1].index->n_members > 0)
            found = i - 1;
    }
    return m->n_streams == 0 ? SIZE_MAX : found;
}
