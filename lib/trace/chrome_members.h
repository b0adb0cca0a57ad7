/*
 * chrome_members.h - the text of one Chrome event taken apart into its members.
 *
 * Knows the keys of the format and where each member goes, not what the values mean:
 * chrome_event.h makes an event of them. Everything is borrowed from the text where it
 * can be, otherwise from the arena; both must stay until the event was used.
 * chrome_parse.c is the way through the text, chrome_members.c what is rare on it. Not
 * thread-safe.
 */
#ifndef TP_TRACE_CHROME_MEMBERS_H
#define TP_TRACE_CHROME_MEMBERS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "trace/chrome_names.h"
#include "trace/chrome_reader.h"
#include "trace/event.h"

/* The members that an event has a place for. */
enum tp_chrome_key {
    TP_CHROME_PH,
    TP_CHROME_TS,
    TP_CHROME_DUR,
    TP_CHROME_PID,
    TP_CHROME_TID,
    TP_CHROME_NAME,
    TP_CHROME_CAT,
    TP_CHROME_ID,
    TP_CHROME_SCOPE, /* s */
    TP_CHROME_BP,
    TP_CHROME_KEYS,                  /* how many have a value */
    TP_CHROME_ARGS = TP_CHROME_KEYS, /* goes to args */
    TP_CHROME_OTHER                  /* goes to extra */
};

enum tp_chrome_value_kind {
    TP_CHROME_NONE, /* the member is not there */
    TP_CHROME_STRING,
    TP_CHROME_NUMBER,
    TP_CHROME_NESTED, /* an array or object */
    TP_CHROME_WORD    /* true, false, null, or "NaN" and the like in quotes */
};

struct tp_chrome_value {
    enum tp_chrome_value_kind kind;
    union {
        struct tp_json_string string;
        struct tp_json_number number;
        struct tp_str json; /* NESTED, WORD: valid JSON */
    };
};

/* Where a member stands in extra; private. */
struct tp_chrome_span {
    size_t start;
    size_t key_bytes; /* with the quotes */
    size_t end;
};

#define TP_CHROME_REJECTION_BYTES 96

/* Limits in, members out. The limits are set once, and names by
 * tp_chrome_names_init(); the rest is read only. */
struct tp_chrome_members {
    unsigned depth_max;
    uint32_t args_max; /* most members of args, and most further members */
    size_t name_bytes; /* longest key */
    struct tp_chrome_names names;

    struct tp_chrome_value values[TP_CHROME_KEYS];
    struct tp_arg *args;
    uint32_t n_args;
    uint32_t args_shape; /* see struct tp_event */
    uint32_t args_cap;
    uint64_t seen; /* bit set of the hashes of the keys in args */
    struct tp_buf extra;
    struct tp_chrome_span *spans;
    uint32_t n_spans;
    uint32_t spans_cap;
    struct tp_arena arena;
    bool repaired;
    char rejection[TP_CHROME_REJECTION_BYTES]; /* why it is no event; "" = it is */
    enum tp_chrome_reject cause;               /* of the rejection */
};

/* Release all memory and make m all-zero. All-zero is allowed. */
void tp_chrome_members_fini(struct tp_chrome_members *m);

/*
 * Take one JSON object apart; the cursor is on its `{` and is moved behind its `}`.
 * Members that appear twice: the last one counts. What is over a limit sets
 * m->rejection and is passed over.
 *
 * TP_EAGAIN  the text ends before the object.
 * TP_EINVAL  damaged; see json_cursor.h.
 * TP_EQUOTA  deeper than depth_max; m->rejection is set, the end was not found.
 * TP_ENOMEM  as it says, in err; the other codes leave err alone.
 */
int tp_chrome_members_parse(struct tp_chrome_members *m, struct tp_json *c,
                            struct tp_err *err);

/* Whether a further member with this key (plain ASCII) was kept in extra. */
bool tp_chrome_members_has(const struct tp_chrome_members *m, const char *key);

/* Set m->rejection unless there is one. */
void tp_chrome_members_reject(struct tp_chrome_members *m, enum tp_chrome_reject cause,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The text that a string stands for, borrowed or in the arena.
 *
 * TP_ENOMEM  out is untouched.
 */
int tp_chrome_members_text(struct tp_chrome_members *m, const struct tp_json_string *s,
                           struct tp_str *out, struct tp_err *err);

/* As above, without a call for nearly all strings. */
static inline int tp_chrome_members_plain(struct tp_chrome_members *m,
                                          const struct tp_json_string *s,
                                          struct tp_str *out, struct tp_err *err)
{
    if (__builtin_expect(s->traits != 0, 0))
        return tp_chrome_members_text(m, s, out, err);
    *out = (struct tp_str){s->ptr, s->len};
    return TP_OK;
}

/*
 * Move over the array or object at the cursor.
 *
 * depth  how many arrays and objects are around it.
 * out    it as valid JSON on one line, borrowed or in the arena.
 *
 * Errors as tp_chrome_members_parse().
 */
int tp_chrome_members_nested(struct tp_chrome_members *m, struct tp_json *c,
                             unsigned depth, struct tp_str *out, struct tp_err *err);

/* Make room for more arguments. TP_ENOMEM: nothing changed. */
int tp_chrome_members_grow_args(struct tp_chrome_members *m, struct tp_err *err);

/* A value as valid JSON text, borrowed or in the arena; errors as above. */
int tp_chrome_members_json(struct tp_chrome_members *m, const struct tp_chrome_value *v,
                           struct tp_str *out, struct tp_err *err);

/*
 * Add a member to extra, in place of one with the same key.
 *
 * key  as text, valid UTF-8, not escaped.
 *
 * TP_ENOMEM  extra is without the member.
 */
int tp_chrome_members_keep(struct tp_chrome_members *m, struct tp_str key,
                           const struct tp_chrome_value *v, struct tp_err *err);

/* Take the member with this key, as written with its quotes, out of extra. */
void tp_chrome_members_drop(struct tp_chrome_members *m, const char *key,
                            size_t key_bytes);

#endif
