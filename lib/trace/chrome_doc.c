/*
 * chrome_doc.c - the grammar of a trace document, and the way back after damage.
 *
 *   START --[--> EVENTS <--, --- EVENTS_NEXT          [ events ]
 *     |            |  event ---------^ |
 *     |            +--------]----------+--> END, or MEMBER_NEXT inside an object
 *     |
 *     +--{--> MEMBER -key-> COLON -:-> VALUE          { members }
 *               ^                        | "traceEvents": [  --> EVENTS
 *               +----- , MEMBER_NEXT <---+ any other value
 *                            +--}--> END
 *
 * Commas are taken where the wild has them: before the first and behind the last. An
 * object whose first key is one of an event's is first tried as one event (SOLO).
 *
 * When salvaging, damage leads to one of two places that look for solid ground:
 *   LOST_EVENT   tries each `{`; an object with a "ph" is an event, and all is well.
 *                Damage outside an event may also end with the array: `]` and `}`, or
 *                `]`, `,` and a key.
 *   LOST_MEMBER  tries each `"` behind a comma or line feed as a key of the top level.
 * Each try is read to its end or to the next damage and the search goes on from there,
 * so the text is read a bounded number of times however broken it is.
 */
#include "trace/chrome_state.h"

enum { TRAIL_OFF = -1 };    /* the array's end is not looked for */
enum { GZIP_MAGIC = 0x1f }; /* the first byte of a member */

enum tp_chrome_guess tp_chrome_doc_guess(const char *p, const char *end)
{
    static const char *const keys[] = {"ph",  "ts",   "dur", "pid", "tid", "name",
                                       "cat", "args", "id",  "s",   "bp",  "tts"};
    struct tp_json c = {.p = p + 1, .end = end};
    struct tp_json_string s;
    int rc = tp_json_space(&c);

    if (rc == TP_OK && *c.p != '"')
        return TP_CHROME_NO;
    if (rc == TP_OK)
        rc = tp_json_string_scan(&c, &s);
    if (rc != TP_OK)
        return end - p < TP_CHROME_GUESS_BYTES ? TP_CHROME_MORE : TP_CHROME_NO;
    if (c.p - p > TP_CHROME_GUESS_BYTES)
        return TP_CHROME_NO;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (tp_str_is((struct tp_str){s.ptr, s.len}, keys[i]))
            return TP_CHROME_YES;
    return TP_CHROME_NO;
}

/* --- damage ----------------------------------------------------------------------- */

static void note_damage(struct tp_chrome_reader *r, uint64_t offset)
{
    if (r->stats.damages < TP_CHROME_DAMAGES_MAX)
        r->stats.damage_offset[r->stats.damages] = offset;
    r->stats.damages++;
}

static bool is_in_events(const struct tp_chrome_reader *r, enum tp_chrome_unit unit)
{
    if (unit != TP_CHROME_UNIT_NONE)
        return unit == TP_CHROME_UNIT_EVENT || unit == TP_CHROME_UNIT_ELEMENT;
    return r->place == TP_CHROME_EVENTS || r->place == TP_CHROME_EVENTS_NEXT ||
           r->place == TP_CHROME_LOST_EVENT ||
           (r->place == TP_CHROME_END && (r->has_seen_events || !r->is_in_object));
}

int tp_chrome_doc_damage(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                         uint64_t offset, const char *why, struct tp_err *err)
{
    if (!r->opts.salvage && r->opts.form == TP_CHROME_NDJSON)
        return tp_fail(err, TP_EINVAL, "line %llu, byte %llu: %s",
                       (unsigned long long)r->n_lines + 1, (unsigned long long)offset,
                       why);
    if (!r->opts.salvage)
        return tp_fail(err, TP_EINVAL, "byte %llu: %s", (unsigned long long)offset,
                       why);
    if (r->opts.form == TP_CHROME_NDJSON) {
        r->n_lines++;
        note_damage(r, offset);
        return TP_OK;
    }
    if (r->place == TP_CHROME_LOST_EVENT)
        return TP_OK; /* a try that failed: still the same damage */
    if (is_in_events(r, unit)) {
        note_damage(r, offset);
        r->trail = unit == TP_CHROME_UNIT_EVENT ? TRAIL_OFF : 0;
        r->place = TP_CHROME_LOST_EVENT;
        return TP_OK;
    }
    if (!r->is_lost)
        note_damage(r, offset);
    r->is_lost = true;
    r->trail = 0;
    r->place = TP_CHROME_LOST_MEMBER;
    return TP_OK;
}

int tp_chrome_doc_truncated(struct tp_chrome_reader *r, uint64_t offset,
                            struct tp_err *err)
{
    if (!r->opts.salvage)
        return tp_fail(
            err, TP_EINVAL,
            "byte %llu: the input ends inside a value that starts at byte %llu",
            (unsigned long long)r->offset, (unsigned long long)offset);
    r->stats.is_truncated = true;
    if (r->place != TP_CHROME_LOST_EVENT && !r->is_lost)
        note_damage(r, offset);
    return TP_OK;
}

