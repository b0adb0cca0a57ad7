/*
 * chrome_event.c - what each member means, member by member.
 *
 * What an event has no place for is not lost: a `dur` of something that is no slice, an
 * `id` of something that is neither flow nor async, a scope of several letters go to
 * `extra` as they are.
 */
#include "trace/chrome_event.h"

#define NS_DECIMALS 3 /* of a microsecond */

/* The kind of each phase that is known, plus one; 0 is any other phase. */
static const unsigned char kinds[128] = {
    ['X'] = TP_EVENT_SLICE + 1,         ['B'] = TP_EVENT_BEGIN + 1,
    ['E'] = TP_EVENT_END + 1,           ['i'] = TP_EVENT_INSTANT + 1,
    ['I'] = TP_EVENT_INSTANT + 1,       ['C'] = TP_EVENT_COUNTER + 1,
    ['s'] = TP_EVENT_FLOW_START + 1,    ['t'] = TP_EVENT_FLOW_STEP + 1,
    ['f'] = TP_EVENT_FLOW_END + 1,      ['b'] = TP_EVENT_ASYNC_BEGIN + 1,
    ['n'] = TP_EVENT_ASYNC_INSTANT + 1, ['e'] = TP_EVENT_ASYNC_END + 1,
    ['M'] = TP_EVENT_META + 1,
};

/* As one_char() for a string that may hold an escape. */
static char decoded_char(const struct tp_chrome_value *v)
{
    struct tp_str text = {NULL, 0};
    char small[TP_JSON_DECODE_BYTES(6)];
    bool repaired = false;

    if (v->kind != TP_CHROME_STRING || v->string.len == 0 || v->string.len > 6)
        return '\0';
    text = (struct tp_str){v->string.ptr, v->string.len};
    if (v->string.traits != 0) /* perhaps an escape of six bytes */
        text =
            (struct tp_str){small, tp_json_string_decode(&v->string, small, &repaired)};
    return text.len == 1 && text.ptr[0] > ' ' && text.ptr[0] < 0x7f ? text.ptr[0]
                                                                    : '\0';
}

/* The one character of a string of one printable character; '\0' for any other. */
static inline char one_char(const struct tp_chrome_value *v)
{
    if (v->kind == TP_CHROME_STRING && v->string.len == 1 && v->string.traits == 0)
        return v->string.ptr[0] > ' ' && v->string.ptr[0] < 0x7f ? v->string.ptr[0]
                                                                 : '\0';
    return decoded_char(v);
}

static inline void set_phase(struct tp_chrome_members *m, struct tp_event *ev)
{
    const struct tp_chrome_value *v = &m->values[TP_CHROME_PH];
    unsigned kind;

    ev->phase = one_char(v);
    kind = kinds[(unsigned char)ev->phase];
    ev->kind = kind == 0 ? TP_EVENT_OTHER : (enum tp_event_kind)(kind - 1);
    if (ev->phase != '\0')
        return;
    if (v->kind == TP_CHROME_NONE)
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED, "ph is missing");
    else
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED, "ph is not one character");
}

/* --- times ------------------------------------------------------------------------ */

