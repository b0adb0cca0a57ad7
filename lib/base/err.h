/*
 * err.h - the error codes of every room and the message that goes with one.
 *
 * A fallible function returns TP_OK (0) or one of the negative codes below and
 * describes the failure in the caller's struct tp_err. It does not log: the
 * caller that stops passing the error on does that, once. The functions here
 * are safe from any thread as long as each thread has a struct tp_err of its own.
 */
#ifndef TP_BASE_ERR_H
#define TP_BASE_ERR_H

/* The public header of the producer library repeats these two; see traceplane.h. */
#ifndef TP_ERR_DEFINED
#define TP_ERR_DEFINED
/*
 * Append only: the numbers are part of the C ABI. The comment says what the
 * caller may conclude; api/status.c turns them into HTTP statuses.
 */
enum tp_code {
    TP_OK = 0,
    TP_EINVAL = -1,       /* the input is wrong; the message names the value */
    TP_ENOMEM = -2,       /* no memory; nothing changed */
    TP_ENOTFOUND = -3,    /* no such object */
    TP_EEXIST = -4,       /* an object with that key is there already */
    TP_ESTATE = -5,       /* not allowed in the object's present state */
    TP_EQUOTA = -6,       /* a configured limit is reached */
    TP_EIO = -7,          /* a disk, store or peer failed */
    TP_EAMBIGUOUS = -8,   /* the name fits several objects */
    TP_EDENIED = -9,      /* the caller may not do that */
    TP_EAGAIN = -10,      /* not now; the same call may succeed later */
    TP_EUNSUPPORTED = -11 /* known, but not handled here */
};

#define TP_ERR_MESSAGE_BYTES 512

/* Plain data. The zero value means "no error yet". */
struct tp_err {
    int code;                           /* enum tp_code of the last failure */
    char message[TP_ERR_MESSAGE_BYTES]; /* one English sentence, no full stop */
};
#endif

/*
 * Record a failure and return its code, for `return tp_fail(err, ...)`.
 *
 * err     may be NULL: then only the code is returned. A message that does not
 *         fit is cut at a UTF-8 boundary.
 * code    a negative enum tp_code.
 * format  printf format of one English sentence that names the value at fault.
 */
int tp_fail(struct tp_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Put words before the message of err ("words: message") and return err->code.
 * Nothing happens when err is NULL; then TP_EIO is returned.
 */
int tp_fail_prefix(struct tp_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The stable lower-case name of a code ("invalid", "not-found", ...); never NULL. */
const char *tp_code_name(int code);

#endif
