#include "support/store_faulty.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "store/store.h"

struct faulty {
    struct tp_store base;
    struct tp_store *below;
    int left;   /* operations that still pass; -1 = not armed */
    bool stays; /* fails from then on */
    bool was_hit;
};

static struct faulty *of(struct tp_store *s)
{
    return (struct faulty *)s;
}

/* Whether this operation is to fail. */
static int strike(struct faulty *f, struct tp_err *err)
{
    if (f->left < 0)
        return TP_OK;
    if (f->left > 0) {
        f->left--;
        return TP_OK;
    }
    if (!f->stays)
        f->left = -1;
    f->was_hit = true;
    return tp_fail(err, TP_EIO, "the store was told to fail");
}

#define PASS(name, ...)       \
    struct faulty *f = of(s); \
    int rc = strike(f, err);  \
                              \
    return rc != TP_OK ? rc : f->below->ops->name(f->below, ##__VA_ARGS__, err)

static int begin(struct tp_store *s, struct tp_err *err)
{
    PASS(begin);
}

static int commit(struct tp_store *s, struct tp_err *err)
{
    PASS(commit);
}

static void rollback(struct tp_store *s)
{
    of(s)->below->ops->rollback(of(s)->below);
}

#define ROW(kind)                                                                \
    static int put_##kind(struct tp_store *s, const struct tp_row_##kind *row,   \
                          struct tp_err *err)                                    \
    {                                                                            \
        PASS(put_##kind, row);                                                   \
    }                                                                            \
                                                                                 \
    static int each_##kind(struct tp_store *s, tp_row_##kind##_fn fn, void *arg, \
                           struct tp_err *err)                                   \
    {                                                                            \
        PASS(each_##kind, fn, arg);                                              \
    }

ROW(job)
ROW(type)
ROW(producer)
ROW(trace)
ROW(move)
ROW(member)
ROW(stream)
ROW(key)

static int remove_producer(struct tp_store *s, struct tp_str id, struct tp_err *err)
{
    PASS(remove_producer, id);
}

static int remove_trace(struct tp_store *s, struct tp_str id, struct tp_err *err)
{
    PASS(remove_trace, id);
}

static int remove_stream(struct tp_store *s, struct tp_str trace, uint32_t no,
                         struct tp_err *err)
{
    PASS(remove_stream, trace, no);
}

static int remove_keys(struct tp_store *s, uint64_t before_ns, struct tp_err *err)
{
    PASS(remove_keys, before_ns);
}

static int put_member_list(struct tp_store *s, struct tp_str trace, size_t n,
                           tp_nth_row_member_fn nth, void *arg, struct tp_err *err)
{
    PASS(put_member_list, trace, n, nth, arg);
}

static int drop_member_list(struct tp_store *s, struct tp_str trace, struct tp_err *err)
{
    PASS(drop_member_list, trace);
}

static int check(struct tp_store *s, struct tp_err *err)
{
    PASS(check);
}

static void close_store(struct tp_store *s)
{
    tp_store_close(of(s)->below);
    free(s);
}

static const struct tp_store_ops operations = {
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .put_job = put_job,
    .put_type = put_type,
    .put_producer = put_producer,
    .put_trace = put_trace,
    .put_move = put_move,
    .put_member = put_member,
    .put_member_list = put_member_list,
    .drop_member_list = drop_member_list,
    .put_stream = put_stream,
    .put_key = put_key,
    .remove_producer = remove_producer,
    .remove_trace = remove_trace,
    .remove_stream = remove_stream,
    .remove_keys = remove_keys,
    .each_job = each_job,
    .each_type = each_type,
    .each_producer = each_producer,
    .each_trace = each_trace,
    .each_move = each_move,
    .each_member = each_member,
    .each_stream = each_stream,
    .each_key = each_key,
    .check = check,
    .close = close_store,
};

struct tp_store *store_faulty_new(struct tp_store *below)
{
    struct faulty *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        fprintf(stderr, "no memory for a store\n");
        exit(1);
    }
    f->base.ops = &operations;
    f->below = below;
    f->left = -1;
    return &f->base;
}

static void arm(struct tp_store *s, int n, bool stays)
{
    of(s)->left = n;
    of(s)->stays = stays;
    of(s)->was_hit = false;
}

void store_faulty_fail_after(struct tp_store *s, int n)
{
    arm(s, n, false);
}

void store_faulty_break_after(struct tp_store *s, int n)
{
    arm(s, n, true);
}

bool store_faulty_disarm(struct tp_store *s)
{
    bool was_hit = of(s)->was_hit;

    arm(s, -1, false);
    return was_hit;
}
