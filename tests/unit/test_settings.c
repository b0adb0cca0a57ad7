/* The options of a client: what was given, else a variable, else the default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#include "base/err.h"
#include "producer/settings.h"
#include "support/fault.h"

static const char *variable(const char *name, void *arg)
{
    const size_t n = strlen(name);

    for (const char *const *entry = arg; *entry != NULL; entry++)
        if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=')
            return *entry + n + 1;
    return NULL;
}

static int load(const struct tp_options *o, const char *const *environment,
                struct tp_settings *out, struct tp_err *err)
{
    return tp_settings_load(o, variable, (void *)(uintptr_t)environment, out, err);
}

static void test_nothing_given_means_the_defaults(void **state)
{
    const char *none[] = {NULL};
    struct tp_settings s;

    (void)state;
    assert_int_equal(load(NULL, none, &s, NULL), TP_OK);
    assert_string_equal(s.url, "http://127.0.0.1:8750");
    assert_string_equal(s.socket_path, "");
    assert_string_equal(s.job, "default");
    assert_int_equal(s.rank, -1);
    assert_int_equal(s.ring_bytes, 1 << 20);
    assert_int_equal(s.rings_bytes_max, 256 << 20);
    assert_int_equal(s.backlog_bytes, 64 << 20);
    assert_int_equal(s.flush_ms, 2000);
    assert_int_equal(s.block_ns, 1000000);
    assert_int_equal(s.late_ms, 0);
    assert_false(s.blocks_when_full || s.is_off || s.has_log);
    /* Without a rank it has a name of its own. */
    assert_non_null(strstr(s.name, "test_settings-"));
    tp_settings_fini(&s);
}

static void test_variables_fill_in_what_is_not_given(void **state)
{
    const char *environment[] = {"TRACEPLANE_URL=unix:/run/tp.sock",
                                 "TRACEPLANE_TOKEN=secret",
                                 "TRACEPLANE_JOB=llama",
                                 "TRACEPLANE_NAME=worker",
                                 "TRACEPLANE_RANK=3",
                                 "TRACEPLANE_WORLD_SIZE=8",
                                 "TRACEPLANE_BACKEND=ascend",
                                 "TRACEPLANE_DEVICE=npu:3",
                                 "TRACEPLANE_RING_BYTES=64K",
                                 "TRACEPLANE_RINGS_BYTES_MAX=1G",
                                 "TRACEPLANE_BACKLOG_BYTES=2M",
                                 "TRACEPLANE_WHEN_FULL=block",
                                 "TRACEPLANE_BLOCK_US=5",
                                 "TRACEPLANE_FLUSH_MS=0",
                                 "TRACEPLANE_OFF=1",
                                 "TRACEPLANE_LOG=yes",
                                 "RANK=77",
                                 NULL};
    struct tp_options given = {.options_bytes = sizeof(given),
                               .url = "https://tp:1/",
                               .job = "mine",
                               .has_rank = true,
                               .rank = 0,
                               .ring_bytes = 32768};
    struct tp_settings s;

    (void)state;
    assert_int_equal(load(NULL, environment, &s, NULL), TP_OK);
    assert_string_equal(s.socket_path, "/run/tp.sock");
    assert_string_equal(s.url, "http://localhost");
    assert_string_equal(s.token, "secret");
    assert_string_equal(s.job, "llama");
    assert_string_equal(s.name, "worker");
    assert_int_equal(s.rank, 3);
    assert_int_equal(s.world_size, 8);
    assert_string_equal(s.backend, "ascend");
    assert_string_equal(s.device, "npu:3");
    assert_int_equal(s.ring_bytes, 65536);
    assert_int_equal(s.rings_bytes_max, 1 << 30);
    assert_int_equal(s.backlog_bytes, 2 << 20);
    assert_true(s.blocks_when_full && s.is_off && s.has_log);
    assert_int_equal(s.block_ns, 5000);
    assert_int_equal(s.flush_ms, 0);
    tp_settings_fini(&s);

    assert_int_equal(load(&given, environment, &s, NULL), TP_OK);
    assert_string_equal(s.url, "https://tp:1");
    assert_string_equal(s.socket_path, "");
    assert_string_equal(s.job, "mine");
    assert_int_equal(s.rank, 0);
    assert_int_equal(s.ring_bytes, 32768);
    tp_settings_fini(&s);
}

static void test_a_shorter_struct_gives_what_it_has(void **state)
{
    struct tp_options given = {.options_bytes = offsetof(struct tp_options, job),
                               .url = "http://a:1",
                               .job = "not there in that version"};
    const char *none[] = {NULL};
    struct tp_settings s;

    (void)state;
    assert_int_equal(load(&given, none, &s, NULL), TP_OK);
    assert_string_equal(s.url, "http://a:1");
    assert_string_equal(s.job, "default");
    tp_settings_fini(&s);
}

