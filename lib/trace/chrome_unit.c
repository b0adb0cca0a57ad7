/*
 * chrome_unit.c - values of the document, whole or in pieces.
 *
 *      chunk 1                     chunk 2
 *      ..., {event}, {event}, {eve|nt}, {event}, ...
 *           direct   direct   carry-+-> edge finds `}`, parsed from the carry
 *
 * A unit that is all in the chunk is parsed where it stands, in one pass that finds its
 * end by parsing: no search before, no copy. Only one that the chunk cuts is copied to
 * `carry`; for it, tp_json_edge looks at each further byte once, and it is parsed when
 * its end is there. So an event that comes a byte at a time costs what any other costs,
 * plus a constant a byte.
 *
 * What is accepted must not depend on where the chunks are cut. The parser's answer
 * depends only on the bytes up to where it stops; a direct unit gets to see no more
 * bytes than its limit; and a carried one is parsed once more when it reaches the
 * limit, so that damage inside is found there as well, before the rest is skipped.
 * Text behind damage in the carry is read again as if it had just come (`replay`).
 */
#include <assert.h>
#include <stdio.h>

#include "trace/chrome_state.h"

static size_t unit_limit(const struct tp_chrome_reader *r, enum tp_chrome_unit unit)
{
    switch (unit) {
    case TP_CHROME_UNIT_KEY:
        return TP_JSON_WRITE_BYTES(r->opts.name_bytes);
    case TP_CHROME_UNIT_VALUE:
        return r->opts.member_bytes;
    default:
        return r->opts.event_bytes;
    }
}

/* --- scanning --------------------------------------------------------------------- */

/* The outcome of scanning a unit; codes as in json_cursor.h. */
struct scan {
    struct tp_json c;
    unsigned oddities;
};

/* A line: nothing, or one value and nothing behind it. */
static int scan_line(struct tp_chrome_reader *r, struct scan *s, struct tp_err *err)
{
    int rc = tp_json_space(&s->c);

    r->members.values[TP_CHROME_PH].kind = TP_CHROME_NONE;
    r->members.rejection[0] = '\0';
    if (rc == TP_EAGAIN)
        return TP_OK; /* a blank line */
    if (*s->c.p == '{') {
        rc = tp_chrome_members_parse(&r->members, &s->c, err);
    } else {
        rc = tp_json_skip(&s->c, r->opts.depth_max, &s->oddities);
        tp_chrome_members_reject(&r->members, TP_CHROME_MALFORMED, "not an object");
    }
    if (rc == TP_EAGAIN)
        return tp_json_bad(&s->c, "the line ends inside a value");
    if (rc == TP_OK && tp_json_space(&s->c) == TP_OK)
        return tp_json_bad(&s->c, "more than one value in a line");
    return rc;
}

static int scan_unit(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                     const char *p, const char *end, struct scan *s, struct tp_err *err)
{
    struct tp_json_string string;

    *s = (struct scan){.c = {.p = p, .end = end}};
    switch (unit) {
    case TP_CHROME_UNIT_EVENT:
    case TP_CHROME_UNIT_SOLO:
        return tp_chrome_members_parse(&r->members, &s->c, err);
    case TP_CHROME_UNIT_KEY:
        return tp_json_string_scan(&s->c, &string);
    case TP_CHROME_UNIT_LINE:
        return scan_line(r, s, err);
    default:
        return tp_json_skip(&s->c, r->opts.depth_max, &s->oddities);
    }
}

/* Why a unit is left out, after TP_EQUOTA or at its limit. */
static const char *limit_text(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                              int rc, char *room, size_t room_bytes)
{
    if (unit == TP_CHROME_UNIT_ELEMENT)
        return "not an object";
    if (rc == TP_EQUOTA && unit != TP_CHROME_UNIT_VALUE)
        return r->members.rejection;
    snprintf(room, room_bytes, "longer than %zu bytes", unit_limit(r, unit));
    return room;
}

