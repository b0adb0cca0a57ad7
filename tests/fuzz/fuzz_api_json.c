/*
 * Control bodies: any bytes give a request or a refusal.
 */
#include <stddef.h>
#include <stdint.h>

#include "api/json_in.h"
#include "api/sync_json.h"
#include "api/trace_request.h"
#include "core/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_limits limits = tp_limits_default();
    struct tp_str body = {(const char *)data, size};
    struct tp_trace_request_body trace = {0};
    struct tp_sync_body sync = {0};
    struct tp_json_in in = {0};

    if (tp_json_in_parse(&in, body, 16) == TP_OK)
        tp_trace_request_read(&in, &limits, &trace);
    tp_trace_request_fini(&trace);
    tp_json_in_fini(&in);

    in = (struct tp_json_in){0};
    if (tp_json_in_parse(&in, body, 16) == TP_OK)
        tp_sync_json_read(&in, &sync);
    tp_json_in_fini(&in);
    return 0;
}