/* A program that is newer than the library has fields that this one does not know. */
static void test_a_longer_struct_gives_what_is_known_of_it(void **state)
{
    struct {
        struct tp_options known;
        char later[256];
    } given = {.known = {.options_bytes = sizeof(given), .late_ms = 7}};
    const char *none[] = {NULL};
    struct tp_settings s;

    (void)state;
    memset(given.later, 0xff, sizeof(given.later));
    assert_int_equal(load(&given.known, none, &s, NULL), TP_OK);
    assert_string_equal(s.url, "http://127.0.0.1:8750");
    assert_int_equal(s.late_ms, 7);
    tp_settings_fini(&s);
}

static void test_a_struct_without_its_size_is_of_the_first_version(void **state)
{
    struct tp_options given = {.url = "http://a:1", .log = true, .late_ms = 7};
    const char *none[] = {NULL};
    struct tp_settings s;

    (void)state;
    assert_int_equal(load(&given, none, &s, NULL), TP_OK);
    assert_string_equal(s.url, "http://a:1");
    assert_true(s.has_log);
    assert_int_equal(s.late_ms, 0);
    tp_settings_fini(&s);
    given.options_bytes = sizeof(given);
    assert_int_equal(load(&given, none, &s, NULL), TP_OK);
    assert_int_equal(s.late_ms, 7);
    tp_settings_fini(&s);
}

static void test_a_wrong_value_is_refused_by_name(void **state)
{
    static const char *const rows[][2] = {
        {"TRACEPLANE_URL=ftp://x", "ftp://x"},
        {"TRACEPLANE_URL=unix:relative", "relative"},
        {"TRACEPLANE_JOB=a b", "a b"},
        {"TRACEPLANE_NAME=\xff", "NAME"},
        {"TRACEPLANE_NAME=a\nb", "NAME"},
        {"TRACEPLANE_BACKEND=a\x7f", "BACKEND"},
        {"TRACEPLANE_DEVICE=a\tb", "DEVICE"},
        {"TRACEPLANE_TOKEN=secret\n", "TOKEN"},
        {"TRACEPLANE_TOKEN=a\r\nX-Evil: 1", "TOKEN"},
        {"TRACEPLANE_TOKEN=a b", "byte 0x20 at 1"},
        {"TRACEPLANE_TOKEN=\xc3\xa4", "byte 0xc3 at 0"},
        {"TRACEPLANE_URL=http://", "'http://'"},
        {"TRACEPLANE_URL=http:///", "'http:///'"},
        {"TRACEPLANE_URL=http://:8750", "'http://:8750'"},
        {"TRACEPLANE_URL=http://a:port", "a:port"},
        {"TRACEPLANE_URL=http://a:70000", "70000"},
        {"TRACEPLANE_URL=http://a/?x=1", "a query"},
        {"TRACEPLANE_URL=http://a/#x", "a fragment"},
        {"TRACEPLANE_URL=http://a b", "a b"},
        {"TRACEPLANE_URL=http://a\r\nb", "URL"},
        {"TRACEPLANE_URL=unix:/a\nb", "URL"},
        {"TRACEPLANE_RANK=-1", "RANK"},
        {"TRACEPLANE_RANK=3K", "3K"},
        {"TRACEPLANE_WORLD_SIZE=1K", "1K"},
        {"TRACEPLANE_FLUSH_MS=1K", "1K"},
        {"TRACEPLANE_RANK=2147483648", "RANK"},
        {"TRACEPLANE_RING_BYTES=5000", "RING_BYTES"},
        {"TRACEPLANE_RING_BYTES=1", "RING_BYTES"},
        {"TRACEPLANE_RING_BYTES=1X", "RING_BYTES"},
        {"TRACEPLANE_RING_BYTES=99999999999999999999", "RING_BYTES"},
        {"TRACEPLANE_BACKLOG_BYTES=1", "BACKLOG_BYTES"},
        {"TRACEPLANE_RING_BYTES=1G", "RINGS_BYTES_MAX"},
        {"TRACEPLANE_RINGS_BYTES_MAX=512K", "RINGS_BYTES_MAX"},
        {"TRACEPLANE_WHEN_FULL=explode", "WHEN_FULL"},
        {"TRACEPLANE_CLOCK=wall", "CLOCK is not monotonic: wall"},
        {"TRACEPLANE_FLUSH_MS=60001", "FLUSH_MS"},
        {"TRACEPLANE_LATE_MS=5001", "LATE_MS"},
        {"TRACEPLANE_OFF=maybe", "OFF"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *environment[] = {rows[i][0], NULL};
        struct tp_settings s;
        struct tp_err err = {0};

        if (load(NULL, environment, &s, &err) != TP_EINVAL ||
            strstr(err.message, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], err.message);
    }
}

/* As docs/producers.md says. */
static void test_each_value_is_taken_up_to_its_bound(void **state)
{
    static const struct {
        const char *name, *good, *bad;
    } rows[] = {
        {"RING_BYTES", "1G", "2G"},           {"RING_BYTES", "16K", "8K"},
        {"BACKLOG_BYTES", "1M", "1048575"},   {"BLOCK_US", "1000000", "1000001"},
        {"FLUSH_MS", "60000", "60001"},       {"LATE_MS", "5000", "5001"},
        {"RANK", "2147483647", "2147483648"},
    };
    char text[300];

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const char *environment[] = {text, "TRACEPLANE_RINGS_BYTES_MAX=4G", NULL};
        struct tp_settings s = {0};
        int want = i % 2 == 0 ? TP_OK : TP_EINVAL;

        snprintf(text, sizeof(text), "TRACEPLANE_%s=%s", rows[i / 2].name,
                 i % 2 == 0 ? rows[i / 2].good : rows[i / 2].bad);
        if (load(NULL, environment, &s, NULL) != want)
            fail_msg("%s", text);
        tp_settings_fini(&s);
    }
}

