/*
 * chrome_cache.c - one pool of text, and where in it each thing is.
 *
 * Places are offsets, since the pool moves when it grows. Place 0 of every array is
 * that of iid 0, "not interned", and stays empty. Behind the last fragment there is
 * always a block of room, so that whole blocks can be copied from any place.
 */
#include "trace/chrome_cache.h"

#include <stdlib.h>

#include "trace/merge.h"

#define IIDS_MAX 65536u
#define TRACKS_MAX 65536u
#define POOL_BYTES ((size_t)4 << 20)
#define FIRST 256u

void tp_chrome_cache_fini(struct tp_chrome_cache *c)
{
    for (int i = 0; i < TP_CHROME_MEMBERS; i++)
        free(c->strings[i].by_iid);
    free(c->tracks);
    tp_buf_fini(&c->pool);
    tp_buf_fini(&c->scratch);
}

void tp_chrome_cache_stream(struct tp_chrome_cache *c, size_t stream)
{
    for (int i = 0; i < TP_CHROME_MEMBERS; i++) {
        struct tp_chrome_strings *s = &c->strings[i];

        if (s->n > 0)
            memset(s->by_iid, 0, s->n * sizeof(*s->by_iid));
    }
    if (c->n_tracks > 0)
        memset(c->tracks, 0, c->n_tracks * sizeof(*c->tracks));
    c->pool.len = 0;
    c->stream = stream;
}

/* Make an array of *n items reach to place i; new places are zero. */
static void *extend(void *items, uint32_t *n, uint32_t i, size_t item_bytes,
                    struct tp_err *err)
{
    size_t want = *n < FIRST ? FIRST : (size_t)*n * 2;
    char *bigger;

    while (want <= i)
        want *= 2;
    bigger = realloc(items, want * item_bytes);
    if (bigger == NULL) {
        tp_fail(err, TP_ENOMEM, "no memory for %zu cached strings", want);
        return NULL;
    }
    memset(bigger + *n * item_bytes, 0, (want - *n) * item_bytes);
    *n = (uint32_t)want;
    return bigger;
}

char *tp_chrome_cache_render(char *p, enum tp_chrome_member member,
                             const struct tp_name *name)
{
    if (member == TP_CHROME_NAME) {
        memcpy(p, "\"name\":", 7);
        p += 7;
    } else if (member == TP_CHROME_CAT) {
        memcpy(p, "\"cat\":", 6);
        p += 6;
    }
    p = tp_json_put_string(p, (struct tp_str){name->ptr, name->len});
    *p = member == TP_CHROME_KEY ? ':' : ',';
    return p + 1;
}

int tp_chrome_cache_fill(struct tp_chrome_cache *c, enum tp_chrome_member member,
                         const struct tp_name *name, struct tp_err *err)
{
    struct tp_chrome_strings *s = &c->strings[member];
    size_t room = tp_chrome_cache_room(name) + TP_CHROME_BLOCK_BYTES;
    char *start;
    void *bigger;
    int rc;

    if (name->iid == 0 || name->iid >= IIDS_MAX || c->pool.len + room > POOL_BYTES)
        return TP_OK; /* stays out, which is no error */
    if (name->iid >= s->n) {
        bigger = extend(s->by_iid, &s->n, name->iid, sizeof(*s->by_iid), err);
        if (bigger == NULL)
            return TP_ENOMEM;
        s->by_iid = bigger;
    }
    rc = tp_buf_reserve(&c->pool, room, err);
    if (rc != TP_OK)
        return rc;
    start = c->pool.data + c->pool.len;
    s->by_iid[name->iid] = (struct tp_chrome_fragment){
        (uint32_t)c->pool.len,
        (uint32_t)(tp_chrome_cache_render(start, member, name) - start)};
    c->pool.len += s->by_iid[name->iid].len;
    return TP_OK;
}

/* Write `"pid":1,` or nothing for an absent id. Room: id_room(). */
static char *put_id(char *p, const char *key, const struct tp_id *id)
{
    if (id->kind == TP_ID_NONE)
        return p;
    memcpy(p, key, 6);
    p += 6;
    if (id->kind == TP_ID_NUMBER)
        p = tp_json_put_i64(p, id->number);
    else
        p = tp_json_put_string(p, id->text);
    *p = ',';
    return p + 1;
}

static size_t id_room(const struct tp_id *id)
{
    return 32 + (id->kind == TP_ID_TEXT ? TP_JSON_STRING_BYTES(id->text.len) : 0);
}

/* The ids of the download for those of the source, as far as the plan knows them. */
static void map_ids(const struct tp_chrome_cache *c, struct tp_id *pid,
                    struct tp_id *tid, uint32_t lane)
{
    const struct tp_merge_process *p = tp_merge_process(c->merge, c->stream, pid);
    const struct tp_merge_thread *t;

    if (p == NULL)
        return;
    *pid = p->pid;
    t = tp_merge_thread(c->merge, p, tid, lane);
    if (t != NULL)
        *tid = t->tid;
}

/* Append the text of a track to a buffer. */
static int render_track(const struct tp_chrome_cache *c, const struct tp_track *track,
                        struct tp_buf *out, struct tp_chrome_fragment *f,
                        struct tp_err *err)
{
    struct tp_id pid = track->pid;
    struct tp_id tid = track->tid;
    char *p;
    int rc;

    map_ids(c, &pid, &tid, track->lane);
    rc =
        tp_buf_reserve(out, id_room(&pid) + id_room(&tid) + TP_CHROME_BLOCK_BYTES, err);
    if (rc != TP_OK)
        return rc;
    p = put_id(out->data + out->len, "\"pid\":", &pid);
    p = put_id(p, "\"tid\":", &tid);
    f->offset = (uint32_t)out->len;
    f->len = (uint32_t)(p - (out->data + out->len));
    out->len += f->len;
    return TP_OK;
}

/* The place of a track in the cache, or NULL when it has none. */
static int track_place(struct tp_chrome_cache *c, const struct tp_track *track,
                       struct tp_chrome_track **out, struct tp_err *err)
{
    *out = NULL;
    if (track->index >= TRACKS_MAX || c->pool.len >= POOL_BYTES)
        return TP_OK;
    if (track->index >= c->n_tracks) {
        void *bigger =
            extend(c->tracks, &c->n_tracks, track->index, sizeof(*c->tracks), err);

        if (bigger == NULL)
            return TP_ENOMEM;
        c->tracks = bigger;
    }
    if (c->tracks[track->index].text.len == 0)
        *out = &c->tracks[track->index];
    return TP_OK;
}

int tp_chrome_cache_track(struct tp_chrome_cache *c, const struct tp_track *track,
                          struct tp_str *text, struct tp_err *err)
{
    struct tp_chrome_fragment f;
    struct tp_chrome_track *place;
    struct tp_buf *where;
    int rc;

    if (track->index < c->n_tracks) {
        place = &c->tracks[track->index];
        if (place->text.len > 0 && place->lane == track->lane) {
            *text = (struct tp_str){c->pool.data + place->text.offset, place->text.len};
            return TP_OK;
        }
    }
    rc = track_place(c, track, &place, err);
    if (rc != TP_OK)
        return rc;
    c->scratch.len = 0;
    where = place != NULL ? &c->pool : &c->scratch;
    rc = render_track(c, track, where, &f, err);
    if (rc != TP_OK)
        return rc;
    if (place != NULL)
        *place = (struct tp_chrome_track){f, track->lane};
    *text = (struct tp_str){where->data + f.offset, f.len};
    return TP_OK;
}
