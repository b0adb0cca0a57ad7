/*
 * The public headers say what the library exports, and what they repeat of err.h is
 * what err.h says. Read as text, from the root of the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static struct tp_buf map, traceplane, record, err;

static void load(const char *path, struct tp_buf *out)
{
    FILE *f = fopen(path, "r");
    char piece[4096];
    size_t n;

    if (f == NULL)
        fail_msg("%s is not there", path);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        assert_int_equal(tp_buf_append(out, piece, n, NULL), TP_OK);
    fclose(f);
    assert_int_equal(tp_buf_append(out, "", 1, NULL), TP_OK);
}

static int set_up(void **state)
{
    (void)state;
    load("mk/libtraceplane.map", &map);
    load("lib/producer/traceplane.h", &traceplane);
    load("lib/producer/record.h", &record);
    load("lib/base/err.h", &err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tp_buf_fini(&map);
    tp_buf_fini(&traceplane);
    tp_buf_fini(&record);
    tp_buf_fini(&err);
    return 0;
}

/* Whether a header declares it outside of comments: "... name(" or "... name;". */
static bool is_declared(const char *header, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = header; line != NULL; line = strchr(line, '\n')) {
        const char *at;

        line += *line == '\n';
        at = strstr(line, name);
        if (strncmp(line, " *", 2) == 0 || strncmp(line, "/*", 2) == 0 ||
            strncmp(line, "static", 6) == 0 || at == NULL ||
            at > line + strcspn(line, "\n"))
            continue;
        if ((at[-1] == ' ' || at[-1] == '*') && (at[n] == '(' || at[n] == ';'))
            return true;
    }
    return false;
}

static void test_all_that_is_exported_is_declared(void **state)
{
    char *copy = strdup(map.data);
    char *rest = NULL;
    int n = 0;

    (void)state;
    assert_non_null(copy);
    for (char *word = strtok_r(copy, " ;\n", &rest); word != NULL;
         word = strtok_r(NULL, " ;\n", &rest)) {
        if (strncmp(word, "tp_", 3) != 0)
            continue;
        if (!is_declared(traceplane.data, word) && !is_declared(record.data, word))
            fail_msg("%s is exported and not declared", word);
        n++;
    }
    assert_true(n > 15);
    free(copy);
}

/* All functions of a header: "tp_x(" at the beginning of a declaration. */
static void expect_exported(const char *header)
{
    for (const char *line = header; line != NULL; line = strchr(line, '\n')) {
        const char *at;
        char name[64];
        char wanted[80];

        line += *line == '\n';
        at = strstr(line, "tp_");
        if (strncmp(line, " *", 2) == 0 || strncmp(line, "/*", 2) == 0 ||
            strncmp(line, "static", 6) == 0 || line[0] == ' ' || line[0] == '#' ||
            at == NULL || at > line + strcspn(line, "\n("))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " ;({*"), at);
        if (at[strlen(name)] != '(')
            continue;
        snprintf(wanted, sizeof(wanted), " %s;", name);
        if (strstr(map.data, wanted) == NULL)
            fail_msg("%s is declared and not exported", name);
    }
}

static void test_all_that_is_declared_is_exported(void **state)
{
    (void)state;
    expect_exported(traceplane.data);
    expect_exported(record.data);
}

/* The text from one mark to the next, without comments and white space. */
static void strip(const char *text, const char *from, const char *to,
                  struct tp_buf *out)
{
    const char *p = strstr(text, from);
    const char *end = p == NULL ? NULL : strstr(p, to);

    if (end == NULL)
        fail_msg("there is no %s", from);
    while (p < end) {
        const char *comment = strstr(p, "/*");

        if (comment == p) {
            p = strstr(p, "*/") + 2;
            continue;
        }
        if (*p != ' ' && *p != '\n')
            assert_int_equal(tp_buf_append(out, p, 1, NULL), TP_OK);
        p++;
    }
    assert_int_equal(tp_buf_append(out, "", 1, NULL), TP_OK);
}

static void test_errors_are_those_of_the_service(void **state)
{
    struct tp_buf ours = {0};
    struct tp_buf theirs = {0};

    (void)state;
    strip(traceplane.data, "enum tp_code {", "#endif", &theirs);
    strip(err.data, "enum tp_code {", "#endif", &ours);
    assert_string_equal(theirs.data, ours.data);
    tp_buf_fini(&ours);
    tp_buf_fini(&theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_is_exported_is_declared),
        cmocka_unit_test(test_all_that_is_declared_is_exported),
        cmocka_unit_test(test_errors_are_those_of_the_service),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
