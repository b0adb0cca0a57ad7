/*
 * json_doc.h - a JSON document written front to back, with its commas.
 *
 * For documents of control data that are too close to the event path for a tree in
 * memory. The first failure sticks and makes all further calls do nothing, so a
 * writer is a plain list of calls with one check at its end. It does not check that
 * members and values alternate; it asserts that brackets match. One thread at a time.
 */
#ifndef TP_BASE_JSON_DOC_H
#define TP_BASE_JSON_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct tp_buf;
struct tp_err;

#define TP_JSON_DOC_DEPTH 16

/* On the caller's stack; start with tp_json_doc_init(). All fields are private. */
struct tp_json_doc {
    struct tp_buf *out;
    struct tp_err *err;
    int rc;           /* the first failure, or TP_OK */
    bool needs_comma; /* before the next key or value */
    bool needs_line;  /* likewise a new line, with n_blanks behind it */
    unsigned n_blanks;
    unsigned depth;
    char closers[TP_JSON_DOC_DEPTH];
};

/* Start a document that is appended to out; failures are described in err. */
void tp_json_doc_init(struct tp_json_doc *d, struct tp_buf *out, struct tp_err *err);

/*
 * End a document.
 *
 * TP_OK, or the first failure: TP_ENOMEM or TP_EQUOTA of tp_buf_append(). Then out
 * holds a beginning of the document.
 */
int tp_json_doc_end(struct tp_json_doc *d);

/* Open an object or an array, at most TP_JSON_DOC_DEPTH deep. */
void tp_json_doc_object(struct tp_json_doc *d);
void tp_json_doc_array(struct tp_json_doc *d);

/* Close the innermost object or array. */
void tp_json_doc_close(struct tp_json_doc *d);

/* Write the key of the next value. A NUL-terminated string, escaped like any other. */
void tp_json_doc_key(struct tp_json_doc *d, const char *key);

/* As tp_json_doc_key() for a key with a length. */
void tp_json_doc_key_str(struct tp_json_doc *d, struct tp_str key);

/* Begin a new line, indented by n blanks, before the key, value or bracket that comes
 * next. */
void tp_json_doc_line(struct tp_json_doc *d, unsigned n_blanks);

/* Write a value: a string, text that is JSON already (not empty), or a number. */
void tp_json_doc_str(struct tp_json_doc *d, struct tp_str s);
void tp_json_doc_raw(struct tp_json_doc *d, struct tp_str json);
void tp_json_doc_u64(struct tp_json_doc *d, uint64_t v);
void tp_json_doc_i64(struct tp_json_doc *d, int64_t v);
void tp_json_doc_bool(struct tp_json_doc *d, bool v);

/* Write a key and a value on the same line. */
void tp_json_doc_member_str(struct tp_json_doc *d, const char *key, struct tp_str s);
void tp_json_doc_member_raw(struct tp_json_doc *d, const char *key, struct tp_str json);
void tp_json_doc_member_u64(struct tp_json_doc *d, const char *key, uint64_t v);
void tp_json_doc_member_i64(struct tp_json_doc *d, const char *key, int64_t v);
void tp_json_doc_member_bool(struct tp_json_doc *d, const char *key, bool v);

#endif
