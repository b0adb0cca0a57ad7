/*
 * test_pb_read.c - what was written comes back; any other bytes are refused safely.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

static void test_varints_come_back_with_and_without_room_behind(void **state)
{
    uint64_t values[256];
    size_t n_values = border_values(values);

    (void)state;
    for (size_t i = 0; i < n_values; i++) {
        char bytes[32] = {0};
        size_t n = (size_t)(tp_pb_put_varint(bytes, values[i]) - bytes);

        for (size_t room = n; room <= n + TP_PB_VARINT_MAX; room++) {
            /* A heap copy of the exact size lets ASan see a read too far. */
            char *copy = malloc(room);
            struct tp_pb c = {copy, copy + room};
            uint64_t v = 0;

            assert_non_null(copy);
            memcpy(copy, bytes, room);
            if (!tp_pb_get_varint(&c, &v) || v != values[i] || c.p != copy + n)
                fail_msg("value %#llx with %zu bytes is read wrong",
                         (unsigned long long)values[i], room);
            free(copy);
        }
    }
}

static void test_a_varint_that_does_not_end_is_refused_and_the_cursor_stays(
    void **state)
{
    char bytes[16];

    (void)state;
    memset(bytes, 0xff, sizeof(bytes));
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        struct tp_pb c = {bytes, bytes + n};
        uint64_t v = 7;

        if (tp_pb_get_varint(&c, &v) || c.p != bytes || v != 7)
            fail_msg("%zu bytes are taken for a varint", n);
    }
}

static void test_padded_varints_are_read(void **state)
{
    static const char padded[] = "\x85\x80\x80\x00tail-tail-tail";
    struct tp_pb c = {padded, padded + sizeof(padded)};
    uint64_t v = 0;

    (void)state;
    assert_true(tp_pb_get_varint(&c, &v));
    assert_int_equal(v, 5);
    assert_ptr_equal(c.p, padded + 4);
}

static void test_each_kind_of_field_comes_back(void **state)
{
    char bytes[128];
    char *p = bytes;
    struct tp_pb c;
    struct tp_pb_field f;

    (void)state;
    p = tp_pb_put_u64(p, 9900, 300);
    p = tp_pb_put_bytes(p, 4, "abc", 3);
    p = tp_pb_put_bytes(p, 5, NULL, 0);
    p = tp_pb_put_double(p, 44, -2.5);
    p = tp_pb_put_fixed32(p, (1u << 29) - 1, 0xdeadbeef);
    c = (struct tp_pb){bytes, p};

    assert_true(tp_pb_get_field(&c, &f));
    assert_int_equal(f.number, 9900);
    assert_int_equal(f.value, 300);
    assert_true(tp_pb_get_field(&c, &f));
    assert_int_equal(f.number, 4);
    assert_int_equal(f.value, 3);
    assert_memory_equal(f.bytes, "abc", 3);
    assert_true(tp_pb_get_field(&c, &f));
    assert_int_equal(f.value, 0);
    assert_true(tp_pb_get_field(&c, &f));
    assert_int_equal(f.wire, TP_PB_FIXED64);
    assert_true(tp_pb_double(f.value) == -2.5);
    assert_true(tp_pb_get_field(&c, &f));
    assert_int_equal(f.number, (1u << 29) - 1);
    assert_int_equal(f.value, 0xdeadbeef);
    assert_ptr_equal(c.p, p);
    assert_false(tp_pb_get_field(&c, &f));
}

static void test_damaged_fields_are_refused_and_the_cursor_stays(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
    } cases[] = {
        {"nothing", "", 0},
        {"field number 0", "\x00\x01", 2},
        {"a group", "\x0b\x01", 2},
        {"the end of a group", "\x0c", 1},
        {"wire type 6", "\x0e\x01", 2},
        {"wire type 7", "\x0f\x01", 2},
        {"a tag without a value", "\x08", 1},
        {"fixed64 of 7 bytes",
         "\x09"
         "1234567",
         8},
        {"fixed32 of 3 bytes",
         "\x0d"
         "123",
         4},
        {"bytes longer than the input",
         "\x0a\x05"
         "1234",
         6},
        {"bytes of length 2^64-1", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
        {"a tag over 32 bits", "\xf8\xff\xff\xff\x7f\x01", 6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tp_pb c = {cases[i].bytes, cases[i].bytes + cases[i].n};
        struct tp_pb_field f;

        if (tp_pb_get_field(&c, &f) || c.p != cases[i].bytes)
            fail_msg("%s is taken for a field", cases[i].what);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints_come_back_with_and_without_room_behind),
        cmocka_unit_test(
            test_a_varint_that_does_not_end_is_refused_and_the_cursor_stays),
        cmocka_unit_test(test_padded_varints_are_read),
        cmocka_unit_test(test_each_kind_of_field_comes_back),
        cmocka_unit_test(test_damaged_fields_are_refused_and_the_cursor_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
