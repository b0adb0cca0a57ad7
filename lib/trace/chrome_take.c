/*
 * chrome_take.c - what a unit means, once it is whole: events, keys, metadata.
 *
 * An event goes to the callback, a member of the top level to the other one. Whether
 * baseTimeNanoseconds is added to the events is decided once, when the first of them is
 * handed over, so that all events of one input are on the same clock.
 */
#include <stdio.h>

#include "trace/chrome_state.h"

/* --- counting --------------------------------------------------------------------- */

void tp_chrome_reject(struct tp_chrome_reader *r, uint64_t offset,
                      enum tp_chrome_reject cause, const char *why)
{
    r->stats.events++;
    r->stats.rejected_by[cause]++;
    if (r->stats.rejected++ == 0)
        snprintf(r->stats.last_rejection, sizeof(r->stats.last_rejection),
                 "byte %llu: %s", (unsigned long long)offset, why);
}

/* The place behind a unit of the array: the way back is found by a good event only. */
static void leave_item(struct tp_chrome_reader *r)
{
    if (r->place != TP_CHROME_LOST_EVENT)
        r->place = TP_CHROME_EVENTS_NEXT;
}

/* The unit is over a limit and its end is passed, or will be. */
void tp_chrome_leave_out(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                         uint64_t offset, enum tp_chrome_reject cause, const char *why)
{
    switch (unit) {
    case TP_CHROME_UNIT_KEY:
        r->is_left_out = true;
        r->key.len = 0;
        r->place = TP_CHROME_COLON;
        break;
    case TP_CHROME_UNIT_VALUE:
        r->stats.members_left_out++;
        r->place = TP_CHROME_MEMBER_NEXT;
        break;
    case TP_CHROME_UNIT_LINE:
        tp_chrome_reject(r, offset, cause, why);
        break;
    default:
        if (r->place != TP_CHROME_LOST_EVENT)
            tp_chrome_reject(r, offset, cause, why);
        leave_item(r);
        break;
    }
}

/* --- what a whole unit means ------------------------------------------------------ */

/* Hand over the event that r->members holds, or count it as rejected. */
static int hand_over(struct tp_chrome_reader *r, uint64_t offset, struct tp_err *err)
{
    struct tp_event ev;
    int rc;

    if (!r->has_handed_over)
        r->stats.base_was_added = r->stats.has_base;
    rc = tp_chrome_event_build(&r->members, &r->tracks,
                               r->stats.base_was_added ? r->stats.base_ns : 0, &ev,
                               err);
    if (rc != TP_OK)
        return rc;
    if (r->members.rejection[0] != '\0') {
        if (!r->has_handed_over)
            r->stats.base_was_added = false;
        tp_chrome_reject(r, offset, r->members.cause, r->members.rejection);
        return TP_OK;
    }
    r->has_handed_over = true;
    r->stats.events++;
    r->stats.repaired += r->members.repaired;
    return r->opts.on_event(&ev, err, r->opts.arg);
}

static int take_event(struct tp_chrome_reader *r, uint64_t offset, struct tp_err *err)
{
    if (r->place == TP_CHROME_LOST_EVENT &&
        r->members.values[TP_CHROME_PH].kind == TP_CHROME_NONE)
        return TP_OK; /* some object inside the damage */
    r->place = TP_CHROME_EVENTS_NEXT;
    return hand_over(r, offset, err);
}

static int take_key(struct tp_chrome_reader *r, struct tp_str text, struct tp_err *err)
{
    struct tp_json c = {.p = text.ptr, .end = text.ptr + text.len};
    struct tp_json_string s;
    bool repaired = false;
    int rc;

    r->key.len = 0;
    r->place = TP_CHROME_COLON;
    (void)tp_json_string_scan(&c, &s);
    rc = tp_buf_reserve(&r->key, TP_JSON_DECODE_BYTES(s.len), err);
    if (rc != TP_OK)
        return rc;
    if (s.len > 0)
        r->key.len = tp_json_string_decode(&s, r->key.data, &repaired);
    r->is_left_out = r->key.len > r->opts.name_bytes;
    return TP_OK;
}

/*
 * Remember baseTimeNanoseconds; one that comes after events changes none of them. One
 * that cannot be used is damage, since without it all times are wrong; when salvaging,
 * the document goes on behind it.
 */