/* Damage at the present byte of the window, in no unit. */
static int damage_here(struct tp_chrome_reader *r, const struct tp_chrome_window *w,
                       const char *why, struct tp_err *err)
{
    return tp_chrome_doc_damage(r, TP_CHROME_UNIT_NONE, tp_chrome_offset(w, w->p), why,
                                err);
}

/* --- places ----------------------------------------------------------------------- */

static void enter_events(struct tp_chrome_reader *r)
{
    r->has_seen_events = true;
    r->is_lost = false;
    r->place = TP_CHROME_EVENTS;
}

/* Behind an event that was the whole document. Another one makes a file one of events
 * that no comma parts, as in NDJSON; whoever posts a batch says so before. */
static int step_behind(struct tp_chrome_reader *r, const struct tp_chrome_window *w,
                       struct tp_err *err)
{
    const bool is_sequence = *w->p == '{' && !r->is_in_object && !r->has_seen_events;

    if (is_sequence && r->opts.salvage) {
        enter_events(r);
        r->is_sequence = true;
        return TP_OK;
    }
    return damage_here(r, w,
                       is_sequence ? "nothing was expected behind the event; an event "
                                     "a line is application/x-ndjson"
                                   : "nothing was expected behind the trace",
                       err);
}

static void leave_events(struct tp_chrome_reader *r)
{
    r->place = r->is_in_object ? TP_CHROME_MEMBER_NEXT : TP_CHROME_END;
}

/* Text in front of the document, to be salvaged: pass it up to a line feed. */
static int pass_preface(struct tp_chrome_reader *r, struct tp_chrome_window *w)
{
    const char *line = memchr(w->p, '\n', (size_t)(w->end - w->p));

    w->p = line == NULL ? w->end : line;
    r->is_lost = line == NULL;
    return TP_OK;
}

static int step_start(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      struct tp_err *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    const char ch = *w->p;

    if (r->is_lost)
        return pass_preface(r, w);
    if (r->trail < 3 && ch == bom[r->trail] &&
        tp_chrome_offset(w, w->p) == (uint64_t)r->trail) {
        r->trail++;
        w->p++;
        return TP_OK;
    }
    if (r->opts.form == TP_CHROME_NDJSON && (r->trail == 0 || r->trail == 3)) {
        r->place = TP_CHROME_LINE;
        return TP_OK;
    }
    if (ch == '{' && (r->trail == 0 || r->trail == 3))
        return tp_chrome_unit_begin(r, w, TP_CHROME_UNIT_SOLO, err);
    if (ch == '[' && (r->trail == 0 || r->trail == 3)) {
        w->p++;
        enter_events(r);
        return TP_OK;
    }
    if (!r->opts.salvage)
        return damage_here(r, w,
                           ch == GZIP_MAGIC
                               ? "a JSON object or array was expected; what is "
                                 "gzipped must say so (Content-Encoding: gzip)"
                               : "a JSON object or array was expected",
                           err);
    note_damage(r, tp_chrome_offset(w, w->p));
    r->trail = 0;
    r->is_lost = true;
    return TP_OK;
}

/* The hot loop: as many events as the window holds. */
static int step_events(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                       struct tp_err *err)
{
    int rc;

    do {
        const char ch = *w->p;

        if (ch == ',') {
            w->p++;
            r->place = TP_CHROME_EVENTS;
        } else if (ch == ']') {
            w->p++;
            leave_events(r);
            return TP_OK;
        } else if (r->place == TP_CHROME_EVENTS_NEXT &&
                   !(r->is_sequence && ch == '{')) {
            return damage_here(r, w, "',' or ']' was expected", err);
        } else {
            rc = tp_chrome_unit_begin(
                r, w, ch == '{' ? TP_CHROME_UNIT_EVENT : TP_CHROME_UNIT_ELEMENT, err);
            if (rc != TP_OK || r->place != TP_CHROME_EVENTS_NEXT)
                return rc;
        }
        while (w->p < w->end && tp_json_is_space(*w->p))
            w->p++;
    } while (w->p < w->end);
    return TP_OK;
}

/* Before a key, or behind a member. */
static int step_members(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                        struct tp_err *err)
{
    const char ch = *w->p;

    if (ch == ',') {
        w->p++;
        r->place = TP_CHROME_MEMBER;
        return TP_OK;
    }
    if (ch == '}') {
        w->p++;
        r->place = TP_CHROME_END;
        /* Behind damage this may be the end of some object inside, with the events
         * still to come. */
        if (r->stats.damages > 0 && !r->has_seen_events) {
            r->trail = 0;
            r->place = TP_CHROME_LOST_MEMBER;
        }
        return TP_OK;
    }
    if (r->place == TP_CHROME_MEMBER_NEXT)
        return damage_here(r, w, "',' or '}' was expected", err);
    if (ch != '"')
        return damage_here(r, w, "a key in quotes was expected", err);
    return tp_chrome_unit_begin(r, w, TP_CHROME_UNIT_KEY, err);
}