/* Which cause that is. */
static enum tp_chrome_reject limit_cause(const struct tp_chrome_reader *r,
                                         enum tp_chrome_unit unit, int rc)
{
    if (unit == TP_CHROME_UNIT_ELEMENT)
        return TP_CHROME_MALFORMED;
    return rc == TP_EQUOTA ? r->members.cause : TP_CHROME_TOO_LARGE;
}

/*
 * Where to look for the way back after damage at `bad` in a unit from p on. A text that
 * was cut takes what follows into a string, up to some later quote: when the last
 * string before the damage holds a line feed, the way back may be in it.
 */
static const char *restart_point(const char *p, const char *bad)
{
    struct tp_json_edge edge = {0};
    const char *string = NULL;
    const char *line;

    while (p < bad) {
        const bool was_in_string = edge.is_in_string;
        size_t used;

        if (tp_json_edge_feed(&edge, p, 1, &used) || used == 0)
            break;
        if (edge.is_in_string && !was_in_string)
            string = p;
        p++;
    }
    line = string == NULL ? NULL : memchr(string, '\n', (size_t)(bad - string));
    return line == NULL ? bad : line;
}

/* --- a unit in the window --------------------------------------------------------- */

static void start_unit(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                       uint64_t offset)
{
    r->unit = unit;
    r->unit_offset = offset;
    r->edge = (struct tp_json_edge){0};
    r->carry.len = 0;
    r->is_padded = false;
    r->is_skipping = false;
    r->is_peeking = false;
}

/* Where the unit ends for the edge: at a line feed, or where brackets close. */
static bool find_end(struct tp_chrome_reader *r, const char *p, size_t n, size_t *used)
{
    const char *line;

    if (r->unit != TP_CHROME_UNIT_LINE)
        return tp_json_edge_feed(&r->edge, p, n, used);
    line = memchr(p, '\n', n);
    *used = line == NULL ? n : (size_t)(line - p) + 1;
    return line != NULL;
}

/* Pass what there is of a unit over a limit. */
static void skip_unit(struct tp_chrome_reader *r, struct tp_chrome_window *w)
{
    size_t used;

    r->is_skipping = true;
    if (find_end(r, w->p, (size_t)(w->end - w->p), &used)) {
        if (r->unit == TP_CHROME_UNIT_LINE)
            r->n_lines++;
        r->unit = TP_CHROME_UNIT_NONE;
    }
    w->p += used;
}

/* The window ends inside the unit: keep what is there. */
static int carry_unit(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      enum tp_chrome_unit unit, struct tp_err *err)
{
    const size_t n = (size_t)(w->end - w->p);
    size_t used;

    start_unit(r, unit, tp_chrome_offset(w, w->p));
    (void)find_end(r, w->p, n, &used);
    w->p = w->end;
    return tp_buf_append(&r->carry, w->end - n, n, err);
}

/* Read the top-level object whose `{` is at w->p as a trace, not as an event. */
static int enter_object(struct tp_chrome_reader *r, struct tp_chrome_window *w)
{
    w->p++;
    r->is_in_object = true;
    r->place = TP_CHROME_MEMBER;
    return TP_OK;
}

/* Whether r->members is the one event that the whole input is. */
static bool is_solo_event(const struct tp_chrome_reader *r)
{
    return r->members.values[TP_CHROME_PH].kind != TP_CHROME_NONE &&
           !tp_chrome_members_has(&r->members, "traceEvents");
}