static int take_base(struct tp_chrome_reader *r, struct tp_str json, uint64_t offset,
                     struct tp_err *err)
{
    struct tp_chrome_value v = {.kind = TP_CHROME_STRING};
    int64_t base_ns;
    int rc = TP_OK;

    if (tp_str_is(json, "null"))
        return TP_OK;
    if (json.len >= 2 && json.ptr[0] == '"')
        v.string = (struct tp_json_string){json.ptr + 1, json.len - 2, 0};
    else
        v.string = (struct tp_json_string){json.ptr, json.len, 0};
    if (!tp_chrome_value_whole(&v, &base_ns)) {
        rc = tp_chrome_doc_damage(r, TP_CHROME_UNIT_VALUE, offset,
                                  "baseTimeNanoseconds is no whole number of 64 bits",
                                  err);
        r->place = TP_CHROME_MEMBER_NEXT;
        r->is_lost = false;
    } else if (!r->stats.base_was_added) {
        r->stats.base_ns = base_ns;
        r->stats.has_base = true;
    }
    return rc;
}

/* The text of a value as one line of valid JSON, borrowed or in r->json. */
static int normal_json(struct tp_chrome_reader *r, struct tp_str text,
                       unsigned oddities, struct tp_str *out, struct tp_err *err)
{
    bool repaired = false;
    int rc;

    *out = text;
    if (oddities == 0)
        return TP_OK;
    if (r->json.cap > TP_CHROME_KEEP_BYTES)
        tp_buf_fini(&r->json);
    r->json.len = 0;
    rc = tp_buf_reserve(&r->json, TP_JSON_COPY_BYTES(text.len), err);
    if (rc != TP_OK)
        return rc;
    r->json.len = tp_json_copy(text, r->json.data, &repaired);
    *out = (struct tp_str){r->json.data, r->json.len};
    return TP_OK;
}

static int take_value(struct tp_chrome_reader *r, struct tp_str text, uint64_t offset,
                      unsigned oddities, struct tp_err *err)
{
    const struct tp_str key = {r->key.data, r->key.len};
    struct tp_str json;
    int rc;

    r->place = TP_CHROME_MEMBER_NEXT;
    r->is_lost = false;
    if (!r->is_left_out && tp_str_is(key, "traceEvents")) {
        r->has_seen_events = true; /* null: there are none */
        return TP_OK;
    }
    if (r->is_left_out ||
        key.len + text.len > r->opts.members_bytes - r->members_bytes) {
        r->stats.members_left_out++;
        return TP_OK;
    }
    rc = normal_json(r, text, oddities, &json, err);
    if (rc != TP_OK)
        return rc;
    r->members_bytes += key.len + text.len;
    if (tp_str_is(key, "baseTimeNanoseconds"))
        rc = take_base(r, json, offset, err);
    if (rc != TP_OK)
        return rc;
    return r->opts.on_member == NULL ? TP_OK
                                     : r->opts.on_member(key, json, err, r->opts.arg);
}

/* A line that was scanned. */
static int take_line(struct tp_chrome_reader *r, struct tp_str text, uint64_t offset,
                     struct tp_err *err)
{
    struct tp_json c = {.p = text.ptr, .end = text.ptr + text.len};

    r->n_lines++;
    if (tp_json_space(&c) == TP_EAGAIN)
        return TP_OK;
    offset += (uint64_t)(c.p - text.ptr);
    if (*c.p == '{')
        return hand_over(r, offset, err);
    tp_chrome_reject(r, offset, r->members.cause, r->members.rejection);
    return TP_OK;
}

/* Act on a unit that is whole and was scanned. */
int tp_chrome_take_unit(struct tp_chrome_reader *r, enum tp_chrome_unit unit,
                        struct tp_str text, uint64_t offset, unsigned oddities,
                        struct tp_err *err)
{
    switch (unit) {
    case TP_CHROME_UNIT_EVENT:
        return take_event(r, offset, err);
    case TP_CHROME_UNIT_SOLO:
        r->place = TP_CHROME_END;
        return hand_over(r, offset, err);
    case TP_CHROME_UNIT_KEY:
        return take_key(r, text, err);
    case TP_CHROME_UNIT_VALUE:
        return take_value(r, text, offset, oddities, err);
    case TP_CHROME_UNIT_LINE:
        return take_line(r, text, offset, err);
    default:
        tp_chrome_reject(r, offset, TP_CHROME_MALFORMED, "not an object");
        leave_item(r);
        return TP_OK;
    }
}