/* The number that is written in a string, blanks around it allowed. */
static bool number_in(const struct tp_json_string *s, struct tp_json_number *out)
{
    struct tp_str text = {s->ptr, s->len};

    if (s->traits != 0)
        return false;
    while (text.len > 0 && text.ptr[0] == ' ') {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return tp_json_number_parse(text, out);
}

/* The number that a value is, or NULL; room is for one that is written in a string. */
static const struct tp_json_number *number_of(const struct tp_chrome_value *v,
                                              struct tp_json_number *room)
{
    if (v->kind == TP_CHROME_NUMBER)
        return &v->number;
    return v->kind == TP_CHROME_STRING && number_in(&v->string, room) ? room : NULL;
}

bool tp_chrome_value_scaled(const struct tp_chrome_value *v, int shift, int64_t *out)
{
    struct tp_json_number room;
    const struct tp_json_number *n = number_of(v, &room);

    return n != NULL && tp_json_number_scaled(n, shift, out);
}

bool tp_chrome_value_whole(const struct tp_chrome_value *v, int64_t *out)
{
    struct tp_json_number room;
    const struct tp_json_number *n = number_of(v, &room);
    int64_t decimals = n == NULL ? 0 : (int64_t)n->n_decimals - n->exponent;
    uint64_t digits = n == NULL ? 0 : n->digits;

    if (n == NULL || (n->is_long && decimals > 0))
        return false;
    for (; decimals > 0 && digits != 0; decimals--, digits /= 10)
        if (digits % 10 != 0)
            return false;
    return tp_json_number_scaled(n, 0, out);
}

static inline bool is_absent(const struct tp_chrome_value *v)
{
    return v->kind == TP_CHROME_NONE ||
           (v->kind == TP_CHROME_WORD && v->json.ptr[0] == 'n');
}

/* Microseconds as nanoseconds, without a call for three decimals. */
static inline bool to_ns(const struct tp_json_number *n, int64_t *out)
{
    if (n->n_decimals != NS_DECIMALS || n->exponent != 0 || n->is_negative ||
        n->is_long || n->digits > INT64_MAX)
        return tp_json_number_scaled(n, NS_DECIMALS, out);
    *out = (int64_t)n->digits;
    return true;
}

static inline void set_ts(struct tp_chrome_members *m, int64_t base_ns,
                          struct tp_event *ev)
{
    const struct tp_chrome_value *v = &m->values[TP_CHROME_TS];
    struct tp_json_number room;
    const struct tp_json_number *n;

    if (is_absent(v)) {
        if (ev->kind != TP_EVENT_META)
            tp_chrome_members_reject(m, TP_CHROME_MALFORMED, "ts is missing");
        return;
    }
    n = v->kind == TP_CHROME_NUMBER ? &v->number : number_of(v, &room);
    if (n == NULL)
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED, "ts is not a number");
    else if (!to_ns(n, &ev->ts_ns))
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED,
                                 "ts does not fit 64 bits of nanoseconds");
    else if (__builtin_add_overflow(ev->ts_ns, base_ns, &ev->ts_ns))
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED,
                                 "ts and baseTimeNanoseconds together do not fit 64 "
                                 "bits of nanoseconds");
}

static inline void set_dur(struct tp_chrome_members *m, struct tp_event *ev)
{
    const struct tp_chrome_value *v = &m->values[TP_CHROME_DUR];
    struct tp_json_number room;
    const struct tp_json_number *n = v->kind == TP_CHROME_NUMBER ? &v->number
                                                                 : number_of(v, &room);
    int64_t end_ns;

    if (n == NULL || n->is_negative) {
        int64_t zero = 1;

        /* -0 is a way to write 0; all else is no duration. */
        if (n == NULL || !tp_json_number_scaled(n, NS_DECIMALS, &zero) || zero != 0)
            m->repaired = true;
        return;
    }
    if (!to_ns(n, &ev->dur_ns))
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED,
                                 "dur does not fit 64 bits of nanoseconds");
    else if (__builtin_add_overflow(ev->ts_ns, ev->dur_ns, &end_ns))
        tp_chrome_members_reject(m, TP_CHROME_MALFORMED,
                                 "ts and dur together do not fit 64 bits of "
                                 "nanoseconds");
}

/* --- texts and ids ---------------------------------------------------------------- */

/* Any value as text: what a string says, the JSON of anything else. */
static int text_of(struct tp_chrome_members *m, const struct tp_chrome_value *v,
                   struct tp_str *out, struct tp_err *err)
{
    int rc;

    if (v->kind == TP_CHROME_STRING)
        return tp_chrome_members_text(m, &v->string, out, err);
    rc = tp_chrome_members_json(m, v, out, err);
    if (rc == TP_OK && out->ptr[0] == '"') /* NaN and the like */
        *out = (struct tp_str){out->ptr + 1, out->len - 2};
    return rc;
}

