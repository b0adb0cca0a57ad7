#include "producer/fields.h"

#include "base/utf8.h"

#define COPY_BYTES_MAX 1023u

/* A character is copied as a whole or left out. */
static uint32_t copied_bytes(const struct tp_field *f)
{
    struct tp_str text = {f->value.s, 0};

    if (text.ptr == NULL)
        return 0;
    text.len = strnlen(text.ptr, COPY_BYTES_MAX + 1);
    return (uint32_t)tp_utf8_cut(text, COPY_BYTES_MAX).len;
}

unsigned tp_fields_words(struct tp_fields fields)
{
    unsigned n = 0;

    if (fields.n > TP_FIELDS_MAX)
        return TP_FIELDS_TOO_LARGE;
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field *f = &fields.items[i];

        if (f->kind == TP_FIELD_COPY)
            n += 2 + copied_bytes(f) / 8;
        else
            n += tp_fields_is_small(f) ? 1 : 2;
    }
    return n <= TP_RECORD_WORDS_MAX - 4 ? n : TP_FIELDS_TOO_LARGE;
}

/* The last word of a text holds its NUL: a text of n bytes takes n / 8 + 1 words. */
static uint64_t *put_copy(uint64_t *p, const struct tp_field *f)
{
    uint32_t bytes = copied_bytes(f);

    *p++ = tp_fields_first(f) | TP_RECORD_FIELD(0, 0, bytes / 8 + 1);
    p[bytes / 8] = 0;
    if (bytes > 0)
        memcpy(p, f->value.s, bytes);
    return p + bytes / 8 + 1;
}

void tp_fields_put(uint64_t *p, struct tp_fields fields)
{
    for (size_t i = 0; i < fields.n; i++) {
        const struct tp_field *f = &fields.items[i];

        p = f->kind == TP_FIELD_COPY
                ? put_copy(p, f)
                : tp_fields_put_plain(p, (struct tp_fields){f, 1}, false);
    }
}

struct tp_str tp_fields_text(const uint64_t *w, size_t max_bytes)
{
    const char *s = (const char *)(w + 1);

    if (TP_RECORD_FIELD_KIND(*w) == TP_FIELD_TEXT)
        memcpy(&s, w + 1, sizeof(s));
    if (s == NULL)
        return (struct tp_str){"", 0};
    return tp_utf8_cut((struct tp_str){s, strnlen(s, max_bytes + 1)}, max_bytes);
}
