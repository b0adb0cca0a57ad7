/*
 * Reading control bodies when json-c itself gets no memory.
 *
 * json-c finds the malloc() of this program before that of libc, so that its
 * allocations can be made to fail. A sanitizer owns malloc(); then the test is skipped.
 * json-c 0.16 does not survive every failure: it copies the keys of members without
 * looking at the copy. So only bodies without members are read here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/json_in.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#endif

/* As in fault.h, for all that the process allocates on this thread. */
static _Thread_local int left;
static _Thread_local bool has_fired;

#ifndef IS_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool fails_now(void)
{
    if (left == 0 || --left != 0)
        return false;
    has_fired = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(p, size);
}
#endif

static void test_want_of_memory_is_never_called_a_mistake_of_the_client(void **state)
{
    static const char *const bodies[] = {"", " \n", "{}", "  { }"};

    (void)state;
#ifdef IS_SANITIZED
    print_message("skipped: a sanitizer's runtime has an allocator of its own\n");
    skip();
#endif
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        int n = 0;

        do {
            struct tp_json_in in = {0};

            has_fired = false;
            left = ++n;
            tp_json_in_parse(&in, tp_str_of(bodies[i]), 8);
            left = 0;
            if (in.code != TP_OK) {
                assert_int_equal(in.code, TP_ENOMEM);
                assert_int_equal(in.kind, TP_FAULT_OUT_OF_MEMORY);
            }
            tp_json_in_fini(&in);
        } while (has_fired);
        print_message("body '%s': %d allocations\n", bodies[i], n - 1);
        assert_true(n > 1);
    }
}

static void test_a_body_that_is_no_object_is_a_mistake(void **state)
{
    static const char *const bodies[] = {"null", "12", " [] ", "\"{\"", "true"};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct tp_json_in in = {0};

        print_message("body %s\n", bodies[i]);
        assert_int_equal(tp_json_in_parse(&in, tp_str_of(bodies[i]), 8), TP_EINVAL);
        assert_int_equal(in.kind, TP_FAULT_INVALID_JSON);
        tp_json_in_fini(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_want_of_memory_is_never_called_a_mistake_of_the_client),
        cmocka_unit_test(test_a_body_that_is_no_object_is_a_mistake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