static int step_colon(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      struct tp_err *err)
{
    if (*w->p != ':')
        return damage_here(r, w, "':' was expected", err);
    w->p++;
    r->place = TP_CHROME_VALUE;
    return TP_OK;
}

static int step_value(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      struct tp_err *err)
{
    const struct tp_str key = {r->key.data, r->key.len};

    if (!r->is_left_out && tp_str_is(key, "traceEvents")) {
        if (*w->p == '[') {
            w->p++;
            enter_events(r);
            return TP_OK;
        }
        if (*w->p != 'n')
            return damage_here(r, w, "traceEvents is not an array", err);
    }
    return tp_chrome_unit_begin(r, w, TP_CHROME_UNIT_VALUE, err);
}

/* --- lost ------------------------------------------------------------------------- */

/*
 * One byte of the search for the end of the array: r->trail is 0, 1 behind `]`, 2
 * behind `]` and `,`. Returns whether this byte is on solid ground again.
 */
static bool follow_trail(struct tp_chrome_reader *r, char ch)
{
    if (r->trail == TRAIL_OFF || tp_json_is_space(ch))
        return false;
    if (ch == ']')
        r->trail = 1;
    else if (r->trail == 1 && ch == ',' && r->is_in_object)
        r->trail = 2;
    else if ((r->trail == 1 && ch == '}' && r->is_in_object) ||
             (r->trail == 2 && ch == '"'))
        return true;
    else
        r->trail = 0;
    return false;
}

static int step_lost_event(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                           struct tp_err *err)
{
    for (; w->p < w->end; w->p++) {
        if (*w->p == '{') {
            if (r->trail != TRAIL_OFF)
                r->trail = 0;
            return tp_chrome_unit_begin(r, w, TP_CHROME_UNIT_EVENT, err);
        }
        if (follow_trail(r, *w->p)) {
            r->place = *w->p == '}' ? TP_CHROME_MEMBER_NEXT : TP_CHROME_MEMBER;
            return TP_OK;
        }
    }
    return TP_OK;
}

/* r->trail is 1 behind a comma or line feed and blanks. */
static int step_lost_member(struct tp_chrome_reader *r, struct tp_chrome_window *w)
{
    for (; w->p < w->end; w->p++) {
        if (*w->p == ',' || *w->p == '\n') {
            r->trail = 1;
        } else if (r->trail == 1 && *w->p == '"') {
            r->place = TP_CHROME_MEMBER;
            return TP_OK;
        } else if (!tp_json_is_space(*w->p)) {
            r->trail = 0;
        }
    }
    return TP_OK;
}

int tp_chrome_doc_step(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                       struct tp_err *err)
{
    /* Line feeds count in NDJSON, and in front of the trace they end a lost line. */
    const bool has_lines = r->opts.form == TP_CHROME_NDJSON ||
                           (r->place == TP_CHROME_START && r->is_lost);

    if (r->place < TP_CHROME_LINE && !has_lines && tp_json_is_space(*w->p)) {
        w->p++;
        return TP_OK;
    }
    switch (r->place) {
    case TP_CHROME_START:
        return step_start(r, w, err);
    case TP_CHROME_EVENTS:
    case TP_CHROME_EVENTS_NEXT:
        return step_events(r, w, err);
    case TP_CHROME_MEMBER:
    case TP_CHROME_MEMBER_NEXT:
        return step_members(r, w, err);
    case TP_CHROME_COLON:
        return step_colon(r, w, err);
    case TP_CHROME_VALUE:
        return step_value(r, w, err);
    case TP_CHROME_LINE:
        return tp_chrome_unit_begin(r, w, TP_CHROME_UNIT_LINE, err);
    case TP_CHROME_LOST_EVENT:
        return step_lost_event(r, w, err);
    case TP_CHROME_LOST_MEMBER:
        return step_lost_member(r, w);
    default:
        return step_behind(r, w, err);
    }
}

int tp_chrome_doc_finish(struct tp_chrome_reader *r, struct tp_err *err)
{
    r->stats.lacks_events = r->place == TP_CHROME_END && r->is_in_object &&
                            !r->has_seen_events;
    switch (r->place) {
    case TP_CHROME_START:
        if (r->stats.damages > 0)
            return tp_fail(err, TP_EINVAL,
                           "byte %llu: no JSON object or array is in it",
                           (unsigned long long)r->stats.damage_offset[0]);
        return tp_fail(err, TP_EINVAL, "the input is empty");
    case TP_CHROME_EVENTS:
    case TP_CHROME_EVENTS_NEXT:
        /* The Chrome format allows an array without its end, but no object. */
        return r->is_in_object ? tp_chrome_doc_truncated(r, r->offset, err) : TP_OK;
    case TP_CHROME_MEMBER:
    case TP_CHROME_COLON:
    case TP_CHROME_VALUE:
    case TP_CHROME_MEMBER_NEXT:
        return tp_chrome_doc_truncated(r, r->offset, err);
    default:
        return TP_OK;
    }
}
