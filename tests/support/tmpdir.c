#include "support/tmpdir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Say what did not work and end the test program. */
static _Noreturn void give_up(const char *what, const char *path)
{
    fprintf(stderr, "tmpdir: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static char *make_in(const char *parent)
{
    char *path = tmpdir_path(parent, "test-XXXXXX");

    if (mkdtemp(path) == NULL)
        give_up("make", path);
    return path;
}

char *tmpdir_new(void)
{
    const char *parent = getenv("TMPDIR");

    return make_in(parent != NULL ? parent : "/tmp");
}

char *tmpdir_new_short(void)
{
    return make_in("/tmp");
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void tmpdir_remove(char *path)
{
    if (path == NULL)
        return;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        give_up("remove", path);
    free(path);
}

char *tmpdir_path(const char *dir, const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", dir, name) < 0)
        give_up("name a file in", dir);
    return path;
}

void tmpdir_write(const char *dir, const char *name, const void *data,
                  size_t size_bytes)
{
    char *path = tmpdir_path(dir, name);
    FILE *file = fopen(path, "wb");

    if (file == NULL)
        give_up("create", path);
    if (fwrite(data, 1, size_bytes, file) != size_bytes)
        give_up("write", path);
    if (fclose(file) != 0)
        give_up("write", path);
    free(path);
}

char *tmpdir_read(const char *dir, const char *name, size_t *size_bytes)
{
    char *path = tmpdir_path(dir, name);
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    size_t used = 0;

    if (file == NULL)
        give_up("open", path);
    for (size_t room = 4096;; room *= 2) {
        data = realloc(data, room + 1);
        if (data == NULL)
            give_up("hold", path);
        used += fread(data + used, 1, room - used, file);
        if (used < room)
            break;
    }
    if (ferror(file))
        give_up("read", path);
    fclose(file);
    free(path);
    data[used] = '\0';
    if (size_bytes != NULL)
        *size_bytes = used;
    return data;
}
