/*
 * chrome_names.c - three bounded tables of strings.
 *
 * A reader lives as long as one body, which often is a batch of a thousand events: the
 * tables must pay for themselves within that, so they start empty and stay small.
 */
#include "trace/chrome_names.h"

#include "base/err.h"

#define STRINGS_MAX 4096
#define STRINGS_BYTES ((size_t)512 << 10)
#define LONGEST_BYTES \
    256 /* longer ones hardly repeat, and the writer has them inline */

void tp_chrome_names_init(struct tp_chrome_names *n)
{
    struct tp_intern *tables[] = {&n->names, &n->cats, &n->keys};

    for (int i = 0; i < 3; i++) {
        tables[i]->n_max = STRINGS_MAX;
        tables[i]->bytes_max = STRINGS_BYTES;
    }
}

void tp_chrome_names_fini(struct tp_chrome_names *n)
{
    if (n == NULL)
        return;
    tp_intern_fini(&n->names);
    tp_intern_fini(&n->cats);
    tp_intern_fini(&n->keys);
}

void tp_chrome_names_reset(struct tp_chrome_names *n)
{
    tp_intern_reset(&n->names);
    tp_intern_reset(&n->cats);
    tp_intern_reset(&n->keys);
    n->last_cat = 0;
    memset(n->shapes, 0, sizeof(n->shapes));
}

static int number(struct tp_intern *table, struct tp_name *name, struct tp_err *err)
{
    if (name->ptr == NULL || name->len > LONGEST_BYTES)
        return TP_OK;
    return tp_intern_add(table, (struct tp_str){name->ptr, name->len}, &name->iid, err);
}

int tp_chrome_names_name(struct tp_chrome_names *n, struct tp_name *name,
                         struct tp_err *err)
{
    return number(&n->names, name, err);
}

int tp_chrome_names_cat(struct tp_chrome_names *n, struct tp_name *cat,
                        struct tp_err *err)
{
    int rc;

    if (tp_intern_is(&n->cats, n->last_cat, (struct tp_str){cat->ptr, cat->len})) {
        cat->iid = n->last_cat;
        return TP_OK;
    }
    rc = number(&n->cats, cat, err);
    if (rc == TP_OK)
        n->last_cat = cat->iid;
    return rc;
}

int tp_chrome_names_key(struct tp_chrome_names *n, struct tp_chrome_shape *shape,
                        uint32_t position, bool is_written, struct tp_name *key,
                        struct tp_err *err)
{
    struct tp_chrome_token *t = &shape->keys[position % TP_CHROME_SHAPE_ARGS];
    int rc = number(&n->keys, key, err);

    if (rc != TP_OK || !is_written || key->iid == 0 ||
        key->len + 3 > TP_CHROME_TOKEN_BYTES)
        return rc;
    t->bytes = key->len + 3;
    t->iid = key->iid;
    memcpy(t->text, key->ptr - 1, t->bytes);
    return TP_OK;
}

void tp_chrome_names_array(struct tp_chrome_shape *shape, uint32_t position,
                           struct tp_str text)
{
    struct tp_chrome_token *t = &shape->arrays[position % TP_CHROME_SHAPE_ARGS];

    if (text.len > TP_CHROME_TOKEN_BYTES)
        return;
    t->bytes = (uint32_t)text.len;
    memcpy(t->text, text.ptr, text.len);
}
