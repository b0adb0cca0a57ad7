/*
 * Blobs as files of a directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "server/blob_fs.h"
#include "support/fault.h"
#include "support/tmpdir.h"

struct home {
    char *dir;
    struct tp_blobs *blobs;
};

static int set_up(void **state)
{
    static struct home home;

    home.dir = tmpdir_new();
    assert_int_equal(tp_blob_fs_open(home.dir, true, &home.blobs, NULL), TP_OK);
    *state = &home;
    return 0;
}

static int tear_down(void **state)
{
    struct home *home = *state;

    tp_blob_fs_close(home->blobs);
    tmpdir_remove(home->dir);
    return 0;
}

static struct tp_blob *make(struct tp_blobs *b, const char *name, const char *text)
{
    struct tp_blob *blob = NULL;

    assert_int_equal(b->open_append(b->ctx, name, &blob, NULL), TP_OK);
    assert_int_equal(b->append(blob, text, strlen(text), NULL), TP_OK);
    return blob;
}

static void check_content(struct tp_blobs *b, struct tp_blob *blob, const char *text)
{
    char got[64];
    size_t n = 0;

    assert_int_equal(b->pread(blob, 0, got, sizeof(got), &n, NULL), TP_OK);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(got, text, n);
}

/* It is not the medium that failed: there will be one again. */
static void test_no_descriptor_left_is_no_failure_of_the_medium(void **state)
{
    struct home *home = *state;
    struct tp_blob *blob = make(home->blobs, "a.log", "x");
    struct rlimit before, none;
    int rc;

    home->blobs->close(home->blobs->ctx, blob);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    blob = NULL;
    rc = home->blobs->open_read(home->blobs->ctx, "a.log", &blob, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, TP_ENOMEM);
}

static void test_what_is_appended_is_read_again_after_reopening(void **state)
{
    struct tp_blobs *b = ((struct home *)*state)->blobs;
    struct tp_blob *blob = make(b, "traces/a/1.log", "hello ");

    assert_int_equal(b->append(blob, "world", 5, NULL), TP_OK);
    assert_int_equal(b->pwrite(blob, 0, "H", 1, NULL), TP_OK);
    assert_int_equal(b->sync(blob, NULL), TP_OK);
    b->close(b->ctx, blob);
    assert_int_equal(b->open_read(b->ctx, "traces/a/1.log", &blob, NULL), TP_OK);
    assert_int_equal(b->size(blob), 11);
    check_content(b, blob, "Hello world");
    b->close(b->ctx, blob);
}

static void test_an_anonymous_blob_takes_and_gives_bytes(void **state)
{
    struct tp_blobs *b = ((struct home *)*state)->blobs;
    struct tp_blob *from = make(b, NULL, "0123456789");
    struct tp_blob *to = make(b, "x", "ab");

    assert_int_equal(b->append_blob(to, from, 4, NULL), TP_OK);
    check_content(b, to, "ab0123");
    assert_int_equal(b->truncate(to, 3, NULL), TP_OK);
    check_content(b, to, "ab0");
    assert_int_equal(b->append(to, "z", 1, NULL), TP_OK);
    check_content(b, to, "ab0z");
    b->close(b->ctx, from);
    b->close(b->ctx, to);
}

static void test_what_is_not_there_is_not_found(void **state)
{
    struct tp_blobs *b = ((struct home *)*state)->blobs;
    struct tp_blob *blob = NULL;

    assert_int_equal(b->open_read(b->ctx, "none", &blob, NULL), TP_ENOTFOUND);
    assert_null(blob);
    assert_int_equal(b->rename(b->ctx, "none", "some", NULL), TP_ENOTFOUND);
    assert_int_equal(b->remove(b->ctx, "none", NULL), TP_OK);
    assert_int_equal(b->remove(b->ctx, "none/", NULL), TP_OK);
}

static void test_names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const names[] = {"",     "/etc/passwd", "a/../../b",
                                        "a//b", "A",           "a b"};
    struct tp_blobs *b = ((struct home *)*state)->blobs;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tp_blob *blob = NULL;

        print_message("case '%s'\n", names[i]);
        assert_int_equal(b->open_append(b->ctx, names[i], &blob, NULL), TP_EINVAL);
        assert_int_equal(b->rename(b->ctx, "x", names[i], NULL), TP_EINVAL);
    }
}

static int count_name(const char *name, uint64_t size_bytes, void *arg)
{
    int *n = arg;

    assert_int_equal(size_bytes, strlen(name));
    (*n)++;
    return TP_OK;
}

static void test_a_folder_is_listed_renamed_into_and_removed(void **state)
{
    static const char *const names[] = {"t/a/1", "t/a/2", "t/b/1"};
    struct tp_blobs *b = ((struct home *)*state)->blobs;
    int n = 0;

    for (size_t i = 0; i < 3; i++)
        b->close(b->ctx, make(b, names[i], names[i]));
    assert_int_equal(b->list(b->ctx, "t/", count_name, &n, NULL), TP_OK);
    assert_int_equal(n, 3);
    assert_int_equal(b->rename(b->ctx, "t/a/1", "t/c/1", NULL), TP_OK);
    assert_int_equal(b->remove(b->ctx, "t/a/", NULL), TP_OK);
    n = 0;
    assert_int_equal(b->list(b->ctx, "t/", count_name, &n, NULL), TP_OK);
    assert_int_equal(n, 2);
    n = 0;
    assert_int_equal(b->list(b->ctx, "nowhere/", count_name, &n, NULL), TP_OK);
    assert_int_equal(n, 0);
}

static void test_opening_survives_every_allocation_failure(void **state)
{
    struct home *home = *state;

    for (int n = 0;; n++) {
        struct tp_blobs *blobs = NULL;
        int rc;

        fault_arm(n);
        rc = tp_blob_fs_open(home->dir, false, &blobs, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_blob_fs_close(blobs);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(blobs);
    }
}

static void test_a_blob_survives_every_allocation_failure(void **state)
{
    struct tp_blobs *b = ((struct home *)*state)->blobs;

    for (int n = 0;; n++) {
        struct tp_blob *blob = NULL;
        int rc;

        fault_arm(n);
        rc = b->open_append(b->ctx, NULL, &blob, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            b->close(b->ctx, blob);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(blob);
    }
}

#define WITH_HOME(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HOME(test_no_descriptor_left_is_no_failure_of_the_medium),
        WITH_HOME(test_what_is_appended_is_read_again_after_reopening),
        WITH_HOME(test_an_anonymous_blob_takes_and_gives_bytes),
        WITH_HOME(test_what_is_not_there_is_not_found),
        WITH_HOME(test_names_that_lead_elsewhere_are_refused),
        WITH_HOME(test_a_folder_is_listed_renamed_into_and_removed),
        WITH_HOME(test_opening_survives_every_allocation_failure),
        WITH_HOME(test_a_blob_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
