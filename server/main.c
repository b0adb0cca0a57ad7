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

/* Each connection is a descriptor; the usual soft limit of 1024 is for select(2). */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return; /* it goes on with fewer connections */
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

static int run(const struct tp_config *config)
{
    struct tp_app *app = calloc(1, sizeof(*app)); /* large: the metrics are in it */
    struct tp_err err = {0};
    sigset_t set;
    int rc;
    int sig;

    if (app == NULL) {
        fprintf(stderr, "traceplaned: no memory\n");
        return EXIT_FAILURE;
    }
    block_signals(&set);
    raise_file_limit();
    rc = tp_app_start(app, config, &err);
    if (rc != TP_OK) {
        fprintf(stderr, "traceplaned: %s\n", err.message);
        tp_app_stop(app);
        free(app);
        return EXIT_FAILURE;
    }
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
