/*
 * fuzz_pf_reader.c - any bytes give events, TP_EAGAIN or an error, and what is an event
 * can be written and read back.
 *
 * The first byte chooses: bit 0 trusted, bit 1 small limits, bit 2 a sealed writer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "trace/pf_reader.h"
#include "trace/pf_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const struct tp_name *name, bool is_trusted)
{
    if (!is_trusted && name->ptr != NULL)
        check(tp_utf8_is_valid(name->ptr, name->len));
}

/* Touch all that an event points to. */
static void check_event(const struct tp_event *ev, bool is_trusted)
{
    check(ev->track != NULL && ev->kind < TP_EVENT_KINDS && ev->dur_ns >= 0);
    check_name(&ev->name, is_trusted);
    check_name(&ev->cat, is_trusted);
    for (uint32_t i = 0; i < ev->n_args; i++) {
        check_name(&ev->args[i].key, is_trusted);
        if (ev->args[i].kind == TP_ARG_STRING && !is_trusted)
            check(tp_utf8_is_valid(ev->args[i].s.ptr, ev->args[i].s.len));
    }
}

/* Read on behind damage: the reader says it is usable on. */
static void read_all(struct tp_pf_reader *r, struct tp_pf_writer *w, bool is_trusted,
                     const char *bytes, size_t n)
{
    struct tp_pf_cursor c = {bytes, bytes + n};
    struct tp_buf out = {.limit_bytes = 1 << 20};

    for (;;) {
        const char *before = c.ptr;
        enum tp_pf_item item;
        struct tp_event ev;
        int rc = tp_pf_reader_next(r, &c, &item, &ev, NULL);

        check(c.ptr >= before && c.ptr <= c.end);
        if (rc == TP_OK && item == TP_PF_EVENT) {
            check_event(&ev, is_trusted);
            out.len = 0;
            rc = tp_pf_writer_event(w, &ev, &out, NULL);
            check(rc == TP_OK || rc == TP_EQUOTA);
        } else if (rc == TP_EAGAIN) {
            break;
        } else if (rc == TP_EINVAL) {
            check(c.ptr == before || c.ptr < c.end);
            if (c.ptr == c.end)
                break;
            c.ptr++;
        }
    }
    tp_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_pf_reader_opts opts = {0};
    struct tp_pf_writer_opts writer_opts = {.stream_no = 1};
    struct tp_pf_reader *r;
    struct tp_pf_writer *w;

    if (size == 0)
        return 0;
    opts.is_trusted = (data[0] & 1) != 0;
    if ((data[0] & 2) != 0)
        opts = (struct tp_pf_reader_opts){.packet_bytes = 64,
                                          .intern_bytes = 4096,
                                          .tracks_max = 4,
                                          .sequences_max = 3,
                                          .is_trusted = opts.is_trusted};
    writer_opts.is_sealed = (data[0] & 4) != 0;
    check(tp_pf_reader_new(&opts, &r, NULL) == TP_OK);
    check(tp_pf_writer_new(&writer_opts, &w, NULL) == TP_OK);
    read_all(r, w, opts.is_trusted, (const char *)data + 1, size - 1);
    tp_pf_writer_free(w);
    tp_pf_reader_free(r);
    return 0;
}
