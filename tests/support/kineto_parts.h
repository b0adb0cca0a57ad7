/*
 * kineto_parts.h - what the parts of the stand-in client share.
 *
 * kineto_socket.c asks and reads, kineto_config.c understands, kineto_profiler.c
 * records. `lock` guards all that changes after the start.
 */
#ifndef TP_SUPPORT_KINETO_PARTS_H
#define TP_SUPPORT_KINETO_PARTS_H

#include <pthread.h>

#include "support/kineto_client.h"

#define KINETO_TEXT_BYTES 8192

/* A configuration as libkineto's Config holds it. */
struct kineto_config {
    char log_file[1100];
    char trace_id[200];
    char types[1000];
    int64_t start_ms;
    int64_t duration_ms;
    int64_t warmup_s;
    int64_t iterations;
    int64_t start_iteration;
    int64_t roundup;
    bool spins; /* PROFILE_MEMORY */
};

enum kineto_run { KINETO_WAIT, KINETO_WARMUP, KINETO_COLLECT, KINETO_PROCESS };

struct kineto_client {
    struct kineto_client_options o;
    int fd;
    int other_fd;       /* of a second socket; 0 = none */
    int64_t started_ms; /* wall */
    pthread_mutex_t lock;
    bool has_pending;
    struct kineto_config pending, active;
    enum kineto_run run;
    bool has_thread;
    pthread_t profiler;
    int64_t took_ms;   /* when it took its last configuration; 0 = never */
    int64_t begun_ms;  /* when it really started */
    int64_t end_ms;    /* when collection ends */
    int64_t iteration; /* of the application; -1 = it does not step */
    int64_t end_iteration;
    char tmp[1200], final[1150];
    _Atomic bool is_over;
};

/* Milliseconds of the wall clock. */
int64_t kineto_now_ms(void);

/* A line about an event: "event" and further members of a JSON object, or "". */
void kineto_say(struct kineto_client *c, const char *event, const char *more);

/* Read the text as libkineto does. Returns whether it is sound; *out holds what came
 * before the fault. */
bool kineto_config_parse(struct kineto_client *c, const char *text,
                         struct kineto_config *out);

/* Take what the daemon gave: schedule it, or drop it as libkineto does. */
void kineto_take(struct kineto_client *c, const char *text);

/* Whether the application's own profiler runs. */
bool kineto_is_self_busy(const struct kineto_client *c);

/* The loop of the profiler thread. */
void *kineto_profiler_run(void *arg);

/* Open and bind the socket. Returns false with a message on standard error. */
bool kineto_socket_open(struct kineto_client *c);

/* Send one datagram with the retries of libkineto. Returns whether that counts as
 * sent. */
bool kineto_send(struct kineto_client *c, const void *p, size_t n);

/* Whether an answer that it did not take in time is there: what it reads next. */
bool kineto_has_answer(const struct kineto_client *c);

/* Wait for an answer as long as libkineto does. Returns the bytes of its payload, -1 =
 * none came. The text gets a NUL. */
int kineto_receive(struct kineto_client *c, char *text, size_t size);

#endif
