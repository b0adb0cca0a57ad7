/*
 * chrome_event.h - the members of a Chrome event as a struct tp_event.
 *
 * Decides what values mean: phases, times, ids, what is repaired and what makes a
 * value no event. Reads no text and keeps no state. Not thread-safe.
 */
#ifndef TP_TRACE_CHROME_EVENT_H
#define TP_TRACE_CHROME_EVENT_H

#include "trace/chrome_members.h"
#include "trace/chrome_track.h"

/*
 * Make an event of what was parsed.
 *
 * m        its rejection is set when the members are no event; ev is undefined then.
 *          Its `repaired` and `extra` may change.
 * tracks   gives the event its track.
 * base_ns  added to ts.
 * ev       borrows from m, from the text that m was parsed from, and from tracks.
 *
 * TP_ENOMEM  ev is undefined.
 */
int tp_chrome_event_build(struct tp_chrome_members *m, struct tp_chrome_tracks *tracks,
                          int64_t base_ns, struct tp_event *ev, struct tp_err *err);

/*
 * A value as a fixed-point number: the wild writes numbers as such or as strings.
 *
 * shift  how many decimals become part of the integer, see tp_json_number_scaled().
 *
 * Returns whether it is one in the range of int64_t; else *out is untouched.
 */
bool tp_chrome_value_scaled(const struct tp_chrome_value *v, int shift, int64_t *out);

/* As above for what must be whole: false for a number with a fraction, too. */
bool tp_chrome_value_whole(const struct tp_chrome_value *v, int64_t *out);

#endif
