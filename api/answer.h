/*
 * answer.h - good answers as JSON, and the parameters that lists share.
 *
 * One thread at a time.
 */
#ifndef TP_API_ANSWER_H
#define TP_API_ANSWER_H

#include "api/call.h"
#include "api/json_out.h"

/* Start an answer of one JSON object; end it with tp_answer_close(). */
void tp_answer_open(struct tp_call *call, int status, struct tp_json_out *o);

/* End it. Without memory for the body the answer becomes a problem. */
void tp_answer_close(struct tp_call *call, struct tp_json_out *o);

/* Answer with a status and no body, such as 204. */
void tp_answer_empty(struct tp_call *call, int status);

/* Answer with a static body. */
void tp_answer_fixed(struct tp_call *call, int status, const char *content_type,
                     struct tp_str body);

/*
 * Read a parameter that is a whole number of min to max; *out is `absent` when it is
 * not there. Returns false when it is wrong: then the answer says so.
 */
bool tp_param_u64(struct tp_call *call, const char *key, uint64_t min, uint64_t max,
                  uint64_t absent, uint64_t *out);

/* Read `limit` of a list, 1 to the configured most; the default is 100. */
bool tp_param_limit(struct tp_call *call, size_t *out);

/*
 * Read a time: RFC 3339, or nanoseconds since the epoch as a number. *has is false when
 * the parameter is absent. Returns false when it is wrong: then the answer says so.
 */
bool tp_param_time(struct tp_call *call, const char *key, bool *has, int64_t *out);

/* Read text of at most max_bytes without control characters; empty when absent. */
bool tp_param_text(struct tp_call *call, const char *key, size_t max_bytes,
                   struct tp_str *out);

/* Read `job`, which is empty when absent. One that is there and empty is refused: a
 * script whose variable is not set does not mean the default. */
bool tp_param_job(struct tp_call *call, struct tp_str *out);

#endif
