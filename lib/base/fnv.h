/*
 * fnv.h - FNV-1a, 64 bits: the same in every process, and no defence against anybody.
 *
 * For tables whose keys others choose there is strmap.h. Pure.
 */
#ifndef TP_BASE_FNV_H
#define TP_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

/* Offset basis and prime are those of draft-eastlake-fnv. */
#define TP_FNV_START UINT64_C(0xcbf29ce484222325)
#define TP_FNV_PRIME UINT64_C(0x100000001b3)

/* The hash of n bytes. start  TP_FNV_START, or any other for another hash. */
static inline uint64_t tp_fnv(const char *p, size_t n, uint64_t start)
{
    uint64_t h = start;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * TP_FNV_PRIME;
    return h;
}

#endif
