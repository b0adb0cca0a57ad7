#include "engine/source_rank.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_members.h"
#include "engine/check.h"
#include "engine/identity.h"
#include "trace/stream_index.h"

void tp_source_says_init(struct tp_source_says *says)
{
    memset(says, 0, sizeof(*says));
    says->rank = -1;
}

static bool read_number(struct tp_str json, const char *key, int64_t *out)
{
    struct tp_str value;

    return tp_json_members_find(json, key, &value) && tp_json_members_int(value, out) &&
           *out >= 0 && *out <= INT32_MAX;
}

/* Copy the text of a JSON string that would be taken from a request, too. */
static void read_text(struct tp_str json, char *out, size_t size)
{
    struct tp_buf text = {0};
    struct tp_err ignored;

    if (json.len < 2 || json.len > 4 * size || json.ptr[0] != '"')
        return;
    if (tp_json_members_text(json, &text, &ignored) == TP_OK &&
        tp_check_text("", (struct tp_str){text.data, text.len}, "", size - 1, NULL,
                      &ignored) == TP_OK) {
        if (text.len != 0)
            memcpy(out, text.data, text.len);
        out[text.len] = '\0';
    }
    tp_buf_fini(&text);
}

void tp_source_says_member(struct tp_source_says *says, struct tp_str key,
                           struct tp_str json)
{
    struct tp_str backend;
    int64_t n;

    if (tp_str_is(key, "host_name"))
        read_text(json, says->host, sizeof(says->host));
    if (!tp_str_is(key, "distributedInfo"))
        return;
    if (read_number(json, "rank", &n))
        says->rank = n;
    if (read_number(json, "world_size", &n))
        says->world_size = (uint32_t)n;
    if (tp_json_members_find(json, "backend", &backend))
        read_text(backend, says->backend, sizeof(says->backend));
}

void tp_source_says_index(struct tp_source_says *says, const struct tp_stream_index *ix)
{
    for (size_t i = 0; i < ix->n_members; i++)
        tp_source_says_member(says, ix->members[i].key, ix->members[i].json);
}

bool tp_source_disagrees(const struct tp_source_says *says,
                         const struct tp_identity *who, char *out, size_t size)
{
    if (says->rank >= 0 && who->rank >= 0 && says->rank != who->rank) {
        snprintf(out, size, "its file says rank %lld, its process was started as %lld",
                 (long long)says->rank, (long long)who->rank);
        return true;
    }
    if (says->world_size == 0 || who->world_size == 0 ||
        says->world_size == who->world_size)
        return false;
    snprintf(out, size, "its file says world size %u, its process was started with %u",
             says->world_size, who->world_size);
    return true;
}

int tp_source_fill_in(const struct tp_source_says *says, struct tp_identity *who,
                      struct tp_err *err)
{
    struct tp_row_identity row = tp_identity_row(who);
    struct tp_identity fresh = {0};
    int rc;

    if (row.rank < 0)
        row.rank = says->rank;
    if (row.world_size == 0)
        row.world_size = says->world_size;
    if (row.host.len == 0)
        row.host = tp_str_of(says->host);
    if (row.backend.len == 0)
        row.backend = tp_str_of(says->backend);
    rc = tp_identity_init(&fresh, &row, err);
    if (rc != TP_OK)
        return rc;
    tp_identity_fini(who);
    *who = fresh;
    return TP_OK;
}
