/*
 * rest_uploads.h - POST of events and files.
 *
 * The body goes to the engine piece by piece, so memory does not grow with it. One
 * thread at a time.
 */
#ifndef TP_API_REST_UPLOADS_H
#define TP_API_REST_UPLOADS_H

#include <stdbool.h>
#include <stddef.h>

struct tp_call;

/* The content coding of a request. */
enum tp_coding { TP_CODING_IDENTITY, TP_CODING_GZIP, TP_CODING_OTHER };

/* The coding that the headers of a call name. In rest.c. */
enum tp_coding tp_rest_coding(const struct tp_call *call);

/* Whether the Content-Type of a call is `type`, without parameters and case. In rest.c.
 * */
bool tp_rest_media_is(const struct tp_call *call, const char *type);

/* Check content type and parameters and open the upload. Returns false when it is
 * refused: then the answer is made. */
bool tp_rest_begin_upload(struct tp_call *call);

/* Take n bytes of the body. A failure makes the answer and sets call->is_refused. */
void tp_rest_feed_upload(struct tp_call *call, const char *p, size_t n);

/* The handler of both: the body is complete. */
void tp_rest_commit_upload(struct tp_call *call);

#endif
