/*
 * gunzip.h - a whole compressed control body at once.
 *
 * Events and files are inflated as they come, by the engine; this is for the small
 * bodies that are parsed as one piece. Pure; safe from any thread.
 */
#ifndef TP_API_GUNZIP_H
#define TP_API_GUNZIP_H

#include "base/buf.h"
#include "base/str.h"

/*
 * Append the content of one or more gzip members to out.
 *
 * out  its limit_bytes is where inflating stops.
 *
 * TP_EINVAL  not gzip, damaged or cut off. TP_EQUOTA  more than the limit of out.
 * TP_ENOMEM. out holds a useless beginning then.
 */
int tp_gunzip(struct tp_str in, struct tp_buf *out, struct tp_err *err);

#endif
