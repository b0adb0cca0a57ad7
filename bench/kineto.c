/*
 * kineto.c - how fast Kineto processes are answered, all at once and beside a flood.
 *
 * kineto polls NAME PROCESSES ROUNDS
 *     So many simulated processes ask at the same time, from a socket each. Prints
 *     "p50_us p99_us worst_us answered asked again whole_p99_us": from the moment at
 *     which the request was given to the kernel, which took it, to that at which the
 *     kernel had the answer; and how many had to send again because the queue was full.
 *     The kernel's own stamps tell the second moment, so it does not matter when this
 *     program reads. whole is from the first attempt to send.
 *
 *     One thread sends for all, and keeps to the last processor: what is measured is
 *     the service on a machine that has a processor for it, and not how this machine
 *     would share two of them among a thousand processes.
 * kineto flood NAME SECONDS POLLERS FLOODERS WAITS RATE
 *     POLLERS ask every POLL_NS and wait for WINDOW_MS, as libkineto does, while
 *     FLOODERS processes send RATE datagrams a second each, 0 = as fast as they can,
 *     and sleep in the kernel when the queue is full if WAITS is 1. Prints "asked
 *     answered sends tries worst_us tried flood": requests made, those that were
 *     answered in the window, attempts to send with those that found the queue full,
 *     the slowest answer, and the datagrams a second that the flooders gave to the
 *     kernel and that it took.
 *
 * Each simulated process has the credentials of an idle child, which only root may
 * give: what one process sends beyond some requests a second is thrown away.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 8000
#define ROUNDS_MAX 1000
#define POLLERS_MAX 8
#define FLOODERS_MAX 8
#define RETRIES 10
#define RETRY_NS UINT64_C(10000000)
#define POLL_NS UINT64_C(150000000) /* one is answered ten times a second at most */
#define WINDOW_MS 90
#define FLOOD_PAUSE_US 200 /* of one that keeps to a rate */
#define ROUND_NS UINT64_C(2500000000)

static struct sockaddr_un daemon_address;
static socklen_t daemon_bytes;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "kineto: %s: %s\n", what, strerror(errno));
    exit(1);
}

static socklen_t name_address(const char *name, struct sockaddr_un *out)
{
    int n;

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 2);
}

static int open_client(const char *tag, int number)
{
    const int on = 1;
    char name[80];
    struct sockaddr_un a;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(name, sizeof(name), "dynoconfigclient-%s-%d-%d", tag, (int)getpid(),
             number);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, name_address(name, &a)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0)
        die("a socket for a client");
    return fd;
}

/* A request as libkineto of 2026 sends it when it is idle. */
static size_t make_request(int32_t pid, char *out)
{
    const uint64_t size = 24, job = 0;
    const int32_t head[2] = {2, 2}, pids[2] = {pid, 1};

    memset(out, 0, 40);
    memcpy(out, &size, 8);
    memcpy(out + 8, "req", 3);
    memcpy(out + 40, head, 8);
    memcpy(out + 48, &job, 8);
    memcpy(out + 56, pids, 8);
    return 64;
}

/* Send a request; pid is whom it comes from, 0 = this process; others
 * are root's. Returns as sendmsg. */
static ssize_t send_request(int fd, pid_t pid, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control = {0};
    const struct ucred cred = {.pid = pid};
    char bytes[64];
    struct iovec iov = {bytes, make_request(pid, bytes)};
    struct msghdr msg = {.msg_name = &daemon_address,
                         .msg_namelen = daemon_bytes,
                         .msg_iov = &iov,
                         .msg_iovlen = 1};
    struct cmsghdr *c;

    if (pid != 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof(control.bytes);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_CREDENTIALS;
        c->cmsg_len = CMSG_LEN(sizeof(cred));
        memcpy(CMSG_DATA(c), &cred, sizeof(cred));
    }
    return sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
}

