/*
 * fuzz_text.c - any bytes as a time, as UTF-8, as a pattern, and as a filter.
 *
 * Beyond not crashing: a time that is read is written back to the same instant,
 * repaired text is valid, and a pattern without special characters matches itself only.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/timefmt.h"
#include "base/utf8.h"
#include "core/filter.h"
#include "core/limits.h"

static void try_time(const char *p, size_t n)
{
    char text[TP_TIMEFMT_BYTES];
    int64_t ns;
    int64_t back;

    if (tp_timefmt_parse(p, n, &ns, NULL) != TP_OK)
        return;
    tp_timefmt_write(ns, text);
    if (tp_timefmt_parse(text, strlen(text), &back, NULL) != TP_OK || back != ns)
        abort();
}

static void try_utf8(const char *p, size_t n)
{
    struct tp_buf out = {0};
    size_t n_repairs;

    if (tp_utf8_repair(&out, p, n, &n_repairs, NULL) != TP_OK)
        return;
    if (!tp_utf8_is_valid(out.data, out.len) ||
        (n_repairs == 0) != tp_utf8_is_valid(p, n))
        abort();
    tp_buf_fini(&out);
}

static void try_filter(struct tp_str pattern, struct tp_str text)
{
    struct tp_filter_spec spec = {0};
    struct tp_filter_detail detail;
    struct tp_filter *f = NULL;

    if (!tp_glob_is_pattern(pattern) && tp_utf8_is_valid(pattern.ptr, pattern.len) &&
        tp_utf8_is_valid(text.ptr, text.len) &&
        tp_glob_matches(pattern, text) != tp_str_equal(pattern, text))
        abort();
    tp_glob_matches(pattern, text);
    spec.lists[TP_FILTER_INCLUDE].items = &pattern;
    spec.lists[TP_FILTER_INCLUDE].n = 1;
    spec.lists[TP_FILTER_NAMES_INCLUDE].items = &text;
    spec.lists[TP_FILTER_NAMES_INCLUDE].n = 1;
    if (tp_filter_new(&spec, NULL, NULL, &f, &detail, NULL) != TP_OK)
        return;
    tp_filter_name_matches(f, pattern.ptr, pattern.len);
    tp_filter_unref(f);
}

static void try_limit(struct tp_str text)
{
    struct tp_limits limits = tp_limits_default();
    const struct tp_limit_info *info = tp_limits_find(tp_str_of("max-body-bytes"));

    if (tp_limits_set(&limits, tp_str_of("max-body-bytes"), text, NULL) == TP_OK &&
        (limits.body_bytes < info->min || limits.body_bytes > info->max))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t half = size / 2;

    if (size == 0)
        return 0;
    try_time(p, size);
    try_utf8(p, size);
    try_filter((struct tp_str){p, half}, (struct tp_str){p + half, size - half});
    try_limit((struct tp_str){p, size});
    return 0;
}
