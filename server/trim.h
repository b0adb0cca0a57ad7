/*
 * trim.h - gives memory back to the system when the work that needed it is over.
 *
 * The C library keeps what was freed. After a rush of uploads that may be hundreds of
 * megabytes, of which it gives nothing back by itself. While work goes on it shall keep
 * them: touching a fresh page costs more than filling it. One thread calls this.
 */
#ifndef TP_SERVER_TRIM_H
#define TP_SERVER_TRIM_H

#include <stdbool.h>
#include <stdint.h>

struct tp_engine;

/* Plain data; all-zero at the start. */
struct tp_trim {
    uint64_t seen;     /* a sum that grows with each piece of work */
    uint64_t since_ns; /* monotonic: when it last grew, or something was open */
    bool is_due;       /* work was done since the last time */
};

/* Look at what the engine has done, and give memory back once it has done nothing for
 * a second. now_ns is monotonic. True when memory was given back. */
bool tp_trim_look(struct tp_trim *t, struct tp_engine *engine, uint64_t now_ns);

#endif
