/*
 * fake_service.c - a thread that accepts, and one for each connection, which ends when
 * the producer closes it or the service ends.
 */
#include "support/fake_service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/tmpdir.h"

#define REQUEST_BYTES (4u << 20)
#define POLL_HELD_MS 20
#define WAIT_MS 10000
#define CONNECTIONS_MAX 256

static const char *const names[FAKE_KINDS] = {"TYPES", "PRODUCERS", "SYNC", "EVENTS",
                                              "LEAVE"};

struct connection {
    struct fake_service *service;
    int fd; /* open until the thread has ended */
    pthread_t thread;
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Read one request into data; returns its bytes, 0 at the end. *body is where its body
 * begins. */
static size_t read_request(int fd, char *data, size_t *body)
{
    size_t n = 0, want = SIZE_MAX;

    while (n < want && n + 1 < REQUEST_BYTES) {
        ssize_t more = read(fd, data + n, REQUEST_BYTES - 1 - n);
        const char *end, *length;

        if (more <= 0)
            return 0;
        n += (size_t)more;
        data[n] = '\0';
        end = want == SIZE_MAX ? strstr(data, "\r\n\r\n") : NULL;
        if (end == NULL)
            continue;
        *body = (size_t)(end + 4 - data);
        length = strstr(data, "Content-Length:");
        want = *body +
               (length == NULL || length > end
                    ? 0
                    : strtoul(length + sizeof("Content-Length:") - 1, NULL, 10));
    }
    return n;
}

static enum fake_kind kind_of(const char *request)
{
    if (strncmp(request, "DELETE", 6) == 0)
        return FAKE_LEAVE;
    if (strstr(request, "/sync HTTP") != NULL)
        return FAKE_SYNC;
    if (strstr(request, "/events?") != NULL)
        return FAKE_EVENTS;
    return strstr(request, "/types HTTP") != NULL ? FAKE_TYPES : FAKE_PRODUCERS;
}

static const char *usual_body(enum fake_kind kind)
{
    if (kind == FAKE_SYNC)
        return "{\"commands\":[]}";
    return kind == FAKE_PRODUCERS ? "{\"id\":\"p1\"}" : "{}";
}

/* The number of a sync, 0 without one. */
static unsigned long sync_seq(const char *body)
{
    const char *seq = strstr(body, "\"seq\":");

    return seq == NULL ? 0 : strtoul(seq + sizeof("\"seq\":") - 1, NULL, 10);
}

static void note(struct fake_service *s, enum fake_kind kind, const char *request,
                 const char *body, int status)
{
    const char *seq = strstr(request, "seq=");
    size_t n = strlen(s->log);

    if (kind == FAKE_SYNC) {
        unsigned long number = sync_seq(body);

        s->top_seq = number > s->top_seq ? number : s->top_seq;
        if (strstr(body, "\"acks\"") != NULL)
            snprintf(s->last_sync, sizeof(s->last_sync), "%s", body);
        if (strstr(body, "\"counts\"") != NULL)
            snprintf(s->last_counts, sizeof(s->last_counts), "%s", body);
        else if (strstr(body, "\"acks\"") == NULL)
            snprintf(s->last_plain, sizeof(s->last_plain), "%s", body);
        return;
    }
    snprintf(s->log + n, sizeof(s->log) - n, "%s %.*s %d\n", names[kind],
             seq == NULL ? 1 : (int)strcspn(seq, " &"), seq == NULL ? "-" : seq,
             status);
}

/* The next answer of the script. */
static struct fake_answer choose(struct fake_service *s, const char *request,
                                 const char *body)
{
    enum fake_kind kind = kind_of(request);
    struct fake_answer a = {200, NULL};
    bool is_held;
    bool is_early; /* what is said ahead waits for a sync that takes it */

    pthread_mutex_lock(&s->lock);
    s->n_asked[kind]++;
    is_early = kind == FAKE_SYNC && s->ahead != NULL &&
               strstr(body, "\"interim\": true") == NULL;
    if (!is_early && s->n_used[kind] < s->n_answers[kind])
        s->n_used[kind]++;
    if (!is_early && s->n_used[kind] > 0)
        a = s->answers[kind][s->n_used[kind] - 1];
    if (a.body == NULL)
        a.body = usual_body(kind);
    note(s, kind, request, body, a.status);
    is_held = !s->is_quick;
    pthread_mutex_unlock(&s->lock);
    if (is_held && kind == FAKE_SYNC && strcmp(a.body, usual_body(kind)) == 0 &&
        strstr(body, "\"wait_ms\": 0") == NULL)
        pause_ms(POLL_HELD_MS);
    return a;
}

void fake_service_say_ahead(struct fake_service *s, const char *ahead)
{
    pthread_mutex_lock(&s->lock);
    s->ahead = ahead;
    s->is_held = true;
    pthread_mutex_unlock(&s->lock);
}

void fake_service_go_on(struct fake_service *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_held = false;
    pthread_cond_broadcast(&s->go_on);
    pthread_mutex_unlock(&s->lock);
}

void fake_service_keep(struct fake_service *s, enum fake_kind kind, bool is_kept)
{
    pthread_mutex_lock(&s->lock);
    s->is_kept[kind] = is_kept;
    pthread_cond_broadcast(&s->go_on);
    pthread_mutex_unlock(&s->lock);
}

static void await_let_go(struct fake_service *s, enum fake_kind kind)
{
    pthread_mutex_lock(&s->lock);
    while (s->is_kept[kind])
        pthread_cond_wait(&s->go_on, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Say what is to be said ahead of an answer, and keep that back. */
static void speak_ahead(const struct connection *c, const struct fake_answer *a)
{
    struct fake_service *s = c->service;
    char text[2048];
    int n = 0;

    pthread_mutex_lock(&s->lock);
    if (s->ahead != NULL && strstr(a->body, "\"start\"") != NULL) {
        n = snprintf(text, sizeof(text), "HTTP/1.1 103 Early Hints\r\n%s\r\n\r\n",
                     s->ahead);
        s->ahead = NULL;
    }
    if (n > 0 && send(c->fd, text, (size_t)n, MSG_NOSIGNAL) == n)
        while (s->is_held)
            pthread_cond_wait(&s->go_on, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* The header of an answer that is none: when to ask again. */
static const char *retry_after(struct fake_service *s, int status, char *out, size_t n)
{
    pthread_mutex_lock(&s->lock);
    out[0] = '\0';
    if (status != 200 && s->retry_after_s != 0)
        snprintf(out, n, "Retry-After: %d\r\n", s->retry_after_s);
    pthread_mutex_unlock(&s->lock);
    return out;
}

static void *serve(void *arg)
{
    const struct connection *c = arg;
    char *data = malloc(REQUEST_BYTES);
    size_t body = 0;

    while (data != NULL && read_request(c->fd, data, &body) > 0) {
        struct fake_answer a = choose(c->service, data, data + body);
        char text[4096], header[64];
        int n;

        speak_ahead(c, &a);
        await_let_go(c->service, kind_of(data));
        if (a.status == FAKE_CUT)
            break;
        n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n%s", a.status,
                     retry_after(c->service, a.status, header, sizeof(header)),
                     strlen(a.body), a.body);
        if (send(c->fd, text, (size_t)n, MSG_NOSIGNAL) < 0)
            break;
    }
    shutdown(c->fd, SHUT_RDWR);
    free(data);
    return NULL;
}

/* Ends with all connections: what they use may be gone afterwards. */
static void *accept_all(void *arg)
{
    struct connection connections[CONNECTIONS_MAX];
    struct fake_service *s = arg;
    int fd, n = 0;

    while (n < CONNECTIONS_MAX && (fd = accept(s->listener, NULL, NULL)) >= 0) {
        struct connection *c = &connections[n];

        *c = (struct connection){.service = s, .fd = fd};
        if (pthread_create(&c->thread, NULL, serve, c) == 0)
            n++;
        else
            close(fd);
    }
    while (n-- > 0) {
        shutdown(connections[n].fd, SHUT_RDWR);
        pthread_join(connections[n].thread, NULL);
        close(connections[n].fd);
    }
    return NULL;
}

void fake_service_init(struct fake_service *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->go_on, NULL);
    s->folder = tmpdir_new();
    snprintf(s->path, sizeof(s->path), "%s/s", s->folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof(address)),
                     0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, accept_all, s), 0);
}

void fake_service_fini(struct fake_service *s)
{
    for (int kind = 0; kind < FAKE_KINDS; kind++)
        fake_service_keep(s, kind, false);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    tmpdir_remove(s->folder);
}

void fake_service_answer(struct fake_service *s, enum fake_kind kind, int status,
                         const char *body)
{
    pthread_mutex_lock(&s->lock);
    assert_true(s->n_answers[kind] < FAKE_ANSWERS_MAX);
    s->answers[kind][s->n_answers[kind]++] = (struct fake_answer){status, body};
    pthread_mutex_unlock(&s->lock);
}

void fake_service_await(struct fake_service *s, enum fake_kind kind, int n)
{
    for (int ms = 0; ms < WAIT_MS; ms++) {
        bool is_there;

        pthread_mutex_lock(&s->lock);
        is_there = s->n_asked[kind] >= n;
        pthread_mutex_unlock(&s->lock);
        if (is_there)
            return;
        pause_ms(1);
    }
    fail_msg("%s was not asked %d times:\n%s", names[kind], n, s->log);
}

bool fake_service_has(struct fake_service *s, const char *text)
{
    bool has;

    pthread_mutex_lock(&s->lock);
    has = strstr(s->log, text) != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}
