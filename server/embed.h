/*
 * embed.h - files that are part of the program.
 *
 * Constant data; any thread.
 */
#ifndef TP_SERVER_EMBED_H
#define TP_SERVER_EMBED_H

#include "base/str.h"

/* The description of the API. */
struct tp_str tp_embed_openapi(void);

#endif
