/*
 * process_key.c - the four parts, each from a file of /proc.
 *
 * The link ns/pid may be read by whoever may debug the process. For others: a process
 * that has as many pids as we have (line NSpid of its status, one for each namespace
 * that we can see) is in our own namespace.
 */
#include "base/process_key.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID_BYTES 40
#define STATUS_BYTES 4096

/* Read the start of a file as text. Returns how many bytes, 0 when there are none. */
static size_t read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);

    if (fd >= 0)
        close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* "/proc/4711" or "/proc/self" */
static void folder_of(int32_t pid, char *out, size_t size)
{
    if (pid > 0)
        snprintf(out, size, "/proc/%d", pid);
    else
        snprintf(out, size, "/proc/self");
}

static bool read_boot_id(char *out)
{
    size_t n = read_text("/proc/sys/kernel/random/boot_id", out, BOOT_ID_BYTES);

    out[strcspn(out, "\n")] = '\0';
    return n > 0 && strspn(out, "0123456789abcdef-") == strlen(out);
}

/* How many pids a process has, and its innermost one. */
static int read_pids(const char *folder, long *own)
{
    char path[64], text[STATUS_BYTES];
    const char *p;
    int n = 0;

    snprintf(path, sizeof(path), "%s/status", folder);
    if (read_text(path, text, sizeof(text)) == 0 ||
        (p = strstr(text, "\nNSpid:")) == NULL)
        return 0;
    p += strlen("\nNSpid:");
    while (*p == '\t' || *p == ' ') {
        char *end;

        *own = strtol(p, &end, 10);
        if (end == p)
            break;
        n++;
        p = end;
    }
    return *own > 0 ? n : 0;
}

/* "pid:[4026531836]" */
static unsigned long read_namespace(const char *folder)
{
    char path[64], text[64];
    ssize_t n;

    snprintf(path, sizeof(path), "%s/ns/pid", folder);
    n = readlink(path, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return strncmp(text, "pid:[", 5) == 0 ? strtoul(text + 5, NULL, 10) : 0;
}

/* The namespace of a process that has n_pids; 0 = not known. */
static unsigned long find_namespace(const char *folder, int n_pids)
{
    unsigned long found = read_namespace(folder);
    long ignored = 0;

    if (found != 0 || read_pids("/proc/self", &ignored) != n_pids)
        return found;
    return read_namespace("/proc/self");
}

/* Field 22 of stat. The name, field 2, is in parentheses and may hold anything. */
static unsigned long long read_start(const char *folder)
{
    char path[64], text[1024];
    const char *p;

    snprintf(path, sizeof(path), "%s/stat", folder);
    if (read_text(path, text, sizeof(text)) == 0 || (p = strrchr(text, ')')) == NULL)
        return 0;
    for (int field = 2; field < 22 && p != NULL; field++)
        p = strchr(p + 1, ' ');
    return p == NULL ? 0 : strtoull(p, NULL, 10);
}

bool tp_process_key(int32_t pid, char *out)
{
    char folder[32], boot_id[BOOT_ID_BYTES];
    unsigned long long start;
    unsigned long namespace;
    long own = 0;
    int n_pids;

    out[0] = '\0';
    if (pid < 0)
        return false;
    folder_of(pid, folder, sizeof(folder));
    n_pids = read_pids(folder, &own);
    namespace = n_pids == 0 ? 0 : find_namespace(folder, n_pids);
    start = read_start(folder);
    if (!read_boot_id(boot_id) || namespace == 0 || start == 0)
        return false;
    snprintf(out, TP_PROCESS_KEY_BYTES, "%s/%lu/%ld/%llu", boot_id, namespace, own,
             start);
    return true;
}
