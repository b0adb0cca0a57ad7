/*
 * bigmem.h - zeroed memory in large pieces, that the kernel is asked to back with huge
 * pages.
 *
 * Thousands of small pages are thousands of page faults, which on a virtual machine
 * cost more than what is done with the memory. Small pieces come from calloc(). Not for
 * what grows. Any thread.
 */
#ifndef TP_BASE_BIGMEM_H
#define TP_BASE_BIGMEM_H

#include <stddef.h>

/* n zeroed bytes, n > 0, aligned for any object; NULL without memory. */
void *tp_bigmem_new(size_t n);

/* Release n bytes that tp_bigmem_new() gave for the same n. NULL is allowed. */
void tp_bigmem_free(void *p, size_t n);

#endif