/* As set_name() for what is not plain text within the limit. */
static int set_odd_name(struct tp_chrome_members *m, enum tp_chrome_key key,
                        const char *key_text, struct tp_name *out, struct tp_err *err)
{
    struct tp_str text;
    int rc;

    if (is_absent(&m->values[key]))
        return TP_OK;
    rc = text_of(m, &m->values[key], &text, err);
    if (rc != TP_OK)
        return rc;
    if (text.len > m->name_bytes) {
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "%s is longer than %zu bytes",
                                 key_text, m->name_bytes);
        return TP_OK;
    }
    *out = (struct tp_name){text.ptr, (uint32_t)text.len, 0};
    return TP_OK;
}

static inline int set_name(struct tp_chrome_members *m, enum tp_chrome_key key,
                           const char *key_text, struct tp_name *out,
                           struct tp_err *err)
{
    const struct tp_chrome_value *v = &m->values[key];

    if (v->kind != TP_CHROME_STRING || v->string.traits != 0 ||
        v->string.len > m->name_bytes)
        return set_odd_name(m, key, key_text, out, err);
    *out = (struct tp_name){v->string.ptr, (uint32_t)v->string.len, 0};
    return key == TP_CHROME_CAT ? tp_chrome_names_cat(&m->names, out, err)
                                : tp_chrome_names_name(&m->names, out, err);
}

/* As set_id() for what is not a plain integer. */
static int set_odd_id(struct tp_chrome_members *m, enum tp_chrome_key key,
                      const char *key_text, struct tp_id *out, struct tp_err *err)
{
    const struct tp_chrome_value *v = &m->values[key];
    int rc;

    *out = (struct tp_id){.kind = TP_ID_NONE};
    if (is_absent(v))
        return TP_OK;
    if (v->kind == TP_CHROME_NUMBER) {
        double as_double;

        out->kind = TP_ID_NUMBER;
        if (tp_json_number_int64(&v->number, &out->number))
            return TP_OK;
        /* 12.0 is 12; what is no integer of 64 bits stays as it is written. */
        if (!v->number.is_integer && tp_json_number_double(&v->number, &as_double) &&
            as_double >= -0x1p53 && as_double <= 0x1p53 &&
            as_double == (double)(int64_t)as_double) {
            out->number = (int64_t)as_double;
            return TP_OK;
        }
    }
    rc = text_of(m, v, &out->text, err);
    if (rc != TP_OK)
        return rc;
    out->kind = TP_ID_TEXT;
    if (out->text.len > m->name_bytes)
        tp_chrome_members_reject(m, TP_CHROME_TOO_LARGE, "%s is longer than %zu bytes",
                                 key_text, m->name_bytes);
    return TP_OK;
}

static inline int set_id(struct tp_chrome_members *m, enum tp_chrome_key key,
                         const char *key_text, struct tp_id *out, struct tp_err *err)
{
    const struct tp_chrome_value *v = &m->values[key];

    if (v->kind != TP_CHROME_NUMBER || !tp_json_number_is_small(&v->number))
        return set_odd_id(m, key, key_text, out, err);
    out->kind = TP_ID_NUMBER;
    out->number = (int64_t)v->number.digits;
    return TP_OK;
}

static int set_track(struct tp_chrome_members *m, struct tp_chrome_tracks *tracks,
                     struct tp_event *ev, struct tp_err *err)
{
    struct tp_id pid;
    struct tp_id tid;
    struct tp_err why;
    int rc = set_id(m, TP_CHROME_PID, "pid", &pid, err);