/* As tp_chrome_unit_begin() for an object at the start of the input. */
static int begin_solo(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      struct tp_err *err)
{
    const enum tp_chrome_guess guess = tp_chrome_doc_guess(w->p, w->end);
    const size_t n = (size_t)(w->end - w->p);
    struct scan s;
    int rc;

    if (guess == TP_CHROME_NO)
        return enter_object(r, w);
    if (guess == TP_CHROME_MORE && n >= r->opts.event_bytes)
        return enter_object(r, w);
    if (guess == TP_CHROME_MORE) {
        rc = carry_unit(r, w, TP_CHROME_UNIT_SOLO, err);
        r->is_peeking = true;
        return rc;
    }
    rc = scan_unit(r, TP_CHROME_UNIT_SOLO, w->p,
                   n > r->opts.event_bytes ? w->p + r->opts.event_bytes : w->end, &s,
                   err);
    if (rc == TP_ENOMEM)
        return rc;
    if (rc == TP_EAGAIN && n < r->opts.event_bytes)
        return carry_unit(r, w, TP_CHROME_UNIT_SOLO, err);
    if (rc != TP_OK || !is_solo_event(r))
        return enter_object(r, w);
    w->p = s.c.p;
    return tp_chrome_take_unit(r, TP_CHROME_UNIT_SOLO, (struct tp_str){NULL, 0},
                               tp_chrome_offset(w, w->end - n), 0, err);
}

/* Leave out the unit at w->p, which is over a limit. */
static int begin_skip(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      enum tp_chrome_unit unit, int code)
{
    char room[64];
    const char *why = limit_text(r, unit, code, room, sizeof(room));

    start_unit(r, unit, tp_chrome_offset(w, w->p));
    tp_chrome_leave_out(r, unit, r->unit_offset, limit_cause(r, unit, code), why);
    skip_unit(r, w);
    return TP_OK;
}

/* As tp_chrome_unit_begin() for a line: its end is looked for first. */
static int begin_line(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                      struct tp_err *err)
{
    const char *start = w->p;
    const char *line = memchr(start, '\n', (size_t)(w->end - start));
    const size_t n = line == NULL ? (size_t)(w->end - start)
                                  : (size_t)(line - start) + 1;
    struct scan s;
    int rc;

    if (n > r->opts.event_bytes || (line == NULL && n == r->opts.event_bytes))
        return begin_skip(r, w, TP_CHROME_UNIT_LINE, TP_EAGAIN);
    if (line == NULL)
        return carry_unit(r, w, TP_CHROME_UNIT_LINE, err);
    w->p = line + 1;
    rc = scan_unit(r, TP_CHROME_UNIT_LINE, start, w->p, &s, err);
    if (rc == TP_OK)
        return tp_chrome_take_unit(r, TP_CHROME_UNIT_LINE, (struct tp_str){start, n},
                                   tp_chrome_offset(w, start), s.oddities, err);
    if (rc == TP_EINVAL)
        return tp_chrome_doc_damage(r, TP_CHROME_UNIT_LINE, tp_chrome_offset(w, s.c.p),
                                    s.c.why, err);
    if (rc != TP_EQUOTA)
        return rc;
    tp_chrome_reject(r, tp_chrome_offset(w, start), r->members.cause,
                     r->members.rejection);
    r->n_lines++;
    return TP_OK;
}

int tp_chrome_unit_begin(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                         enum tp_chrome_unit unit, struct tp_err *err)
{
    const char *start = w->p;
    const size_t limit = unit_limit(r, unit);
    const bool is_clipped = (size_t)(w->end - start) >= limit;
    struct scan s;
    int rc;

    if (unit == TP_CHROME_UNIT_SOLO)
        return begin_solo(r, w, err);
    if (unit == TP_CHROME_UNIT_LINE)
        return begin_line(r, w, err);
    rc = scan_unit(r, unit, start, is_clipped ? start + limit : w->end, &s, err);
    switch (rc) {
    case TP_OK:
        w->p = s.c.p;
        return tp_chrome_take_unit(r, unit,
                                   (struct tp_str){start, (size_t)(s.c.p - start)},
                                   tp_chrome_offset(w, start), s.oddities, err);
    case TP_EAGAIN:
        if (!is_clipped)
            return carry_unit(r, w, unit, err);
        return begin_skip(r, w, unit, rc);
    case TP_EQUOTA:
        return begin_skip(r, w, unit, rc);
    case TP_EINVAL:
        w->p = restart_point(start, s.c.p);
        return tp_chrome_doc_damage(r, unit, tp_chrome_offset(w, s.c.p), s.c.why, err);
    default:
        return rc;
    }
}

