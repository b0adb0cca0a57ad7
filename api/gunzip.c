/*
 * gunzip.c - isa-l in a loop over the members. The checksum at the end of each member is
 * checked by the library.
 */
#include "api/gunzip.h"

#include <isa-l/igzip_lib.h>
#include <limits.h>
#include <stdlib.h>

#define PIECE_BYTES 16384

/* One member; state->next_in moves behind it. */
static int gunzip_member(struct inflate_state *state, struct tp_buf *out,
                         struct tp_err *err)
{
    int rc;

    do {
        rc = tp_buf_reserve(out, 1, err);
        if (rc == TP_OK && out->cap - out->len < PIECE_BYTES &&
            (out->limit_bytes == 0 || out->limit_bytes - out->len >= PIECE_BYTES))
            rc = tp_buf_reserve(out, PIECE_BYTES, err);
        if (rc != TP_OK)
            return rc;
        state->next_out = (uint8_t *)out->data + out->len;
        state->avail_out = (uint32_t)(out->cap - out->len);
        if (out->limit_bytes != 0 && state->avail_out > out->limit_bytes - out->len)
            state->avail_out = (uint32_t)(out->limit_bytes - out->len);
        if (isal_inflate(state) != ISAL_DECOMP_OK)
            return tp_fail(err, TP_EINVAL, "the body is not valid gzip");
        out->len = (size_t)(state->next_out - (uint8_t *)out->data);
        if (state->block_state != ISAL_BLOCK_FINISH && state->avail_in == 0 &&
            state->avail_out > 0)
            return tp_fail(err, TP_EINVAL, "the gzip body is cut off");
    } while (state->block_state != ISAL_BLOCK_FINISH);
    return TP_OK;
}

int tp_gunzip(struct tp_str in, struct tp_buf *out, struct tp_err *err)
{
    struct inflate_state *state;
    int rc = TP_OK;

    if (in.len == 0 || in.len > INT_MAX)
        return tp_fail(err, TP_EINVAL, "the gzip body is empty or too long");
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory to inflate the body");
    isal_inflate_init(state);
    state->next_in = (uint8_t *)(uintptr_t)in.ptr;
    state->avail_in = (uint32_t)in.len;
    while (rc == TP_OK && state->avail_in > 0) {
        uint8_t *next = state->next_in;
        uint32_t avail = state->avail_in;

        isal_inflate_reset(state);
        state->next_in = next;
        state->avail_in = avail;
        state->crc_flag = ISAL_GZIP;
        rc = gunzip_member(state, out, err);
    }
    free(state);
    return rc;
}
