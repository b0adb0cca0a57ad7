/*
 * test_ulid.c - ids in the ULID form, against the example of its specification.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/ulid.h"

/* 2016-07-30T22:36:16.385Z in the specification's README. */
#define EXAMPLE_MS UINT64_C(1469918176385)
#define EXAMPLE_TIME "01aryz6s41"

static void test_time_is_in_front(void **state)
{
    uint8_t id[TP_ULID_BINARY] = {0};
    char text[TP_ULID_BYTES];

    (void)state;
    tp_ulid_set_ms(id, EXAMPLE_MS);
    tp_ulid_write(id, text);
    assert_string_equal(text, EXAMPLE_TIME "0000000000000000");
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    for (unsigned step = 1; step < 256; step++) {
        uint8_t id[TP_ULID_BINARY], read[TP_ULID_BINARY];
        char text[TP_ULID_BYTES];

        for (unsigned i = 0; i < TP_ULID_BINARY; i++)
            id[i] = (uint8_t)(step * (i + 1));
        tp_ulid_write(id, text);
        assert_int_equal(strlen(text), TP_ULID_BYTES - 1);
        assert_true(tp_ulid_read(tp_str_of(text), read));
        assert_memory_equal(id, read, sizeof(id));
    }
}

static void test_what_is_no_id_is_not_read(void **state)
{
    static const char *const texts[] = {"",
                                        EXAMPLE_TIME,
                                        EXAMPLE_TIME "000000000000000",
                                        EXAMPLE_TIME "00000000000000000",
                                        "81aryz6s410000000000000000",
                                        EXAMPLE_TIME "000000000000000u",
                                        EXAMPLE_TIME "000000000000000i",
                                        EXAMPLE_TIME "000000000000000A",
                                        EXAMPLE_TIME "000000000000000/"};
    static const char nul[TP_ULID_BYTES] = EXAMPLE_TIME "000000000000000";
    uint8_t id[TP_ULID_BINARY] = {1};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (tp_ulid_read(tp_str_of(texts[i]), id))
            fail_msg("'%s' was read", texts[i]);
    assert_false(tp_ulid_read((struct tp_str){nul, TP_ULID_BYTES - 1}, id));
    assert_int_equal(id[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_in_front),
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_what_is_no_id_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
