/* What a client takes over of the process around it and what not: its proxies. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <traceplane/traceplane.h>
#include <cmocka.h>

#define WAIT_MS 60000

/* Proxies. */

/* A socket on a port of 127.0.0.1 that somebody may connect to. */
static int listen_on(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The first bytes that a client sends to the service or, in its place, to the proxy.
 * Returns whether it was the service. */
static bool hear_first(int service, int proxy, char *text, size_t n)
{
    struct pollfd listeners[] = {{.fd = service, .events = POLLIN},
                                 {.fd = proxy, .events = POLLIN}};
    bool is_service;
    ssize_t got;
    int fd;

    assert_true(poll(listeners, 2, WAIT_MS) > 0);
    is_service = (listeners[1].revents & POLLIN) == 0;
    fd = accept(is_service ? service : proxy, NULL, NULL);
    assert_true(fd >= 0);
    got = read(fd, text, n - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return is_service;
}

static void test_the_service_is_reached_directly_whatever_proxies_there_are(
    void **state)
{
    static const struct {
        const char *variable, *proxy, *service, *says;
    } cases[] = {
        {"http_proxy", "http", "http", "POST /v1/"},
        {"all_proxy", "http", "http", "POST /v1/"},
        {"ALL_PROXY", "socks5h", "http", "POST /v1/"},
        {"https_proxy", "http", "https", "\x16\x03"}, /* a handshake of TLS */
        {"HTTPS_PROXY", "http", "https", "\x16\x03"},
    };

    (void)state;
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tp_client *client = &tp_client_off;
        unsigned service_port, proxy_port;
        int service = listen_on(&service_port), proxy = listen_on(&proxy_port);
        char url[64], proxy_url[64], text[64];
        struct tp_options options = {.options_bytes = sizeof(options),
                                     .url = url,
                                     .token = "of-the-service",
                                     .flush_ms = 1};
        bool is_direct;

        snprintf(url, sizeof(url), "%s://127.0.0.1:%u", cases[i].service, service_port);
        snprintf(proxy_url, sizeof(proxy_url), "%s://127.0.0.1:%u", cases[i].proxy,
                 proxy_port);
        assert_int_equal(setenv(cases[i].variable, proxy_url, 1), 0);
        assert_int_equal(tp_open(&options, &client, NULL), TP_OK);
        is_direct = hear_first(service, proxy, text, sizeof(text));
        tp_close(client);
        unsetenv(cases[i].variable);
        close(service);
        close(proxy);
        if (!is_direct || strncmp(text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: the %s hears '%.20s'", cases[i].variable,
                     is_direct ? "service" : "proxy", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_the_service_is_reached_directly_whatever_proxies_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
