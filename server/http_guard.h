/*
 * http_guard.h - what a request must not be, whatever it asks for.
 *
 * The library below is lenient where a proxy in front of it may understand a request
 * differently (smuggling), and knows nothing of browsers (DNS rebinding, CSRF). Pure
 * over the call; any thread.
 */
#ifndef TP_SERVER_HTTP_GUARD_H
#define TP_SERVER_HTTP_GUARD_H

#include <stdbool.h>

#include "api/call.h"

struct tp_config;

/* Plain data: what was seen while the headers were read. */
struct tp_http_seen {
    unsigned char count[TP_HEADERS]; /* how often each came; stops at 255 */
    bool has_odd_name;               /* a header name that is no token */
    bool has_odd_value;              /* a value with a control character */
    bool is_http_1_1;
    bool is_unix; /* came over a unix socket: no browser can */
};

/*
 * Check the request line and headers of a call.
 *
 * Returns true when it is fine; the Host of the call is then the one that is meant,
 * which a target in absolute form names itself. Otherwise the call has its answer,
 * must_close is set for what can desynchronise a connection, and is_refused is true.
 */
bool tp_http_guard(const struct tp_config *config, const struct tp_http_seen *seen,
                   struct tp_call *call);

/* Whether the Origin of a call, which must be there, is one of the configured ones. */
bool tp_http_origin_is_allowed(const struct tp_config *config, struct tp_str origin);

#endif
