/*
 * err.c - messages are built in the caller's struct, so raising an error never
 * allocates and works when memory is what has run out.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * End text, which vsnprintf has cut to size - 1 bytes, before a UTF-8 sequence that
 * lost its tail: a message travels in JSON, where half a character is an error.
 */
static void trim_partial_utf8(char *text)
{
    size_t len = strlen(text);
    size_t start = len;
    size_t wanted = 1;
    unsigned char lead;

    while (start > 0 && len - start < 3 &&
           ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    lead = (unsigned char)text[start - 1];
    if (lead >= 0xf0)
        wanted = 4;
    else if (lead >= 0xe0)
        wanted = 3;
    else if (lead >= 0xc0)
        wanted = 2;
    if (len - (start - 1) < wanted)
        text[start - 1] = '\0';
}

int tp_fail(struct tp_err *err, int code, const char *format, ...)
{
    va_list args;
    int n;

    if (err == NULL)
        return code;
    err->code = code;
    va_start(args, format);
    n = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    if (n < 0)
        err->message[0] = '\0';
    else if ((size_t)n >= sizeof(err->message))
        trim_partial_utf8(err->message);
    return code;
}

int tp_fail_prefix(struct tp_err *err, const char *format, ...)
{
    char old[TP_ERR_MESSAGE_BYTES];
    va_list args;
    size_t len;
    int n;

    if (err == NULL)
        return TP_EIO;
    memcpy(old, err->message, sizeof(old));
    old[sizeof(old) - 1] = '\0';
    va_start(args, format);
    n = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    if (n < 0)
        err->message[0] = '\0';
    len = strlen(err->message);
    n = snprintf(err->message + len, sizeof(err->message) - len, ": %s", old);
    if (n < 0 || (size_t)n >= sizeof(err->message) - len)
        trim_partial_utf8(err->message);
    return err->code;
}

const char *tp_code_name(int code)
{
    static const char *const names[] = {
        [-TP_OK] = "ok",
        [-TP_EINVAL] = "invalid",
        [-TP_ENOMEM] = "no-memory",
        [-TP_ENOTFOUND] = "not-found",
        [-TP_EEXIST] = "exists",
        [-TP_ESTATE] = "illegal-state",
        [-TP_EQUOTA] = "quota",
        [-TP_EIO] = "io",
        [-TP_EAMBIGUOUS] = "ambiguous",
        [-TP_EDENIED] = "denied",
        [-TP_EAGAIN] = "again",
        [-TP_EUNSUPPORTED] = "unsupported",
    };
    const int n_names = (int)(sizeof(names) / sizeof(names[0]));

    if (code > 0 || code <= -n_names)
        return "unknown";
    return names[-code];
}
