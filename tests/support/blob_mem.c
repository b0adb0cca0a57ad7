/*
 * blob_mem.c - names and contents are two things, as directory entries and inodes are:
 *
 *     entry "a/b" --> content (2 references) <-- open blob
 *
 * so that rename and remove work on open blobs as they do on a POSIX file system.
 */
#include "support/blob_mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a blob; freed with its last reference. */
struct content {
    char *data;
    size_t len;
    size_t cap;
    size_t refs; /* a name, and each open blob */
};

struct entry {
    char *name;
    struct content *content;
};

struct home {
    struct tp_blobs ops;  /* ops.ctx is this struct */
    pthread_mutex_t lock; /* guards all below */
    struct entry *entries;
    size_t n_entries;
    size_t cap_entries;
    size_t n_open;
    size_t total_bytes;
    size_t limit_bytes;
    int left; /* operations that pass before the failure, plus one; 0 = unarmed */
    bool stays_broken;
    bool has_fired;
    void (*meanwhile)(void *arg);
    void *meanwhile_arg;
};

struct mem_blob {
    struct tp_blob base;
    struct home *home;
    struct content *content;
    bool is_read_only;
};

static struct home *home_of(struct tp_blob *blob)
{
    return ((struct mem_blob *)blob)->home;
}

/* Count an operation and say whether it is the one to fail. */
static int count_operation(struct home *h, const char *what, struct tp_err *err)
{
    if (h->left == 0)
        return TP_OK;
    if (h->left > 1) {
        h->left--;
        return TP_OK;
    }
    if (!h->stays_broken)
        h->left = 0;
    h->has_fired = true;
    return tp_fail(err, TP_EIO, "%s failed because the test wants it", what);
}

static void content_unref(struct home *h, struct content *c)
{
    if (c == NULL || --c->refs > 0)
        return;
    h->total_bytes -= c->len;
    free(c->data);
    free(c);
}

/* Make room for n more bytes; nothing else changes. */
static int content_reserve(struct home *h, struct content *c, size_t n,
                           struct tp_err *err)
{
    size_t cap = c->cap == 0 ? 256 : c->cap;
    char *data;

    if (h->limit_bytes != 0 && n > h->limit_bytes - h->total_bytes)
        return tp_fail(err, TP_EQUOTA, "the medium is full");
    if (n <= c->cap - c->len)
        return TP_OK;
    while (cap < c->len + n)
        cap *= 2;
    data = realloc(c->data, cap);
    if (data == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %zu bytes of a blob", cap);
    c->data = data;
    c->cap = cap;
    return TP_OK;
}

static struct entry *find(struct home *h, const char *name)
{
    for (size_t i = 0; i < h->n_entries; i++) {
        if (strcmp(h->entries[i].name, name) == 0)
            return &h->entries[i];
    }
    return NULL;
}

static void remove_entry(struct home *h, struct entry *e)
{
    free(e->name);
    content_unref(h, e->content);
    *e = h->entries[--h->n_entries];
}

/* Add a name for c, taking one reference. */
static int add_entry(struct home *h, const char *name, struct content *c,
                     struct tp_err *err)
{
    char *copy;

