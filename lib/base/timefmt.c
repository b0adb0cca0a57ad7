/*
 * timefmt.c - dates by arithmetic on days counted from 0000-03-01, so that the leap day
 * is the last of its year and the months have one formula: Howard Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms", days_from_civil and civil_from_days
 * (https://howardhinnant.github.io/date_algorithms.html). No libc call is involved:
 * timegm and gmtime consult the environment and lock.
 */
#include "base/timefmt.h"

#include <stdbool.h>

#include "base/err.h"

#define NS_PER_S INT64_C(1000000000)
#define S_PER_DAY INT64_C(86400)
#define DAYS_PER_ERA 146097 /* 400 years */
#define EPOCH_DAYS 719468   /* from 0000-03-01 to 1970-01-01 */

struct civil {
    int year; /* 0 to 9999 */
    int month;
    int day;
};

static int64_t days_from_civil(struct civil c)
{
    int64_t year = c.month <= 2 ? c.year - 1 : c.year;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t month = (c.month + 9) % 12; /* March is 0 */
    int64_t day_of_year = (153 * month + 2) / 5 + c.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
                         day_of_year;

    return era * DAYS_PER_ERA + day_of_era - EPOCH_DAYS;
}

static struct civil civil_from_days(int64_t days)
{
    int64_t z = days + EPOCH_DAYS; /* positive in the range of int64_t nanoseconds */
    int64_t era = z / DAYS_PER_ERA;
    int64_t day_of_era = z - era * DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) /
        365;
    int64_t day_of_year = day_of_era -
                          (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* March is 0 */
    struct civil c;

    c.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    c.month = (int)(month < 10 ? month + 3 : month - 9);
    c.year = (int)(year_of_era + era * 400 + (c.month <= 2));
    return c;
}

/* Write value with exactly n digits and return the place after them. */
static char *put_digits(char *out, int64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + n;
}

char *tp_timefmt_write(int64_t wall_ns, char *out)
{
    int64_t s = wall_ns / NS_PER_S;
    int64_t ns = wall_ns % NS_PER_S;
    int64_t days;
    struct civil c;
    char *p = out;

    if (ns < 0) { /* C rounds to zero; times before 1970 round down */
        ns += NS_PER_S;
        s--;
    }
    days = s / S_PER_DAY - (s % S_PER_DAY < 0);
    s -= days * S_PER_DAY;
    c = civil_from_days(days);
    p = put_digits(p, c.year, 4);
    *p++ = '-';
    p = put_digits(p, c.month, 2);
    *p++ = '-';
    p = put_digits(p, c.day, 2);
    *p++ = 'T';
    p = put_digits(p, s / 3600, 2);
    *p++ = ':';
    p = put_digits(p, s / 60 % 60, 2);
    *p++ = ':';
    p = put_digits(p, s % 60, 2);
    *p++ = '.';
    p = put_digits(p, ns, 9);
    *p++ = 'Z';
    *p = '\0';
    return out;
}

/* Where a parse stands; `at` stops at the first byte that does not fit. */
struct cursor {
    const char *p;
    size_t n;
    size_t at;
};

/* Take exactly n_digits digits whose value is within [min, max]. */
static bool take_number(struct cursor *c, size_t n_digits, int min, int max, int *out)
{
    size_t start = c->at;
    int value = 0;

    for (size_t i = 0; i < n_digits; i++) {
        if (c->at == c->n || c->p[c->at] < '0' || c->p[c->at] > '9')
            return false;
        value = value * 10 + (c->p[c->at++] - '0');
    }
    if (value < min || value > max) {
        c->at = start;
        return false;
    }
    *out = value;
    return true;
}

/* Take one byte of the two given. */
static bool take_either(struct cursor *c, char a, char b)
{
    if (c->at == c->n || (c->p[c->at] != a && c->p[c->at] != b))
        return false;
    c->at++;
    return true;
}

static int days_in_month(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && is_leap);
}

static bool take_date(struct cursor *c, struct civil *out)
{
    return take_number(c, 4, 0, 9999, &out->year) && take_either(c, '-', '-') &&
           take_number(c, 2, 1, 12, &out->month) && take_either(c, '-', '-') &&
           take_number(c, 2, 1, days_in_month(out->year, out->month), &out->day);
}

static bool take_time(struct cursor *c, int64_t *s, int64_t *ns)
{
    int hour;
    int minute;
    int second;
    int64_t digit_ns = NS_PER_S / 10;
    int digit;

    if (!take_number(c, 2, 0, 23, &hour) || !take_either(c, ':', ':') ||
        !take_number(c, 2, 0, 59, &minute) || !take_either(c, ':', ':') ||
        !take_number(c, 2, 0, 60, &second))
        return false;
    *s = hour * 3600 + minute * 60 + second;
    *ns = 0;
    if (!take_either(c, '.', '.'))
        return true;
    if (!take_number(c, 1, 0, 9, &digit))
        return false;
    do {
        *ns += digit * digit_ns;
        digit_ns /= 10;
    } while (digit_ns > 0 && take_number(c, 1, 0, 9, &digit));
    return true;
}

/* The offset from UTC, which is subtracted, in seconds. */
static bool take_offset(struct cursor *c, int64_t *offset_s)
{
    int hour;
    int minute;
    int sign = -1;

    *offset_s = 0;
    if (take_either(c, 'Z', 'z'))
        return true;
    if (take_either(c, '+', '+'))
        sign = 1;
    else if (!take_either(c, '-', '-'))
        return false;
    if (!take_number(c, 2, 0, 23, &hour) || !take_either(c, ':', ':') ||
        !take_number(c, 2, 0, 59, &minute))
        return false;
    *offset_s = sign * (hour * 3600 + minute * 60);
    return true;
}

int tp_timefmt_parse(const char *p, size_t n, int64_t *out, struct tp_err *err)
{
    struct cursor c = {p, n, 0};
    struct civil date;
    int64_t s;
    int64_t ns;
    int64_t offset_s;
    bool is_leap;

    if (!take_date(&c, &date) || !take_either(&c, 'T', 't') ||
        !take_time(&c, &s, &ns) || !take_offset(&c, &offset_s) || c.at != n)
        return tp_fail(
            err, TP_EINVAL,
            "not an RFC 3339 time such as 2026-08-20T12:34:56.789Z, at byte %zu", c.at);
    is_leap = p[17] == '6';
    s += days_from_civil(date) * S_PER_DAY - offset_s;
    /* The second after 23:59:60 UTC is midnight, so that is what 60 has to give. */
    if (is_leap && s % S_PER_DAY != 0)
        return tp_fail(err, TP_EINVAL, "second 60 is no leap second there, at byte 17");
    /* For s at its smallest, -9223372037, only the sum fits. */
    if (s < 0 && ns > 0) {
        s++;
        ns -= NS_PER_S;
    }
    if (__builtin_mul_overflow(s, NS_PER_S, &s) || __builtin_add_overflow(s, ns, &s))
        return tp_fail(err, TP_EINVAL, "time is outside of 1677-09-21 to 2262-04-11");
    *out = s;
    return TP_OK;
}
