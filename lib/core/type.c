/*
 * type.c - the rules for names.
 *
 * A name is ASCII because the RFC's hash runs over `char`, which is signed on x86 and
 * unsigned on Arm: a byte above 127 would give two processes two ids for one type. A
 * comma is refused because `cat` of the Chrome trace format is a list with commas, and
 * a name of digits only because an id without a name is written as its number. The
 * first `.` of a full name ends the plugin, so a plugin has none.
 */
#include "core/type.h"

#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

static const char *const kind_names[TP_TYPE_KINDS] = {
    [TP_TYPE_KIND_UNSET] = "unset",
    [TP_TYPE_SLICE] = "slice",
    [TP_TYPE_INSTANT] = "instant",
    [TP_TYPE_COUNTER] = "counter",
};

const char *tp_type_kind_name(enum tp_type_kind kind)
{
    return (unsigned)kind < TP_TYPE_KINDS ? kind_names[kind] : "unset";
}

int tp_type_kind_find(struct tp_str name)
{
    for (int i = TP_TYPE_SLICE; i < TP_TYPE_KINDS; i++) {
        if (tp_str_is(name, kind_names[i]))
            return i;
    }
    return -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_plugin_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           c == '_' || c == '-';
}

static int check_plugin(struct tp_str s, struct tp_err *err)
{
    if (s.len == 0 || s.len > TP_TYPE_PLUGIN_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "plugin has %zu bytes, it must have 1 to %d",
                       s.len, TP_TYPE_PLUGIN_MAX_BYTES);
    for (size_t i = 0; i < s.len; i++) {
        if (!is_plugin_byte(s.ptr[i]))
            return tp_fail(err, TP_EINVAL,
                           "plugin has byte 0x%02x at %zu, it may hold A-Z a-z 0-9 _ -",
                           (unsigned char)s.ptr[i], i);
    }
    return TP_OK;
}

static int check_type_name(struct tp_str s, struct tp_err *err)
{
    bool is_number = true;

    if (s.len == 0 || s.len > TP_TYPE_NAME_MAX_BYTES)
        return tp_fail(err, TP_EINVAL, "type_name has %zu bytes, it must have 1 to %d",
                       s.len, TP_TYPE_NAME_MAX_BYTES);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c > 0x7e || c == ',')
            return tp_fail(
                err, TP_EINVAL,
                "type_name has byte 0x%02x at %zu, it must be printable ASCII "
                "without a comma",
                c, i);
        is_number = is_number && is_digit(s.ptr[i]);
    }
    if (s.ptr[0] == ' ' || s.ptr[s.len - 1] == ' ')
        return tp_fail(err, TP_EINVAL, "type_name starts or ends with a space");
    if (is_number)
        return tp_fail(err, TP_EINVAL,
                       "type_name '%.*s' is a number, which means an id", (int)s.len,
                       s.ptr);
    return TP_OK;
}

/* Text that only people read: any UTF-8, but no NUL, since it is kept as a C string. */
static int check_text(const char *what, struct tp_str s, size_t max_bytes,
                      struct tp_err *err)
{
    if (s.len > max_bytes)
        return tp_fail(err, TP_EINVAL, "%s has %zu bytes, it may have %zu", what, s.len,
                       max_bytes);
    if (!tp_utf8_is_valid(s.ptr, s.len))
        return tp_fail(err, TP_EINVAL, "%s is not UTF-8 at byte %zu", what,
                       tp_utf8_valid_prefix(s.ptr, s.len));
    if (s.len != 0 && memchr(s.ptr, '\0', s.len) != NULL)
        return tp_fail(err, TP_EINVAL, "%s has a NUL byte", what);
    return TP_OK;
}

static int check_kind(enum tp_type_kind kind, struct tp_err *err)
{
    if ((unsigned)kind >= TP_TYPE_KINDS)
        return tp_fail(err, TP_EINVAL, "kind %d is none of slice, instant, counter",
                       (int)kind);
    return TP_OK;
}

int tp_type_check(const struct tp_type_spec *spec, const char **field,
                  struct tp_err *err)
{
    const char *where = "plugin";
    int rc = check_plugin(spec->plugin, err);

    if (rc == TP_OK) {
        where = "type_name";
        rc = check_type_name(spec->type_name, err);
    }
    if (rc == TP_OK) {
        where = "kind";
        rc = check_kind(spec->kind, err);
    }
    if (rc == TP_OK) {
        where = "unit";
        rc = check_text(where, spec->unit, TP_TYPE_UNIT_MAX_BYTES, err);
    }
    if (rc == TP_OK) {
        where = "description";
        rc = check_text(where, spec->description, TP_TYPE_DESCRIPTION_MAX_BYTES, err);
    }
    if (rc != TP_OK && field != NULL)
        *field = where;
    return rc;
}
