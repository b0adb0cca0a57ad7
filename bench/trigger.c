/*
 * trigger.c - how long it takes from POST /traces to the first recorded event.
 *
 * trigger PORT|PATH PRODUCERS ROUNDS [IDLE_S]
 *
 * PATH is that of the service's unix socket, as processes of its host use it; PORT is
 * on the loopback interface, where a send includes what the other host would do.
 * Registers so many simulated producers on a connection each, lets them hold a sync,
 * for IDLE_S seconds between the lines "joined" and "idle", and then creates and stops
 * a trace ROUNDS times, each when all hold a sync. A producer obeys at once: it arms,
 * learns when to start, and records its first event then, or when it is told if that
 * is later. It says so when it has begun, and wants to hear of a start ahead of the
 * answer, both as a linked process does. Prints "p50_ms
 * p99_ms worst_ms skew_ms own_ms told_ms read_ms" over all producers and rounds; skew
 * is the worst spread of first events within a round, and own is the CPU time that this
 * program used until then, per round: on a machine with few cores the service waits for
 * it. The last are when the service has told the last one, and when that was read here,
 * at the worst: what is between them is not the service's.
 *
 * When all have begun, each n-th producer posts an event, and says so when it stops.
 * What the service counts in the end must be that, in all and for each producer.
 * One thread, one process.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "loopback.h"

#define REPLY_BYTES 4096
#define EVENTS 512
#define PRODUCERS_MAX 20000
#define ROUNDS_MAX 1000
#define RECORDING_MAX 100 /* about so many producers post an event in each round */

struct producer {
    int fd;
    char id[32];
    char reply[REPLY_BYTES];
    size_t n;
    bool is_told; /* of a start, ahead of the answer that repeats it */
};

struct bench {
    int epoll;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } address;   /* of the service */
    int control; /* a connection of its own for traces */
    size_t n_producers;
    struct producer *producers;
    size_t n_idle;    /* hold a sync and have nothing to do */
    size_t n_started; /* in this round: know when, which is start_ns */
    uint64_t start_ns;
    size_t n_answered; /* and have the answer, so that they may speak again */
    size_t n_begun;    /* and have said that they have begun */
    struct producer **begun;
    size_t n_stopped;
    uint64_t posted_ns;
    uint64_t *first_ns; /* of this round, less posted_ns */
    uint64_t told_ns;   /* when the service sent the last start of a round, and */
    uint64_t read_ns;   /* when it was read, less posted_ns; at the worst */
    uint64_t own_ns;    /* CPU time from posts to first events, of all rounds */
    char trace[32];
    char reply[64 << 20]; /* of the control connection, which tells of all producers */
};

