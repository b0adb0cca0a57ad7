/*
 * json_check.c - one pass over the bytes with an explicit stack.
 *
 * To find a member that is given twice, the hash of each key of the objects that are
 * open is kept; the number of those is limited, so that looking through the present
 * object's stays cheap whatever is sent. Keys are compared as they are written: the
 * same key once plain and once with escapes is not found, and json-c then takes the
 * last one.
 */
#include "api/json_check.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

struct check {
    const char *start;
    const char *p;
    const char *end;
    struct tp_err *err;
    uint32_t depth_max;
    uint32_t depth;
    char open[TP_JSON_DEPTH_MAX];          /* '{' or '[' of each level */
    uint32_t first_key[TP_JSON_DEPTH_MAX]; /* where the level's keys start */
    uint32_t n_keys;
    uint64_t keys[TP_JSON_MEMBERS_MAX];
};

static int fail(struct check *c, const char *what)
{
    return tp_fail(c->err, TP_EINVAL, "the body is not valid JSON: %s at byte %zu",
                   what, (size_t)(c->p - c->start));
}

static void skip_blanks(struct check *c)
{
    while (c->p < c->end &&
           (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool is_digit(struct check *c)
{
    return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

static int check_digits(struct check *c)
{
    if (!is_digit(c))
        return fail(c, "a digit is missing");
    while (is_digit(c))
        c->p++;
    return TP_OK;
}

static int check_number(struct check *c)
{
    int rc;

    if (*c->p == '-')
        c->p++;
    if (c->p < c->end && *c->p == '0')
        c->p++;
    else if ((rc = check_digits(c)) != TP_OK)
        return rc;
    if (is_digit(c))
        return fail(c, "a number starts with 0");
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if ((rc = check_digits(c)) != TP_OK)
            return rc;
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
            c->p++;
        return check_digits(c);
    }
    return TP_OK;
}

static int hex4(struct check *c, unsigned *out)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++, c->p++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *d = c->p < c->end && *c->p != '\0' ? strchr(digits, *c->p) : NULL;

        if (d == NULL)
            return fail(c, "\\u needs four hexadecimal digits");
        v = v << 4 | ((unsigned)(d - digits) & 15);
    }
    *out = v;
    return TP_OK;
}

/* Behind "\u": one unit of UTF-16, or two that belong together. */
static int check_unicode(struct check *c)
{
    unsigned high = 0;
    unsigned low = 0;
    int rc = hex4(c, &high);

    if (rc != TP_OK || high < 0xd800 || high > 0xdfff)
        return rc;
    if (high < 0xdc00 && c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u') {
        c->p += 2;
        rc = hex4(c, &low);
        if (rc != TP_OK || (low >= 0xdc00 && low <= 0xdfff))
            return rc;
    }
    return fail(c, "half of a surrogate pair");
}

static int check_string(struct check *c)
{
    int rc;

    for (c->p++; c->p < c->end; c->p++) {
        if (*c->p == '"') {
            c->p++;
            return TP_OK;
        }
        if ((unsigned char)*c->p < 0x20)
            return fail(c, "an unescaped control character");
        if (*c->p != '\\')
            continue;
        c->p++;
        if (c->p < c->end && *c->p == 'u') {
            c->p++;
            if ((rc = check_unicode(c)) != TP_OK)
                return rc;
            c->p--;
        } else if (c->p == c->end || *c->p == '\0' ||
                   strchr("\"\\/bfnrt", *c->p) == NULL) {
            return fail(c, "an unknown escape");
        }
    }
    return fail(c, "the text ends inside a string");
}

static int check_word(struct check *c, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return fail(c, "no value");
    c->p += n;
    return TP_OK;
}

/* A key, its place among the keys of its object, and the colon. */
static int check_key(struct check *c)
{
    const char *from = c->p;
    uint64_t hash = 0xcbf29ce484222325u;
    int rc;

    if (c->p == c->end || *c->p != '"')
        return fail(c, "no member name");
    if ((rc = check_string(c)) != TP_OK)
        return rc;
    for (const char *q = from; q < c->p; q++)
        hash = (hash ^ (unsigned char)*q) * 0x100000001b3u;
    for (uint32_t i = c->first_key[c->depth - 1]; i < c->n_keys; i++) {
        if (c->keys[i] == hash)
            return tp_fail(c->err, TP_EINVAL,
                           "the member %.*s at byte %zu is given twice",
                           (int)(c->p - from < 80 ? c->p - from : 80), from,
                           (size_t)(from - c->start));
    }
    if (c->n_keys == TP_JSON_MEMBERS_MAX)
        return tp_fail(c->err, TP_EQUOTA,
                       "the body has more than %d members in a place",
                       TP_JSON_MEMBERS_MAX);
    c->keys[c->n_keys++] = hash;
    skip_blanks(c);
    if (c->p == c->end || *c->p != ':')
        return fail(c, "a ':' is missing");
    c->p++;
    skip_blanks(c);
    return TP_OK;
}

static int enter(struct check *c)
{
    if (c->depth == c->depth_max)
        return tp_fail(c->err, TP_EQUOTA,
                       "the body is nested deeper than %u at byte %zu", c->depth_max,
                       (size_t)(c->p - c->start));
    c->open[c->depth] = *c->p++;
    c->first_key[c->depth++] = c->n_keys;
    return TP_OK;
}

static void leave(struct check *c)
{
    c->p++;
    c->n_keys = c->first_key[--c->depth];
}

static int check_scalar(struct check *c)
{
    switch (*c->p) {
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true");
    case 'f':
        return check_word(c, "false");
    case 'n':
        return check_word(c, "null");
    default:
        if (*c->p == '-' || is_digit(c))
            return check_number(c);
        return fail(c, "no value");
    }
}

/* Behind a value: close what ends here, up to the comma that asks for one more value.
 * *more is false when the outermost value is complete. */
static int after_value(struct check *c, bool *more)
{
    while (c->depth > 0) {
        bool is_object = c->open[c->depth - 1] == '{';

        skip_blanks(c);
        if (c->p == c->end)
            return fail(c, "the text ends too early");
        if (*c->p == ',') {
            c->p++;
            skip_blanks(c);
            *more = true;
            return is_object ? check_key(c) : TP_OK;
        }
        if (*c->p != (is_object ? '}' : ']'))
            return fail(c, is_object ? "no ',' or '}'" : "no ',' or ']'");
        leave(c);
    }
    *more = false;
    return TP_OK;
}

/* One value up to its first inner value; *is_open says that one must follow. */
static int start_value(struct check *c, bool *is_open)
{
    int rc;

    *is_open = false;
    if (c->p == c->end)
        return fail(c, "the text ends too early");
    if (*c->p != '{' && *c->p != '[')
        return check_scalar(c);
    if ((rc = enter(c)) != TP_OK)
        return rc;
    skip_blanks(c);
    if (c->p < c->end && *c->p == (c->open[c->depth - 1] == '{' ? '}' : ']')) {
        leave(c);
        return TP_OK;
    }
    *is_open = true;
    return c->open[c->depth - 1] == '{' ? check_key(c) : TP_OK;
}

int tp_json_check(const char *p, size_t n, uint32_t depth_max, struct tp_err *err)
{
    struct check c;
    size_t valid = tp_utf8_valid_prefix(p, n);
    bool more = true;
    int rc;

    if (valid < n)
        return tp_fail(err, TP_EINVAL, "the body is not valid UTF-8 at byte %zu",
                       valid);
    c.start = c.p = p;
    c.end = p + n;
    c.err = err;
    c.depth = c.n_keys = 0;
    c.depth_max = depth_max < TP_JSON_DEPTH_MAX ? depth_max : TP_JSON_DEPTH_MAX;
    skip_blanks(&c);
    if (c.p == c.end)
        return fail(&c, "it is empty");
    while (more) {
        bool is_open = false;

        if ((rc = start_value(&c, &is_open)) != TP_OK)
            return rc;
        if (!is_open && (rc = after_value(&c, &more)) != TP_OK)
            return rc;
    }
    skip_blanks(&c);
    if (c.p < c.end)
        return fail(&c, "something follows the value");
    return TP_OK;
}
