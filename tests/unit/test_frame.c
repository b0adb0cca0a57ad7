/*
 * test_frame.c - frame headers come back, and damage of any bit is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/pb_read.h"
#include "trace/frame.h"

static struct tp_frame sample(void)
{
    struct tp_frame f = {
        .payload_bytes = 123456789,
        .crc32c = 0xdeadbeef,
        .has_seq = true,
        .seq = UINT64_MAX,
        .has_base = true,
        .base_ns = -1795982590884123457LL,
        .counts =
            {.emitted = 10, .stored = 6, .filtered = 1, .repaired = 2, .untyped = 3},
    };

    f.counts.bytes = 1ULL << 40;
    for (int i = 0; i < TP_DROP_CAUSES; i++)
        f.counts.dropped[i] = (uint64_t)i * 1000;
    return f;
}

static void test_every_field_comes_back(void **state)
{
    struct tp_frame f = sample();
    struct tp_frame got;
    struct tp_err err;
    char bytes[TP_FRAME_BYTES];

    (void)state;
    tp_frame_encode(&f, bytes);
    assert_int_equal(tp_frame_decode(bytes, sizeof(bytes), &got, &err), TP_OK);
    assert_int_equal(got.payload_bytes, f.payload_bytes);
    assert_int_equal(got.crc32c, f.crc32c);
    assert_true(got.has_seq);
    assert_true(got.seq == UINT64_MAX);
    assert_true(got.has_base);
    assert_true(got.base_ns == f.base_ns);
    assert_memory_equal(&got.counts, &f.counts, sizeof(f.counts));
}

static void test_an_empty_frame_has_neither_seq_nor_base(void **state)
{
    struct tp_frame f = {0};
    struct tp_frame got = sample();
    struct tp_err err;
    char bytes[TP_FRAME_BYTES];

    (void)state;
    tp_frame_encode(&f, bytes);
    assert_int_equal(tp_frame_decode(bytes, sizeof(bytes), &got, &err), TP_OK);
    assert_false(got.has_seq);
    assert_false(got.has_base);
    assert_int_equal(got.payload_bytes, 0);
}

static void test_a_header_is_one_valid_packet_with_one_field(void **state)
{
    struct tp_frame f = sample();
    struct tp_frame got;
    struct tp_err err;
    char bytes[TP_FRAME_BYTES];
    struct tp_pb c = {bytes, bytes + sizeof(bytes)};
    struct tp_pb_field packet;
    struct tp_pb_field content;

    (void)state;
    tp_frame_encode(&f, bytes);
    assert_true(tp_pb_get_field(&c, &packet));
    assert_int_equal(packet.number, 1);
    assert_ptr_equal(c.p, c.end);
    c = (struct tp_pb){packet.bytes, packet.bytes + packet.value};
    assert_true(tp_pb_get_field(&c, &content));
    assert_int_equal(content.number, 9902);
    assert_ptr_equal(c.p, c.end);
    assert_int_equal(tp_frame_decode_content(
                         (struct tp_str){content.bytes, content.value}, &got, &err),
                     TP_OK);
    assert_int_equal(got.crc32c, f.crc32c);
}

static void test_damage_of_any_bit_is_seen(void **state)
{
    struct tp_frame f = sample();
    char bytes[TP_FRAME_BYTES];

    (void)state;
    tp_frame_encode(&f, bytes);
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        struct tp_frame got = {.crc32c = 7};
        struct tp_err err;

        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        if (tp_frame_decode(bytes, sizeof(bytes), &got, &err) != TP_EINVAL ||
            got.crc32c != 7)
            fail_msg("bit %zu may be flipped unseen", bit);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
}

static void test_a_short_header_is_refused(void **state)
{
    struct tp_frame f = sample();
    struct tp_frame got;
    struct tp_err err;
    char bytes[TP_FRAME_BYTES];

    (void)state;
    tp_frame_encode(&f, bytes);
    for (size_t n = 0; n < sizeof(bytes); n++)
        assert_int_equal(tp_frame_decode(bytes, n, &got, &err), TP_EINVAL);
    assert_int_equal(tp_frame_decode_content((struct tp_str){bytes, 10}, &got, &err),
                     TP_EINVAL);
}

static void test_a_payload_over_the_limit_is_refused(void **state)
{
    struct tp_frame f = {.payload_bytes = TP_FRAME_PAYLOAD_MAX + 1};
    struct tp_frame got;
    struct tp_err err;
    char bytes[TP_FRAME_BYTES];

    (void)state;
    tp_frame_encode(&f, bytes);
    assert_int_equal(tp_frame_decode(bytes, sizeof(bytes), &got, &err), TP_EINVAL);
    f.payload_bytes = TP_FRAME_PAYLOAD_MAX;
    tp_frame_encode(&f, bytes);
    assert_int_equal(tp_frame_decode(bytes, sizeof(bytes), &got, &err), TP_OK);
}

static void test_the_check_sum_is_crc32c_and_can_be_continued(void **state)
{
    (void)state;
    assert_int_equal(tp_frame_crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tp_frame_crc(tp_frame_crc(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(tp_frame_crc(0, NULL, 0), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_comes_back),
        cmocka_unit_test(test_an_empty_frame_has_neither_seq_nor_base),
        cmocka_unit_test(test_a_header_is_one_valid_packet_with_one_field),
        cmocka_unit_test(test_damage_of_any_bit_is_seen),
        cmocka_unit_test(test_a_short_header_is_refused),
        cmocka_unit_test(test_a_payload_over_the_limit_is_refused),
        cmocka_unit_test(test_the_check_sum_is_crc32c_and_can_be_continued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
