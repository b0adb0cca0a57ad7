/*
 * identity.h - who a producer is, with memory of its own.
 *
 * The same facts as struct tp_row_identity, owned. One thread at a time.
 */
#ifndef TP_ENGINE_IDENTITY_H
#define TP_ENGINE_IDENTITY_H

#include <stdint.h>

#include "engine/trace_views.h"
#include "store/rows.h"

struct tp_bulk;
struct tp_err;
struct tp_pool;

/* Embed it. Texts are never NULL after tp_identity_init(). */
struct tp_identity {
    const char *id, *name, *kind, *host, *backend, *device;
    int64_t rank;
    int64_t pid;
    uint32_t world_size;
    const char *process; /* base/process_key.h; "" = not known */
    char *block;         /* what the texts live in; NULL: they are not its own */
};

/* Copy from a row or request. TP_ENOMEM: nothing changed. */
int tp_identity_init(struct tp_identity *who, const struct tp_row_identity *from,
                     struct tp_err *err);

/* The same with texts in a piece of memory that lives as long, while it has room. */
int tp_identity_init_in(struct tp_bulk *b, struct tp_identity *who,
                        const struct tp_row_identity *from, struct tp_err *err);

/* Whether it is a program that is linked with the library. */
bool tp_identity_is_native(const struct tp_identity *who);

/* Whether rank, pid, host and name are the same. */
bool tp_identity_is_same(const struct tp_identity *known,
                         const struct tp_row_identity *who);

/* Be the same as another that lives as long and stays as it is. */
void tp_identity_borrow(struct tp_identity *who, const struct tp_identity *from);

/* Release the texts. All-zero is allowed. */
void tp_identity_fini(struct tp_identity *who);

/* The same as a row; borrows the texts. */
struct tp_row_identity tp_identity_row(const struct tp_identity *who);

/* The same as part of a view, in its pool. */
struct tp_identity_view tp_identity_view(const struct tp_identity *who,
                                         struct tp_pool *pool);

#endif
