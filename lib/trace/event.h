/*
 * event.h - one event of a trace, as readers hand it to writers.
 *
 * Every format is read into this and written from this; it keeps whatever a
 * format can say, so that what goes in comes out again. Plain data: it owns
 * nothing. All pointers are borrowed from the reader that produced the event
 * and live until its next call. Not shared between threads.
 */
#ifndef TP_TRACE_EVENT_H
#define TP_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* What an event is; the comment gives the `ph` of the Chrome trace format. */
enum tp_event_kind {
    TP_EVENT_SLICE,         /* X: starts at ts_ns, lasts dur_ns */
    TP_EVENT_BEGIN,         /* B: its end is another event, or never came */
    TP_EVENT_END,           /* E: ends the innermost open BEGIN of its track */
    TP_EVENT_INSTANT,       /* i, I */
    TP_EVENT_COUNTER,       /* C: args are the series and their values */
    TP_EVENT_FLOW_START,    /* s */
    TP_EVENT_FLOW_STEP,     /* t */
    TP_EVENT_FLOW_END,      /* f */
    TP_EVENT_ASYNC_BEGIN,   /* b */
    TP_EVENT_ASYNC_INSTANT, /* n */
    TP_EVENT_ASYNC_END,     /* e */
    TP_EVENT_META,          /* M: names and labels of processes and threads */
    TP_EVENT_OTHER,         /* any other phase, kept in `phase` and `extra` */
    TP_EVENT_KINDS
};

enum tp_id_kind { TP_ID_NONE, TP_ID_NUMBER, TP_ID_TEXT };

/* A pid, tid or flow id: the wild sends numbers, strings and nothing at all. */
struct tp_id {
    enum tp_id_kind kind;
    int64_t number;     /* for TP_ID_NUMBER */
    struct tp_str text; /* for TP_ID_TEXT; valid UTF-8 */
};

/*
 * Where an event happened: one (pid, tid) of one reader. The reader owns it, and
 * it stays valid and unchanged until the reader is freed, so index may key arrays.
 */
struct tp_track {
    uint32_t index; /* dense, from 0, in order of first appearance */
    uint32_t lane;  /* 0, or the extra lane that an overlapping slice was moved to */
    struct tp_id pid;
    struct tp_id tid;
};

/*
 * A string that the reader may know by number. iid 0 means "not interned";
 * otherwise equal iid of one reader means equal bytes, and iid is small and dense.
 */
struct tp_name {
    const char *ptr; /* valid UTF-8, not NUL-terminated, may hold any character */
    uint32_t len;    /* bytes */
    uint32_t iid;
};

enum tp_arg_kind {
    TP_ARG_INT,    /* i */
    TP_ARG_UINT,   /* u: only for values above INT64_MAX */
    TP_ARG_DOUBLE, /* d: finite */
    TP_ARG_BOOL,   /* b */
    TP_ARG_STRING, /* s: valid UTF-8 */
    TP_ARG_JSON    /* s: valid JSON text of an array, object, null or a number that
                      fits neither an integer of 64 bits nor a double */
};

/* One member of `args`. */
struct tp_arg {
    struct tp_name key;
    enum tp_arg_kind kind;
    union {
        int64_t i;
        uint64_t u;
        double d;
        bool b;
        struct tp_str s;
    };
};

struct tp_event {
    enum tp_event_kind kind;
    char phase;                   /* the Chrome `ph`; '\0' when the source has none */
    char scope;                   /* of an instant: 'g', 'p', 't'; '\0' when not said */
    bool binds_enclosing;         /* of a flow end: `"bp":"e"` */
    bool is_unfinished;           /* of a BEGIN: known to have no end */
    int64_t ts_ns;                /* start; see the reader for what it is relative to */
    int64_t dur_ns;               /* of a SLICE, >= 0; else 0 */
    struct tp_name name;          /* ptr NULL when absent */
    struct tp_name cat;           /* ptr NULL when absent */
    struct tp_id id;              /* of flows and async events */
    const struct tp_track *track; /* never NULL */
    const struct tp_arg *args;
    uint32_t n_args;
    uint32_t args_shape; /* not 0: the same keys in the same order as all events of the
                            reader with this number, and all keys have an iid */
    struct tp_str extra; /* further members as JSON text without the braces, such as
                            "tts":5,"cname":"good"; empty when there are none */
};

#endif
