/*
 * rest_downloads.h - what leaves: GET /traces/{id}/download and /summary.
 *
 * Both may take long (an active trace is sealed first) and run where they block nobody.
 * One thread at a time.
 */
#ifndef TP_API_REST_DOWNLOADS_H
#define TP_API_REST_DOWNLOADS_H

struct tp_call;

/* GET /traces/{id}/download: answers with a stream, a part of it, or 304. */
void tp_rest_download_trace(struct tp_call *call);

/* GET /traces/{id}/summary. */
void tp_rest_summarize_trace(struct tp_call *call);

#endif
