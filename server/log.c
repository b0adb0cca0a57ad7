/*
 * log.c - logfmt, formatted on the stack.
 */
#include "server/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/timefmt.h"

#define LINE_BYTES 2048
#define LINES_PER_S 20

static const char *const level_names[] = {"error", "warning", "info", "debug"};

int tp_log_level_find(const char *name)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(name, level_names[i]) == 0)
            return i;
    return -1;
}

struct line {
    char text[LINE_BYTES];
    size_t len;
};

static void put(struct line *l, char c)
{
    /* Two bytes stay free: for a closing quote and the line feed. */
    if (l->len < sizeof(l->text) - 2)
        l->text[l->len++] = c;
}

static void put_text(struct line *l, const char *s)
{
    while (*s != '\0')
        put(l, *s++);
}

static bool needs_quotes(const char *s)
{
    if (*s == '\0')
        return true;
    for (; *s != '\0'; s++)
        if ((unsigned char)*s <= 0x20 || *s == '"' || *s == '=' || *s == '\\' ||
            *s == 0x7f)
            return true;
    return false;
}

/* One line stays one line whatever is in a value. */
static void put_value(struct line *l, const char *s)
{
    if (!needs_quotes(s)) {
        put_text(l, s);
        return;
    }
    put(l, '"');
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        char escape[8];

        if (c == '"' || c == '\\') {
            put(l, '\\');
            put(l, *s);
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(escape, sizeof(escape), "\\u%04x", c);
            put_text(l, escape);
        } else {
            put(l, *s);
        }
    }
    l->text[l->len++] = '"';
}

void tp_log(struct tp_log *log, enum tp_log_level level, const char *event, ...)
{
    struct line l = {.len = 0};
    char when[TP_TIMEFMT_BYTES];
    struct timespec ts;
    const char *key;
    va_list args;

    if (level > log->level)
        return;
    clock_gettime(CLOCK_REALTIME, &ts);
    put_text(&l, "time=");
    put_text(&l, tp_timefmt_write((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec, when));
    put_text(&l, " level=");
    put_text(&l, level_names[level]);
    put_text(&l, " event=");
    put_text(&l, event);
    va_start(args, event);
    while ((key = va_arg(args, const char *)) != NULL) {
        const char *value = va_arg(args, const char *);

        if (value == NULL || l.len > sizeof(l.text) - 64)
            continue;
        put(&l, ' ');
        put_text(&l, key);
        put(&l, '=');
        put_value(&l, value);
    }
    va_end(args);
    l.text[l.len++] = '\n';
    if (write(log->fd, l.text, l.len) < 0)
        return; /* nobody is left to tell */
}

bool tp_log_may_repeat(struct tp_log *log)
{
    struct timespec ts;
    uint64_t window;
    uint64_t left_out;
    char number[24];

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    window = atomic_load(&log->window_s);
    if (window != (uint64_t)ts.tv_sec &&
        atomic_compare_exchange_strong(&log->window_s, &window, (uint64_t)ts.tv_sec)) {
        atomic_store(&log->in_window, 0);
        left_out = atomic_exchange(&log->left_out, 0);
        if (left_out > 0) {
            snprintf(number, sizeof(number), "%llu", (unsigned long long)left_out);
            tp_log(log, TP_LOG_WARNING, "lines-left-out", "count", number, NULL);
        }
    }
    if (atomic_fetch_add(&log->in_window, 1) < LINES_PER_S)
        return true;
    atomic_fetch_add(&log->left_out, 1);
    return false;
}
