/*
 * fuzz_kineto_config.c - any bytes are a configuration that fits its bounds, or none;
 * what is taken from it points into it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "kineto/config_read.h"
#include "kineto/config_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct tp_str s, struct tp_str text)
{
    if (s.len > 0 && (s.ptr < text.ptr || s.ptr + s.len > text.ptr + text.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tp_str text = {(const char *)data, size};
    struct tp_kineto_wish w;

    if (tp_kineto_config_read(text, &w, NULL) != TP_OK)
        return 0;
    check_inside(w.log_file, text);
    check_inside(w.types, text);
    if (w.duration_ms > TP_KINETO_NUMBER_MAX || w.iterations > TP_KINETO_NUMBER_MAX ||
        (w.iterations == 0 && w.iteration_roundup > 0))
        abort();
    return 0;
}
