/*
 * test_kineto_datagram.c - what real processes send is read as it was meant, anything
 * else is refused with an offset, and answers are exact to the byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "kineto/datagram.h"
#include "support/fault.h"
#include "support/kineto_bytes.h"

static void test_a_request_as_it_was_seen_on_a_socket_is_read(void **state)
{
    /* Captured from a libkineto: type 2, n 5, job 4242. */
    static const unsigned char seen[76] = {
        0x24, 0, 0, 0,    0,    0, 0, 0,    'r',  'e', 'q', [40] = 2, 0,    0, 0, 5,
        0,    0, 0, 0x92, 0x10, 0, 0, 0,    0,    0,   0,   0x53,     0x6e, 0, 0, 0x1f,
        0x6e, 0, 0, 0x1e, 0x6e, 0, 0, 0x5f, 0x0b, 0,   0,   0x5d,     0x0b, 0, 0};
    static const int32_t pids[] = {28243, 28191, 28190, 2911, 2909};
    struct tp_kineto_datagram d;

    (void)state;
    assert_int_equal(tp_kineto_datagram_read(seen, sizeof(seen), &d, NULL), TP_OK);
    assert_int_equal(d.message, TP_KINETO_REQUEST);
    assert_int_equal(d.type, TP_KINETO_TYPE_ACTIVITIES);
    assert_int_equal(d.job, 4242);
    assert_int_equal(d.n_pids, 5);
    assert_memory_equal(d.pids, pids, sizeof(pids));
}

static void test_requests_of_every_number_of_pids_are_read(void **state)
{
    int32_t pids[TP_KINETO_PIDS_MAX];
    char bytes[KINETO_BYTES_MAX];

    (void)state;
    for (int32_t n = 0; n < TP_KINETO_PIDS_MAX; n++)
        pids[n] = 100 + n;
    for (int32_t n = 0; n <= TP_KINETO_PIDS_MAX; n++) {
        size_t len = kineto_request(bytes, 3, -7, pids, n);
        struct tp_kineto_datagram d;

        if (tp_kineto_datagram_read(bytes, len, &d, NULL) != TP_OK || d.type != 3 ||
            d.job != -7 || d.n_pids != (size_t)n ||
            memcmp(d.pids, pids, 4 * (size_t)n) != 0)
            fail_msg("%d pids", n);
    }
}

static void test_a_context_is_read(void **state)
{
    char bytes[KINETO_BYTES_MAX];
    struct tp_kineto_datagram d;

    (void)state;
    assert_int_equal(kineto_context(bytes, 3, 20940, 77), 56);
    assert_int_equal(tp_kineto_datagram_read(bytes, 56, &d, NULL), TP_OK);
    assert_int_equal(d.message, TP_KINETO_CONTEXT);
    assert_int_equal(d.gpu, 3);
    assert_int_equal(d.pids[0], 20940);
    assert_int_equal(d.n_pids, 1);
    assert_int_equal(d.job, 77);
}

/* Refuse it, say where, and leave the output alone. */
static void refuse(const char *bytes, size_t n, const char *why)
{
    struct tp_kineto_datagram d = {.job = 4711};
    struct tp_err err = {0};

    if (tp_kineto_datagram_read(bytes, n, &d, &err) != TP_EINVAL)
        fail_msg("taken: %s", why);
    if (strcmp(err.message, why) != 0)
        fail_msg("'%s' instead of '%s'", err.message, why);
    assert_int_equal(d.job, 4711);
}

static void test_lies_about_sizes_are_refused(void **state)
{
    int32_t pids[200] = {1};
    char bytes[KINETO_BYTES_MAX];
    int32_t n;
    size_t len;

    (void)state;
    refuse("", 0, "byte 0: 0 bytes are not 40 to 312");
    kineto_request(bytes, 2, 0, pids, 1);
    refuse(bytes, 39, "byte 0: 39 bytes are not 40 to 312");
    refuse(bytes, 40, "byte 0: 20 bytes are announced, 0 came");
    refuse(bytes, 59, "byte 0: 20 bytes are announced, 19 came");
    refuse(bytes, 61, "byte 0: 20 bytes are announced, 21 came");
    len = kineto_request(bytes, 2, 0, pids, 65);
    refuse(bytes, len, "byte 0: 316 bytes are not 40 to 312");
    kineto_request(bytes, 2, 0, pids, 1);
    n = 65;
    memcpy(bytes + 44, &n, 4);
    refuse(bytes, 60, "byte 44: 65 pids are not 0 to 64");
    n = -1;
    memcpy(bytes + 44, &n, 4);
    refuse(bytes, 60, "byte 44: -1 pids are not 0 to 64");
    n = 2;
    memcpy(bytes + 44, &n, 4);
    refuse(bytes, 60, "byte 44: 2 pids do not fill 4 bytes");
    kineto_header(bytes, UINT64_MAX, "req");
    refuse(bytes, 40, "byte 0: 18446744073709551615 bytes are announced, 0 came");
    kineto_header(bytes, 15, "req");
    refuse(bytes, 55, "byte 40: a request has at least 16 bytes");
    kineto_header(bytes, 20, "ctxt");
    refuse(bytes, 60, "byte 40: a context has 16 bytes, not 20");
}

