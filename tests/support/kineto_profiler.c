/*
 * kineto_profiler.c - as libkineto's AsyncActivityProfilerHandler: one tick a second,
 * warm-up, recording, and a file that gets its name when it is complete.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/kineto_parts.h"

#define TICK_MS 1000

bool kineto_is_self_busy(const struct kineto_client *c)
{
    int64_t ms = kineto_now_ms() - c->started_ms;

    return c->o.busy_ms > 0 && ms >= c->o.busy_from_ms &&
           ms < (int64_t)c->o.busy_from_ms + c->o.busy_ms;
}

static void say_dropped(struct kineto_client *c, const char *why)
{
    char more[200];

    snprintf(more, sizeof(more), ",\"why\":\"%s\"", why);
    kineto_say(c, "dropped", more);
}

void kineto_take(struct kineto_client *c, const char *text)
{
    struct kineto_config config;
    bool is_sound = kineto_config_parse(c, text, &config);

    pthread_mutex_lock(&c->lock);
    c->took_ms = kineto_now_ms();
    if (config.spins)
        say_dropped(c, "PROFILE_MEMORY: a thread spins for ever now");
    if (!is_sound)
        say_dropped(c, "start timestamp in past");
    else if (c->run != KINETO_WAIT || kineto_is_self_busy(c))
        say_dropped(c, "profiler busy");
    else if (c->has_pending)
        say_dropped(c, "another profile request is pending");
    else {
        if (config.start_iteration >= 0 && c->iteration < 0)
            config.start_iteration = -1; /* it does not step: by duration */
        c->pending = config;
        c->has_pending = true;
        kineto_say(c, "accepted", "");
        if (!c->has_thread)
            c->has_thread =
                pthread_create(&c->profiler, NULL, kineto_profiler_run, c) == 0;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The name that libkineto makes of the one that it was given. */
static void name_file(struct kineto_client *c)
{
    const char *dir = c->o.trace_dir;
    const char *given = c->active.log_file;
    const char *suffix = strstr(given, ".pt.trace.json");
    size_t n = strlen(dir);

    if (strncmp(given, dir, n) != 0 || given[n] != '/' || strstr(given, "..") != NULL) {
        snprintf(c->final, sizeof(c->final), "/tmp/libkineto_activities_%d.json",
                 (int)getpid());
    } else {
        if (suffix == NULL)
            suffix = strstr(given, ".json");
        if (suffix == NULL)
            suffix = given + strlen(given);
        snprintf(c->final, sizeof(c->final), "%.*s%s%d%s", (int)(suffix - given), given,
                 *suffix == '\0' ? "" : "_", (int)getpid(), suffix);
    }
    snprintf(c->tmp, sizeof(c->tmp), "%s.tmp", c->final);
}

static void activate(struct kineto_client *c, int64_t now_ms)
{
    FILE *f;

    c->has_pending = false;
    c->active = c->pending;
    if (c->active.start_iteration < 0 &&
        c->active.start_ms - now_ms < c->active.warmup_s * 1000) {
        say_dropped(c, "insufficient time for warmup");
        return;
    }
    name_file(c);
    f = fopen(c->tmp, "w");
    if (f == NULL)
        say_dropped(c, "cannot open the file; it records all the same");
    else
        fclose(f);
    c->run = KINETO_WARMUP;
    kineto_say(c, "warmup", "");
}

static void begin(struct kineto_client *c, int64_t now_ms)
{
    char more[100];

    c->run = KINETO_COLLECT;
    c->begun_ms = now_ms;
    c->end_ms = now_ms + c->active.duration_ms;
    c->end_iteration = c->iteration + c->active.iterations;
    snprintf(more, sizeof(more), ",\"start_ms\":%lld,\"wanted_ms\":%lld",
             (long long)now_ms, (long long)c->active.start_ms);
    kineto_say(c, "recording", more);
}

static void write_events(struct kineto_client *c, FILE *f)
{
    const int64_t base_ns = INT64_C(1790857026000000000);
    double ts = (double)(c->begun_ms * INT64_C(1000) - base_ns / 1000);
    unsigned n = c->o.events == 0 ? 10 : c->o.events;
    int pid = getpid();

    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"ts\":%.3f,"
            "\"args\":{\"name\":\"python\"}}",
            pid, ts);
    for (unsigned i = 0; i < n; i++)
        fprintf(f,
                ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s-%u\",\"pid\":%d,"
                "\"tid\":%d,\"ts\":%.3f,\"dur\":2.500,\"args\":{\"External id\":%u}}",
                i % 2 == 0 ? "cpu_op" : "user_annotation",
                i % 2 == 0 ? "aten::mm" : "step", i, pid, pid, ts + 10.0 * i, i);
    if (c->o.writes_gpu)
        fprintf(f,
                ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,"
                "\"tid\":7,\"ts\":%.3f,\"dur\":4.000,\"args\":{\"stream\":7}}",
                ts);
}

