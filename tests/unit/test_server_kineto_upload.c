/*
 * test_server_kineto_upload.c - a file becomes the data of its producer, once, and a
 * file of another request does not.
 */
#include "server/kineto_upload.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "server/clock.h"
#include "support/engine_test.h"
#include "support/fault.h"
#include "support/tmpdir.h"

#define BODY                                                                      \
    "\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1," \
    "\"tid\":1,\"ts\":1.000,\"dur\":2.000}]}"

struct place {
    struct rig rig;
    char *dir;
    char trace[TP_TRACE_ID_BYTES], producer[TP_TRACE_ID_BYTES];
    char note[160];
    int fault; /* so many allocations pass; -1 = all */
    bool is_for_now;
    bool has_failed;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    rig_init(&p->rig);
    p->rig.now = tp_clock_now();
    p->fault = -1;
    assert_int_equal(rig_start(&p->rig), TP_OK);
    rig_producer(&p->rig, "default", "one", 3, p->producer);
    assert_int_equal(rig_create(&p->rig, "default", NULL, p->trace), TP_OK);
    p->dir = tmpdir_new();
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    rig_fini(&p->rig);
    tmpdir_remove(p->dir);
    free(p);
    return 0;
}

static int upload(struct place *p, const char *text)
{
    struct tp_kineto_file file = {p->trace, p->producer, "x.pt.trace.json", -1};
    char *path = tmpdir_path(p->dir, "file");
    int rc;

    tmpdir_write(p->dir, "file", text, strlen(text));
    file.fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    p->rig.err.message[0] = '\0';
    if (p->fault >= 0)
        fault_arm(p->fault);
    rc = tp_kineto_upload(p->rig.engine, &file, p->note, sizeof(p->note),
                          &p->is_for_now, &p->rig.err);
    p->has_failed = p->fault >= 0 && fault_disarm();
    close(file.fd);
    return rc;
}

static uint64_t stored(struct place *p)
{
    struct tp_trace_view *v = rig_view(&p->rig, p->trace);
    uint64_t n = v->totals.stored;

    tp_trace_view_free(v);
    return n;
}

static void test_a_file_is_the_data_of_its_producer_once(void **state)
{
    struct place *p = *state;
    char text[500];

    snprintf(text, sizeof(text), "{\"trace_id\": \"%s\"," BODY, p->trace);
    assert_int_equal(upload(p, text), TP_OK);
    assert_string_equal(p->note, "");
    assert_int_equal(stored(p), 1);
    assert_int_equal(upload(p, text), TP_OK);
    assert_int_equal(stored(p), 1);
}

/* It leads to a folder that only the process may know, while that is there. */
static void test_the_path_of_a_file_is_not_in_the_trace(void **state)
{
    struct place *p = *state;
    char text[500], *got;

    snprintf(text, sizeof(text),
             "{\"traceName\": \"/tmp/secret/x.pt.trace.json\", \"trace_id\": \"%s\", "
             "\"kept\": \"kept\"," BODY,
             p->trace);
    assert_int_equal(upload(p, text), TP_OK);
    assert_string_equal(p->note, "");
    got = rig_download(&p->rig, p->trace, "chrome");
    assert_non_null(got);
    assert_null(strstr(got, "secret"));
    assert_non_null(strstr(got, "\"kept\": \"kept\""));
    free(got);
}

/* The disk is full, or what was to be written failed: none of the file's. */
static void test_what_the_store_or_the_disk_refuses_may_be_tried_again(void **state)
{
    struct place *p = *state;
    bool was_hit = true;
    int n;

    for (n = 0; was_hit; n++) {
        blob_mem_fail_after(p->rig.blobs, n);
        if (upload(p, "{" BODY) == TP_OK)
            assert_true(stored(p) == 1);
        else
            assert_true(p->is_for_now);
        was_hit = blob_mem_disarm(p->rig.blobs);
    }
    assert_true(n > 1);
    assert_int_equal(upload(p, "{" BODY), TP_OK);
    assert_int_equal(stored(p), 1);
}

