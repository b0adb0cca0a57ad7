/*
 * chrome_cache.h - fragments of Chrome JSON that come back in event after event.
 *
 * Strings by the number that the reader knows them by, and pid and tid by track. The
 * cache is bounded: what finds no room is made anew each time. Part of
 * chrome_writer.c; one thread at a time.
 */
#ifndef TP_TRACE_CHROME_CACHE_H
#define TP_TRACE_CHROME_CACHE_H

#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "trace/event.h"

struct tp_merge;

/* A copy is made in blocks of this size, so as many bytes behind it may be written. */
#define TP_CHROME_BLOCK_BYTES 32

/* Which member a string is. */
enum tp_chrome_member {
    TP_CHROME_NAME, /* "name":"...", */
    TP_CHROME_CAT,  /* "cat":"...", */
    TP_CHROME_KEY,  /* "...": */
    TP_CHROME_MEMBERS
};

/* A piece of the pool. len 0: not there. */
struct tp_chrome_fragment {
    uint32_t offset;
    uint32_t len;
};

/* The piece of a track, of which another lane may have the same index. */
struct tp_chrome_track {
    struct tp_chrome_fragment text;
    uint32_t lane;
};

struct tp_chrome_strings {
    struct tp_chrome_fragment *by_iid;
    uint32_t n;
};

/* Embed it; zero but for merge. All fields are private. */
struct tp_chrome_cache {
    const struct tp_merge *merge;
    size_t stream; /* place in the plan */
    struct tp_chrome_strings strings[TP_CHROME_MEMBERS];
    struct tp_chrome_track *tracks; /* by index */
    uint32_t n_tracks;
    struct tp_buf pool;
    struct tp_buf scratch; /* the track that found no room */
};

/* Release the memory of a cache. */
void tp_chrome_cache_fini(struct tp_chrome_cache *c);

/* Forget everything and go to another stream of the plan. */
void tp_chrome_cache_stream(struct tp_chrome_cache *c, size_t stream);

/* The slow path of tp_chrome_cache_string(). */
int tp_chrome_cache_fill(struct tp_chrome_cache *c, enum tp_chrome_member member,
                         const struct tp_name *name, struct tp_err *err);

/* Write a string with its key, or a key with its colon. Room:
 * tp_chrome_cache_room(). */
char *tp_chrome_cache_render(char *p, enum tp_chrome_member member,
                             const struct tp_name *name);

/*
 * Write `"pid":1,"tid":7,` with the ids of the download for those of the source. What
 * the plan does not know stays as it is, what is absent stays absent.
 *
 * text  set to the result, which lives until the next call with this cache; a block
 *       behind it may be read.
 *
 * TP_ENOMEM  text is unchanged.
 */
int tp_chrome_cache_track(struct tp_chrome_cache *c, const struct tp_track *track,
                          struct tp_str *text, struct tp_err *err);

/* The most bytes that a string takes with what goes around it. */
static inline size_t tp_chrome_cache_room(const struct tp_name *name)
{
    return TP_JSON_STRING_BYTES(name->len) + 16;
}

/* Put a string into the cache if there is room. TP_ENOMEM: it is not there. */
static inline int tp_chrome_cache_string(struct tp_chrome_cache *c,
                                         enum tp_chrome_member member,
                                         const struct tp_name *name, struct tp_err *err)
{
    const struct tp_chrome_strings *s = &c->strings[member];

    if (__builtin_expect(name->iid < s->n && s->by_iid[name->iid].len > 0, 1))
        return TP_OK;
    return tp_chrome_cache_fill(c, member, name, err);
}

/* Copy n bytes in blocks: as many more may be read and written as a block has. */
static inline char *tp_chrome_cache_copy(char *p, const char *from, size_t n)
{
    memcpy(p, from, TP_CHROME_BLOCK_BYTES);
    if (__builtin_expect(n > TP_CHROME_BLOCK_BYTES, 0))
        memcpy(p + TP_CHROME_BLOCK_BYTES, from + TP_CHROME_BLOCK_BYTES,
               n - TP_CHROME_BLOCK_BYTES);
    return p + n;
}

/* Write a string, from the cache if it is there. Room: tp_chrome_cache_room() and a
 * block. */
static inline char *tp_chrome_cache_put(char *p, const struct tp_chrome_cache *c,
                                        enum tp_chrome_member member,
                                        const struct tp_name *name)
{
    const struct tp_chrome_strings *s = &c->strings[member];
    struct tp_chrome_fragment f;

    if (__builtin_expect(name->iid >= s->n || s->by_iid[name->iid].len == 0, 0))
        return tp_chrome_cache_render(p, member, name);
    f = s->by_iid[name->iid];
    return tp_chrome_cache_copy(p, c->pool.data + f.offset, f.len);
}

#endif
