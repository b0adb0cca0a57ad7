#include "engine/identity.h"

#include <stdlib.h>

#include "base/err.h"
#include "engine/bulk.h"
#include "engine/pool.h"

static const char *put(char **p, struct tp_str s)
{
    const char *start = *p;

    if (s.len != 0)
        memcpy(*p, s.ptr, s.len);
    (*p)[s.len] = '\0';
    *p += s.len + 1;
    return start;
}

static size_t texts_bytes(const struct tp_row_identity *from)
{
    return from->producer_id.len + from->name.len + from->kind.len + from->host.len +
           from->backend.len + from->device.len + from->process.len + 7;
}

static void fill(struct tp_identity *who, const struct tp_row_identity *from, char *p)
{
    who->id = put(&p, from->producer_id);
    who->name = put(&p, from->name);
    who->kind = put(&p, from->kind);
    who->host = put(&p, from->host);
    who->backend = put(&p, from->backend);
    who->device = put(&p, from->device);
    who->process = put(&p, from->process);
    who->rank = from->rank;
    who->pid = from->pid;
    who->world_size = from->world_size;
}

int tp_identity_init(struct tp_identity *who, const struct tp_row_identity *from,
                     struct tp_err *err)
{
    char *block = malloc(texts_bytes(from));

    if (block == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a producer");
    who->block = block;
    fill(who, from, block);
    return TP_OK;
}

int tp_identity_init_in(struct tp_bulk *b, struct tp_identity *who,
                        const struct tp_row_identity *from, struct tp_err *err)
{
    char *room = tp_bulk_room(b, texts_bytes(from));

    if (room == NULL)
        return tp_identity_init(who, from, err);
    who->block = NULL;
    fill(who, from, room);
    return TP_OK;
}

void tp_identity_borrow(struct tp_identity *who, const struct tp_identity *from)
{
    *who = *from;
    who->block = NULL;
}

void tp_identity_fini(struct tp_identity *who)
{
    if (who == NULL)
        return;
    free(who->block);
    memset(who, 0, sizeof(*who));
}

bool tp_identity_is_native(const struct tp_identity *who)
{
    return strcmp(who->kind, "native") == 0;
}

bool tp_identity_is_same(const struct tp_identity *known,
                         const struct tp_row_identity *who)
{
    return known->rank == who->rank && known->pid == who->pid &&
           tp_str_is(who->host, known->host) && tp_str_is(who->name, known->name);
}

struct tp_row_identity tp_identity_row(const struct tp_identity *who)
{
    return (struct tp_row_identity){
        .producer_id = tp_str_of(who->id),
        .name = tp_str_of(who->name),
        .kind = tp_str_of(who->kind),
        .host = tp_str_of(who->host),
        .backend = tp_str_of(who->backend),
        .device = tp_str_of(who->device),
        .rank = who->rank,
        .pid = who->pid,
        .world_size = who->world_size,
        .process = tp_str_of(who->process),
    };
}

struct tp_identity_view tp_identity_view(const struct tp_identity *who,
                                         struct tp_pool *pool)
{
    return (struct tp_identity_view){
        .id = tp_pool_text(pool, who->id),
        .name = tp_pool_text(pool, who->name),
        .kind = tp_pool_text(pool, who->kind),
        .host = tp_pool_text(pool, who->host),
        .backend = tp_pool_text(pool, who->backend),
        .device = tp_pool_text(pool, who->device),
        .rank = who->rank,
        .pid = who->pid,
        .world_size = who->world_size,
        .process = tp_pool_text(pool, who->process),
        .joined_with = "",
        .join_note = "",
    };
}
