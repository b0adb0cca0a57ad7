/*
 * engine_test.h - setup and teardown of the tests that live on an engine_rig.
 *
 * Header only; for test programs, which include cmocka first.
 */
#ifndef TP_SUPPORT_ENGINE_TEST_H
#define TP_SUPPORT_ENGINE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/blob_mem.h"
#include "support/engine_rig.h"
#include "support/store_faulty.h"

/* A rig whose engine runs. */
static inline int engine_setup(void **state)
{
    struct rig *r = malloc(sizeof(*r));

    assert_non_null(r);
    rig_init(r);
    assert_int_equal(rig_start(r), TP_OK);
    *state = r;
    return 0;
}

/* End it; every blob that was opened is closed again. */
static inline int engine_teardown(void **state)
{
    struct rig *r = *state;

    tp_engine_free(r->engine);
    r->engine = NULL;
    assert_int_equal(blob_mem_open(r->blobs), 0);
    rig_fini(r);
    free(r);
    return 0;
}

#define engine_test(name) \
    cmocka_unit_test_setup_teardown(name, engine_setup, engine_teardown)

#endif
