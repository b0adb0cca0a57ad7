#include "base/bigmem.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)
#define BIG_BYTES (HUGE_BYTES / 2) /* below it, a huge page is mostly waste */

static size_t round_up(size_t n)
{
    return (n + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
}

/* A huge page has to begin at a multiple of its size: take one more and give back what
 * is too much. */
static void *map(size_t n)
{
    const size_t size = round_up(n);
    char *all, *p;
    size_t before;

    all = mmap(NULL, size + HUGE_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    before = (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    p = all + before;
    if (before > 0)
        munmap(all, before);
    munmap(p + size, HUGE_BYTES - before);
    madvise(p, size, MADV_HUGEPAGE); /* without it, it is only slower */
    return p;
}

void *tp_bigmem_new(size_t n)
{
    if (n < BIG_BYTES)
        return calloc(1, n);
    return n > SIZE_MAX / 2 ? NULL : map(n);
}

void tp_bigmem_free(void *p, size_t n)
{
    if (p == NULL || n < BIG_BYTES)
        free(p);
    else
        munmap(p, round_up(n));
}