/* --- a unit in the carry ---------------------------------------------------------- */

/* Have the carry read once more from byte `from` on. */
static void replay_carry(struct tp_chrome_reader *r, size_t from)
{
    const struct tp_buf spare = r->replay;

    r->carry.len -= r->is_padded;
    r->is_padded = false;
    tp_buf_consume(&r->carry, from);
    r->replay = r->carry;
    r->replay_offset = r->unit_offset + from;
    r->carry = spare;
    r->carry.len = 0;
    r->unit = TP_CHROME_UNIT_NONE;
}

/* The carried object is a trace, not an event. */
static void replay_object(struct tp_chrome_reader *r)
{
    r->is_in_object = true;
    r->place = TP_CHROME_MEMBER;
    replay_carry(r, 1);
}

static void drop_carry(struct tp_chrome_reader *r)
{
    r->unit = TP_CHROME_UNIT_NONE;
    if (r->carry.cap > TP_CHROME_KEEP_BYTES)
        tp_buf_fini(&r->carry);
    r->carry.len = 0;
}

/* Go on with only the end in mind: the carried unit is over a limit. */
static void skip_carry(struct tp_chrome_reader *r, int code)
{
    char room[64];

    tp_chrome_leave_out(r, r->unit, r->unit_offset, limit_cause(r, r->unit, code),
                        limit_text(r, r->unit, code, room, sizeof(room)));
    r->is_skipping = true;
    r->carry.len = 0;
}

/* Scan the carry. What is neither whole nor damaged gives TP_EAGAIN or TP_EQUOTA, with
 * nothing changed. */
static int parse_carry(struct tp_chrome_reader *r, struct tp_err *err)
{
    const enum tp_chrome_unit unit = r->unit;
    const uint64_t offset = r->unit_offset; /* replay_carry() starts from it */
    const char *p = r->carry.data;
    struct scan s;
    size_t used;
    int rc;

    rc = scan_unit(r, unit, p, p + r->carry.len, &s, err);
    used = (size_t)(s.c.p - p);
    if (rc == TP_OK) {
        r->unit = TP_CHROME_UNIT_NONE;
        rc = tp_chrome_take_unit(r, unit, (struct tp_str){p, used}, r->unit_offset,
                                 s.oddities, err);
        /* In damaged text the parser may end a number earlier than the edge does. */
        if (rc == TP_OK && used < r->carry.len - r->is_padded)
            replay_carry(r, used);
        return rc;
    }
    if (rc != TP_EINVAL)
        return rc;
    if (unit == TP_CHROME_UNIT_LINE)
        r->unit = TP_CHROME_UNIT_NONE;
    else
        replay_carry(r, (size_t)(restart_point(p, s.c.p) - p));
    return tp_chrome_doc_damage(r, unit, offset + used, s.c.why, err);
}

/* The carried unit has reached its end. */
static int end_carry(struct tp_chrome_reader *r, struct tp_err *err)
{
    int rc;

    if (r->edge.is_scalar) {
        /* Its delimiter is not part of it, but the parser must see one. */
        rc = tp_buf_append(&r->carry, "\n", 1, err);
        if (rc != TP_OK)
            return rc;
        r->is_padded = true;
    }
    rc = parse_carry(r, err);
    if (rc == TP_EQUOTA && r->unit != TP_CHROME_UNIT_NONE) {
        if (r->unit == TP_CHROME_UNIT_LINE)
            r->n_lines++;
        skip_carry(r, rc);
        rc = TP_OK;
    }
    if (rc == TP_OK)
        drop_carry(r);
    return rc;
}

