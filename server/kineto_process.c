#include "server/kineto_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENVIRONMENT_MAX_BYTES ((size_t)256 << 10)

/* In order of trust: the launcher nearest to the process comes first. */
static const struct {
    const char *rank, *world;
} launchers[] = {
    {"TRACEPLANE_RANK", "TRACEPLANE_WORLD_SIZE"},
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

/* The value of a variable in entries that end in NUL; NULL = none. */
static const char *value_of(const char *text, size_t n, const char *name)
{
    size_t len = strlen(name);

    while (n > 0) {
        const char *end = memchr(text, '\0', n);

        if (end == NULL)
            return NULL; /* it was cut */
        if (strncmp(text, name, len) == 0 && text[len] == '=')
            return text + len + 1;
        n -= (size_t)(end - text) + 1;
        text = end + 1;
    }
    return NULL;
}

static int64_t number_of(const char *text, size_t n, const char *name)
{
    const char *value = value_of(text, n, name);
    char *end;
    long long v;

    if (value == NULL || *value < '0' || *value > '9')
        return -1;
    errno = 0;
    v = strtoll(value, &end, 10);
    return *end == '\0' && errno == 0 && v <= INT32_MAX ? v : -1;
}

void tp_kineto_process_parse(const char *text, size_t n, struct tp_kineto_process *out)
{
    const char *job = value_of(text, n, "TRACEPLANE_JOB");

    memset(out, 0, sizeof(*out));
    out->rank = -1;
    if (job != NULL && strlen(job) < sizeof(out->job))
        memcpy(out->job, job, strlen(job) + 1);
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        int64_t rank = number_of(text, n, launchers[i].rank);
        int64_t world = number_of(text, n, launchers[i].world);

        if (rank < 0)
            continue;
        out->rank = rank;
        out->world_size = world > rank ? (uint32_t)world : 0;
        return;
    }
}

static size_t read_all(int fd, char *out, size_t size)
{
    size_t n = 0;
    ssize_t got;

    while (n < size && (got = read(fd, out + n, size - n)) > 0)
        n += (size_t)got;
    return n;
}

void tp_kineto_process_read(int32_t pid, uint32_t uid, struct tp_kineto_process *out)
{
    char path[64];
    struct stat st;
    char *text;
    int fd;

    tp_kineto_process_parse("", 0, out);
    if (pid <= 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    text = fd < 0 ? NULL : malloc(ENVIRONMENT_MAX_BYTES);
    if (text != NULL && fstat(fd, &st) == 0 && st.st_uid == uid)
        tp_kineto_process_parse(text, read_all(fd, text, ENVIRONMENT_MAX_BYTES), out);
    free(text);
    if (fd >= 0)
        close(fd);
}

bool tp_kineto_process_is_there(int32_t pid)
{
    return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}
