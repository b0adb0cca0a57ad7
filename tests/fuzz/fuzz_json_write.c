/*
 * fuzz_json_write.c - any bytes as a string, a double and an object.
 *
 * What is written must be read back as the same: the string (after repair) by the
 * scanner, the double by strtod. The walk over members must end.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_members.h"
#include "base/json_write.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_string(struct tp_str s)
{
    struct tp_buf text = {0};
    struct tp_buf back = {0};
    struct tp_buf want = {0};

    check(tp_json_write_string(&text, s, NULL) == TP_OK);
    check(tp_utf8_is_valid(text.data, text.len));
    for (size_t i = 0; i < text.len; i++)
        check((unsigned char)text.data[i] >= 0x20);
    check(tp_json_members_text((struct tp_str){text.data, text.len}, &back, NULL) ==
          TP_OK);
    check(tp_utf8_repair(&want, s.ptr, s.len, NULL, NULL) == TP_OK);
    check(back.len == want.len);
    check(back.len == 0 || memcmp(back.data, want.data, back.len) == 0);
    tp_buf_fini(&text);
    tp_buf_fini(&back);
    tp_buf_fini(&want);
}

static void check_double(const uint8_t *data)
{
    char text[TP_JSON_DOUBLE_BYTES + 1];
    double d;
    double back;

    memcpy(&d, data, sizeof(d));
    *tp_json_put_double(text, d) = '\0';
    if (!isfinite(d))
        return;
    back = strtod(text, NULL);
    check(memcmp(&back, &d, sizeof(d)) == 0);
    check(strpbrk(text, ".e") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tp_str s = {(const char *)data, size};
    struct tp_json c;

    check_string(s);
    if (size >= sizeof(double))
        check_double(data);
    tp_json_members_open(s, &c);
    while (tp_json_members_next(&c, NULL, NULL))
        check(c.p <= c.end);
    return 0;
}
