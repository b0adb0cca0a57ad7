/*
 * test_gunzip.c - gzip data in pieces gives the same bytes, and damage a clear answer.
 *
 * What is inflated was deflated by isa-l, by hand (a header with every optional field,
 * stored blocks), or is damaged on purpose.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "support/fault.h"
#include "trace/gunzip.h"

static int take(const char *p, size_t n, struct tp_err *err, void *arg)
{
    return tp_buf_append(arg, p, n, err);
}

/* Append `p` as one gzip member. */
static void add_member(struct tp_buf *gz, const void *p, size_t n)
{
    static uint8_t level[ISAL_DEF_LVL1_DEFAULT];
    struct isal_zstream *z = calloc(1, sizeof(*z));

    assert_non_null(z);
    assert_int_equal(tp_buf_reserve(gz, n + n / 8 + 1024, NULL), TP_OK);
    isal_deflate_init(z);
    z->gzip_flag = IGZIP_GZIP;
    z->level = 1;
    z->level_buf = level;
    z->level_buf_size = sizeof(level);
    z->end_of_stream = 1;
    z->next_in = (uint8_t *)(uintptr_t)p;
    z->avail_in = (uint32_t)n;
    z->next_out = (uint8_t *)gz->data + gz->len;
    z->avail_out = (uint32_t)(gz->cap - gz->len);
    assert_int_equal(isal_deflate(z), COMP_OK);
    assert_int_equal(z->avail_in, 0);
    gz->len += z->total_out;
    free(z);
}

/* Text that is neither constant nor random, as traces are. */
static void fill_text(struct tp_buf *b, size_t n_lines)
{
    unsigned x = 1;

    for (size_t i = 0; i < n_lines; i++) {
        x = x * 1103515245U + 12345U;
        assert_int_equal(tp_buf_printf(b, NULL, "{\"ts\":%u,\"dur\":%zu}\n", x, i),
                         TP_OK);
    }
}

struct reading {
    int rc;
    struct tp_err err;
    struct tp_buf out;
};

static struct reading read_pieces(struct tp_gunzip_opts opts, const char *p, size_t n,
                                  size_t piece)
{
    struct reading r = {0};
    struct tp_gunzip *g;

    opts.on_bytes = take;
    opts.arg = &r.out;
    assert_int_equal(tp_gunzip_new(&opts, &g, NULL), TP_OK);
    for (size_t i = 0; i < n && r.rc == TP_OK; i += piece) {
        const size_t len = piece < n - i ? piece : n - i;
        char *copy = malloc(len);

        assert_non_null(copy);
        memcpy(copy, p + i, len);
        r.rc = tp_gunzip_feed(g, copy, len, &r.err);
        free(copy);
    }
    if (r.rc == TP_OK)
        r.rc = tp_gunzip_finish(g, &r.err);
    if (r.rc != TP_OK) {
        struct tp_err again = {0};

        assert_int_equal(tp_gunzip_feed(g, "x", 1, &again), r.rc);
        assert_int_equal(tp_gunzip_finish(g, &again), r.rc);
        assert_string_equal(again.message, r.err.message);
    }
    tp_gunzip_free(g);
    return r;
}

static const size_t pieces[] = {1, 2, 7, 18, 1000, 1 << 30};

/* The data gives these bytes, however it is cut. */
static void expect(const struct tp_buf *gz, const struct tp_buf *text)
{
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct reading r =
            read_pieces((struct tp_gunzip_opts){0}, gz->data, gz->len, pieces[i]);

        if (r.rc != TP_OK)
            fail_msg("in pieces of %zu: %s", pieces[i], r.err.message);
        assert_int_equal(r.out.len, text->len);
        if (text->len > 0)
            assert_memory_equal(r.out.data, text->data, text->len);
        tp_buf_fini(&r.out);
    }
}

/* The data is refused with this message, after n_out good bytes. */
static void refuse(const char *p, size_t n, const char *message, size_t n_out)
{
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct reading r = read_pieces((struct tp_gunzip_opts){0}, p, n, pieces[i]);

        if (r.rc != TP_EINVAL || strcmp(r.err.message, message) != 0)
            fail_msg("in pieces of %zu: %d %s\nand not: %s", pieces[i], r.rc,
                     r.err.message, message);
        assert_int_equal(r.out.len, n_out);
        tp_buf_fini(&r.out);
    }
}

static void test_one_member_comes_back(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};

    (void)state;
    fill_text(&text, 30000);
    add_member(&gz, text.data, text.len);
    assert_true(tp_gunzip_is_gzip(gz.data, gz.len));
    assert_false(tp_gunzip_is_gzip(gz.data, 1));
    assert_false(tp_gunzip_is_gzip("{}", 2));
    expect(&gz, &text);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

static void test_several_members_are_one_text(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};

    (void)state;
    fill_text(&text, 3000);
    add_member(&gz, text.data, 10000);
    add_member(&gz, "", 0);
    add_member(&gz, text.data + 10000, 1);
    add_member(&gz, text.data + 10001, text.len - 10001);
    expect(&gz, &text);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

