/*
 * Ids of traces and producers (base/ulid.h). Their text order is the order in which
 * they were made, also when the wall clock steps back: then the last id plus one is
 * taken. Those that producers ask for are of clocks of their own, and count for nothing
 * here.
 */
#include <string.h>

#include "base/ulid.h"
#include "engine/objects.h"

static void add_one(uint8_t *id)
{
    for (int i = TP_ULID_BINARY - 1; i >= 0 && ++id[i] == 0; i--)
        ;
}

void tp_new_id(struct tp_engine *e, struct tp_now now, char *out)
{
    uint8_t id[TP_ULID_BINARY];

    tp_ulid_set_ms(id, now.wall_ns / TP_NS_PER_MS);
    e->opts.random(id + TP_ULID_TIME_BYTES, sizeof(id) - TP_ULID_TIME_BYTES,
                   e->opts.random_arg);
    if (memcmp(id, e->last_id, TP_ULID_TIME_BYTES) <= 0) {
        memcpy(id, e->last_id, sizeof(id));
        add_one(id);
    }
    memcpy(e->last_id, id, sizeof(id));
    tp_ulid_write(id, out);
}

void tp_note_id(struct tp_engine *e, struct tp_str text)
{
    uint8_t id[TP_ULID_BINARY];

    if (tp_ulid_read(text, id) && memcmp(id, e->last_id, sizeof(id)) > 0)
        memcpy(e->last_id, id, sizeof(id));
}
