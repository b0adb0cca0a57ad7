/*
 * pf_plain.h - the short way for what a log is full of: complete slices of our own.
 *
 * A packet that has exactly the form in which pf_writer writes a slice whose strings
 * are all known is taken apart without making arguments of its arguments: a seal copies
 * these as they are. Anything else is left to tp_pf_reader_next(), which reads the same
 * of it. Private to packet_feed and seal. One thread at a time.
 */
#ifndef TP_TRACE_PF_PLAIN_H
#define TP_TRACE_PF_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "trace/event.h"
#include "trace/pf_reader.h"

#define TP_PF_PLAIN_ARGS_MAX 64 /* slices with more arguments are not plain */
#define TP_PF_PLAIN_KEY_MAX 127 /* keys of higher numbers are longer than a byte */

/* A slice. Pointers live as those of tp_pf_reader_next(). */
struct tp_pf_plain {
    struct tp_event ev; /* a SLICE without its arguments */
    struct tp_str wire; /* these as they are in the packet */
    uint32_t n_args;
    /* Where in wire each has the one byte of its key's number. */
    uint16_t key_at[TP_PF_PLAIN_ARGS_MAX];
    const struct tp_name *keys[TP_PF_PLAIN_ARGS_MAX]; /* what it stands for */
    const char *next;                                 /* what follows in the input */
};

/*
 * Look whether a plain slice is at the cursor, behind the end of another one or not.
 * The reader must be trusted.
 *
 * out  set only when it is.
 *
 * Returns whether it is; nothing changes either way, tp_pf_plain_take() does that.
 */
bool tp_pf_plain_look(const struct tp_pf_reader *r, const struct tp_pf_cursor *c,
                      struct tp_pf_plain *out);

/* Move the cursor over the slice that tp_pf_plain_look() found there. */
void tp_pf_plain_take(struct tp_pf_reader *r, struct tp_pf_cursor *c,
                      const struct tp_pf_plain *plain);

#endif
