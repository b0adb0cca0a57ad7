/*
 * main.c - traceplaned: settings, signals, and nothing else.
 *
 * SIGTERM and SIGINT end the service in good order; a second one ends it at once. The
 * signals are blocked in all threads and waited for here, so there is no handler.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/app.h"

#define EXIT_USAGE 2
#define FILES_KEPT 1024 /* for logs, store and downloads; a quarter of all at most */

/* Each connection is a descriptor; the usual soft limit of 1024 is for select(2). */
#define FILES_KEPT \
    1024 /* of the descriptors, a quarter at most: logs, store, downloads */

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return; /* it goes on with fewer connections */
}

/* Some descriptors are not for connections: without one for the next it is not even
 * answered that there are too many. Returns how many connections were asked for when
 * they are fewer now, else 0. */
static uint64_t fit_connections(struct tp_limits *limits)
{
    uint64_t asked = limits->connections;
    struct rlimit limit;
    uint64_t kept;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    kept = limit.rlim_cur / 4 < FILES_KEPT ? limit.rlim_cur / 4 : FILES_KEPT;
    if (limit.rlim_cur - kept >= asked)
        return 0;
    limits->connections = limit.rlim_cur - kept;
    return asked;
}

static void tell_connections(struct tp_app *app, uint64_t asked)
{
    char from[24], to[24];

    snprintf(from, sizeof(from), "%llu", (unsigned long long)asked);
    snprintf(to, sizeof(to), "%llu",
             (unsigned long long)app->config->limits.connections);
    tp_log(&app->log, TP_LOG_WARNING, "few-descriptors", "max_connections", from,
           "connections", to, "why",
           "the hard limit of open files (ulimit -n) allows no more", NULL);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is a full disk: 507, not death */
}

static int run(struct tp_config *config)
{
    struct tp_app *app = calloc(1, sizeof(*app)); /* large: the metrics are in it */
    struct tp_err err = {0};
    sigset_t set;
    uint64_t asked;
    int rc;
    int sig;

    if (app == NULL) {
        fprintf(stderr, "traceplaned: no memory\n");
        return EXIT_FAILURE;
    }
    block_signals(&set);
    raise_file_limit();
    asked = fit_connections(&config->limits);
    rc = tp_app_start(app, config, &err);
    if (rc != TP_OK) {
        fprintf(stderr, "traceplaned: %s\n", err.message);
        tp_app_stop(app);
        free(app);
        return EXIT_FAILURE;
    }
    if (asked != 0)
        tell_connections(app, asked);
    sigwait(&set, &sig);
    tp_log(&app->log, TP_LOG_INFO, "stopping", "signal",
           sig == SIGTERM ? "TERM" : "INT", NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    tp_app_stop(app);
    tp_log(&app->log, TP_LOG_INFO, "stopped", NULL);
    free(app);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct tp_config config = {0};
    struct tp_err err = {0};
    int status = EXIT_SUCCESS;

    if (tp_config_load(argc, argv, environ, &config, &err) != TP_OK) {
        fprintf(stderr, "traceplaned: %s\n", err.message);
        return EXIT_USAGE;
    }
    if (config.wants_help)
        tp_config_usage(stdout);
    else if (config.wants_version)
        printf("traceplaned %s\n", TP_VERSION);
    else if (config.wants_print)
        tp_config_print(&config, stdout);
    else
        status = run(&config);
    tp_config_fini(&config);
    return status;
}