static void test_a_file_without_an_id_is_taken_and_noted(void **state)
{
    struct place *p = *state;

    assert_int_equal(upload(p, "{" BODY), TP_OK);
    assert_string_equal(p->note, "no trace_id is seen in the file");
    assert_int_equal(stored(p), 1);
}

/* Behind the events, and behind more than is read at once. */
static void test_an_id_is_checked_wherever_it_is(void **state)
{
    struct place *p = *state;
    const size_t spaces = (size_t)3 << 20;
    char *text = malloc(spaces + 1000);
    int n;

    assert_non_null(text);
    n = snprintf(text, 500, "{%.*s,", (int)strlen(BODY) - 1, BODY);
    memset(text + n, ' ', spaces);
    snprintf(text + n + spaces, 500, "\"trace_id\": \"of-another\"}");
    assert_int_equal(upload(p, text), TP_EINVAL);
    assert_string_equal(p->rig.err.message,
                        "the file is of another request, 'of-another'");
    assert_int_equal(stored(p), 0);
    snprintf(text + n + spaces, 500, "\"trace_id\": \"%s\"}", p->trace);
    assert_int_equal(upload(p, text), TP_OK);
    assert_string_equal(p->note, "");
    assert_int_equal(stored(p), 1);
    free(text);
}

static void test_a_file_of_another_request_is_refused_and_says_whose(void **state)
{
    struct place *p = *state;

    assert_int_equal(upload(p, "{\"trace_id\": \"of-another\"," BODY), TP_EINVAL);
    assert_false(p->is_for_now);
    assert_string_equal(p->rig.err.message,
                        "the file is of another request, 'of-another'");
    assert_int_equal(stored(p), 0);
}

static void test_what_is_no_trace_is_refused(void **state)
{
    struct place *p = *state;

    assert_int_equal(upload(p, "root:x:0:0:root:/root:/bin/sh\n"), TP_EINVAL);
    assert_false(p->is_for_now);
    assert_int_equal(stored(p), 0);
}

static void test_a_file_that_ends_in_the_middle_is_kept_and_noted(void **state)
{
    struct place *p = *state;

    assert_int_equal(upload(p, "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\","
                               "\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2},"
                               "{\"ph\":\"X\",\"ca"),
                     TP_OK);
    assert_ptr_equal(strstr(p->note, "no trace_id is seen in the file; "), p->note);
    assert_int_equal(stored(p), 1);
}

static void test_a_trace_that_is_not_there_is_told(void **state)
{
    struct place *p = *state;

    p->trace[0] ^= 1;
    assert_true(upload(p, "{" BODY) < 0);
    p->trace[0] ^= 1;
    assert_int_equal(stored(p), 0);
}

static void test_it_survives_every_allocation_failure(void **state)
{
    struct place *p = *state;

    for (int n = 0;; n++) {
        int rc;

        p->fault = n;
        rc = upload(p, "{" BODY);
        if (!p->has_failed) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(stored(p), 1);
            return;
        }
        /* Some of what it needs can be done without. */
        if (rc != TP_OK && rc != TP_ENOMEM)
            fail_msg("allocation %d: %d, %s", n, rc, p->rig.err.message);
        if (rc == TP_OK)
            assert_int_equal(stored(p), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_a_file_is_the_data_of_its_producer_once),
        TEST(test_the_path_of_a_file_is_not_in_the_trace),
        TEST(test_what_the_store_or_the_disk_refuses_may_be_tried_again),
        TEST(test_a_file_without_an_id_is_taken_and_noted),
        TEST(test_an_id_is_checked_wherever_it_is),
        TEST(test_a_file_of_another_request_is_refused_and_says_whose),
        TEST(test_what_is_no_trace_is_refused),
        TEST(test_a_file_that_ends_in_the_middle_is_kept_and_noted),
        TEST(test_a_trace_that_is_not_there_is_told),
        TEST(test_it_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
