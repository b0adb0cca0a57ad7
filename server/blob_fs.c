/*
 * blob_fs.c - openat(), positioned writes and a size that we keep ourselves.
 *
 * A blob does not use O_APPEND: it writes at the size that it knows and moves the size
 * only when all bytes are there. A failed append is cut off again; if even that fails,
 * the bytes behind the known size are garbage that the next append overwrites, and a
 * reader of the same process never looks behind the size. After a crash, the formats
 * themselves find a torn tail.
 *
 * pread() may run beside an append, so the size is atomic; everything else of a blob
 * belongs to one thread at a time.
 */
#include "server/blob_fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/blob_folder.h"

#define COPY_BYTES (1u << 16)

struct blob_fs {
    struct tp_blobs ops;
    int dir_fd;
    bool is_durable;
    _Atomic unsigned long next_anonymous; /* only where O_TMPFILE is not supported */
};

struct file_blob {
    struct tp_blob base;
    int fd;
    _Atomic uint64_t size_bytes;
};

static struct file_blob *file_of(struct tp_blob *blob)
{
    return (struct file_blob *)blob;
}

/* Names are made by this program; a bad one is a mistake that must not reach a path. */
static bool name_is_valid(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789./_-");

    return n > 0 && name[n] == '\0' && n < PATH_MAX && name[0] != '/' &&
           strstr(name, "..") == NULL && strstr(name, "//") == NULL;
}

static int check_name(const char *name, struct tp_err *err)
{
    if (!name_is_valid(name))
        return tp_fail(err, TP_EINVAL, "'%s' is not a name of a blob", name);
    return TP_OK;
}

/* Make the entries of the folder that holds name survive a loss of power. */
static int sync_folder(struct blob_fs *fs, const char *name, struct tp_err *err)
{
    const char *slash = strrchr(name, '/');
    char folder[PATH_MAX] = ".";
    int fd;
    int rc = TP_OK;

    if (!fs->is_durable)
        return TP_OK;
    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name);
    fd = openat(fs->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tp_blob_fail_errno(err, "open the folder of", name);
    if (fsync(fd) != 0)
        rc = tp_blob_fail_errno(err, "sync the folder of", name);
    close(fd);
    return rc;
}

/* Make the folders above name; each new one is synced into its parent. */
static int make_folders(struct blob_fs *fs, const char *name, struct tp_err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", name);
    for (char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdirat(fs->dir_fd, path, 0700) == 0) {
            if (sync_folder(fs, path, err) != TP_OK)
                return err == NULL ? TP_EIO : err->code;
        } else if (errno != EEXIST) {
            return tp_blob_fail_errno(err, "make the folder", path);
        }
        *p = '/';
    }
    return TP_OK;
}

static int wrap_fd(struct blob_fs *fs, int fd, const char *name, struct tp_blob **out,
                   struct tp_err *err)
{
    struct file_blob *f = NULL;
    struct stat st;
    int rc;

    if (fstat(fd, &st) != 0) {
        rc = tp_blob_fail_errno(err, "look at", name);
        goto fail;
    }
    f = calloc(1, sizeof(*f));
    if (f == NULL) {
        rc = tp_fail(err, TP_ENOMEM, "no memory to open '%s'", name);
        goto fail;
    }
    f->base.home = &fs->ops;
    f->fd = fd;
    f->size_bytes = (uint64_t)st.st_size;
    *out = &f->base;
    return TP_OK;

fail:
    close(fd);
    return rc;
}

