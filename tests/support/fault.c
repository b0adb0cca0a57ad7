/*
 * The linker sends each call of malloc() to __wrap_malloc() and so on. When nothing is
 * armed, a call costs one thread-local load and one branch before the real function;
 * a malloc() or realloc() one more.
 */
#include "support/fault.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

/* How many allocations pass before one fails, plus one; 0 means that none fails. */
static _Thread_local int left;

static _Thread_local bool has_fired;

void fault_arm(int n)
{
    assert(n >= 0);
    has_fired = false;
    left = n + 1;
}

bool fault_disarm(void)
{
    bool fired = has_fired;

    has_fired = false;
    left = 0;
    return fired;
}

static bool fails_now(void)
{
    if (left == 0 || --left != 0)
        return false;
    has_fired = true;
    errno = ENOMEM;
    return true;
}

/* What fault_call_at() asked for; `at` is set last, and 0 when there is nothing. */
static struct {
    _Atomic size_t at;
    void (*fn)(void *arg);
    void *arg;
} call;

void fault_call_at(size_t bytes, void (*fn)(void *arg), void *arg)
{
    assert(bytes > 0);
    call.fn = fn;
    call.arg = arg;
    atomic_store(&call.at, bytes);
}

static void call_if_due(size_t size)
{
    size_t at = atomic_load(&call.at);

    if (at != 0 && size >= at && atomic_compare_exchange_strong(&call.at, &at, 0))
        call.fn(call.arg);
}

void *__wrap_malloc(size_t size)
{
    call_if_due(size);
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    call_if_due(size);
    return fails_now() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
    return fails_now() ? NULL : __real_strdup(s);
}
