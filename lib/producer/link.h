/*
 * link.h - requests to the service over HTTP, a few at once, from one thread.
 *
 * Each channel carries one request at a time and keeps its connection. It knows no
 * paths, no retries and no meaning of an answer: that is agent.h. All functions from
 * the thread that owns the link, except tp_link_wake().
 */
#ifndef TP_PRODUCER_LINK_H
#define TP_PRODUCER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_err;
struct tp_link;

enum tp_link_channel {
    TP_LINK_POLL,   /* the sync that the service holds */
    TP_LINK_REPORT, /* registrations, and syncs that are answered at once */
    TP_LINK_POST,   /* events */
    TP_LINK_CHANNELS
};

/* Plain data; strings are copied. */
struct tp_link_opts {
    const char *url; /* "http://host:port", "https://..."; no slash at the end */
    const char *socket_path; /* of a unix socket that serves that URL; "" = none */
    const char *token;       /* sent as bearer token; "" = none */
    uint64_t connect_ms;     /* most for a connection; 0 = 5000 */
};

/* What to send. Plain data. */
struct tp_link_request {
    const char *method;       /* "POST", "DELETE" */
    const char *path;         /* with its query; copied */
    const char *content_type; /* static; NULL = "application/json" */
    struct tp_str body;       /* borrowed until the request is over */
    uint64_t timeout_ms;      /* most for all of it; not 0 */
};

/* What came back. Plain data; body is borrowed until the channel's next request. */
struct tp_link_reply {
    long status; /* HTTP; 0 = there was no answer, and `why` tells it */
    struct tp_str body;
    const char *why;
    uint64_t retry_after_ms; /* what the service asked for; 0 = nothing */
};

/*
 * Look whether paths can be appended to a URL of "http://" or "https://": it has a
 * host, its port is a number, and there is neither a query nor a fragment. Any thread.
 *
 * TP_EINVAL  it is not; the message names it. TP_ENOMEM.
 */
int tp_link_check_url(const char *url, struct tp_err *err);

/*
 * Create a link; nothing is sent. It copies opts.
 *
 * out  release with tp_link_free().
 *
 * TP_ENOMEM  nothing was created.
 */
int tp_link_new(const struct tp_link_opts *opts, struct tp_link **out,
                struct tp_err *err);

/* Break off what is on its way and release the link. NULL is allowed. */
void tp_link_free(struct tp_link *l);

/*
 * Begin a request on a channel that is not busy.
 *
 * TP_ENOMEM  nothing was begun.
 */
int tp_link_begin(struct tp_link *l, enum tp_link_channel channel,
                  const struct tp_link_request *request, struct tp_err *err);

/* Whether a request is on its way, or its answer was not taken yet. */
bool tp_link_is_busy(const struct tp_link *l, enum tp_link_channel channel);

/* Whether anything was sent of the request that is on its way: else the service knows
 * nothing of it. */
bool tp_link_has_sent(const struct tp_link *l, enum tp_link_channel channel);

/* Break off the request of a channel, if there is one; there will be no answer. */
void tp_link_drop(struct tp_link *l, enum tp_link_channel channel);

/* Wait until an answer is there, somebody wakes the link, or timeout_ms have passed. */
void tp_link_wait(struct tp_link *l, uint64_t timeout_ms);

/*
 * Take what the service said ahead of the answer of a channel, in an interim answer
 * with a header "Traceplane-Sync". Returns false when there is nothing new.
 *
 * out  the value with the blanks around it; borrowed until the channel's next request.
 */
bool tp_link_take_ahead(struct tp_link *l, enum tp_link_channel channel,
                        struct tp_str *out);

/* Take the answer of a channel. Returns false when there is none yet. */
bool tp_link_take(struct tp_link *l, enum tp_link_channel channel,
                  struct tp_link_reply *out);

/* In the child of a fork: close what the parent's connections left open here. Nothing
 * is sent on them, and the link cannot be used or released any more. */
void tp_link_forget(struct tp_link *l);

/* End a tp_link_wait(), or the next one. From any thread. */
void tp_link_wake(struct tp_link *l);

#endif
