#include "base/ulid.h"

#include <string.h>

#define DIGITS (TP_ULID_BYTES - 1)

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void tp_ulid_set_ms(uint8_t *id, uint64_t ms)
{
    for (int i = 0; i < TP_ULID_TIME_BYTES; i++)
        id[i] = (uint8_t)(ms >> (40 - 8 * i));
}

/* 128 bits as 26 digits: the first one has only 3 bits. */
void tp_ulid_write(const uint8_t *id, char *out)
{
    unsigned bits = 0, n = 2; /* two bits of zero in front make 130 */
    size_t at = 0;

    for (int i = 0; i < TP_ULID_BINARY; i++) {
        bits = (bits << 8 | id[i]) & 0x1fff;
        n += 8;
        while (n >= 5) {
            out[at++] = digits[bits >> (n - 5) & 31];
            n -= 5;
        }
    }
    out[at] = '\0';
}

bool tp_ulid_read(struct tp_str text, uint8_t *id)
{
    uint8_t read[TP_ULID_BINARY];
    unsigned bits = 0, n = 0;
    size_t at = 0;

    if (text.len != DIGITS || text.ptr[0] > '7')
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        const char *d = text.ptr[i] == '\0' ? NULL : strchr(digits, text.ptr[i]);

        if (d == NULL)
            return false;
        bits = (bits << 5 | (unsigned)(d - digits)) & 0x1fff;
        n += i == 0 ? 3 : 5;
        if (n >= 8) {
            read[at++] = (uint8_t)(bits >> (n - 8));
            n -= 8;
        }
    }
    memcpy(id, read, sizeof(read));
    return true;
}