/* Take an answer. Returns when the kernel laid it down, 0 = there is none. */
static uint64_t take_answer(int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    char bytes[4096];
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c;
    struct timespec t;

    if (recvmsg(fd, &msg, MSG_DONTWAIT) < 0)
        return 0;
    c = CMSG_FIRSTHDR(&msg);
    if (c == NULL || c->cmsg_type != SCM_TIMESTAMPNS)
        return now_ns();
    memcpy(&t, CMSG_DATA(c), sizeof(t));
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* An idle child that lends its pid; it ends with this process. */
static pid_t start_lender(void)
{
    pid_t pid = geteuid() == 0 ? fork() : 0;

    if (geteuid() != 0)
        return 0;
    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

struct process {
    int fd;
    pid_t pid;
    uint64_t first_ns, sent_ns, due_ns, answer_ns;
    unsigned tries;
};

struct polls {
    struct process *processes;
    size_t n;
    uint64_t *answers_us, *wholes_us;
    size_t n_answers, n_asked, n_again;
};

/* Send, or be due again later when the queue is full. Returns when it is due,
 * UINT64_MAX = it is done. */
static uint64_t ask(struct polls *p, struct process *q)
{
    uint64_t at_ns = now_ns();

    if (q->sent_ns != 0)
        return UINT64_MAX;
    if (q->due_ns > at_ns)
        return q->due_ns;
    q->first_ns = q->first_ns == 0 ? at_ns : q->first_ns;
    if (send_request(q->fd, q->pid, MSG_DONTWAIT) > 0) {
        q->sent_ns = at_ns;
        return UINT64_MAX;
    }
    if (errno != EAGAIN)
        die("a request");
    q->due_ns = at_ns + (RETRY_NS << (q->tries < RETRIES ? q->tries : RETRIES));
    p->n_again += q->tries++ == 0;
    return q->due_ns;
}

static void ask_all(struct polls *p)
{
    uint64_t begin_ns = now_ns(), next_ns = 0;

    for (size_t i = 0; i < p->n; i++)
        p->processes[i] =
            (struct process){.fd = p->processes[i].fd, .pid = p->processes[i].pid};
    while (next_ns != UINT64_MAX && now_ns() - begin_ns < ROUND_NS) {
        uint64_t at_ns = now_ns();

        if (next_ns > at_ns)
            usleep((useconds_t)((next_ns - at_ns) / 1000 + 1));
        next_ns = UINT64_MAX;
        for (size_t i = 0; i < p->n; i++) {
            uint64_t due_ns = ask(p, &p->processes[i]);

            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    }
}

static void take_all(struct polls *p)
{
    uint64_t end_ns = now_ns() + UINT64_C(500000000);
    size_t left = p->n;

    while (left > 0 && now_ns() < end_ns) {
        left = 0;
        for (size_t i = 0; i < p->n; i++) {
            struct process *q = &p->processes[i];

            if (q->answer_ns == 0 && q->sent_ns != 0)
                q->answer_ns = take_answer(q->fd);
            left += q->answer_ns == 0;
        }
        usleep(1000);
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct process *q = &p->processes[i];

        p->n_asked += q->sent_ns != 0;
        if (q->answer_ns == 0)
            continue;
        p->answers_us[p->n_answers] = (q->answer_ns - q->sent_ns) / 1000;
        p->wholes_us[p->n_answers++] = (q->answer_ns - q->first_ns) / 1000;
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void keep_to_last_processor(void)
{
    cpu_set_t last;

    CPU_ZERO(&last);
    CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
    if (sched_setaffinity(0, sizeof(last), &last) != 0)
        die("sched_setaffinity");
}

static int run_polls(size_t n, size_t rounds)
{
    struct polls p = {.n = n};
    size_t room = n * rounds;

    keep_to_last_processor();
    p.processes = calloc(n, sizeof(*p.processes));
    p.answers_us = calloc(room, sizeof(*p.answers_us));
    p.wholes_us = calloc(room, sizeof(*p.wholes_us));
    if (p.processes == NULL || p.answers_us == NULL || p.wholes_us == NULL)
        die("calloc");
    for (size_t i = 0; i < n; i++) {
        p.processes[i].pid = start_lender();
        p.processes[i].fd = open_client("poll", (int)i);
    }
    for (size_t r = 0; r < rounds + 1; r++) {
        if (r == 1) /* the first made the service know them */
            p.n_answers = p.n_asked = p.n_again = 0;
        ask_all(&p);
        take_all(&p);
        usleep(500000);
    }
    if (p.n_answers == 0)
        return 1;
    qsort(p.answers_us, p.n_answers, sizeof(*p.answers_us), compare);
    qsort(p.wholes_us, p.n_answers, sizeof(*p.wholes_us), compare);
    printf("%llu %llu %llu %zu %zu %zu %llu\n",
           (unsigned long long)p.answers_us[p.n_answers / 2],
           (unsigned long long)p.answers_us[p.n_answers * 99 / 100],
           (unsigned long long)p.answers_us[p.n_answers - 1], p.n_answers, p.n_asked,
           p.n_again, (unsigned long long)p.wholes_us[p.n_answers * 99 / 100]);
    return 0;
}

/* What the flooders and the pollers share. */
struct shared {
    _Atomic bool is_over;
    _Atomic uint64_t flood, flood_tried;
    _Atomic uint64_t asked, answered, sends, tries, worst_us;
};

struct poller {
    struct shared *s;
    int number;
};

/* How a flooder behaves. */
struct manner {
    bool waits;
    unsigned rate; /* a second; 0 = as fast as it can */
};

static void flood(struct shared *s, int number, struct manner m)
{
    int fd = open_client("flood", number);
    uint64_t begin_ns = now_ns(), n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!s->is_over) {
        uint64_t due = m.rate == 0 ? n + 1
                                   : (now_ns() - begin_ns) * m.rate / 1000000000;

        for (; n < due && !s->is_over; n++) {
            if (send_request(fd, 0, m.waits ? 0 : MSG_DONTWAIT) > 0)
                atomic_fetch_add_explicit(&s->flood, 1, memory_order_relaxed);
        }
        atomic_store_explicit(&s->flood_tried, n, memory_order_relaxed);
        if (m.rate != 0)
            usleep(FLOOD_PAUSE_US);
    }
    _exit(0);
}

static bool send_patiently(struct shared *s, int fd)
{
    uint64_t wait_ns = RETRY_NS;

    for (int i = 0; i < RETRIES && !s->is_over; i++, wait_ns *= 2) {
        s->tries++;
        if (send_request(fd, 0, MSG_DONTWAIT) > 0)
            return true;
        usleep((useconds_t)(wait_ns / 1000));
    }
    return false;
}

static void *run_poller(void *arg)
{
    struct poller *p = arg;
    struct shared *s = p->s;
    int fd = open_client("fair", p->number);

    while (!s->is_over) {
        uint64_t begin_ns = now_ns(), at_ns;
        struct pollfd f = {fd, POLLIN, 0};

        if (send_patiently(s, fd)) {
            uint64_t sent_ns = now_ns(), us;

            s->asked++;
            s->sends++;
            poll(&f, 1, WINDOW_MS);
            at_ns = take_answer(fd);
            us = at_ns > sent_ns ? (at_ns - sent_ns) / 1000 : 0;
            if (at_ns != 0 && us <= WINDOW_MS * 1000) {
                s->answered++;
                if (us > s->worst_us)
                    s->worst_us = us;
            }
        } else if (!s->is_over) {
            s->asked++;
        }
        if (s->is_over)
            break;
        at_ns = now_ns();
        if (at_ns < begin_ns + POLL_NS)
            usleep((useconds_t)((begin_ns + POLL_NS - at_ns) / 1000));
    }
    close(fd);
    return NULL;
}

static int run_flood(unsigned seconds, int n_pollers, int n_flooders,
                     struct manner manner)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct poller pollers[POLLERS_MAX];
    pthread_t threads[POLLERS_MAX];

    if (s == MAP_FAILED)
        die("mmap");
    for (int i = 0; i < n_flooders; i++) {
        if (fork() == 0)
            flood(s, i, manner);
    }
    for (int i = 0; i < n_pollers; i++) {
        pollers[i] = (struct poller){s, i};
        if (pthread_create(&threads[i], NULL, run_poller, &pollers[i]) != 0)
            die("pthread_create");
    }
    sleep(seconds);
    s->is_over = true;
    for (int i = 0; i < n_pollers; i++)
        pthread_join(threads[i], NULL);
    printf("%llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)s->asked,
           (unsigned long long)s->answered, (unsigned long long)s->sends,
           (unsigned long long)s->tries, (unsigned long long)s->worst_us,
           (unsigned long long)(s->flood_tried / seconds),
           (unsigned long long)(s->flood / seconds));
    return 0;
}

/* A number of the command line, from 0 to most. */
static unsigned number(const char *text, unsigned most)
{
    unsigned long n = strtoul(text, NULL, 10);

    return n > most ? most : (unsigned)n;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        daemon_bytes = name_address(argv[2], &daemon_address);
    if (argc == 5 && strcmp(argv[1], "polls") == 0)
        return run_polls(number(argv[3], PROCESSES_MAX), number(argv[4], ROUNDS_MAX));
    if (argc == 8 && strcmp(argv[1], "flood") == 0)
        return run_flood(number(argv[3], 60), (int)number(argv[4], POLLERS_MAX),
                         (int)number(argv[5], FLOODERS_MAX),
                         (struct manner){argv[6][0] == '1', number(argv[7], 10000000)});
    return 2;
}
