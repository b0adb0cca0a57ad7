/*
 * pf_reading.h - reading a Perfetto trace event by event, for tests of the reader.
 *
 * Header only; for test programs, which include cmocka first. What is not expected ends
 * the test.
 */
#ifndef TP_SUPPORT_PF_READING_H
#define TP_SUPPORT_PF_READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"
#include "support/pf_message.h"
#include "trace/pf_reader.h"

/* A reader; the caller frees it. */
static inline struct tp_pf_reader *must_new(bool is_trusted)
{
    struct tp_pf_reader_opts opts = {.is_trusted = is_trusted};
    struct tp_pf_reader *r = NULL;

    assert_int_equal(tp_pf_reader_new(&opts, &r, NULL), TP_OK);
    return r;
}

/* The next event of a trace, which must be there. */
static inline struct tp_event must_next(struct tp_pf_reader *r, struct tp_pf_cursor *c)
{
    struct tp_event ev;
    enum tp_pf_item item;
    struct tp_err err = {.message = "no more events"};

    if (tp_pf_reader_next(r, c, &item, &ev, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(item, TP_PF_EVENT);
    return ev;
}

/* There is no event any more, and nothing is left over. */
static inline void assert_end(struct tp_pf_reader *r, struct tp_pf_cursor *c)
{
    struct tp_event ev;
    enum tp_pf_item item;

    assert_int_equal(tp_pf_reader_next(r, c, &item, &ev, NULL), TP_EAGAIN);
    assert_ptr_equal(c->ptr, c->end);
}

/* All bytes of a message. */
static inline struct tp_pf_cursor over(const struct pf_message *m)
{
    return (struct tp_pf_cursor){m->bytes, m->bytes + m->n};
}

/* A name is that text. */
static inline void assert_name(const struct tp_name *name, const char *expected)
{
    if (!tp_str_is((struct tp_str){name->ptr, name->len}, expected))
        fail_msg("name is '%.*s', not '%s'", (int)name->len, name->ptr, expected);
}

#endif