/* On demand it comes behind the events, if there were collectives. */
static void write_end(const struct kineto_client *c, FILE *f)
{
    fprintf(f, "\n],\n");
    if (c->o.writes_world > 0)
        fprintf(f,
                "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u, "
                "\"world_size\": %u, \"pg_count\": 1},\n",
                c->o.writes_rank, c->o.writes_world);
    fprintf(f, "\"traceName\": \"%s\"\n}\n", c->final);
}

static void write_file(struct kineto_client *c)
{
    FILE *f = fopen(c->tmp, "w");

    if (f == NULL) {
        kineto_say(c, "no-file", "");
        return;
    }
    fprintf(f, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n");
    if (c->active.trace_id[0] != '\0')
        fprintf(f, "\"trace_id\": \"%s\",\n",
                c->o.writes_other_id ? "of-somebody-else" : c->active.trace_id);
    fprintf(f, "\"displayTimeUnit\": \"ms\",\n"
               "\"baseTimeNanoseconds\": 1790857026000000000,\n\"traceEvents\": [\n");
    write_events(c, f);
    if (!c->o.writes_damage)
        write_end(c, f);
    fclose(f);
    remove(c->final);
    if (c->o.writes_link && symlink("/etc/passwd", c->final) == 0)
        return;
    kineto_say(c, rename(c->tmp, c->final) == 0 ? "file" : "no-file", "");
    if (c->o.ends_with_file)
        _exit(0);
}

static void process(struct kineto_client *c)
{
    c->run = KINETO_PROCESS;
    pthread_mutex_unlock(&c->lock);
    usleep(c->o.process_ms * 1000);
    if (!c->o.drops_files)
        write_file(c);
    pthread_mutex_lock(&c->lock);
    c->run = KINETO_WAIT;
}

static bool is_collected(const struct kineto_client *c, int64_t now_ms)
{
    if (c->active.start_iteration >= 0 && c->active.iterations > 0)
        return c->iteration >= c->end_iteration;
    return now_ms >= c->end_ms;
}

static bool may_begin(const struct kineto_client *c, int64_t now_ms)
{
    int64_t r = c->active.roundup;

    if (c->active.start_iteration < 0)
        return c->o.is_early || now_ms >= c->active.start_ms;
    return c->iteration >= c->active.start_iteration &&
           (r <= 0 || c->iteration % r == 0);
}

/* What a tick, the start time or the end time brings. The lock is held. */
static void step(struct kineto_client *c, int64_t now_ms)
{
    const struct kineto_config *p = &c->pending;

    if (c->has_pending && c->run == KINETO_WAIT &&
        (p->start_iteration >= 0 || c->o.is_early ||
         now_ms + TICK_MS >= p->start_ms - p->warmup_s * 1000))
        activate(c, now_ms);
    if (c->run == KINETO_WARMUP && may_begin(c, now_ms))
        begin(c, now_ms);
    if (c->run == KINETO_COLLECT && c->o.preempts) {
        c->run = KINETO_WAIT; /* the .tmp file stays */
        c->o.busy_from_ms = (unsigned)(now_ms - c->started_ms);
        c->o.busy_ms = 8000;
        say_dropped(c, "the application profiles itself");
    }
    if (c->run == KINETO_COLLECT && is_collected(c, now_ms))
        process(c);
}

/* The moment of the next step: the tick, or the start or end if that is before it. */
static int64_t next_step(const struct kineto_client *c, int64_t tick_ms)
{
    int64_t at_ms = tick_ms;

    if (c->active.start_iteration >= 0 && c->run != KINETO_WAIT)
        return kineto_now_ms() + 1; /* as often as the application steps */
    if (c->run == KINETO_WARMUP && c->active.start_ms < at_ms)
        at_ms = c->active.start_ms;
    if (c->run == KINETO_COLLECT && c->end_ms < at_ms)
        at_ms = c->end_ms;
    return at_ms;
}

static void follow_application(struct kineto_client *c, int64_t now_ms)
{
    if (c->o.step_ms > 0)
        c->iteration = (now_ms - c->started_ms) / c->o.step_ms;
}

void *kineto_profiler_run(void *arg)
{
    struct kineto_client *c = arg;
    int64_t tick_ms = kineto_now_ms() + TICK_MS, at_ms = tick_ms;

    while (!c->is_over) {
        int64_t now_ms = kineto_now_ms();

        if (now_ms < at_ms) {
            usleep((unsigned)(at_ms - now_ms) * 1000);
            continue;
        }
        pthread_mutex_lock(&c->lock);
        follow_application(c, now_ms);
        if (c->o.die_ms > 0 && c->took_ms > 0 && now_ms - c->took_ms >= c->o.die_ms)
            raise(SIGKILL);
        step(c, now_ms);
        while (tick_ms <= now_ms)
            tick_ms += TICK_MS;
        at_ms = next_step(c, tick_ms);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}
