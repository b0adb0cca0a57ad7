/*
 * upload_form.h - what a body is by its first bytes, and what was wrong with it in
 * words.
 *
 * Pure functions; safe from any thread.
 */
#ifndef TP_ENGINE_UPLOAD_FORM_H
#define TP_ENGINE_UPLOAD_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/uploads.h"
#include "trace/ingest.h"

struct tp_err;

/*
 * The form to read a body in.
 *
 * form       what the client said; SNIFF looks at name and bytes.
 * file_name  may be "".
 * p, n       the first bytes, compressed or not; what is not there is not looked at.
 */
enum tp_ingest_form tp_upload_ingest_form(enum tp_upload_form form,
                                          const char *file_name, const void *p,
                                          size_t n);

/* The first offset that a reader's message names ("byte 17: ..."). Returns false when
 * there is none. */
bool tp_upload_offset(const struct tp_err *err, uint64_t *offset);

/* Say what is missing of a damaged file, in one sentence. */
void tp_upload_damage(const struct tp_ingest_result *r, char *out, size_t size);

#endif
