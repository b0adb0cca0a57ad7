/*
 * fuzz_kineto_datagram.c - any bytes are a datagram that fits what was said of it, or
 * none. fuzz_kineto has the table behind it; this one is for the numbers.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kineto/datagram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_kineto_datagram d = {.job = 4711};
    struct tp_err err = {0};
    int rc = tp_kineto_datagram_read(data, size, &d, &err);

    if (rc == TP_OK) {
        size_t payload = d.message == TP_KINETO_CONTEXT ? 16 : 16 + 4 * d.n_pids;

        if (size != TP_KINETO_HEADER_BYTES + payload || d.n_pids > TP_KINETO_PIDS_MAX)
            abort();
    } else if (rc != TP_EINVAL || d.job != 4711 ||
               memcmp(err.message, "byte ", 5) != 0) {
        abort();
    }
    return 0;
}