static void test_other_types_are_refused(void **state)
{
    static const char *const types[] = {"",      "reqq",
                                        "data",  "REQ",
                                        "ctxtx", "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"};
    char bytes[KINETO_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        memset(bytes, 0, sizeof(bytes));
        kineto_header(bytes, 16, types[i]);
        refuse(bytes, 56, "byte 8: the type is neither ctxt nor req");
    }
}

static void test_answers_are_exact_to_the_byte(void **state)
{
    static const char count[44] = {4, 0,   0,   0,   0,   0,       0,
                                   0, 'c', 't', 'x', 't', [40] = 1};
    static const char empty[40] = {[8] = 'r', 'e', 'q'};
    static const char text[45] = {5,   0,   0,   0,          0,   0,   0,    0,
                                  'r', 'e', 'q', [40] = 'A', '=', 'b', '\n', '#'};
    struct tp_buf out = {0};
    char got[TP_KINETO_COUNT_BYTES];

    (void)state;
    tp_kineto_reply_count(1, got);
    assert_memory_equal(got, count, sizeof(count));
    assert_int_equal(tp_kineto_reply_config((struct tp_str){0}, &out, NULL), TP_OK);
    assert_int_equal(out.len, sizeof(empty));
    assert_memory_equal(out.data, empty, sizeof(empty));
    out.len = 0;
    assert_int_equal(tp_kineto_reply_config(tp_str_of("A=b\n#"), &out, NULL), TP_OK);
    assert_int_equal(out.len, sizeof(text));
    assert_memory_equal(out.data, text, sizeof(text));
    tp_buf_fini(&out);
}

static void test_an_answer_survives_every_allocation_failure(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        struct tp_buf out = {0};
        int rc;

        fault_arm(n);
        rc = tp_kineto_reply_config(tp_str_of("x"), &out, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_buf_fini(&out);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_int_equal(out.len, 0);
    }
}

/* Read a recorded datagram; 0 when the folder is not beside the tree. */
static size_t recorded(const char *name, char *out)
{
    char path[256];
    FILE *f;
    size_t n;

    snprintf(path, sizeof(path), "../shared/kineto_datagrams/%s", name);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    n = fread(out, 1, KINETO_BYTES_MAX, f);
    fclose(f);
    return n;
}

static void test_recorded_datagrams_of_real_processes_are_read(void **state)
{
    static const int32_t old_pids[] = {20940, 20937, 20892, 20889, 20888, 3128, 3111};
    static const int32_t new_pids[] = {15741, 15737, 15641, 15633, 15632, 3128, 3111};
    static const struct {
        const char *name;
        uint32_t type;
        int64_t job;
        const int32_t *pids;
    } cases[] = {{"2025-03-req-busy-slurm.bin", 1, 77, old_pids},
                 {"2025-03-req-idle-slurm.bin", 3, 77, old_pids},
                 {"2026-08-req-busy.bin", 0, 0, new_pids},
                 {"2026-08-req-idle.bin", 2, 0, new_pids}};
    char bytes[KINETO_BYTES_MAX], built[KINETO_BYTES_MAX];
    struct tp_kineto_datagram d;

    (void)state;
    if (recorded(cases[0].name, bytes) == 0) {
        print_message("skipped: ../shared/kineto_datagrams is not there\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = recorded(cases[i].name, bytes);

        if (tp_kineto_datagram_read(bytes, n, &d, NULL) != TP_OK ||
            d.type != cases[i].type || d.job != cases[i].job || d.n_pids != 7 ||
            memcmp(d.pids, cases[i].pids, 28) != 0)
            fail_msg("%s", cases[i].name);
        /* And what the tests build by hand is what real ones send. */
        assert_int_equal(kineto_request(built, (int32_t)cases[i].type, cases[i].job,
                                        cases[i].pids, 7),
                         n);
        assert_memory_equal(built, bytes, n);
    }
}

static void test_recorded_answers_are_those_that_are_written(void **state)
{
    char bytes[KINETO_BYTES_MAX], count[TP_KINETO_COUNT_BYTES];
    struct tp_buf out = {0};

    (void)state;
    if (recorded("reply-ctxt-1.bin", bytes) == 0) {
        print_message("skipped: ../shared/kineto_datagrams is not there\n");
        skip();
    }
    tp_kineto_reply_count(1, count);
    assert_memory_equal(count, bytes, sizeof(count));
    assert_int_equal(recorded("reply-req-empty.bin", bytes), 40);
    assert_int_equal(tp_kineto_reply_config((struct tp_str){0}, &out, NULL), TP_OK);
    assert_int_equal(out.len, 40);
    assert_memory_equal(out.data, bytes, 40);
    tp_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_as_it_was_seen_on_a_socket_is_read),
        cmocka_unit_test(test_requests_of_every_number_of_pids_are_read),
        cmocka_unit_test(test_a_context_is_read),
        cmocka_unit_test(test_lies_about_sizes_are_refused),
        cmocka_unit_test(test_other_types_are_refused),
        cmocka_unit_test(test_answers_are_exact_to_the_byte),
        cmocka_unit_test(test_an_answer_survives_every_allocation_failure),
        cmocka_unit_test(test_recorded_datagrams_of_real_processes_are_read),
        cmocka_unit_test(test_recorded_answers_are_those_that_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
