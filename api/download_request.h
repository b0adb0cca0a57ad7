/*
 * download_request.h - the parameters of a download as a request of the engine.
 *
 * One thread at a time.
 */
#ifndef TP_API_DOWNLOAD_REQUEST_H
#define TP_API_DOWNLOAD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/downloads.h"

struct tp_call;

/* Plain data; the zero value is ready. request borrows from the call and from the rest.
 * */
struct tp_download_params {
    struct tp_engine_download_request request;
    uint32_t *ranks;      /* owned */
    struct tp_str *types; /* owned */
    bool is_file;         /* `compress` was given: the coding is part of the file */
    bool has_negotiated;  /* the coding was chosen by Accept-Encoding */
};

/*
 * Read the parameters and Accept-Encoding. Returns false when something is wrong: then
 * the answer is made. Release with tp_download_params_fini() in either case.
 */
bool tp_download_params_read(struct tp_call *call, struct tp_download_params *params);

/* Release what reading allocated. All-zero is allowed. */
void tp_download_params_fini(struct tp_download_params *params);

#endif
