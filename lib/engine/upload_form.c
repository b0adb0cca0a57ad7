#include "engine/upload_form.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Compressed bytes do not tell what is in them, but names do. */
static bool is_perfetto_name(const char *name)
{
    static const char *const ends[] = {".pftrace",    ".perfetto-trace",    ".pb",
                                       ".pftrace.gz", ".perfetto-trace.gz", ".pb.gz"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends_with(name, ends[i]))
            return true;
    }
    return false;
}

/* A Perfetto trace begins with the tag of its first packet, 0x0a, which is also a line
 * feed, that JSON may begin with. JSON goes on with more blanks and a bracket. */
static bool is_perfetto_bytes(const unsigned char *p, size_t n)
{
    size_t i = 0;

    if (n < 2 || p[0] != 0x0a)
        return false;
    while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i == n || (p[i] != '{' && p[i] != '[');
}

enum tp_ingest_form tp_upload_ingest_form(enum tp_upload_form form,
                                          const char *file_name, const void *p,
                                          size_t n)
{
    switch (form) {
    case TP_FORM_JSON:
        return TP_INGEST_CHROME;
    case TP_FORM_NDJSON:
        return TP_INGEST_NDJSON;
    case TP_FORM_PERFETTO:
        return TP_INGEST_PERFETTO;
    default:
        break;
    }
    if (is_perfetto_name(file_name) || is_perfetto_bytes(p, n))
        return TP_INGEST_PERFETTO;
    return ends_with(file_name, ".ndjson") || ends_with(file_name, ".jsonl")
               ? TP_INGEST_NDJSON
               : TP_INGEST_CHROME;
}

bool tp_upload_offset(const struct tp_err *err, uint64_t *offset)
{
    const char *p = err == NULL ? NULL : strstr(err->message, "byte ");
    char *end;
    uint64_t v;

    if (p == NULL)
        return false;
    v = strtoull(p + 5, &end, 10);
    if (end == p + 5)
        return false;
    *offset = v;
    return true;
}

void tp_upload_damage(const struct tp_ingest_result *r, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    if (r->damages > 0)
        n += (size_t)snprintf(out, size, "%llu place%s skipped, the first at byte %llu",
                              (unsigned long long)r->damages,
                              r->damages == 1 ? "" : "s",
                              (unsigned long long)r->damage_offset[0]);
    if (r->is_truncated && n < size)
        n += (size_t)snprintf(out + n, size - n, "%sit ends in the middle",
                              n == 0 ? "" : "; ");
    if (r->members_left_out > 0 && n < size)
        snprintf(out + n, size - n, "%s%llu top-level member%s over a limit left out",
                 n == 0 ? "" : "; ", (unsigned long long)r->members_left_out,
                 r->members_left_out == 1 ? "" : "s");
}