static void test_padding_behind_the_last_member_is_fine(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};

    (void)state;
    fill_text(&text, 10);
    add_member(&gz, text.data, text.len);
    assert_int_equal(tp_buf_append(&gz, "\0\0\0\0\0", 5, NULL), TP_OK);
    expect(&gz, &text);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

/* "hi" as a stored block, behind a header with extra field, name, comment and CRC. */
static void add_full_header(struct tp_buf *gz)
{
    static const unsigned char head[] = {0x1f, 0x8b, 8,   0x1f, 1,   2,   3,   4,   0,
                                         3,    5,    0,   'A',  'B', 1,   0,   'x', 'n',
                                         'a',  'm',  'e', 0,    'c', 'o', 'm', 0};
    static const unsigned char tail[] = {1,    2,    0,    0xfd, 0xff, 'h', 'i', 0xac,
                                         0x2a, 0x93, 0xd8, 2,    0,    0,   0};
    const uint32_t crc = crc32_gzip_refl(0, head, sizeof(head));
    const unsigned char sum[] = {(unsigned char)crc, (unsigned char)(crc >> 8)};

    assert_int_equal(tp_buf_append(gz, head, sizeof(head), NULL), TP_OK);
    assert_int_equal(tp_buf_append(gz, sum, sizeof(sum), NULL), TP_OK);
    assert_int_equal(tp_buf_append(gz, tail, sizeof(tail), NULL), TP_OK);
}

static void test_all_header_fields_are_passed(void **state)
{
    const struct tp_buf text = {.data = (char *)(uintptr_t) "hihi", .len = 4};
    struct tp_buf gz = {0};

    (void)state;
    add_full_header(&gz);
    add_full_header(&gz);
    expect(&gz, &text);
    tp_buf_fini(&gz);
}

static void test_what_is_no_gzip_data_is_refused(void **state)
{
    (void)state;
    refuse("", 0, "the gzip data is empty", 0);
    refuse("{\"a\":1}", 7, "byte 0: not gzip data", 0);
    refuse("\0\0", 2, "byte 0: not gzip data", 0);
}

static void test_trailing_garbage_is_named(void **state)
{
    struct tp_buf gz = {0};

    (void)state;
    add_full_header(&gz);
    assert_int_equal(tp_buf_append(&gz, "junk", 4, NULL), TP_OK);
    refuse(
        gz.data, gz.len,
        "byte 43 of the gzip data: behind member 1 is something that is not gzip data",
        2);
    gz.len -= 4;
    assert_int_equal(tp_buf_append(&gz, "\0\0x", 3, NULL), TP_OK);
    refuse(gz.data, gz.len,
           "byte 45 of the gzip data: behind the padding is something else", 2);
    tp_buf_fini(&gz);
}

static void test_each_truncation_is_named_with_its_offset(void **state)
{
    struct tp_buf gz = {0};

    (void)state;
    add_full_header(&gz);
    for (size_t n = 1; n < gz.len; n++)
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
            struct reading r =
                read_pieces((struct tp_gunzip_opts){0}, gz.data, n, pieces[i]);
            char message[100];

            snprintf(message, sizeof(message),
                     "byte %zu of the gzip data: it ends inside member 1", n);
            assert_int_equal(r.rc, TP_EINVAL);
            assert_string_equal(r.err.message, message);
            tp_buf_fini(&r.out);
        }
    tp_buf_fini(&gz);
}

static void test_truncated_data_gives_what_there_is(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};
    struct reading r;

    (void)state;
    fill_text(&text, 100000);
    add_member(&gz, text.data, text.len);
    r = read_pieces((struct tp_gunzip_opts){0}, gz.data, gz.len / 2, 4096);
    assert_int_equal(r.rc, TP_EINVAL);
    assert_true(r.out.len > text.len / 3);
    assert_memory_equal(r.out.data, text.data, r.out.len);
    tp_buf_fini(&r.out);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

static void test_checksum_and_length_are_checked(void **state)
{
    static const char message[] =
        "byte 43 of the gzip data (member 1): the checksum or "
        "length of the data is wrong";
    struct tp_buf gz = {0};

    (void)state;
    add_full_header(&gz);
    for (size_t back = 1; back <= 8; back++) {
        gz.data[gz.len - back] ^= 1;
        refuse(gz.data, gz.len, message, 2);
        gz.data[gz.len - back] ^= 1;
    }
    tp_buf_fini(&gz);
}

static void test_damaged_data_is_refused(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};
    unsigned n_refused = 0;

    (void)state;
    fill_text(&text, 200);
    add_member(&gz, text.data, text.len);
    for (size_t at = 10; at < gz.len; at++) {
        struct reading r;

        gz.data[at] ^= 0x10;
        r = read_pieces((struct tp_gunzip_opts){0}, gz.data, gz.len, 100);
        n_refused += r.rc == TP_EINVAL;
        tp_buf_fini(&r.out);
        gz.data[at] ^= 0x10;
    }
    assert_int_equal(n_refused, gz.len - 10);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

