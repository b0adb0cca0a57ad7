/*
 * kineto_client.c - N stand-ins for PyTorch processes, a process each.
 *
 *   kineto_client [--count N] [--KNOB VALUE]...
 *
 * The knobs are those of support/kineto_client.h, with dashes. A client that is killed
 * or aborts says so in a line of its own: {"client":3,"event":"end","signal":6}.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/kineto_client.h"

#define CLIENTS_MAX 4096

struct settings {
    struct kineto_client_options client;
    unsigned count;
    unsigned spread_ms; /* the clients begin over so long */
    unsigned uid;       /* become this user */
};

enum kind { TEXT, NUMBER, FLAG, WIDE };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
} knobs[] = {
#define AT(kind, name, field)                        \
    {                                                \
        name, kind, offsetof(struct settings, field) \
    }
    AT(NUMBER, "count", count),
    AT(NUMBER, "spread-ms", spread_ms),
    AT(NUMBER, "uid", uid),
    AT(TEXT, "name", client.name),
    AT(TEXT, "socket-dir", client.socket_dir),
    AT(TEXT, "trace-dir", client.trace_dir),
    AT(FLAG, "old", client.is_old),
    AT(WIDE, "job", client.job),
    AT(NUMBER, "interval-ms", client.interval_ms),
    AT(NUMBER, "first-ms", client.first_ms),
    AT(NUMBER, "run-ms", client.run_ms),
    AT(NUMBER, "events", client.events),
    AT(NUMBER, "step-ms", client.step_ms),
    AT(NUMBER, "process-ms", client.process_ms),
    AT(FLAG, "context", client.sends_context),
    AT(FLAG, "quiet", client.is_quiet),
    AT(FLAG, "writes-gpu", client.writes_gpu),
    AT(NUMBER, "writes-rank", client.writes_rank),
    AT(NUMBER, "writes-world", client.writes_world),
    AT(NUMBER, "late-reads", client.late_reads),
    AT(NUMBER, "busy-from-ms", client.busy_from_ms),
    AT(NUMBER, "busy-ms", client.busy_ms),
    AT(NUMBER, "die-ms", client.die_ms),
    AT(FLAG, "preempts", client.preempts),
    AT(FLAG, "drops-files", client.drops_files),
    AT(FLAG, "mute", client.is_mute),
    AT(FLAG, "ends-with-file", client.ends_with_file),
    AT(FLAG, "early", client.is_early),
    AT(FLAG, "two-sockets", client.has_two_sockets),
    AT(FLAG, "writes-damage", client.writes_damage),
    AT(FLAG, "writes-other-id", client.writes_other_id),
    AT(FLAG, "writes-link", client.writes_link),
};

static bool set_knob(struct settings *s, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
        char *field = (char *)s + knobs[i].offset;

        if (strcmp(name, knobs[i].name) != 0)
            continue;
        if (knobs[i].kind == TEXT)
            *(const char **)field = value;
        else if (knobs[i].kind == NUMBER)
            *(unsigned *)field = (unsigned)strtoul(value, NULL, 10);
        else if (knobs[i].kind == WIDE)
            *(int64_t *)field = strtoll(value, NULL, 10);
        else
            *(bool *)field = strcmp(value, "0") != 0;
        return true;
    }
    fprintf(stderr, "kineto_client: there is no --%s\n", name);
    return false;
}

static int be_client(const struct settings *s, unsigned number)
{
    struct kineto_client_options o = s->client;

    o.number = (int)number;
    if (s->count > 1)
        o.first_ms += s->spread_ms * number / s->count;
    if (s->uid != 0 && (setgid(s->uid) != 0 || setuid(s->uid) != 0))
        return 1;
    prctl(PR_SET_PDEATHSIG,
          SIGKILL); /* last: another user would not have it any more */
    return kineto_client_run(&o);
}

/* Tell how each of them ended. */
static int wait_for_all(const pid_t *pids, unsigned n)
{
    int worst = 0;
    int status;
    pid_t pid;

    while ((pid = wait(&status)) > 0) {
        unsigned i = 0;

        while (i < n && pids[i] != pid)
            i++;
        if (WIFSIGNALED(status))
            printf("{\"client\":%u,\"pid\":%d,\"event\":\"end\",\"signal\":%d}\n", i,
                   (int)pid, WTERMSIG(status));
        else
            printf("{\"client\":%u,\"pid\":%d,\"event\":\"end\",\"status\":%d}\n", i,
                   (int)pid, WEXITSTATUS(status));
        fflush(stdout);
        worst |= status != 0;
    }
    return worst;
}

int main(int argc, char **argv)
{
    static pid_t pids[CLIENTS_MAX];
    struct settings s = {.count = 1};

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0 || !set_knob(&s, argv[i] + 2, argv[i + 1]))
            return 2;
    }
    if (argc % 2 == 0 || s.count > CLIENTS_MAX)
        return 2;
    for (unsigned i = 0; i < s.count; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(be_client(&s, i));
    }
    return wait_for_all(pids, s.count);
}
