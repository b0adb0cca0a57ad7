/*
 * test_server_kineto_collector.c - from a process that asked to its file in the trace:
 * the folder is made, the file is found when it has its name, read and removed. The
 * test plays the process; the clock is the real one, and nothing waits for it.
 */
#include "server/kineto_collector.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/clock.h"
#include "server/workers.h"
#include "support/engine_test.h"
#include "support/fault.h"
#include "support/kineto_bytes.h"
#include "support/tmpdir.h"

#define BODY                                                                      \
    "\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1," \
    "\"tid\":1,\"ts\":1.000,\"dur\":2.000}]}"

struct place {
    struct rig rig;
    struct tp_kineto_opts opts;
    char *dir, *home;
    const char *log_file; /* of the trace; NULL = none */
    struct tp_workers *workers;
    struct tp_kineto_collector *collector;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_changes;
    bool has_files; /* on_files said that they can be had */
};

static void on_change(void *arg)
{
    struct place *p = arg;

    pthread_mutex_lock(&p->lock);
    p->n_changes++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void on_files(void *arg, const char *why)
{
    struct place *p = arg;

    pthread_mutex_lock(&p->lock);
    p->has_files = why == NULL;
    p->n_changes++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static unsigned changes(struct place *p)
{
    unsigned n;

    pthread_mutex_lock(&p->lock);
    n = p->n_changes;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* Until something has changed after `seen` changes. */
static void wait_change(struct place *p, unsigned seen)
{
    pthread_mutex_lock(&p->lock);
    while (p->n_changes == seen)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static int start(struct place *p)
{
    const struct tp_kineto_collector_opts o = {.engine = p->rig.engine,
                                               .workers = p->workers,
                                               .trace_dir = p->home,
                                               .log_dirs = &p->dir,
                                               .n_log_dirs = 1,
                                               .on_change = on_change,
                                               .on_files = on_files,
                                               .arg = p};

    return tp_kineto_collector_start(&o, &p->collector, &p->rig.err);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->dir = tmpdir_new();
    p->home = tmpdir_path(p->dir, "home");
    p->has_files = true;
    p->opts = (struct tp_kineto_opts){.trace_dir = p->home,
                                      .root_dir = p->dir,
                                      .any_uid = true};
    rig_init(&p->rig);
    p->rig.kineto = &p->opts;
    p->rig.now = tp_clock_now();
    assert_int_equal(rig_start(&p->rig), TP_OK);
    assert_int_equal(tp_workers_start(p->rig.engine, 1, NULL, NULL, &p->workers, NULL),
                     TP_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    tp_kineto_collector_stop(p->collector);
    tp_workers_stop(p->workers);
    tp_kineto_collector_free(p->collector);
    tp_workers_free(p->workers);
    rig_fini(&p->rig);
    free(p->home);
    tmpdir_remove(p->dir);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return 0;
}

/* This very process asks. Returns the text that it is told, "" = none. */
static const char *ask(struct place *p)
{
    static char text[8192];
    struct tp_kineto_peer peer = {
        .pid = getpid(), .uid = getuid(), .gid = getgid(), .address_bytes = 8};
    const int32_t pids[] = {getpid()};
    char bytes[KINETO_BYTES_MAX];
    size_t n = kineto_request(bytes, 2, 0, pids, 1);
    struct tp_kineto_reply reply;

    memcpy(peer.address, "\0client", 8);
    reply = tp_engine_kineto_receive(p->rig.engine, &peer, bytes, n, 0, tp_clock_now());
    assert_true(reply.bytes.len >= 40);
    snprintf(text, sizeof(text), "%.*s", (int)reply.bytes.len - 40,
             reply.bytes.ptr + 40);
    tp_kineto_collector_poke(p->collector);
    return text;
}

static bool has_producer(struct place *p)
{
    const struct tp_trace_request dry = {.dry_run = true};
    struct tp_trace_view *v = NULL;
    bool has_one;

    assert_int_equal(tp_engine_trace_create(p->rig.engine, &dry, tp_clock_now(), &v,
                                            NULL, &p->rig.err),
                     TP_OK);
    has_one = v->n_members > 0;
    tp_trace_view_free(v);
    return has_one;
}

/* The process is known, and a trace with it is made; *seen is how many changes were
 * before. */
static void create(struct place *p, char *id, unsigned *seen)
{
    const struct tp_trace_request request = {.stop_duration_ms = 1000,
                                             .log_file = rig_str(p->log_file),
                                             .kineto_json =
                                                 rig_str("{\"warmup_ms\":0}")};

    assert_string_equal(ask(p), "");
    while (!has_producer(p))
        sched_yield();
    *seen = changes(p);
    p->rig.now = tp_clock_now();
    assert_int_equal(rig_create_from(&p->rig, &request, id), TP_OK);
    tp_kineto_collector_poke(p->collector);
}

/* Wait until its member is in a state that is an end. */
static void expect_end(struct place *p, const char *id, const char *state,
                       const char *reason)
{
    for (;;) {
        unsigned seen = changes(p);
        struct tp_trace_view *v = rig_view(&p->rig, id);
        const struct tp_member_view *m = &v->members[0];
        bool is_over = strcmp(m->state, "done") == 0 || strcmp(m->state, "lost") == 0 ||
                       strcmp(m->state, "refused") == 0;

        if (is_over && (strcmp(m->state, state) != 0 ||
                        strncmp(m->reason, reason, strlen(reason)) != 0))
            fail_msg("%s (%s), not %s (%s)", m->state, m->reason, state, reason);
        tp_trace_view_free(v);
        if (is_over)
            return;
        wait_change(p, seen);
    }
}

/* What libkineto makes of the name in a text: a file with that suffix before the type.
 * The caller frees it. */
static char *file_of(const char *text, const char *suffix)
{
    const char *at = strstr(text, "ACTIVITIES_LOG_FILE="), *end;
    char *out = NULL;

    assert_non_null(at);
    at += strlen("ACTIVITIES_LOG_FILE=");
    end = strstr(at, ".pt.trace.json");
    assert_non_null(end);
    assert_true(asprintf(&out, "%.*s%s", (int)(end - at), at, suffix) > 0);
    return out;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The process leaves what it was told to. */
static void give_file_of(struct place *p, const char *id, const char *text)
{
    char *tmp = file_of(text, "_1.pt.trace.json.tmp");
    char *final = file_of(text, "_1.pt.trace.json");

    assert_int_equal(tp_engine_trace_start(p->rig.engine, rig_str(id), rig_str(""),
                                           tp_clock_now(), NULL, NULL, NULL),
                     TP_OK);
    write_file(tmp, "{" BODY);
    assert_int_equal(rename(tmp, final), 0);
    free(tmp);
    free(final);
}

/* The process asks, is told, and leaves it. */
static void give_file(struct place *p, const char *id)
{
    give_file_of(p, id, ask(p));
}

static void test_a_file_is_taken_when_it_has_its_name(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen); /* its folder is there */
    give_file(p, id);
    expect_end(p, id, "done", "");
}

/* The file that gets its name when its process is looked at, which then has ended. */
static struct {
    _Atomic bool is_armed;
    const char *tmp, *final;
} last_deed;

/* In place of the C library's: the process of the test ends between two looks. */
int kill(pid_t pid, int number)
{
    if (pid != getpid() || !atomic_load(&last_deed.is_armed))
        return (int)syscall(SYS_kill, pid, number);
    rename(last_deed.tmp, last_deed.final); /* the second time it fails */
    errno = ESRCH;
    return -1;
}

static void test_a_file_that_is_the_last_deed_of_its_process_is_taken(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;
    const char *text;
    char *tmp, *final;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    text = ask(p);
    tmp = file_of(text, "_1.pt.trace.json.tmp");
    final = file_of(text, "_1.pt.trace.json");
    assert_int_equal(tp_engine_trace_start(p->rig.engine, rig_str(id), rig_str(""),
                                           tp_clock_now(), NULL, NULL, NULL),
                     TP_OK);
    write_file(tmp, "{" BODY);
    last_deed.tmp = tmp;
    last_deed.final = final;
    atomic_store(&last_deed.is_armed, true);
    expect_end(p, id, "done", "");
    atomic_store(&last_deed.is_armed, false);
    tp_kineto_collector_stop(p->collector);
    free(tmp);
    free(final);
}

static void test_a_file_is_at_its_log_file_when_it_is_taken(void **state)
{
    struct place *p = *state;
    char *wanted = tmpdir_path(p->dir, "x.json"), *name = NULL, *text;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    p->log_file = wanted;
    create(p, id, &seen);
    wait_change(p, seen);
    give_file(p, id);
    expect_end(p, id, "done", "");
    assert_true(asprintf(&name, "x_%d.json", (int)getpid()) > 0);
    text = tmpdir_read(p->dir, name, NULL);
    assert_string_equal(text, "{" BODY);
    free(text);
    free(name);
    free(wanted);
}

static void test_no_file_at_its_log_file_is_a_note(void **state)
{
    struct place *p = *state;
    char *wanted = tmpdir_path(p->dir, "missing/x.json");
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    p->log_file = wanted;
    create(p, id, &seen);
    wait_change(p, seen);
    give_file(p, id);
    expect_end(p, id, "done",
               "no trace_id is seen in the file; no file at its log file: cannot "
               "open its directory: ");
    free(wanted);
}

static void test_a_link_is_not_read(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;
    char *final;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    final = file_of(ask(p), "_1.pt.trace.json");
    assert_int_equal(symlink("/etc/passwd", final), 0);
    expect_end(p, id, "lost", "no file: the file is a link");
    free(final);
}

/* Its process's clock is ahead: it is kept until the trace takes it. */
static void test_a_file_that_is_early_is_taken_later(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;
    char *final;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    final = file_of(ask(p), "_1.pt.trace.json");
    seen = changes(p);
    write_file(final, "{" BODY);
    wait_change(p, seen); /* it was found */
    assert_int_equal(tp_engine_trace_start(p->rig.engine, rig_str(id), rig_str(""),
                                           tp_clock_now(), NULL, NULL, NULL),
                     TP_OK);
    expect_end(p, id, "done", "");
    free(final);
}

static void wait_reason(struct place *p, const char *id, const char *reason)
{
    for (bool is_there = false; !is_there;) {
        unsigned seen = changes(p);
        struct tp_trace_view *v = rig_view(&p->rig, id);

        is_there = strncmp(v->members[0].reason, reason, strlen(reason)) == 0;
        if (strcmp(v->members[0].state, "lost") == 0)
            fail_msg("lost: %s", v->members[0].reason);
        tp_trace_view_free(v);
        if (!is_there)
            wait_change(p, seen);
    }
}

static void test_a_file_that_cannot_be_stored_now_is_taken_later(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    blob_mem_fail_after(p->rig.blobs, 0);
    give_file(p, id);
    wait_reason(p, id, "collecting: ");
    expect_end(p, id, "done", "");
}

/* As many descriptors as there are now, and n more. */
static void limit_files(unsigned n, struct rlimit *before)
{
    struct rlimit few;
    int fd = dup(0);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    few = *before;
    few.rlim_cur = (rlim_t)fd + n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void test_a_file_that_cannot_be_opened_now_is_taken_later(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    struct rlimit before;
    unsigned seen;
    char *tmp, *final;
    const char *text;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    text = ask(p);
    tmp = file_of(text, "_1.pt.trace.json.tmp");
    final = file_of(text, "_1.pt.trace.json");
    assert_int_equal(tp_engine_trace_start(p->rig.engine, rig_str(id), rig_str(""),
                                           tp_clock_now(), NULL, NULL, NULL),
                     TP_OK);
    write_file(tmp, "{" BODY);
    limit_files(0, &before);
    assert_int_equal(rename(tmp, final), 0);
    wait_reason(p, id, "collecting: the file cannot be opened: Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_end(p, id, "done", "");
    free(tmp);
    free(final);
}

/* Connections and files need some, too. */
static void test_the_last_descriptors_are_not_for_folders(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    struct rlimit before;
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    assert_string_equal(ask(p), "");
    while (!has_producer(p))
        sched_yield();
    limit_files(2, &before);
    create(p, id, &seen);
    expect_end(p, id, "refused", "no file: the limit of open files, ");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rmdir(p->home), 0); /* it is empty */
}

static void wait_files(struct place *p, bool has_files)
{
    pthread_mutex_lock(&p->lock);
    while (p->has_files != has_files)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void test_a_home_that_cannot_be_used_is_told_before_a_trace_is_made(void **state)
{
    struct place *p = *state;
    const struct tp_trace_request all = {.require = TP_REQUIRE_ALL, .dry_run = true};
    struct tp_trace_view *v = NULL;
    char why[100];

    assert_int_equal(symlink("/", p->home), 0);
    assert_int_equal(start(p), TP_OK);
    wait_files(p, false);
    ask(p);
    while (!has_producer(p))
        sched_yield();
    assert_int_equal(tp_engine_trace_create(p->rig.engine, &all, tp_clock_now(), &v,
                                            NULL, &p->rig.err),
                     TP_ESTATE);
    assert_true(tp_engine_kineto_files(p->rig.engine, why, sizeof(why)));
    assert_non_null(strstr(why, "cannot open"));
    assert_int_equal(unlink(p->home), 0);
    wait_files(p, true); /* it is tried again by itself */
    assert_true(tp_engine_kineto_files(p->rig.engine, why, sizeof(why)));
    assert_string_equal(why, "");
    assert_int_equal(tp_engine_trace_create(p->rig.engine, &all, tp_clock_now(), &v,
                                            NULL, &p->rig.err),
                     TP_OK);
    tp_trace_view_free(v);
}

static void test_a_home_that_was_removed_is_made_again(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    assert_int_equal(rmdir(p->home), 0);
    create(p, id, &seen);
    wait_change(p, seen);
    give_file(p, id);
    expect_end(p, id, "done", "");
}

/* Remove the folder of the only process, with `begun` under a file that it began. */
static void remove_folder_of(struct place *p, const char *text, bool begun)
{
    char *final = file_of(text, "_1.pt.trace.json");
    char *tmp = file_of(text, "_1.pt.trace.json.tmp");
    unsigned seen = changes(p);

    if (begun) {
        fclose(fopen(tmp, "w"));
        wait_change(p, seen);
        unlink(tmp);
    }
    *strrchr(final, '/') = '\0';
    assert_int_equal(rmdir(final), 0);
    if (!begun) {
        while (access(final, F_OK) != 0)
            sched_yield();
    }
    free(final);
    free(tmp);
}

static void test_a_folder_that_was_removed_is_made_again_in_time(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES], text[8192];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    snprintf(text, sizeof(text), "%s", ask(p));
    remove_folder_of(p, text, false);
    give_file_of(p, id, text);
    expect_end(p, id, "done", "");
}

static void test_a_folder_that_was_removed_under_its_file_is_the_reason(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES], text[8192];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    snprintf(text, sizeof(text), "%s", ask(p));
    remove_folder_of(p, text, true);
    expect_end(p, id, "lost", "no file: its folder was removed while it was written");
}

static void test_a_folder_that_is_filled_is_the_reason(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES], name[32];
    unsigned seen;
    char *final;
    FILE *f;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    final = file_of(ask(p), "_1.pt.trace.json");
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "/%d.x", i);
        snprintf(strrchr(final, '/'), sizeof(name), "%s", name);
        f = fopen(final, "w");
        if (f == NULL)
            break; /* it is being removed already */
        fclose(f);
    }
    *strrchr(final, '/') = '\0';
    expect_end(p, id, "lost", "no file: its folder holds more than 256 names");
    while (access(final, F_OK) == 0) /* emptied, some at a time, and removed */
        sched_yield();
    free(final);
}

static void test_it_ends_with_a_folder_open(void **state)
{
    struct place *p = *state;
    char id[TP_TRACE_ID_BYTES];
    unsigned seen;

    assert_int_equal(start(p), TP_OK);
    create(p, id, &seen);
    wait_change(p, seen);
    tp_kineto_collector_stop(p->collector);
    tp_kineto_collector_stop(p->collector); /* again does no harm */
}

static void test_it_survives_every_allocation_failure_of_its_start(void **state)
{
    struct place *p = *state;

    for (int n = 0;; n++) {
        int rc;

        fault_arm(n);
        rc = start(p);
        if (!fault_disarm()) {
            assert_int_equal(rc, TP_OK);
            assert_int_equal(n, 1);
            return;
        }
        assert_int_equal(rc, TP_ENOMEM);
        assert_null(p->collector);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_a_file_is_taken_when_it_has_its_name),
        TEST(test_a_file_that_is_the_last_deed_of_its_process_is_taken),
        TEST(test_a_file_is_at_its_log_file_when_it_is_taken),
        TEST(test_no_file_at_its_log_file_is_a_note),
        TEST(test_a_link_is_not_read),
        TEST(test_a_file_that_cannot_be_stored_now_is_taken_later),
        TEST(test_a_file_that_cannot_be_opened_now_is_taken_later),
        TEST(test_the_last_descriptors_are_not_for_folders),
        TEST(test_a_file_that_is_early_is_taken_later),
        TEST(test_a_home_that_cannot_be_used_is_told_before_a_trace_is_made),
        TEST(test_a_home_that_was_removed_is_made_again),
        TEST(test_a_folder_that_was_removed_is_made_again_in_time),
        TEST(test_a_folder_that_was_removed_under_its_file_is_the_reason),
        TEST(test_a_folder_that_is_filled_is_the_reason),
        TEST(test_it_ends_with_a_folder_open),
        TEST(test_it_survives_every_allocation_failure_of_its_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