static void test_each_text_is_taken_up_to_its_length(void **state)
{
    static const struct {
        const char *name, *begin;
        int most;
    } rows[] = {{"NAME", "", 127},         {"JOB", "", 63},
                {"BACKEND", "", 255},      {"DEVICE", "", 255},
                {"TOKEN", "", 4096},       {"URL", "unix:/", 5 + 107},
                {"URL", "http://a/", 2048}};
    char text[5000];

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const char *environment[] = {text, NULL};
        struct tp_settings s = {0};
        int n = snprintf(text, sizeof(text), "TRACEPLANE_%s=%s", rows[i / 2].name,
                         rows[i / 2].begin);
        int left = rows[i / 2].most - (int)strlen(rows[i / 2].begin) + (int)(i % 2);

        memset(text + n, 'x', (size_t)left);
        text[n + left] = '\0';
        if (load(NULL, environment, &s, NULL) != (i % 2 == 0 ? TP_OK : TP_EINVAL))
            fail_msg("%.30s..., of %d bytes and %zu", text, rows[i / 2].most, i % 2);
        tp_settings_fini(&s);
    }
}

static void test_a_wrong_choice_of_the_caller_is_refused_by_name(void **state)
{
    struct tp_options given = {.options_bytes = sizeof(given),
                               .when_full = (enum tp_when_full)7};
    const char *environment[] = {"TRACEPLANE_CLOCK=monotonic", NULL};
    struct tp_settings s;
    struct tp_err err = {0};

    (void)state;
    assert_int_equal(load(&given, environment, &s, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "when_full is 7"));
    given.when_full = TP_FULL_DROP;
    assert_int_equal(load(&given, environment, &s, &err), TP_OK);
    tp_settings_fini(&s);
}

static void test_a_rank_is_below_the_size_of_its_world(void **state)
{
    const char *given[] = {"TRACEPLANE_RANK=4", "TRACEPLANE_WORLD_SIZE=4", NULL};
    const char *launched[] = {"TRACEPLANE_WORLD_SIZE=4", "RANK=6", "WORLD_SIZE=8",
                              NULL};
    const char *mixed[] = {"TRACEPLANE_RANK=9", "RANK=1", "WORLD_SIZE=8", NULL};
    struct tp_err err = {0};
    struct tp_settings s;

    (void)state;
    assert_int_equal(load(NULL, given, &s, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "rank 4"));
    assert_int_equal(load(NULL, launched, &s, &err), TP_EINVAL);
    assert_non_null(strstr(err.message, "rank 6"));
    /* The launcher's world is not that of the rank. */
    assert_int_equal(load(NULL, mixed, &s, NULL), TP_OK);
    assert_int_equal(s.rank, 9);
    assert_int_equal(s.world_size, 0);
    tp_settings_fini(&s);
}

static void test_load_survives_every_allocation_failure(void **state)
{
    const char *environment[] = {"TRACEPLANE_URL=unix:/run/tp.sock", NULL};

    (void)state;
    for (int n = 0;; n++) {
        struct tp_settings s;
        int rc;

        fault_arm(n);
        rc = load(NULL, environment, &s, NULL);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            tp_settings_fini(&s);
            assert_in_range(n, 8, 20);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_given_means_the_defaults),
        cmocka_unit_test(test_variables_fill_in_what_is_not_given),
        cmocka_unit_test(test_a_shorter_struct_gives_what_it_has),
        cmocka_unit_test(test_a_longer_struct_gives_what_is_known_of_it),
        cmocka_unit_test(test_a_struct_without_its_size_is_of_the_first_version),
        cmocka_unit_test(test_a_wrong_value_is_refused_by_name),
        cmocka_unit_test(test_each_value_is_taken_up_to_its_bound),
        cmocka_unit_test(test_each_text_is_taken_up_to_its_length),
        cmocka_unit_test(test_a_wrong_choice_of_the_caller_is_refused_by_name),
        cmocka_unit_test(test_a_rank_is_below_the_size_of_its_world),
        cmocka_unit_test(test_load_survives_every_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
