/*
 * clock_line.c - a broken line through measurements.
 *
 *     service |            .----   goes on with the mean slope
 *             |        ,--*
 *             |     *--           a piece: exact at its ends, and as
 *             |  .-`              good as they are between them,
 *             +----------------   for clocks that drift evenly
 *                 producer
 *
 * A producer measures again and again and sends the best of late with each batch, so
 * most points come many times. Of those within a second the one of the least error is
 * kept: between close points the slope would be that of the errors.
 *
 * A point is believed when the way from the one before is as long on both clocks, but
 * for the errors and for a drift of 1 in 1000: ten times what a bad crystal has. When
 * it is not, one of the two lies, and the one that lies is the one that came later.
 *
 * The alternative that lost: one straight line by least squares. It hides a clock that
 * changes its pace, as they do when a machine warms up under load.
 */
#include "trace/clock_line.h"

#include <stdlib.h>

#include "base/err.h"

#define SPACING_NS UINT64_C(1000000000)
#define DRIFT_DIVISOR 1000    /* a point is believed up to a drift of 1 in so many */
#define UNKNOWN_DIVISOR 10000 /* beyond a single point clocks part by 1 in so many */
#define FAR_NS (INT64_C(1) << 52) /* beyond it there is no talk of drift */

void tp_clock_line_fini(struct tp_clock_line *line)
{
    free(line->points);
    *line = (struct tp_clock_line){0};
}

int tp_clock_line_add(struct tp_clock_line *line, const struct tp_native_clock *clock,
                      struct tp_err *err)
{
    const struct tp_native_clock *last = line->n == 0 ? NULL
                                                      : &line->points[line->n - 1];

    if (last != NULL && last->producer_ns == clock->producer_ns &&
        last->server_ns == clock->server_ns)
        return TP_OK;
    if (line->n == line->cap) {
        size_t cap = line->cap == 0 ? 16 : 2 * line->cap;
        struct tp_native_clock *points = realloc(line->points, cap * sizeof(*points));

        if (points == NULL)
            return tp_fail(err, TP_ENOMEM, "no memory for readings of a clock");
        line->points = points;
        line->cap = cap;
    }
    line->points[line->n++] = *clock;
    return TP_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct tp_native_clock *x = a, *y = b;

    if (x->producer_ns != y->producer_ns)
        return x->producer_ns < y->producer_ns ? -1 : 1;
    return x->error_ns < y->error_ns ? -1 : x->error_ns > y->error_ns;
}

static uint64_t add_up_to_max(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* Whether b can follow a. */
static bool is_believed(const struct tp_native_clock *a,
                        const struct tp_native_clock *b)
{
    uint64_t here = b->producer_ns - a->producer_ns;
    uint64_t there = b->server_ns - a->server_ns;
    uint64_t apart = there > here ? there - here : here - there;

    return b->server_ns > a->server_ns && here > 0 &&
           apart <= add_up_to_max(here / DRIFT_DIVISOR,
                                  add_up_to_max(a->error_ns, b->error_ns));
}

/* Keep of points that are close the best one. */
static size_t thin_out(struct tp_native_clock *points, size_t n, uint64_t spacing_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (kept == 0 ||
            points[i].producer_ns - points[kept - 1].producer_ns >= spacing_ns)
            points[kept++] = points[i];
        else if (points[i].error_ns < points[kept - 1].error_ns &&
                 (kept == 1 ||
                  points[i].producer_ns - points[kept - 2].producer_ns >= spacing_ns))
            points[kept - 1] = points[i];
    }
    return kept;
}

void tp_clock_line_finish(struct tp_clock_line *line)
{
    struct tp_native_clock *p = line->points;
    uint64_t spacing_ns = SPACING_NS;
    size_t kept = 0;

    line->slope = 0;
    line->last = 0;
    if (line->n == 0)
        return;
    qsort(p, line->n, sizeof(*p), by_time);
    for (size_t i = 0; i < line->n; i++) {
        if (kept == 0 || is_believed(&p[kept - 1], &p[i]))
            p[kept++] = p[i];
        else if (p[i].producer_ns != p[kept - 1].producer_ns ||
                 p[i].server_ns != p[kept - 1].server_ns)
            line->n_left_out++;
    }
    do {
        kept = thin_out(p, kept, spacing_ns);
        spacing_ns *= 2;
    } while (kept > TP_CLOCK_POINTS_MAX);
    line->n = kept;
    if (kept > 1) {
        double here = (double)(p[kept - 1].producer_ns - p[0].producer_ns);
        double there = (double)(p[kept - 1].server_ns - p[0].server_ns);

        line->slope = (there - here) / here;
    }
}