/* The carried unit has reached its limit and goes on. */
static int limit_carry(struct tp_chrome_reader *r, struct tp_err *err)
{
    int rc;

    if (r->unit == TP_CHROME_UNIT_LINE) {
        skip_carry(r, TP_EAGAIN);
        return TP_OK;
    }
    rc = parse_carry(r, err);
    if (r->unit != TP_CHROME_UNIT_NONE && (rc == TP_EAGAIN || rc == TP_EQUOTA)) {
        skip_carry(r, rc);
        return TP_OK;
    }
    return rc;
}

/* A SOLO unit: as soon as it turns out to be no event it is read as a trace. */
static int resume_solo(struct tp_chrome_reader *r, bool is_whole, struct tp_err *err)
{
    enum tp_chrome_guess guess = TP_CHROME_YES;
    struct scan s;
    int rc;

    if (r->is_peeking) {
        guess = tp_chrome_doc_guess(r->carry.data, r->carry.data + r->carry.len);
        r->is_peeking = guess == TP_CHROME_MORE;
    }
    if (guess == TP_CHROME_NO || (!is_whole && r->carry.len >= r->opts.event_bytes)) {
        replay_object(r);
        return TP_OK;
    }
    if (!is_whole)
        return TP_OK;
    rc = scan_unit(r, TP_CHROME_UNIT_SOLO, r->carry.data, r->carry.data + r->carry.len,
                   &s, err);
    if (rc == TP_ENOMEM)
        return rc;
    if (rc != TP_OK || !is_solo_event(r)) {
        replay_object(r);
        return TP_OK;
    }
    r->unit = TP_CHROME_UNIT_NONE;
    return tp_chrome_take_unit(r, TP_CHROME_UNIT_SOLO, (struct tp_str){NULL, 0},
                               r->unit_offset, 0, err);
}

int tp_chrome_unit_resume(struct tp_chrome_reader *r, struct tp_chrome_window *w,
                          struct tp_err *err)
{
    size_t n = (size_t)(w->end - w->p);
    size_t limit = unit_limit(r, r->unit);
    size_t used;
    bool is_whole;
    int rc;

    if (r->is_skipping) {
        skip_unit(r, w);
        return TP_OK;
    }
    if (r->is_peeking && limit > TP_CHROME_GUESS_BYTES)
        limit = TP_CHROME_GUESS_BYTES;
    assert(r->carry.len < limit);
    if (n > limit - r->carry.len)
        n = limit - r->carry.len;
    is_whole = find_end(r, w->p, n, &used);
    rc = tp_buf_append(&r->carry, w->p, used, err);
    if (rc != TP_OK)
        return rc;
    w->p += used;
    if (r->unit == TP_CHROME_UNIT_SOLO)
        return resume_solo(r, is_whole, err);
    if (is_whole)
        return end_carry(r, err);
    return r->carry.len == limit ? limit_carry(r, err) : TP_OK;
}

int tp_chrome_unit_finish(struct tp_chrome_reader *r, struct tp_err *err)
{
    const enum tp_chrome_unit unit = r->unit;
    int rc;

    if (unit == TP_CHROME_UNIT_SOLO) {
        replay_object(r);
        return TP_OK;
    }
    if (unit == TP_CHROME_UNIT_LINE && !r->is_skipping) {
        rc = tp_buf_append(&r->carry, "\n", 1, err);
        return rc == TP_OK ? end_carry(r, err) : rc;
    }
    if (unit == TP_CHROME_UNIT_LINE) {
        r->unit = TP_CHROME_UNIT_NONE;
        return TP_OK;
    }
    if (r->edge.is_scalar && !r->is_skipping)
        return end_carry(r, err);
    rc = r->is_skipping ? TP_EAGAIN : parse_carry(r, err);
    if (r->unit == TP_CHROME_UNIT_NONE || (rc != TP_EAGAIN && rc != TP_EQUOTA))
        return rc;
    if (rc == TP_EQUOTA)
        skip_carry(r, rc);
    drop_carry(r);
    return tp_chrome_doc_truncated(r, r->unit_offset, err);
}