static int open_anonymous(struct blob_fs *fs, struct tp_blob **out, struct tp_err *err)
{
    char name[64];
    int fd = openat(fs->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return wrap_fd(fs, fd, "(anonymous)", out, err);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return tp_blob_fail_errno(err, "make", "(anonymous)");

    /* Some file systems have no O_TMPFILE: a name that is gone at once does it too. */
    snprintf(name, sizeof(name), "anonymous-%ld-%lu", (long)getpid(),
             atomic_fetch_add(&fs->next_anonymous, 1));
    fd = openat(fs->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return tp_blob_fail_errno(err, "make", name);
    unlinkat(fs->dir_fd, name, 0);
    return wrap_fd(fs, fd, name, out, err);
}

static int fs_open_append(void *ctx, const char *name, struct tp_blob **out,
                          struct tp_err *err)
{
    struct blob_fs *fs = ctx;
    int fd;
    int rc;

    if (name == NULL)
        return open_anonymous(fs, out, err);
    rc = check_name(name, err);
    if (rc != TP_OK)
        return rc;

    fd = openat(fs->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        return wrap_fd(fs, fd, name, out, err);
    if (errno != ENOENT)
        return tp_blob_fail_errno(err, "open", name);
    rc = make_folders(fs, name, err);
    if (rc != TP_OK)
        return rc;
    fd = openat(fs->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tp_blob_fail_errno(err, "make", name);
    rc = sync_folder(fs, name, err);
    if (rc != TP_OK) {
        close(fd);
        return rc;
    }
    return wrap_fd(fs, fd, name, out, err);
}

static int fs_open_read(void *ctx, const char *name, struct tp_blob **out,
                        struct tp_err *err)
{
    struct blob_fs *fs = ctx;
    int rc = check_name(name, err);
    int fd;

    if (rc != TP_OK)
        return rc;
    fd = openat(fs->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return tp_blob_fail_errno(err, "open", name);
    return wrap_fd(fs, fd, name, out, err);
}

static int write_at(int fd, uint64_t offset, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, p, n, (off_t)offset);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return -1;
        }
        p += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

/* Undo a half-done append. A failure is harmless here; the file comment says why. */
static void cut_back(struct file_blob *f, uint64_t size_bytes)
{
    int saved = errno;

    if (ftruncate(f->fd, (off_t)size_bytes) != 0)
        errno = saved;
    errno = saved;
}

static int fs_append(struct tp_blob *blob, const void *p, size_t n, struct tp_err *err)
{
    struct file_blob *f = file_of(blob);
    uint64_t size = atomic_load_explicit(&f->size_bytes, memory_order_relaxed);

    if (write_at(f->fd, size, p, n) != 0) {
        cut_back(f, size);
        return tp_blob_fail_errno(err, "append to", "a stream");
    }
    atomic_store_explicit(&f->size_bytes, size + n, memory_order_release);
    return TP_OK;
}

/* As copy_file_range() where it is not supported, between some pairs of files. */
static ssize_t copy_piece(int from, off_t *at, int to, off_t *dest, size_t n)
{
    char piece[COPY_BYTES];
    ssize_t got = pread(from, piece, n < sizeof(piece) ? n : sizeof(piece), *at);

    if (got <= 0)
        return got;
    if (write_at(to, (uint64_t)*dest, piece, (size_t)got) != 0)
        return -1;
    *at += got;
    *dest += got;
    return got;
}

static int copy_range(int from, int to, uint64_t size, uint64_t n)
{
    off_t at = 0;
    off_t dest = (off_t)size;
    bool by_kernel = true;

    while ((uint64_t)at < n) {
        uint64_t rest = n - (uint64_t)at;
        size_t want = rest > (1u << 30) ? 1u << 30 : (size_t)rest;
        ssize_t got = by_kernel ? copy_file_range(from, &at, to, &dest, want, 0)
                                : copy_piece(from, &at, to, &dest, want);

        if (got > 0)
            continue;
        if (got < 0 && errno == EINTR)
            continue;
        /* It answers 0, too, on some file systems that cannot do it. */
        if (by_kernel && (got == 0 || errno == EXDEV || errno == EINVAL ||
                          errno == ENOSYS || errno == EOPNOTSUPP || errno == EBADF)) {
            by_kernel = false;
            continue;
        }
        if (got == 0)
            errno = EIO;
        return -1;
    }
    return 0;
}

static int fs_append_blob(struct tp_blob *blob, struct tp_blob *from, uint64_t n,
                          struct tp_err *err)
{
    struct file_blob *f = file_of(blob);
    uint64_t size = atomic_load_explicit(&f->size_bytes, memory_order_relaxed);

    if (copy_range(file_of(from)->fd, f->fd, size, n) != 0) {
        cut_back(f, size);
        return tp_blob_fail_errno(err, "append to", "a stream");
    }
    atomic_store_explicit(&f->size_bytes, size + n, memory_order_release);
    return TP_OK;
}

static int fs_pwrite(struct tp_blob *blob, uint64_t offset, const void *p, size_t n,
                     struct tp_err *err)
{
    struct file_blob *f = file_of(blob);

    assert(offset + n <= f->size_bytes);
    if (write_at(f->fd, offset, p, n) != 0)
        return tp_blob_fail_errno(err, "write into", "a stream");
    return TP_OK;
}

static int fs_pread(struct tp_blob *blob, uint64_t offset, void *p, size_t n,
                    size_t *got, struct tp_err *err)
{
    struct file_blob *f = file_of(blob);
    uint64_t size = atomic_load_explicit(&f->size_bytes, memory_order_acquire);
    char *to = p;
    size_t done = 0;

    if (offset >= size)
        n = 0;
    else if (n > size - offset)
        n = (size_t)(size - offset);
    while (done < n) {
        ssize_t r = pread(f->fd, to + done, n - done, (off_t)(offset + done));

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return tp_blob_fail_errno(err, "read", "a stream");
        if (r == 0)
            break;
        done += (size_t)r;
    }
    *got = done;
    return TP_OK;
}

static int fs_truncate(struct tp_blob *blob, uint64_t size_bytes, struct tp_err *err)
{
    struct file_blob *f = file_of(blob);

    assert(size_bytes <= f->size_bytes);
    if (ftruncate(f->fd, (off_t)size_bytes) != 0)
        return tp_blob_fail_errno(err, "cut", "a stream");
    f->size_bytes = size_bytes;
    return TP_OK;
}

static int fs_sync(struct tp_blob *blob, struct tp_err *err)
{
    if (fdatasync(file_of(blob)->fd) != 0)
        return tp_blob_fail_errno(err, "sync", "a stream");
    return TP_OK;
}

static uint64_t fs_size(struct tp_blob *blob)
{
    return atomic_load_explicit(&file_of(blob)->size_bytes, memory_order_acquire);
}

static int fs_fd(struct tp_blob *blob)
{
    return file_of(blob)->fd;
}

static void fs_close(void *ctx, struct tp_blob *blob)
{
    (void)ctx;
    if (blob == NULL)
        return;
    close(file_of(blob)->fd);
    free(blob);
}

static int fs_rename(void *ctx, const char *from, const char *to, struct tp_err *err)
{
    struct blob_fs *fs = ctx;
    int rc = check_name(from, err);

    if (rc == TP_OK)
        rc = check_name(to, err);
    if (rc == TP_OK)
        rc = make_folders(fs, to, err);
    if (rc != TP_OK)
        return rc;
    if (renameat(fs->dir_fd, from, fs->dir_fd, to) != 0)
        return tp_blob_fail_errno(err, "rename", from);
    return sync_folder(fs, to, err);
}

static int fs_remove(void *ctx, const char *name, struct tp_err *err)
{
    struct blob_fs *fs = ctx;
    char path[PATH_MAX];
    size_t n = strlen(name);
    bool is_folder = n > 0 && name[n - 1] == '/';
    int rc = check_name(name, err);

    if (rc != TP_OK)
        return rc;
    snprintf(path, sizeof(path), "%.*s", (int)(is_folder ? n - 1 : n), name);
    rc = tp_blob_folder_remove(fs->dir_fd, path, is_folder, err);
    if (rc != TP_OK)
        return rc;
    /* The folder above may be gone itself; then there is nothing to make durable. */
    if (sync_folder(fs, path, err) != TP_OK && errno != ENOENT)
        return err == NULL ? TP_EIO : err->code;
    return TP_OK;
}

struct listing {
    tp_blob_name_fn fn;
    void *arg;
};

/* Pass on what can be a blob of ours. */
static int list_valid(const char *name, uint64_t size_bytes, void *arg)
{
    const struct listing *listing = arg;

    return name_is_valid(name) ? listing->fn(name, size_bytes, listing->arg) : TP_OK;
}

static int fs_list(void *ctx, const char *folder, tp_blob_name_fn fn, void *arg,
                   struct tp_err *err)
{
    struct listing listing = {fn, arg};
    struct blob_fs *fs = ctx;
    char path[PATH_MAX] = ".";
    size_t n = strlen(folder);
    int rc;

    if (n > 0) {
        rc = check_name(folder, err);
        if (rc != TP_OK)
            return rc;
        snprintf(path, sizeof(path), "%.*s", (int)(folder[n - 1] == '/' ? n - 1 : n),
                 folder);
    }
    return tp_blob_folder_list(fs->dir_fd, path, list_valid, &listing, err);
}

int tp_blob_fs_make_dir(const char *dir, struct tp_err *err)
{
    return tp_blob_folder_make(dir, err);
}

static const struct tp_blobs operations = {
    .open_append = fs_open_append,
    .open_read = fs_open_read,
    .append = fs_append,
    .append_blob = fs_append_blob,
    .pwrite = fs_pwrite,
    .pread = fs_pread,
    .truncate = fs_truncate,
    .sync = fs_sync,
    .size = fs_size,
    .fd = fs_fd,
    .close = fs_close,
    .rename = fs_rename,
    .remove = fs_remove,
    .list = fs_list,
};

int tp_blob_fs_open(const char *dir, bool is_durable, struct tp_blobs **out,
                    struct tp_err *err)
{
    struct blob_fs *fs;
    int rc = tp_blob_fs_make_dir(dir, err);

    if (rc != TP_OK)
        return rc;
    fs = calloc(1, sizeof(*fs));
    if (fs == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for the data directory");
    fs->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fs->dir_fd < 0) {
        rc = tp_fail(err, TP_EIO, "cannot open directory '%s': %m", dir);
        free(fs);
        return rc;
    }
    fs->ops = operations;
    fs->ops.ctx = fs;
    fs->is_durable = is_durable;
    *out = &fs->ops;
    return TP_OK;
}

void tp_blob_fs_close(struct tp_blobs *blobs)
{
    struct blob_fs *fs;

    if (blobs == NULL)
        return;
    fs = blobs->ctx;
    close(fs->dir_fd);
    free(fs);
}
