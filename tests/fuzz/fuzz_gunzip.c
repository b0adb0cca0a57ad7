/*
 * fuzz_gunzip.c - any bytes, cut anywhere, inflate to the same or to the same error.
 *
 * The first byte says how the data is cut; after an odd one the rest is put behind a
 * good gzip header, so that the fuzzer need not find one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "trace/gunzip.h"

struct reading {
    uint64_t hash;
    uint64_t n_bytes;
    int rc;
    struct tp_err err;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static int on_bytes(const char *p, size_t n, struct tp_err *err, void *arg)
{
    struct reading *r = arg;

    (void)err;
    require(n > 0);
    for (size_t i = 0; i < n; i++)
        r->hash = (r->hash ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
    r->n_bytes += n;
    return TP_OK;
}

static void read_pieces(const char *p, size_t n, size_t piece, struct reading *out)
{
    const struct tp_gunzip_opts opts = {
        .out_bytes = 4 << 20, .ratio = 2000, .on_bytes = on_bytes, .arg = out};
    struct tp_gunzip *g;

    memset(out, 0, sizeof(*out));
    require(tp_gunzip_new(&opts, &g, NULL) == TP_OK);
    for (size_t i = 0; i < n && out->rc == TP_OK; i += piece) {
        const size_t len = piece < n - i ? piece : n - i;
        char *copy = malloc(len);

        require(copy != NULL);
        memcpy(copy, p + i, len);
        out->rc = tp_gunzip_feed(g, copy, len, &out->err);
        free(copy);
    }
    if (out->rc == TP_OK)
        out->rc = tp_gunzip_finish(g, &out->err);
    tp_gunzip_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[10] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, 3};
    const size_t n_head = size > 0 && (data[0] & 1) != 0 ? sizeof(header) : 0;
    struct reading whole;
    struct reading cut;
    char *text;

    if (size < 1)
        return 0;
    text = malloc(n_head + size);
    require(text != NULL);
    memcpy(text, header, n_head);
    memcpy(text + n_head, data + 1, size - 1);
    size += n_head - 1;
    read_pieces(text, size, size == 0 ? 1 : size, &whole);
    read_pieces(text, size, 1 + data[0] % 64U, &cut);
    free(text);
    require(whole.rc == TP_OK || whole.rc == TP_EINVAL || whole.rc == TP_EQUOTA);
    /* Where exactly a limit or damage is met may depend on how much is at hand. */
    require((whole.rc == TP_OK) == (cut.rc == TP_OK));
    if (whole.rc == TP_OK)
        require(whole.hash == cut.hash && whole.n_bytes == cut.n_bytes);
    return 0;
}
