/*
 * test_pb.c - the wire format as it is written: known bytes, all lengths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pb_read.h"

/* A value of each varint length, and the borders between the lengths. */
static size_t border_values(uint64_t *out)
{
    size_t n = 0;

    out[n++] = 0;
    for (unsigned bits = 1; bits <= 64; bits++) {
        uint64_t top = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;

        out[n++] = top;
        out[n++] = top ^ (top >> 1);
        out[n++] = top & 0x5555555555555555ULL;
    }
    return n;
}

/* The encoding by the book, to compare with. */
static size_t plain_varint(unsigned char *p, uint64_t v)
{
    size_t n = 0;

    do {
        p[n] = (unsigned char)((v & 0x7f) | (v >= 0x80 ? 0x80 : 0));
        v >>= 7;
    } while (p[n++] >= 0x80);
    return n;
}

static void test_varints_have_the_bytes_of_the_standard(void **state)
{
    uint64_t values[256];
    size_t n_values = border_values(values);

    (void)state;
    for (size_t i = 0; i < n_values; i++) {
        unsigned char expected[16];
        char got[TP_PB_SLACK];
        size_t n = plain_varint(expected, values[i]);
        char *end = tp_pb_put_varint(got, values[i]);

        if ((size_t)(end - got) != n || memcmp(got, expected, n) != 0)
            fail_msg("value %#llx is written wrong", (unsigned long long)values[i]);
        assert_int_equal(tp_pb_varint_bytes(values[i]), n);
    }
}

static void test_zigzag_is_its_own_inverse_and_small_near_zero(void **state)
{
    static const int64_t values[] = {0, -1,        1,         -2,
                                     2, INT64_MAX, INT64_MIN, -12345678901};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        assert_int_equal(tp_pb_unzigzag(tp_pb_zigzag(values[i])), values[i]);
    assert_int_equal(tp_pb_zigzag(-1), 1);
    assert_int_equal(tp_pb_zigzag(1), 2);
}

static void test_lengths_fit_the_width_that_was_left_for_them(void **state)
{
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, (1u << 28) - 1};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        unsigned first = tp_pb_length_width(lengths[i]);

        for (unsigned width = first; width <= 4; width *= 2) {
            char bytes[TP_PB_SLACK] = {0};
            struct tp_pb c = {bytes, bytes + sizeof(bytes)};
            uint64_t v = 0;

            tp_pb_put_length(bytes, width, lengths[i]);
            assert_true(tp_pb_get_varint(&c, &v));
            if (v != lengths[i] || c.p != bytes + width)
                fail_msg("%zu in %u bytes is wrong", lengths[i], width);
        }
    }
    assert_int_equal(tp_pb_length_width(1u << 28), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints_have_the_bytes_of_the_standard),
        cmocka_unit_test(test_zigzag_is_its_own_inverse_and_small_near_zero),
        cmocka_unit_test(test_lengths_fit_the_width_that_was_left_for_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
