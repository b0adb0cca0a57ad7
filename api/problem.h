/*
 * problem.h - answers of application/problem+json (RFC 9457).
 *
 * Each sets the whole answer of a call: status, content type, body. What was in the
 * answer before is gone. One thread at a time.
 */
#ifndef TP_API_PROBLEM_H
#define TP_API_PROBLEM_H

#include "api/call.h"
#include "api/json_out.h"

struct tp_json_in;
struct tp_problem; /* engine/problem.h */

/* Answer with a fault and one sentence about this case. */
void tp_problem_answer(struct tp_call *call, enum tp_fault fault, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/*
 * Start such an answer and leave it open for more members; end it with
 * tp_problem_close().
 *
 * o  to be written to until then.
 */
void tp_problem_open(struct tp_call *call, enum tp_fault fault, const char *detail,
                     struct tp_json_out *o);

/* End an answer that tp_problem_open() started. */
void tp_problem_close(struct tp_call *call, struct tp_json_out *o);

/*
 * Answer with a failure of the engine and all the fields that belong to it.
 *
 * code     the code that the engine gave. problem, err  what it filled in.
 */
void tp_problem_engine(struct tp_call *call, int code, const struct tp_problem *problem,
                       const struct tp_err *err);

/*
 * Answer with a limit that is exceeded: its name, unit and value are in the answer.
 *
 * name  as in core/limits.h, such as "max-body-bytes". max  its value.
 */
void tp_problem_limit_answer(struct tp_call *call, enum tp_fault fault,
                             const char *name, uint64_t max, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Answer with the failure of reading a control body. */
void tp_problem_body(struct tp_call *call, const struct tp_json_in *in);

/* Answer with a fault of one parameter of the query, which is named in the answer. */
void tp_problem_parameter(struct tp_call *call, const char *parameter,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
