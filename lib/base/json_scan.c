/*
 * json_scan.c - one walk over a value, used twice: to check and to write.
 *
 *   value --> opener --> [key :] value ...        walk_value(): down to a scalar
 *     ^                                |
 *     +------ , [key :] <--------------+          walk_on(): commas and closers
 *
 * Which of the open brackets are objects is a bit set, so that depth costs neither
 * recursion nor memory. The walk is inlined into both users, where `out` is a constant
 * NULL for the check: nested values such as "Input Dims" are on the hot path. Most are
 * sound text on one line and are then borrowed; only the rest is written anew.
 */
#include "base/json_scan.h"

#include "base/json_number.h"
#include "base/json_string.h"

struct walk {
    struct tp_json *c;
    unsigned depth_max;
    unsigned depth;
    unsigned oddities;
    bool repaired;
    bool is_whole; /* nothing follows the text: a number or word may end with it */
    char *out;     /* NULL: only check */
    uint64_t objects[TP_JSON_DEPTH_MAX / 64];
};

/* --- words ------------------------------------------------------------------------ */

struct word {
    const char *name; /* lower case */
    const char *json;
    bool has_any_case;
};

static const struct word words[] = {
    {"true", "true", false},
    {"false", "false", false},
    {"null", "null", false},
    {"nan", "\"NaN\"", true},
    {"-nan", "\"NaN\"", true},
    {"infinity", "\"Infinity\"", true},
    {"-infinity", "\"-Infinity\"", true},
    {"inf", "\"Infinity\"", true},
    {"-inf", "\"-Infinity\"", true},
};

static bool is_word_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '-';
}

/* How many bytes at p are those of the word, up to all of it. */
static size_t common_bytes(const struct word *w, const char *p, size_t n)
{
    size_t i = 0;

    for (; i < n && w->name[i] != '\0'; i++) {
        const bool is_upper = p[i] >= 'A' && p[i] <= 'Z';
        const char ch = is_upper && w->has_any_case ? (char)(p[i] + 32) : p[i];

        if (ch != w->name[i])
            break;
    }
    return i;
}

/* As tp_json_literal(); is_whole says that nothing follows the text. */
static int scan_word(struct tp_json *c, bool is_whole, struct tp_str *text)
{
    const size_t n = (size_t)(c->end - c->p);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t common = common_bytes(&words[i], c->p, n);

        if (common == n && !is_whole)
            return TP_EAGAIN;
        if (words[i].name[common] == '\0' &&
            (common == n || !is_word_char(c->p[common]))) {
            c->p += common;
            *text = tp_str_of(words[i].json);
            return TP_OK;
        }
    }
    return tp_json_bad(c, "a value was expected");
}

int tp_json_literal(struct tp_json *c, struct tp_str *text)
{
    return scan_word(c, false, text);
}

/* --- the walk --------------------------------------------------------------------- */

static inline void emit(struct walk *w, const char *p, size_t n)
{
    if (w->out != NULL && n > 0) {
        memcpy(w->out, p, n);
        w->out += n;
    }
}

/* Pass whitespace, noting line breaks and tabs. */
static inline int walk_space(struct walk *w)
{
    const char *p = w->c->p;

    while (p < w->c->end && tp_json_is_space(*p)) {
        if (*p != ' ')
            w->oddities |= TP_JSON_SPREAD;
        p++;
    }
    w->c->p = p;
    return p < w->c->end ? TP_OK : TP_EAGAIN;
}

/*
 * Write a string with its repairs. It is decoded at the end of its room, out of the way
 * of the result: what is still to be written of that is never longer than the room
 * that is left, because each decoded byte makes at least one.
 */
static void emit_repaired(struct walk *w, const struct tp_json_string *s)
{
    char *end = w->out + TP_JSON_WRITE_BYTES(s->len);
    char *decoded = end - TP_JSON_DECODE_BYTES(s->len);
    const size_t n = tp_json_string_decode(s, decoded, &w->repaired);

    memmove(end - n, decoded, n);
    w->out += tp_json_string_write((struct tp_str){end - n, n}, w->out);
}

