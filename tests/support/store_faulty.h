/*
 * store_faulty.h - a store that fails on demand, around another one.
 *
 * It passes every operation on, and fails the chosen one with TP_EIO before it reaches
 * the store below; reads and writes count alike, in the order of their calls. One
 * thread at a time, as any store.
 */
#ifndef TP_SUPPORT_STORE_FAULTY_H
#define TP_SUPPORT_STORE_FAULTY_H

#include <stdbool.h>

struct tp_store;

/* Wrap a store, which is closed with the wrapper. Ends the program without memory. */
struct tp_store *store_faulty_new(struct tp_store *below);

/* Let n operations pass and fail the next one; those after it pass again. */
void store_faulty_fail_after(struct tp_store *s, int n);

/* As above, but from then on every operation fails until store_faulty_disarm(): what is
 * in the store stays as it is, as after a kill. */
void store_faulty_break_after(struct tp_store *s, int n);

/* Stop failing. Returns whether a failure was delivered since it was armed. */
bool store_faulty_disarm(struct tp_store *s);

#endif
