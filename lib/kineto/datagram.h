/*
 * datagram.h - the datagrams of Kineto's on-demand protocol: read what a process sends,
 * write what it is answered.
 *
 * One datagram is one message: a size of 8 bytes, a type of 32 bytes, and the payload,
 * in the byte order of the machine. The protocol belongs to libkineto and dynolog; it
 * is followed to the byte here. Knows no socket and no state. Pure functions; safe from
 * any thread.
 */
#ifndef TP_KINETO_DATAGRAM_H
#define TP_KINETO_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;

#define TP_KINETO_HEADER_BYTES 40
#define TP_KINETO_PIDS_MAX 64
/* The longest that is taken: a request with TP_KINETO_PIDS_MAX pids. */
#define TP_KINETO_DATAGRAM_MAX_BYTES (TP_KINETO_HEADER_BYTES + 16 + 4 * 64)
#define TP_KINETO_COUNT_BYTES (TP_KINETO_HEADER_BYTES + 4)

/* The bits of a request's type: what the process would take. */
#define TP_KINETO_TYPE_EVENTS 1u     /* only releases before 2026-07-24 set it */
#define TP_KINETO_TYPE_ACTIVITIES 2u /* not set while its profiler is busy */

enum tp_kineto_message {
    TP_KINETO_CONTEXT, /* "ctxt": a process introduces itself; stock ones never do */
    TP_KINETO_REQUEST  /* "req": a process asks for a configuration */
};

/* Plain data: a datagram as read. Everything in it is what the sender claims. */
struct tp_kineto_datagram {
    enum tp_kineto_message message;
    int64_t job;                      /* SLURM_JOB_ID of the process, or 0 */
    int32_t gpu;                      /* CONTEXT only */
    uint32_t type;                    /* REQUEST only: bits as above */
    size_t n_pids;                    /* CONTEXT: 1; REQUEST: 0 to TP_KINETO_PIDS_MAX */
    int32_t pids[TP_KINETO_PIDS_MAX]; /* its own first, then its ancestors' */
};

/*
 * Read a datagram.
 *
 * p, n  any bytes.
 * out   written on success only.
 *
 * TP_EINVAL  it is no datagram of the protocol; the message names the offset at fault.
 */
int tp_kineto_datagram_read(const void *p, size_t n, struct tp_kineto_datagram *out,
                            struct tp_err *err);

/*
 * Append the answer to a request: a header of exactly the size of the text, and it.
 *
 * text  the configuration, without a NUL; may be empty.
 *
 * TP_ENOMEM, TP_EQUOTA  nothing was appended.
 */
int tp_kineto_reply_config(struct tp_str text, struct tp_buf *out, struct tp_err *err);

/*
 * Write the answer to a context.
 *
 * count  processes that are known with the same job and gpu, the sender included.
 * out    TP_KINETO_COUNT_BYTES.
 */
void tp_kineto_reply_count(int32_t count, char *out);

#endif
