/*
 * pf_sequence.c - writer's iid --> struct tp_name, dense arrays by iid.
 *
 * Writers count their iids up from 1, so arrays are small and a look-up is a load. An
 * iid that leaves a large gap is not kept: an array for it would let a few bytes of
 * input claim much memory. All memory is charged to one budget.
 */
#include "trace/pf_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define GAP_MAX 1024          /* iids that may be missing before one */
#define COMMON_BYTES_EACH 128 /* of the budget, for each string of the common table */
#define KEEP_BYTES ((size_t)64 << 10)

static void free_sequence(struct tp_pf_sequence *q)
{
    for (int i = 0; i < TP_PF_INDEXES; i++)
        free(q->texts[i]);
    tp_arena_fini(&q->arena);
    free(q->clocks);
    free(q);
}

void tp_pf_sequences_fini(struct tp_pf_sequences *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; i < s->n_items; i++)
        free_sequence(s->items[i]);
    free(s->items);
    free(s->slots);
    tp_intern_fini(&s->texts);
    *s = (struct tp_pf_sequences){0};
}

static uint32_t slot_of(const struct tp_pf_sequences *s, uint32_t id)
{
    return (id * 0x9e3779b1u >> 7) & (s->n_slots - 1);
}

static struct tp_pf_sequence *find(const struct tp_pf_sequences *s, uint32_t id)
{
    if (s->n_slots == 0)
        return NULL;
    for (uint32_t i = slot_of(s, id); s->slots[i] != 0;
         i = (i + 1) & (s->n_slots - 1)) {
        if (s->items[s->slots[i] - 1]->id == id)
            return s->items[s->slots[i] - 1];
    }
    return NULL;
}

static void link_item(struct tp_pf_sequences *s, uint32_t number)
{
    uint32_t i = slot_of(s, s->items[number - 1]->id);

    while (s->slots[i] != 0)
        i = (i + 1) & (s->n_slots - 1);
    s->slots[i] = number;
}