/* The piece that begins at or before a moment: the number of its first point. */
static size_t find_piece(struct tp_clock_line *line, uint64_t at_ns)
{
    const struct tp_native_clock *p = line->points;
    size_t low = 0, high = line->n - 1;

    if (p[line->last].producer_ns <= at_ns &&
        (line->last == high || at_ns < p[line->last + 1].producer_ns))
        return line->last;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;

        if (p[middle].producer_ns <= at_ns)
            low = middle;
        else
            high = middle - 1;
    }
    line->last = low;
    return low;
}

/* The time of `at` at the end of a line of that slope from a point. */
static int64_t go_on(const struct tp_native_clock *from, double slope, int64_t at_ns)
{
    int64_t way, drift, sum;

    if (__builtin_sub_overflow(at_ns, (int64_t)from->producer_ns, &way))
        return INT64_MIN; /* the point is not before 0 */
    drift = way > -FAR_NS && way < FAR_NS ? (int64_t)((double)way * slope) : 0;
    if (__builtin_add_overflow(way + drift, (int64_t)from->server_ns, &sum))
        return INT64_MAX;
    return sum;
}

int64_t tp_clock_line_map(struct tp_clock_line *line, int64_t producer_ns)
{
    const struct tp_native_clock *p = line->points;
    size_t i;
    int64_t there;

    if (producer_ns < (int64_t)p[0].producer_ns)
        return go_on(&p[0], line->slope, producer_ns);
    i = find_piece(line, (uint64_t)producer_ns);
    if (i == line->n - 1)
        return go_on(&p[i], line->slope, producer_ns);
    there = go_on(&p[i],
                  ((double)(p[i + 1].server_ns - p[i].server_ns) -
                   (double)(p[i + 1].producer_ns - p[i].producer_ns)) /
                      (double)(p[i + 1].producer_ns - p[i].producer_ns),
                  producer_ns);
    /* Rounding must not carry it beyond the next piece. */
    return there < (int64_t)p[i + 1].server_ns ? there : (int64_t)p[i + 1].server_ns;
}

/* What a way beyond the end of the line adds to the error there. */
static uint64_t error_beyond(const struct tp_clock_line *line, uint64_t way_ns)
{
    const struct tp_native_clock *p = line->points;
    uint64_t span, errors;
    double grown;

    if (line->n < 2)
        return way_ns / UNKNOWN_DIVISOR;
    span = p[line->n - 1].producer_ns - p[0].producer_ns;
    errors = add_up_to_max(p[0].error_ns, p[line->n - 1].error_ns);
    grown = (double)way_ns * (double)errors / (double)span;
    return grown >= 1e18 ? UINT64_MAX : (uint64_t)grown;
}

uint64_t tp_clock_line_error(const struct tp_clock_line *line, int64_t from_ns,
                             int64_t to_ns)
{
    const struct tp_native_clock *p = line->points;
    const struct tp_native_clock *end = &p[line->n - 1];
    uint64_t most = 0, there;

    for (size_t i = 0; i < line->n; i++)
        most = p[i].error_ns > most ? p[i].error_ns : most;
    there = add_up_to_max(
        p[0].error_ns,
        from_ns >= (int64_t)p[0].producer_ns
            ? 0
            : error_beyond(line,
                           p[0].producer_ns - (uint64_t)(from_ns < 0 ? 0 : from_ns)));
    most = there > most ? there : most;
    there = add_up_to_max(end->error_ns,
                          to_ns <= (int64_t)end->producer_ns
                              ? 0
                              : error_beyond(line, (uint64_t)to_ns - end->producer_ns));
    return there > most ? there : most;
}