static inline int walk_string(struct walk *w)
{
    const char *start = w->c->p;
    struct tp_json_string s;
    int rc = tp_json_string_scan(w->c, &s);

    if (rc != TP_OK)
        return rc;
    if (s.traits == 0 || tp_json_string_is_sound(&s)) {
        emit(w, start, (size_t)(w->c->p - start));
        return TP_OK;
    }
    w->oddities |= TP_JSON_UNSOUND;
    if (w->out != NULL)
        emit_repaired(w, &s);
    return TP_OK;
}

static int walk_word(struct walk *w)
{
    struct tp_str text;
    int rc = scan_word(w->c, w->is_whole, &text);

    if (rc != TP_OK)
        return rc;
    emit(w, text.ptr, text.len);
    if (text.ptr[0] == '"') {
        w->oddities |= TP_JSON_UNSOUND;
        w->repaired = true;
    }
    return TP_OK;
}

static inline int walk_scalar(struct walk *w)
{
    const char *start = w->c->p;
    int rc;

    if (*start == '"')
        return walk_string(w);
    if ((*start < '0' || *start > '9') &&
        (*start != '-' ||
         (w->c->end - start > 1 &&
          (start[1] == 'i' || start[1] == 'I' || start[1] == 'n' || start[1] == 'N'))))
        return walk_word(w);
    rc = tp_json_number_skip(w->c);
    if (rc == TP_EAGAIN && w->is_whole)
        rc = TP_OK;
    if (rc == TP_OK)
        emit(w, start, (size_t)(w->c->p - start));
    return rc;
}

static inline bool is_in_object(const struct walk *w)
{
    return (w->objects[(w->depth - 1) / 64] >> ((w->depth - 1) % 64) & 1) != 0;
}

static inline char closer(const struct walk *w)
{
    return is_in_object(w) ? '}' : ']';
}

/* Enter the array or object whose bracket is at the cursor. */
static inline int walk_open(struct walk *w)
{
    const uint64_t bit = UINT64_C(1) << (w->depth % 64);

    if (w->depth >= w->depth_max) {
        w->c->why = "too many arrays and objects inside each other";
        return TP_EQUOTA;
    }
    if (*w->c->p == '{')
        w->objects[w->depth / 64] |= bit;
    else
        w->objects[w->depth / 64] &= ~bit;
    w->depth++;
    emit(w, w->c->p, 1);
    w->c->p++;
    return walk_space(w);
}

/* Leave the innermost array or object, whose closer is at the cursor. */
static inline void walk_close(struct walk *w)
{
    emit(w, w->c->p, 1);
    w->c->p++;
    w->depth--;
}

/* A key, the colon and the whitespace around it; the cursor is on the key. */
static inline int walk_key(struct walk *w)
{
    int rc;

    if (*w->c->p != '"')
        return tp_json_bad(w->c, "a key in quotes was expected");
    rc = walk_string(w);
    if (rc == TP_OK)
        rc = walk_space(w);
    if (rc != TP_OK)
        return rc;
    if (*w->c->p != ':')
        return tp_json_bad(w->c, "':' was expected");
    emit(w, w->c->p, 1);
    w->c->p++;
    return walk_space(w);
}

/* From the start of a value down to the end of its first scalar or empty bracket. */
static inline int walk_value(struct walk *w)
{
    for (;;) {
        int rc;

        if (*w->c->p != '{' && *w->c->p != '[')
            return walk_scalar(w);
        rc = walk_open(w);
        if (rc != TP_OK)
            return rc;
        if (*w->c->p == closer(w)) {
            walk_close(w);
            return TP_OK;
        }
        if (is_in_object(w)) {
            rc = walk_key(w);
            if (rc != TP_OK)
                return rc;
        }
    }
}