static int grow(struct tp_pf_sequences *s, struct tp_err *err)
{
    uint32_t cap = s->cap_items == 0 ? 16 : s->cap_items * 2;
    struct tp_pf_sequence **items =
        realloc(s->items, cap * sizeof(struct tp_pf_sequence *));
    uint32_t *slots;

    if (items == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u sequences", cap);
    s->items = items;
    slots = calloc((size_t)cap * 4, sizeof(*slots));
    if (slots == NULL)
        return tp_fail(err, TP_ENOMEM, "no memory for %u sequences", cap);
    free(s->slots);
    s->slots = slots;
    s->n_slots = cap * 4;
    s->cap_items = cap;
    for (uint32_t number = 1; number <= s->n_items; number++)
        link_item(s, number);
    return TP_OK;
}

int tp_pf_sequences_get(struct tp_pf_sequences *s, uint32_t id,
                        struct tp_pf_sequence **out, struct tp_err *err)
{
    struct tp_pf_sequence *q = s->last;

    if (q != NULL && q->id == id) {
        *out = q;
        return TP_OK;
    }
    q = find(s, id);
    if (q == NULL) {
        int rc;

        if (s->n_items >= s->sequences_max)
            return tp_fail(err, TP_EQUOTA, "there are more than %u sequences",
                           s->sequences_max);
        rc = s->n_items == s->cap_items ? grow(s, err) : TP_OK;
        if (rc != TP_OK)
            return rc;
        q = calloc(1, sizeof(*q));
        if (q == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for sequence %u", id);
        q->id = id;
        s->items[s->n_items++] = q;
        link_item(s, s->n_items);
    }
    s->last = q;
    *out = q;
    return TP_OK;
}

void tp_pf_sequence_clear(struct tp_pf_sequences *s, struct tp_pf_sequence *q)
{
    memset(q->n_texts, 0, sizeof(q->n_texts));
    s->used_bytes -= q->arena_bytes;
    q->arena_bytes = 0;
    tp_arena_reset(&q->arena, KEEP_BYTES);
    q->has_default_track = false;
    q->default_clock = 0;
    q->is_ours = false;
    q->is_merged = false;
}

/* Charge n bytes to the budget. */
static int charge(struct tp_pf_sequences *s, size_t n, struct tp_err *err)
{
    if (n > s->bytes_max - s->used_bytes)
        return tp_fail(err, TP_EQUOTA,
                       "interned strings are over the limit of %zu bytes",
                       s->bytes_max);
    s->used_bytes += n;
    return TP_OK;
}

int tp_pf_sequences_name(struct tp_pf_sequences *s, struct tp_str text,
                         struct tp_name *out, struct tp_err *err)
{
    uint32_t iid;
    size_t before = s->texts.used_bytes;
    size_t left = s->bytes_max - s->used_bytes;
    int rc;

    /* Half of the budget stays for sequences, whose strings come and go. */
    s->texts.n_max = (uint32_t)(s->bytes_max / COMMON_BYTES_EACH);
    s->texts.bytes_max = s->bytes_max / 2 < before + left ? s->bytes_max / 2
                                                          : before + left;
    if (s->texts.bytes_max < before)
        s->texts.bytes_max = before;
    rc = tp_intern_add(&s->texts, text, &iid, err);
    if (rc != TP_OK)
        return rc;
    s->used_bytes += s->texts.used_bytes - before;
    if (iid != 0)
        text = tp_intern_text(&s->texts, iid);
    *out = (struct tp_name){text.ptr, (uint32_t)text.len, iid};
    return TP_OK;
}

/* Make texts[index] longer than iid - 1, with empty places in between. */
static int reserve(struct tp_pf_sequences *s, struct tp_pf_sequence *q,
                   enum tp_pf_index index, uint32_t iid, struct tp_err *err)
{
    uint32_t cap = q->cap_texts[index] == 0 ? 64 : q->cap_texts[index];
    struct tp_name *texts;
    int rc;

    while (cap < iid)
        cap *= 2;
    if (cap != q->cap_texts[index]) {
        size_t more = (cap - q->cap_texts[index]) * sizeof(*texts);

        rc = charge(s, more, err);
        if (rc != TP_OK)
            return rc;
        texts = realloc(q->texts[index], cap * sizeof(*texts));
        if (texts == NULL) {
            s->used_bytes -= more;
            return tp_fail(err, TP_ENOMEM, "no memory for %u interned strings", cap);
        }
        q->texts[index] = texts;
        q->cap_texts[index] = cap;
    }
    if (iid > q->n_texts[index]) {
        memset(q->texts[index] + q->n_texts[index], 0,
               (iid - q->n_texts[index]) * sizeof(*texts));
        q->n_texts[index] = iid;
    }
    return TP_OK;
}

int tp_pf_sequence_intern(struct tp_pf_sequences *s, struct tp_pf_sequence *q,
                          enum tp_pf_index index, uint64_t iid, struct tp_str text,
                          struct tp_err *err)
{
    struct tp_name name;
    int rc;

    if (iid == 0 || iid > (uint64_t)q->n_texts[index] + GAP_MAX)
        return TP_OK;
    rc = reserve(s, q, index, (uint32_t)iid, err);
    if (rc == TP_OK)
        rc = tp_pf_sequences_name(s, text, &name, err);
    if (rc != TP_OK)
        return rc;
    if (name.iid == 0) {
        rc = charge(s, text.len, err);
        if (rc != TP_OK)
            return rc;
        rc = tp_intern_copy(&q->arena, text, &text, err);
        if (rc != TP_OK) {
            s->used_bytes -= text.len;
            return rc;
        }
        q->arena_bytes += text.len;
        name.ptr = text.ptr;
    }
    q->texts[index][iid - 1] = name;
    return TP_OK;
}
