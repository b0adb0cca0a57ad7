#include "base/names.h"

#include <stdbool.h>

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

unsigned tp_names_distance(struct tp_str a, struct tp_str b)
{
    /* Three rows of the usual table: the one before the last finds swapped letters. */
    unsigned rows[3][TP_NAMES_COMPARE_BYTES + 1];
    size_t a_len = a.len < TP_NAMES_COMPARE_BYTES ? a.len : TP_NAMES_COMPARE_BYTES;
    size_t b_len = b.len < TP_NAMES_COMPARE_BYTES ? b.len : TP_NAMES_COMPARE_BYTES;

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *last = rows[(i - 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned differs = lower(a.ptr[i - 1]) != lower(b.ptr[j - 1]);

            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 && lower(a.ptr[i - 1]) == lower(b.ptr[j - 2]) &&
                lower(a.ptr[i - 2]) == lower(b.ptr[j - 1]) &&
                rows[(i - 2) % 3][j - 2] + 1 < row[j])
                row[j] = rows[(i - 2) % 3][j - 2] + 1;
        }
    }
    return rows[a_len % 3][b_len];
}

void tp_names_init(struct tp_names_nearest *near, struct tp_str wanted)
{
    near->wanted = wanted;
    near->n = 0;
}

/* Whether name ends in "." and wanted, letters compared without case. */
static bool is_last_part(struct tp_str name, struct tp_str wanted)
{
    size_t start;

    if (wanted.len == 0 || name.len <= wanted.len)
        return false;
    start = name.len - wanted.len;
    if (name.ptr[start - 1] != '.')
        return false;
    for (size_t i = 0; i < wanted.len; i++) {
        if (lower(name.ptr[start + i]) != lower(wanted.ptr[i]))
            return false;
    }
    return true;
}

void tp_names_offer(struct tp_names_nearest *near, struct tp_str name)
{
    unsigned distance = 1; /* a forgotten plugin is as near as a slip of one letter */
    size_t at;

    if (!is_last_part(name, near->wanted)) {
        size_t longer = name.len > near->wanted.len ? name.len : near->wanted.len;
        size_t most = longer / 3 < 2 ? 2 : longer / 3;

        distance = tp_names_distance(near->wanted, name);
        if (distance > most)
            return;
    }
    at = near->n;
    while (at > 0 && near->found[at - 1].distance > distance)
        at--;
    if (at == TP_NAMES_NEAREST)
        return;
    if (near->n < TP_NAMES_NEAREST)
        near->n++;
    for (size_t i = near->n - 1; i > at; i--)
        near->found[i] = near->found[i - 1];
    near->found[at].name = name;
    near->found[at].distance = distance;
}
