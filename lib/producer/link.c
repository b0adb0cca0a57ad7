/*
 * link.c - libcurl's multi interface, one easy handle a channel.
 *
 * The handles share the connections of the multi handle, so what a short trace needs is
 * there from the first registration on. No option here makes libcurl set a timer that
 * is shorter than the request's own: an idle producer sleeps in poll() until the
 * service answers.
 */
#include "producer/link.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "producer/exec_close.h"

#define REPLY_MAX_BYTES (1u << 20)
#define UPLOAD_BUFFER_BYTES (256L << 10)
#define CONNECT_MS 5000
#define KEEPALIVE_S 15L
#define SOCKETS_MAX 16

struct channel {
    CURL *easy;
    struct curl_slist *headers;
    struct tp_buf url, reply, ahead;
    bool is_busy, is_over;
    bool is_interim; /* the header that is being read */
    bool has_ahead;  /* of an interim answer that is whole */
    CURLcode code;   /* when it is over */
    char why[CURL_ERROR_SIZE];
};

struct tp_link {
    CURLM *multi;
    char *url, *socket_path, *authorization;
    uint64_t connect_ms;
    struct channel channels[TP_LINK_CHANNELS];
    int sockets[SOCKETS_MAX]; /* open ones, plus 1; 0 = none */
};

static size_t take_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct channel *c = arg;

    return tp_buf_append(&c->reply, p, size * n, NULL) == TP_OK ? size * n : 0;
}

/* Keep what an interim answer says (RFC 9110, 15.2); without memory it is said in the
 * answer alone. */
static size_t take_header(char *p, size_t size, size_t n, void *arg)
{
    static const char name[] = "Traceplane-Sync:";
    const size_t len = size * n;
    struct channel *c = arg;

    if (len > 9 && memcmp(p, "HTTP/", 5) == 0) {
        c->is_interim = p[9] == '1'; /* "HTTP/1.1 103" */
        c->ahead.len = 0;
    } else if (c->is_interim && len >= sizeof(name) &&
               strncasecmp(p, name, sizeof(name) - 1) == 0) {
        c->ahead.len = 0;
        if (tp_buf_append(&c->ahead, p + sizeof(name) - 1, len - sizeof(name) + 1,
                          NULL) != TP_OK)
            c->ahead.len = 0;
    } else if (c->is_interim && len == 2) {
        c->has_ahead = c->ahead.len > 0;
    }
    return len;
}

static bool is_loopback(const struct sockaddr *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;

    return (a->sa_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == 127) ||
           (a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
}

/*
 * Within a host there is nothing to pace: an algorithm that does so (BBR) sends small
 * pieces by a timer, which costs more than the sending. Reno is in every kernel, and
 * anybody may choose it. Without it nothing is lost.
 */
static void send_unpaced(int fd)
{
    static const char algorithm[] = "reno";

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm) - 1);
}

/* Open a socket that an exec() closes, and remember it for a fork(). */
static curl_socket_t open_socket(void *arg, curlsocktype purpose,
                                 struct curl_sockaddr *a)
{
    struct tp_link *l = arg;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);

    (void)purpose;
    if (fd >= 0 && is_loopback(&a->addr))
        send_unpaced(fd);
    for (int i = 0; fd >= 0 && i < SOCKETS_MAX; i++) {
        if (l->sockets[i] != 0)
            continue;
        l->sockets[i] = fd + 1;
        break;
    }
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int close_socket(void *arg, curl_socket_t fd)
{
    struct tp_link *l = arg;

    for (int i = 0; i < SOCKETS_MAX; i++)
        if (l->sockets[i] == fd + 1)
            l->sockets[i] = 0;
    return close(fd);
}

