/*
 * type_counts.h - what became of the events of one producer, by activity type.
 *
 * emitted = stored + filtered + dropped for each type, as counts.h has it for all of
 * them together. A short list in order of id: producers use few of the 256 types. It
 * has no lock: whoever owns the list guards it.
 */
#ifndef TP_CORE_TYPE_COUNTS_H
#define TP_CORE_TYPE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/counts.h"

struct tp_err;

/* Numbers of events of one type. Plain data. */
struct tp_type_count {
    unsigned id; /* 0 to 255 */
    uint64_t emitted, stored, filtered;
    uint64_t dropped[TP_DROP_CAUSES];
};

/* Embed it; the zero value is empty. Fields may be read. */
struct tp_type_counts {
    struct tp_type_count *items; /* by id, each id once */
    size_t n;
};

/* Release the memory; the list is empty then. */
void tp_type_counts_fini(struct tp_type_counts *c);

/*
 * The counts of a type, made when it is not there.
 *
 * out  valid until the next call with a new id.
 *
 * TP_EINVAL  id is over 255. TP_ENOMEM. Nothing changed.
 */
int tp_type_counts_get(struct tp_type_counts *c, unsigned id,
                       struct tp_type_count **out, struct tp_err *err);

/*
 * Take over what a producer reports: all of it in place of what *to had, but for what
 * is stored, which the producer does not know and *to keeps.
 *
 * TP_ENOMEM  *to is as before.
 */
int tp_type_counts_take(struct tp_type_counts *to, const struct tp_type_counts *report,
                        struct tp_err *err);

/*
 * Check that what a producer reports adds up: no type has fewer emitted than filtered
 * and dropped, and all together are `all`. `stored` is not looked at. An empty list is
 * fine.
 *
 * TP_EINVAL  it does not; the message says where.
 */
int tp_type_counts_check(const struct tp_type_counts *c, const struct tp_counts *all,
                         struct tp_err *err);

/*
 * The count as it is to be told: what was emitted and is neither stored, filtered nor
 * dropped is dropped when the producer is done, else not counted yet; what is stored
 * beyond what was emitted was emitted.
 *
 * cause  why it is dropped.
 */
struct tp_type_count tp_type_count_told(const struct tp_type_count *c, bool is_done,
                                        enum tp_drop_cause cause);

/* Append the list as one line of text a type, for a row of the store. TP_ENOMEM. */
int tp_type_counts_write(const struct tp_type_counts *c, struct tp_buf *out,
                         struct tp_err *err);

/*
 * Read such text into an empty list.
 *
 * TP_EINVAL  it is none. TP_ENOMEM. The list is empty.
 */
int tp_type_counts_read(struct tp_str text, struct tp_type_counts *out,
                        struct tp_err *err);

#endif
