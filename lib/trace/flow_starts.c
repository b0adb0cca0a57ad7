/*
 * flow_starts.c - a set of 64-bit hashes. Two flows that share one are as likely as a
 * broken disk, and all that happens is that one arrow is not drawn in one format.
 */
#include "trace/flow_starts.h"

#include <stdlib.h>

#define FIRST_PLACES 1024

void tp_flow_starts_fini(struct tp_flow_starts *s)
{
    free(s->hashes);
    *s = (struct tp_flow_starts){0};
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const char *p, size_t n)
{
    h = mix(h, n);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
    return mix(h, n);
}

static uint64_t hash_flow(const struct tp_event *ev)
{
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), ev->id.kind);

    if (ev->id.kind == TP_ID_TEXT)
        h = mix_bytes(h, ev->id.text.ptr, ev->id.text.len);
    else
        h = mix(h, (uint64_t)ev->id.number);
    h = mix_bytes(h, ev->cat.ptr, ev->cat.len);
    h = mix_bytes(h, ev->name.ptr, ev->name.len);
    return h == 0 ? 1 : h;
}

/* The place of a hash: where it is, or the free one where it would be. */
static size_t find_place(const uint64_t *hashes, size_t n_places, uint64_t h)
{
    size_t i = (size_t)h & (n_places - 1);

    while (hashes[i] != 0 && hashes[i] != h)
        i = (i + 1) & (n_places - 1);
    return i;
}

static int grow(struct tp_flow_starts *s, struct tp_err *err)
{
    size_t n_places = s->n_places == 0 ? FIRST_PLACES : s->n_places * 2;
    uint64_t *hashes;

    if (s->n < s->n_places / 2)
        return TP_OK;
    hashes = calloc(n_places, sizeof(*hashes));
    if (hashes == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu flows", n_places);
    for (size_t i = 0; i < s->n_places; i++)
        if (s->hashes[i] != 0)
            hashes[find_place(hashes, n_places, s->hashes[i])] = s->hashes[i];
    free(s->hashes);
    s->hashes = hashes;
    s->n_places = n_places;
    return TP_OK;
}

int tp_flow_starts_add(struct tp_flow_starts *s, const struct tp_event *ev,
                       bool *is_first, struct tp_err *err)
{
    uint64_t h = hash_flow(ev);
    size_t i;
    int rc;

    if (s->n >= TP_FLOW_STARTS_MAX) {
        *is_first = s->hashes[find_place(s->hashes, s->n_places, h)] == 0;
        return TP_OK;
    }
    rc = grow(s, err);
    if (rc != TP_OK)
        return rc;
    i = find_place(s->hashes, s->n_places, h);
    *is_first = s->hashes[i] == 0;
    s->n += *is_first;
    s->hashes[i] = h;
    return TP_OK;
}