static bool has_part(CURLU *parts, CURLUPart which)
{
    char *text = NULL;
    bool has_text = curl_url_get(parts, which, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has_text;
}

int tp_link_check_url(const char *url, struct tp_err *err)
{
    CURLU *parts = curl_url();
    int rc = TP_OK;

    if (parts == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a URL");
    if (strpbrk(url, " \t\r\n") != NULL ||
        curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        !has_part(parts, CURLUPART_HOST))
        rc = tp_fail(err, TP_EINVAL, "the URL '%.128s' names no host and port", url);
    else if (strpbrk(url, "?#") != NULL)
        rc = tp_fail(err, TP_EINVAL,
                     "the URL '%.128s' has a query or a fragment, so that no path can "
                     "follow it",
                     url);
    curl_url_cleanup(parts);
    return rc;
}

void tp_link_forget(struct tp_link *l)
{
    for (int i = 0; i < SOCKETS_MAX; i++)
        if (l->sockets[i] != 0)
            close(l->sockets[i] - 1);
}

/* "Bearer " in front of the token; an empty text without one. */
static char *make_authorization(const char *token)
{
    const size_t n = strlen(token) + sizeof("Authorization: Bearer ");
    char *text = malloc(n);

    if (text != NULL)
        snprintf(text, n, "%s%s", token[0] == '\0' ? "" : "Authorization: Bearer ",
                 token);
    return text;
}

int tp_link_new(const struct tp_link_opts *opts, struct tp_link **out,
                struct tp_err *err)
{
    struct tp_link *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for a link to the service");
    l->url = strdup(opts->url);
    l->socket_path = strdup(opts->socket_path == NULL ? "" : opts->socket_path);
    l->authorization = make_authorization(opts->token == NULL ? "" : opts->token);
    l->connect_ms = opts->connect_ms == 0 ? CONNECT_MS : opts->connect_ms;
    l->multi = curl_multi_init();
    for (int i = 0; i < TP_LINK_CHANNELS; i++) {
        l->channels[i].easy = curl_easy_init();
        l->channels[i].reply.limit_bytes = REPLY_MAX_BYTES;
        l->channels[i].ahead.limit_bytes = REPLY_MAX_BYTES;
        if (l->channels[i].easy == NULL)
            goto fail;
    }
    if (l->url == NULL || l->socket_path == NULL || l->authorization == NULL ||
        l->multi == NULL)
        goto fail;
    tp_exec_close_wakeup(l->multi);
    *out = l;
    return TP_OK;

fail:
    tp_link_free(l);
    return tp_fail(err, TP_ENOMEM, "no memory for a link to the service");
}

void tp_link_free(struct tp_link *l)
{
    if (l == NULL)
        return;
    for (int i = 0; i < TP_LINK_CHANNELS; i++) {
        struct channel *c = &l->channels[i];

        tp_link_drop(l, (enum tp_link_channel)i);
        if (c->easy != NULL)
            curl_easy_cleanup(c->easy);
        tp_buf_fini(&c->url);
        tp_buf_fini(&c->reply);
        tp_buf_fini(&c->ahead);
    }
    if (l->multi != NULL)
        curl_multi_cleanup(l->multi);
    free(l->url);
    free(l->socket_path);
    free(l->authorization);
    free(l);
}

static bool add_header(struct channel *c, const char *line)
{
    struct curl_slist *more = curl_slist_append(c->headers, line);

    if (more == NULL)
        return false;
    c->headers = more;
    return true;
}

static bool set_headers(const struct tp_link *l, struct channel *c, const char *type)
{
    char line[128];

    snprintf(line, sizeof(line), "Content-Type: %s",
             type == NULL ? "application/json" : type);
    return add_header(c, line) && add_header(c, "Expect:") &&
           (l->authorization[0] == '\0' || add_header(c, l->authorization));
}

/* What is the same for each request; an option that libcurl was built without would
 * fail the request and not this. */
static void set_options(struct tp_link *l, struct channel *c)
{
    curl_easy_reset(c->easy);
    curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700 /* 7.87.0; an older one waits for the resolver */
    curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, l);
    curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETDATA, l);
    curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    curl_easy_setopt(c->easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)l->connect_ms);
    if (l->socket_path[0] != '\0')
        curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, l->socket_path);
}

/* The proxies that the environment names are the program's: the service alone is to
 * hear of its work, and to see the token. Returns false without memory for that. */
static bool go_direct(struct channel *c)
{
    return curl_easy_setopt(c->easy, CURLOPT_PROXY, "") != CURLE_OUT_OF_MEMORY;
}

