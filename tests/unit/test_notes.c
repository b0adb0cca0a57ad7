/*
 * test_notes.c - notes pass through metadata events unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "trace/notes.h"

static const struct tp_track track = {.index = 0};

static void test_a_member_keeps_its_bytes(void **state)
{
    static const char *const values[] = {"1",          "\"a]b\"", "[1, 2]",
                                         "{\"a\":[]}", "null",    " 1.50e3 "};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct tp_note note = {.kind = TP_NOTE_MEMBER,
                               .key = tp_str_of("a \"key\""),
                               .json = tp_str_of(values[i])};
        struct tp_note_event event = {0};
        struct tp_note back;
        struct tp_err err;

        assert_int_equal(tp_note_write(&note, &track, &event, &err), TP_OK);
        assert_int_equal(event.ev.kind, TP_EVENT_META);
        if (!tp_note_read(&event.ev, &back) || back.kind != TP_NOTE_MEMBER ||
            !tp_str_equal(back.json, note.json) || !tp_str_equal(back.key, note.key))
            fail_msg("%s", values[i]);
        tp_buf_fini(&event.text);
    }
}

static void test_base_and_damage_come_back(void **state)
{
    struct tp_note base = {.kind = TP_NOTE_BASE, .base_ns = INT64_MIN};
    struct tp_note damage = {.kind = TP_NOTE_DAMAGE,
                             .damages = 300,
                             .is_truncated = true,
                             .members_left_out = 2,
                             .offsets = {0, 17, 1ull << 60},
                             .n_offsets = 3};
    struct tp_note_event event = {0};
    struct tp_note back;
    struct tp_err err;

    (void)state;
    assert_int_equal(tp_note_write(&base, &track, &event, &err), TP_OK);
    assert_true(tp_note_read(&event.ev, &back));
    assert_int_equal(back.kind, TP_NOTE_BASE);
    assert_int_equal(back.base_ns, INT64_MIN);
    assert_int_equal(tp_note_write(&damage, &track, &event, &err), TP_OK);
    assert_true(tp_note_read(&event.ev, &back));
    assert_int_equal(back.kind, TP_NOTE_DAMAGE);
    assert_int_equal(back.damages, 300);
    assert_true(back.is_truncated);
    assert_int_equal(back.members_left_out, 2);
    assert_int_equal(back.n_offsets, 3);
    assert_memory_equal(back.offsets, damage.offsets, sizeof(damage.offsets));
    tp_buf_fini(&event.text);
}

static void test_other_metadata_is_no_note(void **state)
{
    static const char *const names[] = {"process_name", "traceplane", "traceplane.x",
                                        ""};
    struct tp_note back = {.damages = 99};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct tp_event ev = {.kind = TP_EVENT_META,
                              .track = &track,
                              .name = {names[i], (uint32_t)strlen(names[i]), 0}};

        if (tp_note_read(&ev, &back))
            fail_msg("%s", names[i]);
    }
    assert_int_equal(tp_note_read(&(struct tp_event){.kind = TP_EVENT_META}, &back), 0);
}

static void test_a_forged_note_without_the_form_says_nothing(void **state)
{
    static const char json[] = "[";
    struct tp_arg args[] = {
        {.key = {"key", 3, 0}, .kind = TP_ARG_STRING, .s = {"k", 1}},
        {.key = {"value", 5, 0}, .kind = TP_ARG_JSON, .s = {json, 1}},
        {.key = {"offsets", 7, 0},
         .kind = TP_ARG_JSON,
         .s = {"9999999999999999999999", 22}},
    };
    struct tp_event ev = {.kind = TP_EVENT_META,
                          .track = &track,
                          .name = {"traceplane.member", 17, 0},
                          .args = args,
                          .n_args = 3};
    struct tp_note back;

    (void)state;
    assert_true(tp_note_read(&ev, &back));
    assert_int_equal(back.kind, TP_NOTE_NONE);
    ev.name = (struct tp_name){"traceplane.base", 15, 0};
    assert_true(tp_note_read(&ev, &back));
    assert_int_equal(back.kind, TP_NOTE_NONE);
    ev.name = (struct tp_name){"traceplane.damage", 17, 0};
    assert_true(tp_note_read(&ev, &back));
    assert_int_equal(back.n_offsets, 1);
}

static void test_writing_survives_every_allocation_failure(void **state)
{
    struct tp_note note = {.kind = TP_NOTE_MEMBER,
                           .key = tp_str_of("k"),
                           .json =
                               tp_str_of("[\"more than the first growth of a buffer "
                                         "which is sixty-four bytes, so twice\"]")};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_note_event event = {0};
        struct tp_err err;
        int rc;

        fault_arm(n);
        rc = tp_note_write(&note, &track, &event, &err);
        tp_buf_fini(&event.text);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_keeps_its_bytes),
        cmocka_unit_test(test_base_and_damage_come_back),
        cmocka_unit_test(test_other_metadata_is_no_note),
        cmocka_unit_test(test_a_forged_note_without_the_form_says_nothing),
        cmocka_unit_test(test_writing_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
