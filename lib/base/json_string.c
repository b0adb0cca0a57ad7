/*
 * json_string.c - the slow paths: strings with escapes, control characters, UTF-8.
 *
 * Nearly all strings of a trace are plain ASCII and leave by the inline loop of the
 * header, borrowed from the input. What comes here is walked once for its end and its
 * traits, 16 bytes at a time, and decoded only when the traits ask for it.
 */
#include "base/json_string.h"

#include "base/utf8.h"

#define REPLACEMENT 0xfffdU

/* Note the traits of one byte that is neither a quote nor a backslash. */
static unsigned traits_of(char ch)
{
    const unsigned char byte = (unsigned char)ch;

    if (byte >= 0x80)
        return TP_JSON_NON_ASCII;
    return byte < 0x20 ? TP_JSON_CONTROL : 0;
}

/*
 * The first quote or backslash from p on, or end; adds to the traits what it passes.
 */
static const char *find_stop(const char *p, const char *end, unsigned *traits)
{
#ifdef __SSE2__
    while (end - p >= 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        const unsigned stop = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
                         _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'))));
        const unsigned control = (unsigned)_mm_movemask_epi8(
            _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x));
        const unsigned high = (unsigned)_mm_movemask_epi8(x);
        /* The bits below the lowest one of stop, or all when there is none. */
        const unsigned passed = stop == 0 ? 0xffffU : (stop & (0U - stop)) - 1;

        *traits |= (control & passed) != 0 ? TP_JSON_CONTROL : 0;
        *traits |= (high & passed) != 0 ? TP_JSON_NON_ASCII : 0;
        if (stop != 0)
            return p + __builtin_ctz(stop);
        p += 16;
    }
#endif
    for (; p < end && *p != '"' && *p != '\\'; p++)
        *traits |= traits_of(*p);
    return p;
}

int tp_json_string_rest(struct tp_json *c, const char *p, struct tp_json_string *out)
{
    unsigned traits = 0;

    for (;;) {
        p = find_stop(p, c->end, &traits);
        if (p >= c->end)
            return TP_EAGAIN;
        if (*p == '"')
            break;
        traits |= TP_JSON_ESCAPED;
        if (c->end - p < 2)
            return TP_EAGAIN;
        /* The character behind a backslash never ends the string, but counts. */
        traits |= traits_of(p[1]);
        p += 2;
    }
    out->ptr = c->p + 1;
    out->len = (size_t)(p - out->ptr);
    out->traits = traits;
    c->p = p + 1;
    return TP_OK;
}

bool tp_json_string_is_plain(const struct tp_json_string *s)
{
    return s->traits == 0 ||
           (s->traits == TP_JSON_NON_ASCII && tp_utf8_is_valid(s->ptr, s->len));
}

/* The value of four hexadecimal digits, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char ch = p[i];

        value <<= 4;
        if (ch >= '0' && ch <= '9')
            value |= ch - '0';
        else if (ch >= 'a' && ch <= 'f')
            value |= ch - 'a' + 10;
        else if (ch >= 'A' && ch <= 'F')
            value |= ch - 'A' + 10;
        else
            return -1;
    }
    return value;
}

/*
 * Read the \u escape at p (one or a surrogate pair) into *code. Returns its length, 0
 * when the digits are wrong. An unpaired surrogate is U+FFFD and sets *repaired.
 */
static size_t unicode_escape(const char *p, const char *end, uint32_t *code,
                             bool *repaired)
{
    const int32_t first = hex4(p + 2, end);
    int32_t second;

    if (first < 0)
        return 0;
    *code = (uint32_t)first;
    if (first < 0xd800 || first > 0xdfff)
        return 6;
    if (first < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
        second = hex4(p + 8, end);
        if (second >= 0xdc00 && second <= 0xdfff) {
            *code = 0x10000U + (((uint32_t)first - 0xd800U) << 10) +
                    ((uint32_t)second - 0xdc00U);
            return 12;
        }
    }
    *code = REPLACEMENT;
    *repaired = true;
    return 6;
}

/*
 * Read the escape at p, which is on a backslash. Returns its length; a backslash that
 * starts no escape has length 1, stands for itself and sets *repaired.
 */
static size_t escape(const char *p, const char *end, uint32_t *code, bool *repaired)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    size_t len = 0;

    if (end - p >= 2 && p[1] == 'u') {
        len = unicode_escape(p, end, code, repaired);
    } else if (end - p >= 2 && p[1] != '\0') {
        const char *at = strchr(from, p[1]);

        if (at != NULL) {
            *code = (uint32_t)(unsigned char)to[at - from];
            len = 2;
        }
    }
    if (len != 0)
        return len;
    *code = '\\';
    *repaired = true;
    return 1;
}

bool tp_json_string_is_sound(const struct tp_json_string *s)
{
    const char *end = s->ptr + s->len;
    bool repaired = false;
    uint32_t code;

    if (s->traits == 0)
        return true;
    if ((s->traits & TP_JSON_CONTROL) != 0)
        return false;
    if ((s->traits & TP_JSON_NON_ASCII) != 0 && !tp_utf8_is_valid(s->ptr, s->len))
        return false;
    if ((s->traits & TP_JSON_ESCAPED) == 0)
        return true;
    for (const char *p = s->ptr; p < end && !repaired;) {
        p = memchr(p, '\\', (size_t)(end - p));
        if (p == NULL)
            break;
        p += escape(p, end, &code, &repaired);
    }
    return !repaired;
}

/* Write a code point as UTF-8. Returns its length. */
static size_t put_code(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Write a run without escapes, with U+FFFD for what is no UTF-8. */
static size_t put_run(const char *p, size_t n, char *out, bool *repaired)
{
    size_t written = 0;

    while (n > 0) {
        const size_t good = tp_utf8_valid_prefix(p, n);
        size_t bad = 0;
        uint32_t code;

        memcpy(out + written, p, good);
        written += good;
        if (good < n) {
            bad = tp_utf8_decode(p + good, n - good, &code);
            written += put_code(REPLACEMENT, out + written);
            *repaired = true;
        }
        p += good + bad;
        n -= good + bad;
    }
    return written;
}

size_t tp_json_string_decode(const struct tp_json_string *s, char *out, bool *repaired)
{
    const char *p = s->ptr;
    const char *end = s->ptr + s->len;
    size_t written = 0;

    if ((s->traits & TP_JSON_CONTROL) != 0)
        *repaired = true;
    while (p < end) {
        const char *stop = memchr(p, '\\', (size_t)(end - p));
        uint32_t code;

        if (stop == NULL)
            stop = end;
        written += put_run(p, (size_t)(stop - p), out + written, repaired);
        p = stop;
        if (p == end)
            break;
        p += escape(p, end, &code, repaired);
        written += put_code(code, out + written);
    }
    return written;
}

/* Write one character that must be escaped. Returns the length of its escape. */
static size_t put_escape(unsigned char ch, char *out)
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *at = ch == '\0' ? NULL : strchr(from, ch);

    out[0] = '\\';
    if (at != NULL) {
        out[1] = to[at - from];
        return 2;
    }
    memcpy(out + 1, "u00", 3);
    out[4] = hex[ch >> 4];
    out[5] = hex[ch & 15];
    return 6;
}

size_t tp_json_string_write(struct tp_str text, char *out)
{
    size_t written = 0;

    out[written++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char ch = (unsigned char)text.ptr[i];

        if (ch < 0x20 || ch == '"' || ch == '\\')
            written += put_escape(ch, out + written);
        else
            out[written++] = (char)ch;
    }
    out[written++] = '"';
    return written;
}
