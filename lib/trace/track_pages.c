/*
 * track_pages.c - pages of tracks; a lane of UINT32_MAX marks a free place.
 */
#include "trace/track_pages.h"

#include <stdlib.h>
#include <string.h>

void tp_track_pages_fini(struct tp_track_pages *t)
{
    for (size_t i = 0; i < t->n_pages; i++)
        free(t->pages[i]);
    free(t->pages);
    *t = (struct tp_track_pages){0};
}

static int reach_page(struct tp_track_pages *t, size_t page, struct tp_err *err)
{
    size_t n = t->n_pages == 0 ? 4 : t->n_pages;
    struct tp_track **pages;

    if (page < t->n_pages)
        return TP_OK;
    while (n <= page)
        n *= 2;
    pages = realloc(t->pages, n * sizeof(struct tp_track *));
    if (pages == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu tracks", n * TP_TRACK_PAGE);
    memset(pages + t->n_pages, 0, (n - t->n_pages) * sizeof(struct tp_track *));
    t->pages = pages;
    t->n_pages = n;
    return TP_OK;
}

int tp_track_pages_add(struct tp_track_pages *t, const struct tp_track *track,
                       uint32_t shift, const struct tp_track **out, struct tp_err *err)
{
    size_t number = track->index / TP_TRACK_PAGE;
    struct tp_track *page;
    int rc = reach_page(t, number, err);

    if (rc != TP_OK)
        return rc;
    page = t->pages[number];
    if (page == NULL) {
        page = malloc(TP_TRACK_PAGE * sizeof(*page));
        if (page == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for %d tracks", TP_TRACK_PAGE);
        memset(page, 0xff, TP_TRACK_PAGE * sizeof(*page));
        t->pages[number] = page;
    }
    page += track->index % TP_TRACK_PAGE;
    *page = *track;
    page->index += shift;
    page->lane = 0;
    if (track->index >= t->n_max)
        t->n_max = track->index + 1;
    *out = page;
    return TP_OK;
}