static void test_output_over_the_limit_is_refused(void **state)
{
    struct tp_buf text = {0};
    struct tp_buf gz = {0};
    struct reading r;

    (void)state;
    fill_text(&text, 1000);
    add_member(&gz, text.data, text.len);
    r = read_pieces((struct tp_gunzip_opts){.out_bytes = text.len}, gz.data, gz.len,
                    99);
    assert_int_equal(r.rc, TP_OK);
    tp_buf_fini(&r.out);
    r = read_pieces((struct tp_gunzip_opts){.out_bytes = text.len - 1}, gz.data, gz.len,
                    99);
    assert_int_equal(r.rc, TP_EQUOTA);
    assert_true(r.out.len < text.len);
    assert_non_null(strstr(r.err.message, "more than the limit of"));
    tp_buf_fini(&r.out);
    tp_buf_fini(&text);
    tp_buf_fini(&gz);
}

static void test_bombs_are_refused_early(void **state)
{
    const size_t n = 64U << 20;
    char *zeros = calloc(1, n);
    struct tp_buf gz = {0};
    struct reading r;

    (void)state;
    assert_non_null(zeros);
    add_member(&gz, zeros, n);
    free(zeros);
    r = read_pieces((struct tp_gunzip_opts){.ratio = 100,
                                            .ratio_exempt_bytes = 1 << 20},
                    gz.data, gz.len, 4096);
    assert_int_equal(r.rc, TP_EQUOTA);
    assert_non_null(strstr(r.err.message, "more than 100 times its size"));
    assert_true(r.out.len < (2 << 20));
    tp_buf_fini(&r.out);
    /* The same data passes where the limits say so. */
    r = read_pieces((struct tp_gunzip_opts){.ratio = 10000}, gz.data, gz.len, 4096);
    assert_int_equal(r.rc, TP_OK);
    assert_int_equal(r.out.len, n);
    tp_buf_fini(&r.out);
    tp_buf_fini(&gz);
}

static int stop(const char *p, size_t n, struct tp_err *err, void *arg)
{
    (void)p;
    (void)n;
    (void)arg;
    return tp_fail(err, TP_EIO, "the disk is full");
}

static void test_the_callback_stops_the_reader(void **state)
{
    struct tp_buf gz = {0};
    struct tp_gunzip *g;
    struct tp_err err;

    (void)state;
    add_full_header(&gz);
    assert_int_equal(
        tp_gunzip_new(&(struct tp_gunzip_opts){.on_bytes = stop}, &g, &err), TP_OK);
    assert_int_equal(tp_gunzip_feed(g, gz.data, gz.len, &err), TP_EIO);
    assert_string_equal(err.message, "the disk is full");
    assert_int_equal(tp_gunzip_finish(g, NULL), TP_EIO);
    tp_gunzip_free(g);
    tp_buf_fini(&gz);
}

static void test_counts_are_those_of_both_sides(void **state)
{
    struct tp_buf gz = {0};
    struct tp_buf out = {0};
    struct tp_gunzip *g;
    uint64_t in_bytes;
    uint64_t out_bytes;

    (void)state;
    add_full_header(&gz);
    assert_int_equal(tp_gunzip_new(&(struct tp_gunzip_opts){.on_bytes = take,
                                                            .arg = &out},
                                   &g, NULL),
                     TP_OK);
    assert_int_equal(tp_gunzip_feed(g, gz.data, gz.len, NULL), TP_OK);
    tp_gunzip_counts(g, &in_bytes, &out_bytes);
    assert_int_equal(in_bytes, gz.len);
    assert_int_equal(out_bytes, 2);
    tp_gunzip_counts(g, NULL, NULL);
    tp_gunzip_free(g);
    tp_buf_fini(&gz);
    tp_buf_fini(&out);
}

static void test_new_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_gunzip *g = NULL;
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_gunzip_new(&(struct tp_gunzip_opts){.on_bytes = take}, &g, &err);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_gunzip_free(g);
            assert_int_equal(n, 1);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(g);
        tp_gunzip_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_member_comes_back),
        cmocka_unit_test(test_several_members_are_one_text),
        cmocka_unit_test(test_padding_behind_the_last_member_is_fine),
        cmocka_unit_test(test_all_header_fields_are_passed),
        cmocka_unit_test(test_what_is_no_gzip_data_is_refused),
        cmocka_unit_test(test_trailing_garbage_is_named),
        cmocka_unit_test(test_each_truncation_is_named_with_its_offset),
        cmocka_unit_test(test_truncated_data_gives_what_there_is),
        cmocka_unit_test(test_checksum_and_length_are_checked),
        cmocka_unit_test(test_damaged_data_is_refused),
        cmocka_unit_test(test_output_over_the_limit_is_refused),
        cmocka_unit_test(test_bombs_are_refused_early),
        cmocka_unit_test(test_the_callback_stops_the_reader),
        cmocka_unit_test(test_counts_are_those_of_both_sides),
        cmocka_unit_test(test_new_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
