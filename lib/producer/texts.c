#include "producer/texts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <traceplane/record.h>

#include "base/buf.h"
#include "base/fnv.h"
#include "base/utf8.h"
#include "trace/intern.h"

#define MARK_BYTES 19u /* "..." and 16 digits */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards table */
static struct tp_intern table = {.n_max = TP_TEXTS_MAX,
                                 .bytes_max = TP_TEXTS_BYTES_MAX};

/* The beginning of a text with the mark of the whole behind it; two that begin alike,
 * as kernels of one template do, stay two. */
static struct tp_str mark(struct tp_str text, struct tp_str whole,
                          char out[TP_TEXT_BYTES_MAX + 1])
{
    struct tp_str head = tp_utf8_cut(text, TP_TEXT_BYTES_MAX - MARK_BYTES);

    memcpy(out, head.ptr, head.len);
    snprintf(out + head.len, MARK_BYTES + 1, "...%016llx",
             (unsigned long long)tp_fnv(whole.ptr, whole.len, TP_FNV_START));
    return (struct tp_str){out, head.len + MARK_BYTES};
}

uint32_t tp_intern(const char *s)
{
    struct tp_str whole = tp_str_of(s == NULL ? "" : s);
    struct tp_str text = tp_utf8_cut(whole, TP_TEXT_BYTES_MAX);
    struct tp_buf repaired = {0};
    char marked[TP_TEXT_BYTES_MAX + 1];
    uint32_t number = 0;
    bool has_text = true;

    if (!tp_utf8_is_valid(text.ptr, text.len)) {
        has_text = tp_utf8_repair(&repaired, text.ptr, text.len, NULL, NULL) == TP_OK;
        text = (struct tp_str){repaired.data, repaired.len};
    }
    if (has_text && (whole.len > TP_TEXT_BYTES_MAX || text.len > TP_TEXT_BYTES_MAX))
        text = mark(text, whole, marked);
    pthread_mutex_lock(&lock);
    if (has_text && tp_intern_add(&table, text, &number, NULL) != TP_OK)
        number = 0;
    pthread_mutex_unlock(&lock);
    tp_buf_fini(&repaired);
    return number;
}

struct tp_str tp_texts_get(uint32_t number)
{
    struct tp_str text = {"", 0};

    pthread_mutex_lock(&lock);
    if (number - 1 < table.n)
        text = tp_intern_text(&table, number);
    pthread_mutex_unlock(&lock);
    return text;
}

uint32_t tp_texts_count(void)
{
    uint32_t n;

    pthread_mutex_lock(&lock);
    n = table.n;
    pthread_mutex_unlock(&lock);
    return n;
}

void tp_texts_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tp_texts_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