/* Behind a value: close what ends here, or go on to the next value in it. */
static inline int walk_on(struct walk *w)
{
    while (w->depth > 0) {
        int rc = walk_space(w);

        if (rc != TP_OK)
            return rc;
        if (*w->c->p == ',') {
            w->c->p++;
            rc = walk_space(w);
            if (rc != TP_OK)
                return rc;
            if (*w->c->p != closer(w)) {
                emit(w, ",", 1);
                return is_in_object(w) ? walk_key(w) : TP_OK;
            }
            w->oddities |= TP_JSON_UNSOUND; /* a trailing comma */
        }
        if (*w->c->p != closer(w))
            return tp_json_bad(w->c, is_in_object(w) ? "',' or '}' was expected"
                                                     : "',' or ']' was expected");
        walk_close(w);
    }
    return TP_OK;
}

static inline int walk(struct walk *w)
{
    int rc = walk_space(w);

    if (rc != TP_OK)
        return rc;
    do {
        rc = walk_value(w);
        if (rc == TP_OK)
            rc = walk_on(w);
    } while (rc == TP_OK && w->depth > 0);
    return rc;
}

#ifdef __SSE2__
#define BLOCK 16

/* Which bytes of a block are what, as bit sets. */
struct block {
    unsigned digit, zero, comma, opener, closer, space;
};

static inline unsigned bytes_that_are(__m128i x, char ch)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(ch)));
}

static inline struct block classify(const char *p)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i value = _mm_sub_epi8(x, _mm_set1_epi8('0'));
    const __m128i low = _mm_min_epu8(value, _mm_set1_epi8(9));

    return (struct block){
        .digit = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(value, low)),
        .zero = bytes_that_are(x, '0'),
        .comma = bytes_that_are(x, ','),
        .opener = bytes_that_are(x, '['),
        .closer = bytes_that_are(x, ']'),
        .space = bytes_that_are(x, ' '),
    };
}

/* The bytes of a block, and in bit 0 the last one of the block before. */
static inline unsigned behind(unsigned set, unsigned before)
{
    return set << 1 | (before >> (BLOCK - 1) & 1);
}

/*
 * The bytes that may not stand where they do, each judged by the one before it: a blank
 * follows a comma, a comma a number or `]`, and so on. Bits above the block are noise.
 */
static inline unsigned misplaced(const struct block *b, const struct block *before,
                                 unsigned first_zero_before)
{
    const unsigned after_digit = behind(b->digit, before->digit);
    const unsigned after_comma = behind(b->comma, before->comma);
    const unsigned after_space = behind(b->space, before->space);
    const unsigned after_opener = behind(b->opener, before->opener);
    const unsigned after_closer = behind(b->closer, before->closer);
    const unsigned first_zero = b->zero & ~after_digit;

    return ((b->digit | b->opener) & after_closer) | (b->opener & after_digit) |
           ((b->closer | b->comma) & (after_comma | after_space)) |
           (b->comma & after_opener) | (b->space & ~after_comma) |
           (b->digit & behind(first_zero, first_zero_before)) |
           ~(b->digit | b->comma | b->opener | b->closer | b->space);
}

/* The place of the closer in this block that brings the depth to 0, or BLOCK. */
static inline unsigned find_closer(const struct block *b, unsigned depth_max,
                                   unsigned *depth, bool *is_too_deep)
{
    unsigned brackets = b->opener | b->closer;

    for (; brackets != 0; brackets &= brackets - 1) {
        const unsigned lowest = brackets & (0U - brackets);

        if ((b->opener & lowest) != 0) {
            *is_too_deep |= ++*depth > depth_max;
        } else if (--*depth == 0) {
            return (unsigned)__builtin_ctz(lowest);
        }
    }
    return BLOCK;
}

/*
 * The common case of the common case, arrays of integers on one line such as the "Input
 * Dims" of most events, a block at a time: their end, or NULL when there is anything
 * else in it or at fault, for the walk to tell what.
 */
