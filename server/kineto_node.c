#include "server/kineto_node.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* As statfs(2) and linux/magic.h number them; those that are missing in one or the
 * other are so numbered by their own sources. */
static const uint32_t network_types[] = {
    0x6969,     /* NFS */
    0x517B,     /* SMB */
    0xFF534D42, /* CIFS */
    0xFE534D42, /* SMB 2 and later */
    0x0BD00BD0, /* Lustre */
    0x47504653, /* GPFS */
    0x00C36400, /* Ceph */
    0x01021997, /* 9p */
    0x5346414F, /* AFS */
    0x6B414653, /* AFS, too */
    0x7461636F  /* OCFS2 */
};

bool tp_kineto_node_is_network(uint64_t type)
{
    /* f_type is signed, and 32 bits where words are: compare what all have. */
    for (size_t i = 0; i < sizeof(network_types) / sizeof(network_types[0]); i++) {
        if (network_types[i] == (uint32_t)type)
            return true;
    }
    return false;
}

bool tp_kineto_node_is_shared(const char *dir)
{
    struct statfs fs;

    return statfs(dir, &fs) == 0 && tp_kineto_node_is_network((uint64_t)fs.f_type);
}

static bool is_off(const char *dir, const char *setting)
{
    char path[512], value = '\0';
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, setting);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, &value, 1) != 1)
        value = '\0';
    close(fd);
    return value == '0';
}

void tp_kineto_node_gaps(const char *dir, char *out, size_t bytes)
{
    static const char *const settings[] = {"protected_symlinks", "protected_hardlinks",
                                           "protected_regular", "protected_fifos"};

    *out = '\0';
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        size_t n = strlen(out);

        if (is_off(dir, settings[i]))
            snprintf(out + n, bytes - n, "%sfs.%s=1", n == 0 ? "" : " ", settings[i]);
    }
}
