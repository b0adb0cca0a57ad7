#include "producer/texts.h"

#include <pthread.h>
#include <traceplane/record.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "trace/intern.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards table */
static struct tp_intern table = {.n_max = TP_TEXTS_MAX,
                                 .bytes_max = TP_TEXTS_BYTES_MAX};

/* Number a text that is not valid UTF-8 by what can be read of it. */
static uint32_t add_repaired(struct tp_str text)
{
    struct tp_buf repaired = {0};
    uint32_t number = 0;

    if (tp_utf8_repair(&repaired, text.ptr, text.len, NULL, NULL) == TP_OK) {
        text = tp_utf8_cut((struct tp_str){repaired.data, repaired.len},
                           TP_TEXT_BYTES_MAX);
        if (tp_intern_add(&table, text, &number, NULL) != TP_OK)
            number = 0;
    }
    tp_buf_fini(&repaired);
    return number;
}

uint32_t tp_intern(const char *s)
{
    struct tp_str text = tp_utf8_cut(tp_str_of(s == NULL ? "" : s), TP_TEXT_BYTES_MAX);
    uint32_t number = 0;

    pthread_mutex_lock(&lock);
    if (!tp_utf8_is_valid(text.ptr, text.len))
        number = add_repaired(text);
    else if (tp_intern_add(&table, text, &number, NULL) != TP_OK)
        number = 0;
    pthread_mutex_unlock(&lock);
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