static void die(const char *what)
{
    fprintf(stderr, "trigger: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int connect_to(const struct bench *b)
{
    bool is_unix = b->address.sa.sa_family == AF_UNIX;
    int fd = socket(b->address.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 || connect(fd, &b->address.sa,
                          is_unix ? sizeof(b->address.un) : sizeof(b->address.in)) != 0)
        die("connect");
    if (!is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* A port, or the path of a unix socket. */
static void find_service(struct bench *b, const char *where)
{
    if (where[0] == '/') {
        b->address.un.sun_family = AF_UNIX;
        snprintf(b->address.un.sun_path, sizeof(b->address.un.sun_path), "%s", where);
    } else {
        b->address.in.sin_family = AF_INET;
        b->address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        b->address.in.sin_port = htons((uint16_t)strtol(where, NULL, 10));
    }
}

/* Send a POST whose body is formatted. */
static void post(int fd, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void post(int fd, const char *path, const char *format, ...)
{
    char body[1024], request[1600];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(body, sizeof(body), format, args);
    va_end(args);
    n = snprintf(request, sizeof(request),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                 "application/json\r\nContent-Length: %d\r\n\r\n%s",
                 path, n, body);
    if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        die("send");
}

static bool is_interim(const char *reply)
{
    return strncmp(reply, "HTTP/1.1 1", 10) == 0;
}

/* The bytes of the whole reply or interim reply that is there, NUL-terminated; else
 * 0. */
static size_t whole_bytes(const char *reply, size_t n)
{
    const char *body = strstr(reply, "\r\n\r\n");
    const char *length = strcasestr(reply, "\r\ncontent-length:");
    size_t all;

    if (body == NULL || (length == NULL && !is_interim(reply)))
        return 0;
    all = (size_t)(body + 4 - reply);
    if (!is_interim(reply))
        all += strtoul(length + 17, NULL, 10);
    return n >= all ? all : 0;
}

/* The text after "key":" up to the next quote. */
static bool text_after(const char *reply, const char *key, char *out, size_t size)
{
    const char *at = strstr(reply, key);
    size_t n;

    if (at == NULL)
        return false;
    at += strlen(key);
    at += strspn(at, ": \"");
    n = strcspn(at, "\"");
    snprintf(out, size, "%.*s", (int)n, at);
    return true;
}

/* An RFC 3339 time of the service in nanoseconds. */
static uint64_t parse_time(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

    if (rest == NULL)
        die("a time cannot be read");
    return (uint64_t)timegm(&tm) * 1000000000 +
           (*rest == '.' ? (uint64_t)(strtod(rest, NULL) * 1e9) : 0);
}

static void hold(struct bench *b, struct producer *p)
{
    char path[80];

    snprintf(path, sizeof(path), "/producers/%s/sync", p->id);
    post(p->fd, path, "{\"wait_ms\":30000,\"interim\":true}");
    b->n_idle++;
}

static void ack(struct bench *b, struct producer *p, const char *command)
{
    char path[80];

    snprintf(path, sizeof(path), "/producers/%s/sync", p->id);
    post(p->fd, path,
         "{\"wait_ms\":30000,\"interim\":true,"
         "\"acks\":[{\"trace_id\":\"%s\",\"command\":\"%s\"}]}",
         b->trace, command);
}

/* Whether a producer posts an event. */
static bool is_recording(const struct bench *b, const struct producer *p)
{
    return (size_t)(p - b->producers) % (1 + (b->n_producers - 1) / RECORDING_MAX) == 0;
}

/* Stop, and say what was recorded. */
static void ack_stop(const struct bench *b, struct producer *p)
{
    char path[80];

    snprintf(path, sizeof(path), "/producers/%s/sync", p->id);
    post(p->fd, path,
         "{\"wait_ms\":30000,\"interim\":true,"
         "\"acks\":[{\"trace_id\":\"%s\",\"command\":\"stop\"}],"
         "\"counts\":[{\"trace_id\":\"%s\",\"emitted\":%d}]}",
         b->trace, b->trace, is_recording(b, p));
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void start(struct bench *b, struct producer *p)
{
    char text[64];
    uint64_t now = wall_ns();

    if (!text_after(p->reply, "\"start_at\"", text, sizeof(text)))
        die("no start_at");
    b->start_ns = parse_time(text);
    /* A request that came just before the post has an earlier time. */
    if (text_after(p->reply, "\"server_sent_at\"", text, sizeof(text)))
        b->told_ns =
            later(b->told_ns, later(parse_time(text), b->posted_ns) - b->posted_ns);
    b->read_ns = later(b->read_ns, now - b->posted_ns);
    b->first_ns[b->n_started++] = (b->start_ns > now ? b->start_ns : now) -
                                  b->posted_ns;
    if (b->n_started == b->n_producers)
        b->own_ns += cpu_ns();
}

/* Let those say so who have begun. Returns the milliseconds until the others do. */
static int say_begun(struct bench *b)
{
    uint64_t now = wall_ns();

    if (b->n_begun == b->n_answered)
        return 1000;
    if (now < b->start_ns)
        return (int)((b->start_ns - now) / 1000000) + 1;
    while (b->n_begun < b->n_answered)
        ack(b, b->begun[b->n_begun++], "start");
    return 1000;
}

/* Obey a reply. */
static void obey(struct bench *b, struct producer *p)
{
    text_after(p->reply, "\"trace_id\"", b->trace, sizeof(b->trace));
    if (strstr(p->reply, "\"start\"") != NULL) {
        if (!p->is_told)
            start(b, p);
        p->is_told = is_interim(p->reply);
        if (!p->is_told)
            b->begun[b->n_answered++] = p;
    } else if (strstr(p->reply, "\"prepare\"") != NULL) {
        ack(b, p, "prepare");
    } else if (strstr(p->reply, "\"stop\"") != NULL) {
        ack_stop(b, p);
        b->n_stopped++;
    } else if (p->id[0] == '\0' &&
               text_after(p->reply, "\"id\"", p->id, sizeof(p->id))) {
        hold(b, p);
    } else {
        hold(b, p);
        b->n_idle--; /* it was idle all the while */
    }
}

/* Obey all replies that are there whole. */
static void obey_all(struct bench *b, struct producer *p)
{
    size_t n;

    while ((n = whole_bytes(p->reply, p->n)) > 0) {
        char next = p->reply[n];

        if (!is_interim(p->reply) && strncmp(p->reply, "HTTP/1.1 2", 10) != 0) {
            fprintf(stderr, "trigger: %.400s\n", p->reply);
            exit(1);
        }
        p->reply[n] = '\0';
        obey(b, p);
        p->reply[n] = next;
        p->n -= n;
        memmove(p->reply, p->reply + n, p->n + 1);
    }
}

static void read_reply(struct bench *b, struct producer *p)
{
    ssize_t got = recv(p->fd, p->reply + p->n, REPLY_BYTES - 1 - p->n, MSG_DONTWAIT);

    if (got <= 0 && errno != EAGAIN)
        die("recv");
    if (got <= 0)
        return;
    p->n += (size_t)got;
    p->reply[p->n] = '\0';
    obey_all(b, p);
}

/* The trace is refused: then nobody is ever told. */
static void check_control(const struct bench *b)
{
    char reply[1024];
    ssize_t n = recv(b->control, reply, sizeof(reply) - 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 12 || strncmp(reply, "HTTP/1.1 2", 10) == 0)
        return;
    reply[n] = '\0';
    fprintf(stderr, "trigger: %s\n", reply);
    exit(1);
}

/* Be told when the control connection has an answer, once. */
static void watch_control(const struct bench *b, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = NULL};

    if (epoll_ctl(b->epoll, operation, b->control, &event) != 0)
        die("epoll");
}

/* Serve all producers until a count is reached. */
static void serve_until(struct bench *b, const size_t *count)
{
    struct epoll_event events[EVENTS];
    uint64_t deadline = wall_ns() + UINT64_C(60000000000);

    while (*count < b->n_producers) {
        int wait_ms = say_begun(b);
        int n = *count == b->n_producers
                    ? 0
                    : epoll_wait(b->epoll, events, EVENTS, wait_ms);

        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                check_control(b);
            else
                read_reply(b, events[i].data.ptr);
        }
        if (wall_ns() > deadline) {
            fprintf(stderr, "trigger: only %zu of %zu\n", *count, b->n_producers);
            exit(1);
        }
    }
}

static void join_all(struct bench *b)
{
    for (size_t i = 0; i < b->n_producers; i++) {
        struct producer *p = &b->producers[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};

        p->fd = connect_to(b);
        if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, p->fd, &event) != 0)
            die("epoll");
        post(p->fd, "/producers",
             "{\"job\":\"bench\",\"name\":\"p%zu\",\"rank\":%zu,\"kind\":\"native\","
             "\"host\":\"h\",\"pid\":%zu}",
             i, i, i + 1);
    }
    serve_until(b, &b->n_idle);
}

static void read_whole(int fd, char *reply, size_t size)
{
    size_t n = 0;

    do {
        ssize_t got = recv(fd, reply + n, size - 1 - n, 0);

        if (got <= 0)
            die("control");
        n += (size_t)got;
        reply[n] = '\0';
    } while (whole_bytes(reply, n) == 0);
}

/* Read the reply of the control connection; it must be a good one. */
static void read_control(struct bench *b)
{
    read_whole(b->control, b->reply, sizeof(b->reply));
    if (strncmp(b->reply, "HTTP/1.1 2", 10) == 0)
        return;
    fprintf(stderr, "trigger: %.400s\n", b->reply);
    exit(1);
}

/* Likewise to a request that made or moved a trace. */
static void read_trace(struct bench *b)
{
    read_control(b);
    text_after(b->reply, "\"id\"", b->trace, sizeof(b->trace));
}

/* Ask for something on the control connection. */
static void get(struct bench *b, const char *path)
{
    char request[256];
    int n = snprintf(request, sizeof(request),
                     "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);

    if (send(b->control, request, (size_t)n, MSG_NOSIGNAL) != n)
        die("send");
    read_control(b);
}

/* Let the producers post their events. */
static void record(struct bench *b)
{
    for (size_t i = 0; i < b->n_producers; i++) {
        const struct producer *p = &b->producers[i];
        uint64_t now = wall_ns();
        char path[128];

        if (!is_recording(b, p))
            continue;
        snprintf(path, sizeof(path), "/traces/%s/events?producer=%s&seq=1", b->trace,
                 p->id);
        post(b->control, path,
             "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"first\",\"pid\":%zu,\"tid\":"
             "1,"
             "\"ts\":%llu.%03llu,\"dur\":1}]",
             i + 1, (unsigned long long)(now / 1000), (unsigned long long)(now % 1000));
        read_control(b);
    }
}

/* Wait until all hold a sync, as they do in a job that runs. */
static void wait_for_holds(struct bench *b)
{
    const char *metric = "\ntraceplane_http_waiting ";
    const char *at;

    for (;;) {
        get(b, "/metrics");
        at = strstr(b->reply, metric);
        if (at == NULL)
            die("no metric of held calls");
        if (strtoul(at + strlen(metric), NULL, 10) >= b->n_producers)
            return;
        usleep(20000);
    }
}

/* Wait until the trace is over, so that the next may be made. */
static void wait_for_end(struct bench *b)
{
    do {
        usleep(20000);
        get(b, "/traces?job=bench&state=active&limit=1");
    } while (strstr(b->reply, "\"items\":[]") == NULL);
}

/* Counts of the service. */
struct counts {
    unsigned long long emitted, stored, filtered, dropped;
};

/* Read the next counts from *at on, which moves behind them. False: there are none. */
static bool next_counts(const char **at, struct counts *c)
{
    static const char key[] = "\"counts\":";
    const char *found = strstr(*at, key);

    if (found == NULL)
        return false;
    *at = found + sizeof(key) - 1;
    c->emitted = loopback_number(*at, "\"emitted\"");
    c->stored = loopback_number(*at, "\"stored\"");
    c->filtered = loopback_number(*at, "\"filtered\"");
    c->dropped = loopback_number(*at, "\"dropped\"");
    return true;
}

/* What the service has counted is what the producers posted: in all, which comes last,
 * and in the sum of them, who come first, each with equal sides. */
static void check_counts(struct bench *b)
{
    struct counts c = {0};
    unsigned long long wanted = 0, sum = 0;
    bool is_even = true;
    const char *others, *at = b->reply;
    char path[64];

    snprintf(path, sizeof(path), "/traces/%s", b->trace);
    for (get(b, path); strstr(b->reply, "\"state\":\"sealing\"") != NULL; get(b, path))
        usleep(20000); /* not beside the next round */
    for (size_t i = 0; i < b->n_producers; i++)
        wanted += is_recording(b, &b->producers[i]);
    others = strstr(b->reply, "\"unmatched\":");
    while (next_counts(&at, &c)) {
        sum += at < others ? c.emitted : 0;
        is_even = is_even && c.emitted == c.stored + c.filtered + c.dropped;
    }
    if (is_even && sum == wanted && c.emitted == wanted && c.stored == wanted)
        return;
    fprintf(stderr,
            "trigger: %llu events were posted; of the producers %llu, in all %llu "
            "emitted, %llu stored, %llu filtered, %llu dropped%s\n",
            wanted, sum, c.emitted, c.stored, c.filtered, c.dropped,
            is_even ? "" : "; the counts of one do not add up");
    exit(1);
}

static void run_round(struct bench *b)
{
    char path[80];

    wait_for_holds(b);
    b->n_started = b->n_answered = b->n_begun = b->n_stopped = 0;
    b->own_ns -= cpu_ns();
    b->posted_ns = wall_ns();
    watch_control(b, EPOLL_CTL_MOD);
    post(b->control, "/traces", "{\"job\":\"bench\"}");
    serve_until(b, &b->n_begun);
    read_trace(b);
    record(b);
    snprintf(path, sizeof(path), "/traces/%s/stop", b->trace);
    post(b->control, path, "{}");
    serve_until(b, &b->n_stopped);
    read_trace(b);
    wait_for_end(b);
    check_counts(b);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Let the producers hold their syncs, as they would without traces. */
static void stay_idle(struct bench *b, uint64_t seconds)
{
    uint64_t end_ns = wall_ns() + seconds * UINT64_C(1000000000);

    printf("joined\n");
    fflush(stdout);
    for (uint64_t now = wall_ns(); now < end_ns; now = wall_ns()) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(b->epoll, events, EVENTS, (int)((end_ns - now) / 1000000));

        for (int i = 0; i < n; i++)
            if (events[i].data.ptr != NULL)
                read_reply(b, events[i].data.ptr);
    }
    printf("idle\n");
    fflush(stdout);
}

/* Run the rounds; the first events of all go to `all`. Returns the worst skew. */
static uint64_t run_rounds(struct bench *b, size_t n_rounds, uint64_t *all)
{
    uint64_t skew = 0;

    for (size_t i = 0; i < n_rounds; i++) {
        run_round(b);
        qsort(b->first_ns, b->n_producers, sizeof(*b->first_ns), by_value);
        skew = later(skew, b->first_ns[b->n_producers - 1] - b->first_ns[0]);
        memcpy(all + i * b->n_producers, b->first_ns, b->n_producers * sizeof(*all));
    }
    qsort(all, b->n_producers * n_rounds, sizeof(*all), by_value);
    return skew;
}

static void allow_files(size_t n)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        die("files");
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < n + 16)
        die("more files are needed");
}

int main(int argc, char **argv)
{
    static struct bench b;
    size_t n_rounds, n;
    uint64_t *all, skew;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: trigger PORT|PATH PRODUCERS ROUNDS [IDLE_S]\n");
        return 2;
    }
    find_service(&b, argv[1]);
    b.n_producers = strtoul(argv[2], NULL, 10);
    n_rounds = strtoul(argv[3], NULL, 10);
    if (b.n_producers < 1 || b.n_producers > PRODUCERS_MAX || n_rounds < 1 ||
        n_rounds > ROUNDS_MAX)
        return 2;
    allow_files(b.n_producers);
    b.epoll = epoll_create1(EPOLL_CLOEXEC);
    b.control = connect_to(&b);
    b.producers = calloc(b.n_producers, sizeof(*b.producers));
    b.first_ns = calloc(b.n_producers + 1, sizeof(*b.first_ns));
    b.begun = calloc(b.n_producers, sizeof(struct producer *));
    all = calloc(b.n_producers * n_rounds, sizeof(*all));
    if (b.epoll < 0 || b.producers == NULL || b.first_ns == NULL || b.begun == NULL ||
        all == NULL)
        die("start");
    watch_control(&b, EPOLL_CTL_ADD);
    join_all(&b);
    if (argc == 5)
        stay_idle(&b, strtoul(argv[4], NULL, 10));
    skew = run_rounds(&b, n_rounds, all);
    n = b.n_producers * n_rounds;
    printf("%.2f %.2f %.2f %.2f %.2f %.2f %.2f\n", (double)all[n / 2] / 1e6,
           (double)all[n - 1 - n / 100] / 1e6, (double)all[n - 1] / 1e6,
           (double)skew / 1e6, (double)b.own_ns / (double)n_rounds / 1e6,
           (double)b.told_ns / 1e6, (double)b.read_ns / 1e6);
    free(all);
    free(b.begun);
    free(b.first_ns);
    free(b.producers);
    return 0;
}
