/*
 * test_compress.c - streams as gzip and zstd, unpacked again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "support/fault.h"
#include "trace/compress.h"

#define TEXT_BYTES 1000000

/* Text with repetitions and without. */
static char *new_text(void)
{
    char *p = malloc(TEXT_BYTES);
    uint32_t x = 1;

    assert_non_null(p);
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = i % 4096 < 2048 ? (char)(x >> 24) : "\"name\":\"aten::mul\","[i % 19];
    }
    return p;
}

static int compress_all(enum tp_compression kind, const char *p, size_t n, size_t step,
                        struct tp_buf *out, struct tp_err *err)
{
    struct tp_compressor *c = NULL;
    int rc = tp_compressor_new(kind, &c, err);

    for (size_t i = 0; rc == TP_OK && i < n; i += step)
        rc = tp_compressor_add(c, p + i, n - i < step ? n - i : step, out, err);
    if (rc == TP_OK)
        rc = tp_compressor_finish(c, out, err);
    tp_compressor_free(c);
    return rc;
}

/* Unpack into want_n bytes; the whole of b must be one stream. */
static void check_unpacks(enum tp_compression kind, const struct tp_buf *b,
                          const char *want, size_t want_n)
{
    char *got = malloc(want_n + 1);

    assert_non_null(got);
    if (kind == TP_COMPRESS_GZIP) {
        struct inflate_state z;

        isal_inflate_init(&z);
        z.crc_flag = ISAL_GZIP;
        z.next_in = (uint8_t *)b->data;
        z.avail_in = (uint32_t)b->len;
        z.next_out = (uint8_t *)got;
        z.avail_out = (uint32_t)want_n + 1;
        assert_int_equal(isal_inflate(&z), ISAL_DECOMP_OK);
        assert_int_equal(z.block_state, ISAL_BLOCK_FINISH);
        assert_int_equal(z.avail_in, 0);
        assert_int_equal(z.total_out, want_n);
    } else if (kind == TP_COMPRESS_ZSTD) {
        assert_int_equal(ZSTD_decompress(got, want_n + 1, b->data, b->len), want_n);
    } else {
        assert_int_equal(b->len, want_n);
        if (want_n > 0)
            memcpy(got, b->data, want_n);
    }
    assert_memory_equal(got, want, want_n);
    free(got);
}

static void test_what_goes_in_comes_out_of_other_unpackers(void **state)
{
    static const size_t steps[] = {1000, 262144, TEXT_BYTES};
    char *text = new_text();

    (void)state;
    for (int kind = 0; kind < TP_COMPRESSIONS; kind++)
        for (size_t i = 0; i < 3; i++) {
            struct tp_buf out = {0};
            struct tp_err err;

            assert_int_equal(compress_all(kind, text, TEXT_BYTES, steps[i], &out, &err),
                             TP_OK);
            check_unpacks(kind, &out, text, TEXT_BYTES);
            if (kind != TP_COMPRESS_IDENTITY)
                assert_true(out.len < TEXT_BYTES * 6 / 10);
            tp_buf_fini(&out);
        }
    free(text);
}

static void test_nothing_is_a_valid_stream(void **state)
{
    (void)state;
    for (int kind = 0; kind < TP_COMPRESSIONS; kind++) {
        struct tp_buf out = {0};
        struct tp_err err;

        assert_int_equal(compress_all(kind, "", 0, 1, &out, &err), TP_OK);
        check_unpacks(kind, &out, "", 0);
        tp_buf_fini(&out);
    }
}

/* Drain the output in two different ways: what was packed may not depend on it. */
static void test_the_same_calls_give_the_same_bytes(void **state)
{
    char *text = new_text();

    (void)state;
    for (int kind = 0; kind < TP_COMPRESSIONS; kind++) {
        struct tp_buf whole = {0};
        struct tp_buf drained = {0};
        struct tp_buf out = {0};
        struct tp_compressor *c;
        struct tp_err err;

        assert_int_equal(compress_all(kind, text, TEXT_BYTES, 100000, &whole, &err),
                         TP_OK);
        assert_int_equal(tp_compressor_new(kind, &c, &err), TP_OK);
        for (size_t i = 0; i < TEXT_BYTES; i += 100000) {
            assert_int_equal(tp_compressor_add(c, text + i, 100000, &out, &err), TP_OK);
            assert_int_equal(tp_buf_append(&drained, out.data, out.len, &err), TP_OK);
            tp_buf_fini(&out);
        }
        assert_int_equal(tp_compressor_finish(c, &out, &err), TP_OK);
        assert_int_equal(tp_buf_append(&drained, out.data, out.len, &err), TP_OK);
        tp_compressor_free(c);
        assert_int_equal(whole.len, drained.len);
        assert_memory_equal(whole.data, drained.data, whole.len);
        tp_buf_fini(&whole);
        tp_buf_fini(&drained);
        tp_buf_fini(&out);
    }
    free(text);
}

static void test_each_allocation_fails_cleanly(void **state)
{
    char *text = new_text();

    (void)state;
    for (int kind = 0; kind < TP_COMPRESSIONS; kind++)
        for (int n = 0;; n++) {
            struct tp_buf out = {0};
            struct tp_err err;
            int rc;

            fault_arm(n);
            rc = compress_all(kind, text, TEXT_BYTES, 100000, &out, &err);
            tp_buf_fini(&out);
            if (!fault_disarm()) {
                assert_int_equal(rc, TP_OK);
                break;
            }
            assert_int_equal(rc, TP_ENOMEM);
        }
    free(text);
}

static void test_a_full_buffer_is_reported(void **state)
{
    char *text = new_text();

    (void)state;
    for (int kind = 0; kind < TP_COMPRESSIONS; kind++) {
        struct tp_buf out = {.limit_bytes = 100000};
        struct tp_err err;

        assert_int_equal(compress_all(kind, text, TEXT_BYTES, 5000, &out, &err),
                         TP_EQUOTA);
        tp_buf_fini(&out);
    }
    free(text);
}

static void test_names_are_those_of_http(void **state)
{
    (void)state;
    assert_string_equal(tp_compression_name(TP_COMPRESS_IDENTITY), "identity");
    assert_string_equal(tp_compression_name(TP_COMPRESS_GZIP), "gzip");
    assert_string_equal(tp_compression_name(TP_COMPRESS_ZSTD), "zstd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_goes_in_comes_out_of_other_unpackers),
        cmocka_unit_test(test_nothing_is_a_valid_stream),
        cmocka_unit_test(test_the_same_calls_give_the_same_bytes),
        cmocka_unit_test(test_each_allocation_fails_cleanly),
        cmocka_unit_test(test_a_full_buffer_is_reported),
        cmocka_unit_test(test_names_are_those_of_http),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