    if (rc == TP_OK)
        rc = set_id(m, TP_CHROME_TID, "tid", &tid, err);
    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    rc = tp_chrome_tracks_get(tracks, &pid, &tid, &ev->track, &why);
    if (rc == TP_EQUOTA) {
        tp_chrome_members_reject(m, TP_CHROME_OVER_TRACKS, "%s", why.message);
        return TP_OK;
    }
    if (rc != TP_OK)
        return tp_fail(err, rc, "%s", why.message);
    return TP_OK;
}

/* --- what only some kinds have ---------------------------------------------------- */

static bool has_id(enum tp_event_kind kind)
{
    return kind >= TP_EVENT_FLOW_START && kind <= TP_EVENT_ASYNC_END;
}

/* Keep a member in extra when it is there. */
static int keep(struct tp_chrome_members *m, enum tp_chrome_key key,
                const char *key_text, struct tp_err *err)
{
    if (m->values[key].kind == TP_CHROME_NONE)
        return TP_OK;
    return tp_chrome_members_keep(m, tp_str_of(key_text), &m->values[key], err);
}

static int set_scope(struct tp_chrome_members *m, struct tp_event *ev,
                     struct tp_err *err)
{
    const char scope = one_char(&m->values[TP_CHROME_SCOPE]);

    if (ev->kind != TP_EVENT_INSTANT || (scope != 'g' && scope != 'p' && scope != 't'))
        return keep(m, TP_CHROME_SCOPE, "s", err);
    ev->scope = scope;
    return TP_OK;
}

static int set_binding(struct tp_chrome_members *m, struct tp_event *ev,
                       struct tp_err *err)
{
    if (ev->kind != TP_EVENT_FLOW_END || one_char(&m->values[TP_CHROME_BP]) != 'e')
        return keep(m, TP_CHROME_BP, "bp", err);
    ev->binds_enclosing = true;
    return TP_OK;
}

static bool has_only_dur(const struct tp_chrome_members *m)
{
    return m->values[TP_CHROME_ID].kind == TP_CHROME_NONE &&
           m->values[TP_CHROME_SCOPE].kind == TP_CHROME_NONE &&
           m->values[TP_CHROME_BP].kind == TP_CHROME_NONE;
}

static inline int set_rest(struct tp_chrome_members *m, struct tp_event *ev,
                           struct tp_err *err)
{
    int rc = TP_OK;

    if (ev->kind == TP_EVENT_SLICE && has_only_dur(m)) {
        set_dur(m, ev);
        return TP_OK;
    }

    if (ev->kind == TP_EVENT_SLICE)
        set_dur(m, ev);
    else
        rc = keep(m, TP_CHROME_DUR, "dur", err);
    if (rc == TP_OK)
        rc = has_id(ev->kind) ? set_id(m, TP_CHROME_ID, "id", &ev->id, err)
                              : keep(m, TP_CHROME_ID, "id", err);
    if (rc == TP_OK && m->values[TP_CHROME_SCOPE].kind != TP_CHROME_NONE)
        rc = set_scope(m, ev, err);
    if (rc == TP_OK && m->values[TP_CHROME_BP].kind != TP_CHROME_NONE)
        rc = set_binding(m, ev, err);
    return rc;
}

int tp_chrome_event_build(struct tp_chrome_members *m, struct tp_chrome_tracks *tracks,
                          int64_t base_ns, struct tp_event *ev, struct tp_err *err)
{
    int rc;

    *ev = (struct tp_event){.kind = TP_EVENT_OTHER};
    set_phase(m, ev);
    set_ts(m, base_ns, ev);
    rc = set_rest(m, ev, err);
    if (rc == TP_OK)
        rc = set_name(m, TP_CHROME_NAME, "name", &ev->name, err);
    if (rc == TP_OK)
        rc = set_name(m, TP_CHROME_CAT, "cat", &ev->cat, err);
    if (rc != TP_OK || m->rejection[0] != '\0')
        return rc;
    ev->args = m->args;
    ev->n_args = m->n_args;
    ev->args_shape = m->args_shape;
    ev->extra = (struct tp_str){m->extra.data, m->extra.len};
    return set_track(m, tracks, ev, err);
}
