/*
 * json_in.h - typed reading of a control body, with errors that name the field.
 *
 * Parses with json-c after json_check.h has passed the text. Every getter checks the
 * type first, since json-c aborts on some wrong ones. The first failure sticks in
 * the struct: a codec reads all its fields and looks at `code` once. One thread at a
 * time.
 */
#ifndef TP_API_JSON_IN_H
#define TP_API_JSON_IN_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/status.h"
#include "base/err.h"
#include "base/str.h"

#define TP_JSON_FIELD_BYTES 96

/* Plain data; the zero value is ready. Strings that getters give live until
 * tp_json_in_fini(). */
struct tp_json_in {
    struct json_object *root;        /* owned; NULL before tp_json_in_parse() */
    struct tp_str text;              /* the body that was parsed; borrowed */
    int code;                        /* TP_OK, or of the first failure */
    enum tp_fault kind;              /* what the failure is to a client */
    char field[TP_JSON_FIELD_BYTES]; /* the field at fault; "" for the whole body */
    bool is_limit;                   /* the failure is a limit that is exceeded, */
    const char *limit;               /* of this name, */
    uint64_t max;                    /* and this value */
    struct tp_err err;
};

/*
 * Parse a body; it must hold an object. An empty body is an empty object, so that POST
 * without a body works where all fields are optional.
 *
 * Returns in->code: TP_EINVAL, TP_EQUOTA (too deep) or TP_ENOMEM.
 */
int tp_json_in_parse(struct tp_json_in *in, struct tp_str body, uint32_t depth_max);

/* Release the tree. */
void tp_json_in_fini(struct tp_json_in *in);

/* Record a failure of a field, unless there is one already. Returns in->code. */
int tp_json_in_fail(struct tp_json_in *in, enum tp_fault kind, const char *path,
                    const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * Refuse members of obj that are not among `names` (ended by NULL); the message has the
 * nearest known name. `path` stands before the name of every field in messages, such
 * as "filter." or "".
 */
void tp_json_in_known(struct tp_json_in *in, struct json_object *obj, const char *path,
                      const char *const *names);

/* Whether the member is there. */
bool tp_json_in_has(struct json_object *obj, const char *name);

/* A string without NUL characters; empty when absent. */
struct tp_str tp_json_in_str(struct tp_json_in *in, struct json_object *obj,
                             const char *path, const char *name);

/* The member "job", as tp_json_in_str(); one that is there and empty is a mistake. */
struct tp_str tp_json_in_job(struct tp_json_in *in, struct json_object *obj,
                             const char *path);

/* A whole number of min to max; `absent` when absent. */
uint64_t tp_json_in_u64(struct tp_json_in *in, struct json_object *obj,
                        const char *path, const char *name, uint64_t min, uint64_t max,
                        uint64_t absent);

/* A whole number of any sign; `absent` when absent. */
int64_t tp_json_in_i64(struct tp_json_in *in, struct json_object *obj, const char *path,
                       const char *name, int64_t absent);

/* true or false; `absent` when absent. */
bool tp_json_in_bool(struct tp_json_in *in, struct json_object *obj, const char *path,
                     const char *name, bool absent);

/* An object, or NULL when absent. */
struct json_object *tp_json_in_object(struct tp_json_in *in, struct json_object *obj,
                                      const char *path, const char *name);

/* Say which limit it was, if the present failure is one that has no name yet. */
void tp_json_in_limit(struct tp_json_in *in, const char *name, uint64_t max);

/* An array, or NULL when absent; *n gets its length, 0 to max. */
struct json_object *tp_json_in_array(struct tp_json_in *in, struct json_object *obj,
                                     const char *path, const char *name, size_t max,
                                     size_t *n);

/* A string that is element i of an array that tp_json_in_array() gave. */
struct tp_str tp_json_in_item_str(struct tp_json_in *in, struct json_object *array,
                                  size_t i, const char *path, const char *name);

/* An RFC 3339 time in nanoseconds since the epoch; 0 when absent. */
int64_t tp_json_in_time(struct tp_json_in *in, struct json_object *obj,
                        const char *path, const char *name);

#endif
