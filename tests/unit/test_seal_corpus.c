/*
 * test_seal_corpus.c - real traces, as far as they are at hand, lose nothing on the way
 * through ingest and seal.
 *
 * Both sides are compared as multisets: a sum of hashes over one line for each event.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

#include "support/stream_rig.h"
#include "trace/chrome_reader.h"

#define FOLDER "../shared/traces"

struct sum {
    uint64_t hash, events, slices, metas;
    struct tp_buf line;
    int64_t add_ns;
};

static int add_event(const struct tp_event *read, struct tp_err *err, void *arg)
{
    struct sum *sum = arg;
    struct tp_event ev = *read;
    struct tp_track track = *read->track;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    int rc;

    if (ev.kind == TP_EVENT_META) {
        sum->metas++;
        return TP_OK;
    }
    track.lane = 0;
    ev.track = &track;
    ev.ts_ns += sum->add_ns;
    sum->line.len = 0;
    rc = stream_rig_line(&ev, &sum->line, err);
    for (size_t i = 0; i < sum->line.len; i++)
        h = (h ^ (unsigned char)sum->line.data[i]) * UINT64_C(0x100000001b3);
    sum->hash += h;
    sum->events++;
    sum->slices += ev.kind == TP_EVENT_SLICE;
    return rc;
}

static void load(const char *path, struct tp_buf *out)
{
    gzFile f = gzopen(path, "rb");
    struct tp_err err;
    int n;

    assert_non_null(f);
    do {
        assert_int_equal(tp_buf_reserve(out, 1 << 20, &err), TP_OK);
        n = gzread(f, out->data + out->len, 1 << 20);
        assert_true(n >= 0);
        out->len += (size_t)n;
    } while (n > 0);
    gzclose(f);
}

/* Sum up what the reader says, with the base put on. */
static void sum_source(const struct tp_buf *json, struct sum *sum)
{
    struct tp_chrome_reader_opts opts = {.salvage = true,
                                         .on_event = add_event,
                                         .arg = sum};

    for (int round = 0; round < 2; round++) { /* the base may come last: read twice */
        struct tp_chrome_reader *r;
        const struct tp_chrome_stats *stats;
        struct tp_err err = {0};

        assert_int_equal(tp_chrome_reader_new(&opts, &r, &err), TP_OK);
        sum->hash = sum->events = sum->slices = sum->metas = 0;
        if (tp_chrome_reader_feed(r, json->data, json->len, &err) != TP_OK ||
            tp_chrome_reader_finish(r, &err) != TP_OK)
            fail_msg("%s", err.message);
        stats = tp_chrome_reader_stats(r);
        sum->add_ns = stats->has_base && !stats->base_was_added ? stats->base_ns : 0;
        tp_chrome_reader_free(r);
    }
}

static void check_file(const char *name)
{
    struct stream_rig rig = {.opts = {.salvage = true},
                             .seal_opts = {.memory_bytes = 4 << 20},
                             .piece_bytes = 65536};
    struct sum before = {0};
    struct sum after = {0};
    struct tp_buf json = {0};
    struct tp_err err = {0};
    char path[512];

    snprintf(path, sizeof(path), FOLDER "/%s", name);
    load(path, &json);
    sum_source(&json, &before);
    if (stream_rig_post(&rig, json.data, json.len, &err) != TP_OK ||
        stream_rig_seal(&rig, &err) != TP_OK ||
        stream_rig_each(&rig, add_event, &after, &err) != TP_OK)
        fail_msg("%s: %s", name, err.message);
    if (before.events != after.events || before.hash != after.hash)
        fail_msg("%s: %llu events in, %llu out, hash %llx and %llx", name,
                 (unsigned long long)before.events, (unsigned long long)after.events,
                 (unsigned long long)before.hash, (unsigned long long)after.hash);
    assert_int_equal(rig.sealed.index.n_events, after.events);
    assert_int_equal(rig.sealed.index.n_metas, before.metas);
    assert_true(after.slices > 0);
    tp_buf_fini(&before.line);
    tp_buf_fini(&after.line);
    tp_buf_fini(&json);
    stream_rig_fini(&rig);
}

static void test_real_traces_lose_nothing(void **state)
{
    DIR *dir = opendir(FOLDER);
    struct dirent *entry;

    (void)state;
    if (dir == NULL) {
        print_message("skipped: %s is not there\n", FOLDER);
        skip();
    }
    while ((entry = readdir(dir)) != NULL)
        if (strstr(entry->d_name, ".json.gz") != NULL)
            check_file(entry->d_name);
    closedir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_traces_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
