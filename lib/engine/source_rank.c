#include "engine/source_rank.h"

#include <stdint.h>

#include "base/json_members.h"
#include "engine/identity.h"
#include "trace/stream_index.h"

static bool read_number(struct tp_str json, const char *key, int64_t *out)
{
    struct tp_str value;

    return tp_json_members_find(json, key, &value) && tp_json_members_int(value, out) &&
           *out >= 0 && *out <= INT32_MAX;
}

void tp_source_identity(const struct tp_stream_index *ix, struct tp_identity *who)
{
    for (size_t i = 0; i < ix->n_members; i++) {
        int64_t rank, world_size;

        if (!tp_str_is(ix->members[i].key, "distributedInfo"))
            continue;
        if (who->rank < 0 && read_number(ix->members[i].json, "rank", &rank))
            who->rank = rank;
        if (who->world_size == 0 &&
            read_number(ix->members[i].json, "world_size", &world_size))
            who->world_size = (uint32_t)world_size;
    }
}