    if (h->n_entries == h->cap_entries) {
        size_t cap = h->cap_entries == 0 ? 16 : h->cap_entries * 2;
        struct entry *entries = realloc(h->entries, cap * sizeof(*entries));

        if (entries == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for the name '%s'", name);
        h->entries = entries;
        h->cap_entries = cap;
    }
    copy = strdup(name);
    if (copy == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the name '%s'", name);
    h->entries[h->n_entries++] = (struct entry){copy, c};
    c->refs++;
    return TP_OK;
}

/* Open c, or a new content under name (NULL: under none). */
static int open_content(struct home *h, const char *name, struct content *c,
                        bool is_read_only, struct tp_blob **out, struct tp_err *err)
{
    struct mem_blob *b = calloc(1, sizeof(*b));
    struct content *made = NULL;
    int rc = TP_OK;

    if (b == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for an open blob");
    if (c == NULL) {
        made = calloc(1, sizeof(*made));
        if (made == NULL)
            rc = tp_fail(err, TP_ENOMEM, "no memory for a blob");
        else if (name != NULL)
            rc = add_entry(h, name, made, err);
        if (rc != TP_OK) {
            free(made);
            free(b);
            return rc;
        }
        c = made;
    }
    c->refs++;
    h->n_open++;
    *b = (struct mem_blob){{&h->ops}, h, c, is_read_only};
    *out = &b->base;
    return TP_OK;
}

static int mem_open_append(void *ctx, const char *name, struct tp_blob **out,
                           struct tp_err *err)
{
    struct home *h = ctx;
    struct entry *e;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "open", err);
    if (rc == TP_OK) {
        e = name == NULL ? NULL : find(h, name);
        rc = open_content(h, name, e == NULL ? NULL : e->content, false, out, err);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_open_read(void *ctx, const char *name, struct tp_blob **out,
                         struct tp_err *err)
{
    struct home *h = ctx;
    struct entry *e;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "open", err);
    e = find(h, name);
    if (rc == TP_OK && e == NULL)
        rc = tp_fail(err, TP_ENOTFOUND, "there is no blob '%s'", name);
    if (rc == TP_OK)
        rc = open_content(h, name, e->content, true, out, err);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int append_bytes(struct mem_blob *b, const void *p, size_t n, struct tp_err *err)
{
    struct content *c = b->content;
    int rc;

    assert(!b->is_read_only);
    rc = content_reserve(b->home, c, n, err);
    if (rc != TP_OK || n == 0)
        return rc;
    memcpy(c->data + c->len, p, n);
    c->len += n;
    b->home->total_bytes += n;
    return TP_OK;
}

static void call_meanwhile(struct home *h)
{
    void (*fn)(void *arg);

    pthread_mutex_lock(&h->lock);
    fn = h->meanwhile;
    h->meanwhile = NULL;
    pthread_mutex_unlock(&h->lock);
    if (fn != NULL)
        fn(h->meanwhile_arg);
}

static int mem_append(struct tp_blob *blob, const void *p, size_t n, struct tp_err *err)
{
    struct home *h = home_of(blob);
    int rc;

    call_meanwhile(h);
    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "append", err);
    if (rc == TP_OK)
        rc = append_bytes((struct mem_blob *)blob, p, n, err);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_append_blob(struct tp_blob *blob, struct tp_blob *from, uint64_t n,
                           struct tp_err *err)
{
    struct home *h = home_of(blob);
    struct content *source = ((struct mem_blob *)from)->content;
    int rc;

    assert(home_of(from) == h && source != ((struct mem_blob *)blob)->content);
    assert(n <= source->len);
    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "append", err);
    if (rc == TP_OK)
        rc = append_bytes((struct mem_blob *)blob, source->data, (size_t)n, err);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_pwrite(struct tp_blob *blob, uint64_t offset, const void *p, size_t n,
                      struct tp_err *err)
{
    struct home *h = home_of(blob);
    struct content *c = ((struct mem_blob *)blob)->content;
    int rc;

    assert(offset <= c->len && n <= c->len - offset);
    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "write", err);
    if (rc == TP_OK && n > 0)
        memcpy(c->data + offset, p, n);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_pread(struct tp_blob *blob, uint64_t offset, void *p, size_t n,
                     size_t *got, struct tp_err *err)
{
    struct home *h = home_of(blob);
    struct content *c = ((struct mem_blob *)blob)->content;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "read", err);
    if (rc == TP_OK) {
        size_t there = offset < c->len ? c->len - (size_t)offset : 0;

        *got = n < there ? n : there;
        if (*got > 0)
            memcpy(p, c->data + offset, *got);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_truncate(struct tp_blob *blob, uint64_t size_bytes, struct tp_err *err)
{
    struct home *h = home_of(blob);
    struct content *c = ((struct mem_blob *)blob)->content;
    int rc;

    assert(size_bytes <= c->len);
    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "truncate", err);
    if (rc == TP_OK) {
        h->total_bytes -= c->len - (size_t)size_bytes;
        c->len = (size_t)size_bytes;
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int mem_sync(struct tp_blob *blob, struct tp_err *err)
{
    struct home *h = home_of(blob);
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "sync", err);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static uint64_t mem_size(struct tp_blob *blob)
{
    struct home *h = home_of(blob);
    uint64_t size;

    pthread_mutex_lock(&h->lock);
    size = ((struct mem_blob *)blob)->content->len;
    pthread_mutex_unlock(&h->lock);
    return size;
}

static int mem_fd(struct tp_blob *blob)
{
    (void)blob;
    return -1;
}

static void mem_close(void *ctx, struct tp_blob *blob)
{
    struct home *h = ctx;

    if (blob == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    content_unref(h, ((struct mem_blob *)blob)->content);
    h->n_open--;
    pthread_mutex_unlock(&h->lock);
    free(blob);
}

static int mem_rename(void *ctx, const char *from, const char *to, struct tp_err *err)
{
    struct home *h = ctx;
    struct entry *source;
    struct entry *target;
    char *name = NULL;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "rename", err);
    source = find(h, from);
    if (rc == TP_OK && source == NULL)
        rc = tp_fail(err, TP_ENOTFOUND, "there is no blob '%s'", from);
    if (rc == TP_OK && strcmp(from, to) != 0) {
        name = strdup(to);
        if (name == NULL)
            rc = tp_fail(err, TP_ENOMEM, "no memory for the name '%s'", to);
    }
    if (rc == TP_OK && name != NULL) {
        target = find(h, to);
        if (target != NULL)
            remove_entry(h, target);
        source = find(h, from); /* the removal may have moved it */
        free(source->name);
        source->name = name;
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

/* Whether name is `what`, or in it when `what` is a folder ("" is the root). */
static bool is_within(const char *name, const char *what)
{
    size_t n = strlen(what);

    if (n == 0 || what[n - 1] == '/')
        return strncmp(name, what, n) == 0;
    return strcmp(name, what) == 0;
}

static int mem_remove(void *ctx, const char *name, struct tp_err *err)
{
    struct home *h = ctx;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "remove", err);
    for (size_t i = h->n_entries; rc == TP_OK && i-- > 0;) {
        if (is_within(h->entries[i].name, name))
            remove_entry(h, &h->entries[i]);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

/* Call back without the lock: the callback may remove what it is told about. */
static int mem_list(void *ctx, const char *folder, tp_blob_name_fn fn, void *arg,
                    struct tp_err *err)
{
    struct home *h = ctx;
    struct entry *copies = NULL;
    size_t n = 0;
    int rc;

    pthread_mutex_lock(&h->lock);
    rc = count_operation(h, "list", err);
    if (rc == TP_OK && h->n_entries > 0) {
        copies = calloc(h->n_entries, sizeof(*copies));
        if (copies == NULL)
            rc = tp_fail(err, TP_ENOMEM, "no memory for a listing");
    }
    for (size_t i = 0; rc == TP_OK && i < h->n_entries; i++) {
        if (!is_within(h->entries[i].name, folder))
            continue;
        copies[n] = h->entries[i];
        copies[n].name = strdup(h->entries[i].name);
        if (copies[n].name == NULL)
            rc = tp_fail(err, TP_ENOMEM, "no memory for a listing");
        else
            copies[n++].content->refs++;
    }
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; rc == TP_OK && i < n; i++)
        rc = fn(copies[i].name, copies[i].content->len, arg);
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < n; i++) {
        free(copies[i].name);
        content_unref(h, copies[i].content);
    }
    pthread_mutex_unlock(&h->lock);
    free(copies);
    return rc;
}

struct tp_blobs *blob_mem_new(void)
{
    struct home *h = calloc(1, sizeof(*h));

    if (h == NULL)
        abort();
    pthread_mutex_init(&h->lock, NULL);
    h->ops = (struct tp_blobs){
        .ctx = h,
        .open_append = mem_open_append,
        .open_read = mem_open_read,
        .append = mem_append,
        .append_blob = mem_append_blob,
        .pwrite = mem_pwrite,
        .pread = mem_pread,
        .truncate = mem_truncate,
        .sync = mem_sync,
        .size = mem_size,
        .fd = mem_fd,
        .close = mem_close,
        .rename = mem_rename,
        .remove = mem_remove,
        .list = mem_list,
    };
    return &h->ops;
}

void blob_mem_free(struct tp_blobs *blobs)
{
    struct home *h;

    if (blobs == NULL)
        return;
    h = blobs->ctx;
    assert(h->n_open == 0);
    while (h->n_entries > 0)
        remove_entry(h, &h->entries[0]);
    free(h->entries);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static void arm(struct tp_blobs *blobs, int n, bool stays_broken)
{
    struct home *h = blobs->ctx;

    assert(n >= 0);
    pthread_mutex_lock(&h->lock);
    h->left = n + 1;
    h->stays_broken = stays_broken;
    h->has_fired = false;
    pthread_mutex_unlock(&h->lock);
}

void blob_mem_fail_after(struct tp_blobs *blobs, int n)
{
    arm(blobs, n, false);
}

void blob_mem_break_after(struct tp_blobs *blobs, int n)
{
    arm(blobs, n, true);
}

bool blob_mem_disarm(struct tp_blobs *blobs)
{
    struct home *h = blobs->ctx;
    bool fired;

    pthread_mutex_lock(&h->lock);
    fired = h->has_fired;
    h->has_fired = false;
    h->left = 0;
    pthread_mutex_unlock(&h->lock);
    return fired;
}

void blob_mem_limit(struct tp_blobs *blobs, size_t limit_bytes)
{
    struct home *h = blobs->ctx;

    pthread_mutex_lock(&h->lock);
    h->limit_bytes = limit_bytes == 0 || limit_bytes > h->total_bytes ? limit_bytes
                                                                      : h->total_bytes;
    pthread_mutex_unlock(&h->lock);
}

void blob_mem_meanwhile(struct tp_blobs *blobs, void (*fn)(void *arg), void *arg)
{
    struct home *h = blobs->ctx;

    pthread_mutex_lock(&h->lock);
    h->meanwhile = fn;
    h->meanwhile_arg = arg;
    pthread_mutex_unlock(&h->lock);
}

void blob_mem_put(struct tp_blobs *blobs, const char *name, const void *p, size_t n)
{
    struct home *h = blobs->ctx;
    size_t limit_bytes = h->limit_bytes;
    struct tp_blob *blob = NULL;

    h->limit_bytes = 0;
    if (mem_open_append(h, name, &blob, NULL) != TP_OK ||
        mem_truncate(blob, 0, NULL) != TP_OK || mem_append(blob, p, n, NULL) != TP_OK)
        abort();
    mem_close(h, blob);
    h->limit_bytes = limit_bytes;
}

char *blob_mem_data(struct tp_blobs *blobs, const char *name, size_t *n)
{
    struct home *h = blobs->ctx;
    struct entry *e;
    char *data = NULL;
    static char nothing[1];

    pthread_mutex_lock(&h->lock);
    e = find(h, name);
    if (e != NULL) {
        data = e->content->data == NULL ? nothing : e->content->data;
        if (n != NULL)
            *n = e->content->len;
    }
    pthread_mutex_unlock(&h->lock);
    return data;
}

size_t blob_mem_names(struct tp_blobs *blobs)
{
    struct home *h = blobs->ctx;
    size_t n;

    pthread_mutex_lock(&h->lock);
    n = h->n_entries;
    pthread_mutex_unlock(&h->lock);
    return n;
}

size_t blob_mem_open(struct tp_blobs *blobs)
{
    struct home *h = blobs->ctx;
    size_t n;

    pthread_mutex_lock(&h->lock);
    n = h->n_open;
    pthread_mutex_unlock(&h->lock);
    return n;
}