static const char *skip_plain_array(const char *p, const char *end, unsigned depth_max)
{
    struct block before = {.comma = 1U << (BLOCK - 1)}; /* a value may follow it */
    unsigned first_zero = 0;
    unsigned depth = 0;
    bool is_too_deep = false;

    for (; end - p >= BLOCK; p += BLOCK) {
        const struct block b = classify(p);
        const unsigned bad = misplaced(&b, &before, first_zero);
        const unsigned closer = find_closer(&b, depth_max, &depth, &is_too_deep);

        if ((bad & ((1U << closer) - 1)) != 0 || is_too_deep)
            return NULL;
        if (closer < BLOCK)
            return (bad >> closer & 1) != 0 ? NULL : p + closer + 1;
        first_zero = b.zero & ~behind(b.digit, before.digit);
        before = b;
    }
    return NULL;
}
#else
static const char *skip_plain_array(const char *p, const char *end, unsigned depth_max)
{
    (void)p;
    (void)end;
    (void)depth_max;
    return NULL;
}
#endif

int tp_json_skip(struct tp_json *c, unsigned depth_max, unsigned *oddities)
{
    const char *array_end = NULL;
    struct walk w;
    int rc;

    if (depth_max > TP_JSON_DEPTH_MAX)
        depth_max = TP_JSON_DEPTH_MAX;
    if (c->p < c->end && *c->p == '[')
        array_end = skip_plain_array(c->p, c->end, depth_max);
    if (array_end != NULL) {
        c->p = array_end;
        return TP_OK;
    }

    w.c = c;
    w.depth_max = depth_max;
    w.depth = 0;
    w.oddities = 0;
    w.repaired = false;
    w.is_whole = false;
    w.out = NULL;
    rc = walk(&w);
    *oddities |= w.oddities;
    return rc;
}

size_t tp_json_copy(struct tp_str text, char *out, bool *repaired)
{
    struct tp_json c = {.p = text.ptr, .end = text.ptr + text.len};
    struct walk w = {
        .c = &c, .depth_max = TP_JSON_DEPTH_MAX, .is_whole = true, .out = out};

    (void)walk(&w);
    if (w.repaired)
        *repaired = true;
    return (size_t)(w.out - out);
}

/* --- the edge --------------------------------------------------------------------- */

/* Move behind the string that p is in; end when it goes on. */
static const char *leave_string(struct tp_json_edge *e, const char *p, const char *end)
{
    if (e->is_escaped && p < end) {
        e->is_escaped = false;
        p++;
    }
    for (; p < end; p++) {
        if (*p == '"') {
            e->is_in_string = false;
            return p + 1;
        }
        if (*p != '\\')
            continue;
        if (++p == end) {
            e->is_escaped = true;
            break;
        }
    }
    return p;
}

/* Take in the first byte of a value. */
static void start_edge(struct tp_json_edge *e, char ch)
{
    e->is_started = true;
    if (ch == '"')
        e->is_in_string = true;
    else if (ch == '{' || ch == '[')
        e->depth = 1;
    else
        e->is_scalar = true;
}

static bool ends_scalar(char ch)
{
    return tp_json_is_space(ch) || ch == ',' || ch == ']' || ch == '}';
}

/* Outside strings: count brackets until the last one closes or a string starts. */
static const char *count_brackets(struct tp_json_edge *e, const char *p,
                                  const char *end)
{
    while (p < end) {
        const char ch = *p++;

        if (ch == '"') {
            e->is_in_string = true;
            break;
        }
        if (ch == '{' || ch == '[')
            e->depth++;
        else if ((ch == '}' || ch == ']') && --e->depth == 0)
            break;
    }
    return p;
}

bool tp_json_edge_feed(struct tp_json_edge *e, const char *p, size_t n, size_t *used)
{
    const char *start = p;
    const char *end = p + n;
    bool is_done = false;

    if (n > 0 && !e->is_started)
        start_edge(e, *p++);
    while (p < end && !is_done) {
        if (e->is_scalar) {
            is_done = ends_scalar(*p);
            p += !is_done;
            continue;
        }
        p = e->is_in_string ? leave_string(e, p, end) : count_brackets(e, p, end);
        is_done = e->depth == 0 && !e->is_in_string;
    }
    *used = (size_t)(p - start);
    return is_done;
}