static void end_request(struct tp_link *l, struct channel *c)
{
    if (c->is_busy)
        curl_multi_remove_handle(l->multi, c->easy);
    curl_slist_free_all(c->headers);
    c->headers = NULL;
    c->is_busy = c->is_over = false;
}

int tp_link_begin(struct tp_link *l, enum tp_link_channel channel,
                  const struct tp_link_request *r, struct tp_err *err)
{
    struct channel *c = &l->channels[channel];
    CURLcode code;

    c->url.len = c->reply.len = c->ahead.len = 0;
    c->is_interim = c->has_ahead = false;
    c->why[0] = '\0';
    if (tp_buf_append_str(&c->url, l->url, err) != TP_OK ||
        tp_buf_append(&c->url, r->path, strlen(r->path) + 1, err) != TP_OK)
        return TP_ENOMEM;
    set_options(l, c);
    if (!go_direct(c) || !set_headers(l, c, r->content_type))
        goto fail;
    curl_easy_setopt(c->easy, CURLOPT_URL, c->url.data);
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    code = curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS,
                            r->body.len == 0 ? "" : r->body.ptr);
    if (code == CURLE_OK)
        code = curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, r->method);
    if (code != CURLE_OK || curl_multi_add_handle(l->multi, c->easy) != CURLM_OK)
        goto fail;
    c->is_busy = true;
    return TP_OK;

fail:
    end_request(l, c);
    return tp_fail(err, TP_ENOMEM, "no memory for a request");
}

bool tp_link_is_busy(const struct tp_link *l, enum tp_link_channel channel)
{
    return l->channels[channel].is_busy;
}

bool tp_link_has_sent(const struct tp_link *l, enum tp_link_channel channel)
{
    const struct channel *c = &l->channels[channel];
    long n_bytes = 0;

    return c->is_busy &&
           curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &n_bytes) == CURLE_OK &&
           n_bytes > 0;
}

void tp_link_drop(struct tp_link *l, enum tp_link_channel channel)
{
    end_request(l, &l->channels[channel]);
}

/* Let libcurl work, and note what has ended. Returns whether there is news. */
static bool perform(struct tp_link *l)
{
    const CURLMsg *message;
    bool has_news = false;
    int n = 0;

    curl_multi_perform(l->multi, &n);
    while ((message = curl_multi_info_read(l->multi, &n)) != NULL) {
        char *channel = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &channel);
        ((struct channel *)(void *)channel)->code = message->data.result;
        ((struct channel *)(void *)channel)->is_over = true;
        has_news = true;
    }
    for (int i = 0; i < TP_LINK_CHANNELS; i++)
        has_news = has_news || l->channels[i].has_ahead;
    return has_news;
}

void tp_link_wait(struct tp_link *l, uint64_t timeout_ms)
{
    if (perform(l))
        return;
    curl_multi_poll(l->multi, NULL, 0,
                    timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms, NULL);
    perform(l);
}

bool tp_link_take_ahead(struct tp_link *l, enum tp_link_channel channel,
                        struct tp_str *out)
{
    struct channel *c = &l->channels[channel];

    if (!c->has_ahead)
        return false;
    c->has_ahead = false;
    *out = (struct tp_str){c->ahead.data, c->ahead.len};
    return true;
}

bool tp_link_take(struct tp_link *l, enum tp_link_channel channel,
                  struct tp_link_reply *out)
{
    struct channel *c = &l->channels[channel];
    curl_off_t retry_s = 0;
    long status = 0;

    if (!c->is_over)
        return false;
    if (c->code == CURLE_OK) {
        curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_s);
    }
    *out = (struct tp_link_reply){
        .status = status,
        .body = {c->reply.data, c->reply.len},
        .why = c->why[0] != '\0' ? c->why : curl_easy_strerror(c->code),
        .retry_after_ms = retry_s > 0 ? (uint64_t)retry_s * 1000 : 0,
    };
    end_request(l, c);
    return true;
}

void tp_link_wake(struct tp_link *l)
{
    curl_multi_wakeup(l->multi);
}
