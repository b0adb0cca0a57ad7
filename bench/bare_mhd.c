/*
 * bare_mhd.c - the yardstick of the REST figures: libmicrohttpd and nothing else.
 *
 * bare_mhd GET_BODY_FILE POST_BODY_FILE [poll]
 *
 * Answers every GET with the first file and every POST, once its body has arrived, with
 * the second; both with the headers that the service sends. One daemon a core, each
 * with its own SO_REUSEPORT socket and the memory limit that the service uses, so that
 * what is compared is the handler. The library's loop is its epoll one, or with "poll"
 * the other one that it has for many connections. Prints its port, runs until it is
 * ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_DAEMONS 2
#define MEMORY_LIMIT_BYTES (32u * 1024)
#define CONNECTIONS 8192u

struct answers {
    struct MHD_Response *get;
    struct MHD_Response *post;
};

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection,
                              const char *url, const char *method, const char *version,
                              const char *upload, size_t *upload_bytes, void **state)
{
    static char seen;
    const struct answers *answers = cls;

    (void)url, (void)version, (void)upload;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_bytes > 0) {
        *upload_bytes = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK,
                              strcmp(method, "POST") == 0 ? answers->post
                                                          : answers->get);
}

static struct MHD_Response *response_of(const char *path)
{
    static char body[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t n = f == NULL ? 0 : fread(body, 1, sizeof(body), f);
    struct MHD_Response *r =
        MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_COPY);

    if (f == NULL || r == NULL) {
        fprintf(stderr, "bare_mhd: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    MHD_add_response_header(r, "Content-Type", "application/json");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Content-Security-Policy", "default-src 'none'");
    return r;
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t n = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    /* As the service: see server/listen.c. */
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)address, sizeof(*address)) != 0 ||
        listen(fd, 1024) != 0 || getsockname(fd, (struct sockaddr *)address, &n) != 0) {
        fprintf(stderr, "bare_mhd: cannot listen: %s\n", strerror(errno));
        exit(1);
    }
    return fd;
}

static struct MHD_Daemon *start(unsigned loop, int fd, struct answers *answers)
{
    return MHD_start_daemon(loop | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, answers,
                            MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)MEMORY_LIMIT_BYTES, MHD_OPTION_CONNECTION_LIMIT,
                            CONNECTIONS, MHD_OPTION_END);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool polls = argc == 4 && strcmp(argv[3], "poll") == 0;
    struct answers answers;

    if (argc != 3 && !polls) {
        fprintf(stderr, "usage: bare_mhd GET_BODY_FILE POST_BODY_FILE [poll]\n");
        return 2;
    }
    answers.get = response_of(argv[1]);
    answers.post = response_of(argv[2]);
    for (int i = 0; i < N_DAEMONS; i++) {
        int fd = listen_on(&address); /* the second takes the port of the first */

        if (start(polls ? MHD_USE_POLL_INTERNAL_THREAD : MHD_USE_EPOLL_INTERNAL_THREAD,
                  fd, &answers) == NULL) {
            fprintf(stderr, "bare_mhd: cannot start\n");
            return 1;
        }
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    pause();
    return 0;
}
