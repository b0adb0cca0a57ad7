/*
 * pb_read.c - the parts of reading the wire format that are not worth inlining.
 */
#include "base/pb_read.h"

const char *tp_pb_varint_slow(const char *p, const char *end, uint64_t *v)
{
    uint64_t x = 0;

    for (unsigned shift = 0; shift < 7 * TP_PB_VARINT_MAX && p < end; shift += 7) {
        unsigned char byte = (unsigned char)*p++;

        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *v = x;
            return p;
        }
    }
    return NULL;
}

/* Take a little-endian number of n bytes, 4 or 8. */
static bool get_fixed(struct tp_pb *c, size_t n, uint64_t *v)
{
    if ((size_t)(c->end - c->p) < n)
        return false;
    *v = 0;
    memcpy(v, c->p, n);
    c->p += n;
    return true;
}

/* Read the value that follows a tag. */
static bool get_value(struct tp_pb *c, uint32_t tag, struct tp_pb_field *f)
{
    struct tp_pb at = *c;

    f->tag = tag;
    f->number = tag >> 3;
    f->bytes = NULL;
    if (f->number == 0)
        return false;
    switch (tag & 7) {
    case TP_PB_VARINT:
        f->wire = TP_PB_VARINT;
        if (!tp_pb_get_varint(&at, &f->value))
            return false;
        break;
    case TP_PB_FIXED64:
        f->wire = TP_PB_FIXED64;
        if (!get_fixed(&at, 8, &f->value))
            return false;
        break;
    case TP_PB_FIXED32:
        f->wire = TP_PB_FIXED32;
        if (!get_fixed(&at, 4, &f->value))
            return false;
        break;
    case TP_PB_BYTES:
        f->wire = TP_PB_BYTES;
        if (!tp_pb_get_varint(&at, &f->value) || f->value > (size_t)(at.end - at.p))
            return false;
        f->bytes = at.p;
        at.p += f->value;
        break;
    default:
        return false;
    }
    *c = at;
    return true;
}

bool tp_pb_get_field(struct tp_pb *c, struct tp_pb_field *f)
{
    struct tp_pb at = *c;
    uint64_t tag;

    if (!tp_pb_get_varint(&at, &tag) || tag > UINT32_MAX)
        return false;
    if (!get_value(&at, (uint32_t)tag, f))
        return false;
    *c = at;
    return true;
}
