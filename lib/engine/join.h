/*
 * join.h - which producers are one process, and what they know of each other.
 *
 * A PyTorch process that links our library, too, is two producers: a Kineto one, which
 * the kernel vouches for, and a native one; one with two clients is two native ones.
 * They are one process when their keys (base/process_key.h) are equal; a Kineto and a
 * native one also when one of them has no key, host and pid are equal, and nobody else
 * has these. What cannot be told apart for sure is not joined, and said.
 *
 * For the files of this room only. The caller holds the control lock.
 */
#ifndef TP_ENGINE_JOIN_H
#define TP_ENGINE_JOIN_H

#include <stdint.h>

struct tp_producer;
struct tp_trace_view;

/*
 * Find the processes that are several producers among members and streams of a view:
 * fills in what identity views keep of it, and rank and world size where one knows them
 * and the other does not. Where they disagree, each keeps its own and gets a note.
 *
 * Without memory the pool of the view has failed.
 */
void tp_join_view(struct tp_trace_view *v);

/*
 * Have the rank of a producer known to others of its process, in its job, if it has
 * one. Once, when what it says of itself is set. Without memory they do not know it.
 */
void tp_join_tell_rank(struct tp_producer *p);

/* The opposite: before what it says of itself changes, and before it is released. One
 * that was not told is allowed. */
void tp_join_untell_rank(struct tp_producer *p);

/* The rank of a producer: its own, else that of who has the same key in its job; -1
 * when nobody knows it, or they disagree. */
int64_t tp_join_rank(const struct tp_producer *p);

#endif
