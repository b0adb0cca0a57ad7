/*
 * tmpdir.h - a temporary directory for one test, and files in it.
 *
 * Each call of tmpdir_new() makes a fresh directory under $TMPDIR (or /tmp), so that
 * tests share no state and need no order. A failure of the file system ends the test
 * program with a message: there is nothing to test without it. The functions keep no
 * state and may be called from any thread; they allocate, so call them while no fault
 * is armed.
 */
#ifndef TP_SUPPORT_TMPDIR_H
#define TP_SUPPORT_TMPDIR_H

#include <stddef.h>

/* Make an empty directory. Returns its absolute path; end it with tmpdir_remove(). */
char *tmpdir_new(void);

/* The same with a path that has room in the address of a unix socket, wherever TMPDIR
 * is. */
char *tmpdir_new_short(void);

/* Remove the directory with all that is in it, and free path. NULL is allowed. */
void tmpdir_remove(char *path);

/* The path of name inside dir. The caller frees it. */
char *tmpdir_path(const char *dir, const char *name);

/* Write size_bytes bytes of data as the whole content of dir/name. */
void tmpdir_write(const char *dir, const char *name, const void *data,
                  size_t size_bytes);

/*
 * Read the whole of dir/name. Returns the bytes followed by a NUL that is not counted;
 * the caller frees them. *size_bytes is set unless size_bytes is NULL.
 */
char *tmpdir_read(const char *dir, const char *name, size_t *size_bytes);

#endif
