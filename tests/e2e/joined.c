/*
 * joined.c - a process that is two producers: linked with the library, and a stand-in
 * for PyTorch.
 *
 *     joined --name SOCKET [--rank N] [--world N] [--hides-env 1]
 *            [--writes-rank N --writes-world N]
 *
 * Its main thread, on which the stand-in's file has events, too, records slices of
 * e2e.WORK without end, a millisecond apart, and a counter. --rank and --world are for
 * the library only; --hides-env keeps the environment from it. It ends when its input
 * does.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#include "support/kineto_client.h"

static struct kineto_client_options kineto = {.writes_gpu = true};
static struct tp_options options = {.options_bytes = sizeof(options)};
static unsigned work, load;

static void *run_kineto(void *arg)
{
    (void)arg;
    exit(kineto_client_run(&kineto));
}

static void hide_environment(void)
{
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
}

static void take_option(const char *name, const char *value)
{
    unsigned long n = strtoul(value, NULL, 10);

    if (strcmp(name, "--name") == 0) {
        kineto.name = value;
    } else if (strcmp(name, "--rank") == 0) {
        options.has_rank = true;
        options.rank = (uint32_t)n;
    } else if (strcmp(name, "--world") == 0) {
        options.world_size = (uint32_t)n;
    } else if (strcmp(name, "--hides-env") == 0) {
        hide_environment();
    } else if (strcmp(name, "--writes-rank") == 0) {
        kineto.writes_rank = (unsigned)n;
    } else if (strcmp(name, "--writes-world") == 0) {
        kineto.writes_world = (unsigned)n;
    } else {
        fprintf(stderr, "joined: there is no %s\n", name);
        exit(2);
    }
}

static struct tp_client *open_client(void)
{
    struct tp_client *client = &tp_client_off;
    struct tp_err err = {0};

    if (tp_open(&options, &client, &err) != TP_OK ||
        tp_register_type(client, "e2e", "WORK", TP_KIND_SLICE, NULL, &work, &err) !=
            TP_OK ||
        tp_register_type(client, "e2e", "LOAD", TP_KIND_COUNTER, NULL, &load, &err) !=
            TP_OK) {
        fprintf(stderr, "joined: %s\n", err.message);
        exit(2);
    }
    return client;
}

int main(int argc, char **argv)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct tp_client *client;
    pthread_t thread;

    for (int i = 1; i + 1 < argc; i += 2)
        take_option(argv[i], argv[i + 1]);
    client = open_client();
    if (pthread_create(&thread, NULL, run_kineto, NULL) != 0)
        return 2;
    for (uint64_t i = 0; poll(&input, 1, 1) == 0; i++) {
        TP_BEGIN(client, work, "slice", TP_INT("i", i));
        TP_COUNTER(client, load, "load", i);
        TP_END(client, work);
    }
    exit(0);
}
