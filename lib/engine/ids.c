/*
 * Ids: 48 bits of milliseconds and 80 random bits as 26 letters and digits of
 * Crockford's base 32, in lower case (the ULID form). Text order is the order of
 * creation, also when the wall clock steps back: then the last id plus one is taken.
 */
#include "engine/objects.h"

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

static void add_one(uint8_t *id)
{
    for (int i = 15; i >= 0 && ++id[i] == 0; i--)
        ;
}

/* 128 bits as 26 digits: the first one has only 3 bits. */
static void write_digits(const uint8_t *id, char *out)
{
    unsigned bits = 0, n = 2; /* two bits of zero in front make 130 */
    size_t at = 0;

    for (int i = 0; i < 16; i++) {
        bits = (bits << 8 | id[i]) & 0x1fff;
        n += 8;
        while (n >= 5) {
            out[at++] = digits[bits >> (n - 5) & 31];
            n -= 5;
        }
    }
    out[at] = '\0';
}

void tp_new_id(struct tp_engine *e, struct tp_now now, char *out)
{
    uint64_t ms = now.wall_ns / 1000000;
    uint8_t id[16];

    for (int i = 0; i < 6; i++)
        id[i] = (uint8_t)(ms >> (40 - 8 * i));
    e->opts.random(id + 6, 10, e->opts.random_arg);
    if (memcmp(id, e->last_id, 6) <= 0) {
        memcpy(id, e->last_id, sizeof(id));
        add_one(id);
    }
    memcpy(e->last_id, id, sizeof(id));
    write_digits(id, out);
}

void tp_note_id(struct tp_engine *e, struct tp_str text)
{
    uint8_t id[16] = {0};
    unsigned bits = 0, n = 0;
    size_t at = 0;

    if (text.len != TP_TRACE_ID_BYTES - 1)
        return;
    for (size_t i = 0; i < text.len; i++) {
        const char *d = text.ptr[i] == '\0' ? NULL : strchr(digits, text.ptr[i]);

        if (d == NULL)
            return;
        bits = (bits << 5 | (unsigned)(d - digits)) & 0x1fff;
        n += i == 0 ? 3 : 5;
        if (n >= 8 && at < sizeof(id)) {
            id[at++] = (uint8_t)(bits >> (n - 8));
            n -= 8;
        }
    }
    if (memcmp(id, e->last_id, sizeof(id)) > 0)
        memcpy(e->last_id, id, sizeof(id));
}
