/*
 * fake_service.h - a service that answers producers as a test tells it to.
 *
 * It listens on a unix socket and knows no more of a trace than what is in its script:
 * a list of answers for each kind of request, each used once, the last one again and
 * again. What was asked is kept as text. The fields may be changed under `lock` only,
 * from any thread.
 */
#ifndef TP_SUPPORT_FAKE_SERVICE_H
#define TP_SUPPORT_FAKE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>

#define FAKE_ANSWERS_MAX 16
#define FAKE_LOG_BYTES 8192
#define FAKE_CUT (-1) /* instead of a status: the connection is cut */

enum fake_kind {
    FAKE_TYPES,
    FAKE_PRODUCERS,
    FAKE_SYNC,
    FAKE_EVENTS,
    FAKE_LEAVE,
    FAKE_KINDS
};

/* Plain data. body  static; NULL = what a service says when all is well. */
struct fake_answer {
    int status;
    const char *body;
};

/* Embed it, zero; start with fake_service_init(). */
struct fake_service {
    pthread_mutex_t lock;
    struct fake_answer answers[FAKE_KINDS][FAKE_ANSWERS_MAX];
    int n_answers[FAKE_KINDS], n_used[FAKE_KINDS], n_asked[FAKE_KINDS];
    char
        log[FAKE_LOG_BYTES]; /* a line for each request but syncs: "EVENTS seq=1 200" */
    char last_sync[FAKE_LOG_BYTES];   /* the body of the last sync that had acks */
    char last_counts[FAKE_LOG_BYTES]; /* likewise, that had counts */
    char last_plain[FAKE_LOG_BYTES];  /* likewise, that had neither */
    unsigned long top_seq;            /* the highest of a sync */
    int retry_after_s;                /* asked for with what is not 200; 0 = nothing */
    bool is_quick;                    /* a poll is answered at once */
    bool is_kept[FAKE_KINDS];         /* what is asked is not answered for now */
    const char *ahead;                /* NULL = nothing */
    bool is_held;         /* an answer is kept back until fake_service_go_on() */
    pthread_cond_t go_on; /* is_held, or one of is_kept, has become false */
    char path[108];
    char *folder;
    int listener;
    pthread_t thread;
};

/* Listen; every answer is a good one until fake_service_answer() says otherwise. */
void fake_service_init(struct fake_service *s);

/* End it, and all connections. */
void fake_service_fini(struct fake_service *s);

/* Say `ahead` (static; a header and its value) in an interim answer before the next
 * answer to a sync that has a command, which then comes when the test says so. */
void fake_service_say_ahead(struct fake_service *s, const char *ahead);

/* Let the answer come that was held back. */
void fake_service_go_on(struct fake_service *s);

/* Keep all answers of a kind back, or let them go. What was asked is in the log. */
void fake_service_keep(struct fake_service *s, enum fake_kind kind, bool is_kept);

/* Add an answer to the script of a kind. */
void fake_service_answer(struct fake_service *s, enum fake_kind kind, int status,
                         const char *body);

/* Wait until a kind was asked n times in all. Fails the test after ten seconds. */
void fake_service_await(struct fake_service *s, enum fake_kind kind, int n);

/* Whether the log has that text in it. */
bool fake_service_has(struct fake_service *s, const char *text);

#endif
