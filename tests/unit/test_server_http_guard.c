/*
 * What the guard refuses: requests that two readers could understand differently, and
 * what a browser sends on behalf of a page that is not ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/service.h"
#include "api/status.h"
#include "server/config.h"
#include "server/http_guard.h"

struct one {
    const char *what;
    const char *host, *origin, *length, *coding, *expect; /* NULL: it did not come */
    const char *target;                                   /* NULL: "/" */
    unsigned char n_host, n_length, n_coding; /* how often it came, beyond once */
    bool is_http_1_0, is_unix, has_odd_name, has_odd_value;
    enum tp_fault fault;
};

static void put(struct tp_call *call, struct tp_http_seen *seen, int header,
                const char *value, unsigned more)
{
    if (value == NULL)
        return;
    call->headers[header] = (struct tp_str){value, strlen(value)};
    seen->count[header] = (unsigned char)(1 + more);
}

static void check(const struct tp_config *config, const struct one *o)
{
    struct tp_service service = {0};
    struct tp_http_seen seen = {.is_http_1_1 = !o->is_http_1_0,
                                .is_unix = o->is_unix,
                                .has_odd_name = o->has_odd_name,
                                .has_odd_value = o->has_odd_value};
    struct tp_call call = {0};
    bool is_fine;

    tp_call_init(&call, &service);
    call.target = tp_str_of(o->target == NULL ? "/" : o->target);
    put(&call, &seen, TP_HEADER_EXPECT, o->expect, 0);
    put(&call, &seen, TP_HEADER_HOST, o->host, o->n_host);
    put(&call, &seen, TP_HEADER_ORIGIN, o->origin, 0);
    put(&call, &seen, TP_HEADER_CONTENT_LENGTH, o->length, o->n_length);
    put(&call, &seen, TP_HEADER_TRANSFER_ENCODING, o->coding, o->n_coding);
    is_fine = tp_http_guard(config, &seen, &call);
    if (is_fine != (o->fault == TP_FAULT_NONE) || call.fault != o->fault ||
        call.is_refused == is_fine || call.must_close == is_fine)
        fail_msg("%s: fault %d, not %d; refused %d, closes %d", o->what, call.fault,
                 o->fault, call.is_refused, call.must_close);
    tp_call_fini(&call);
}

static void test_an_address_with_a_blank_is_refused_and_closes(void **state)
{
    static const struct one cases[] = {
        {.what = "a space in the address",
         .host = "localhost",
         .target = "/types HTTP/1.1",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "a tab in the address",
         .host = "localhost",
         .target = "/types\tx",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "a byte 0x7f in the address",
         .host = "localhost",
         .target = "/\x7f",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "UTF-8 in the address", .host = "localhost", .target = "/\xc3\xa4"},
    };
    const struct tp_config config = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&config, &cases[i]);
}

static void test_ambiguous_framing_is_refused_and_closes(void **state)
{
    static const struct one cases[] = {
        {.what = "plain", .host = "localhost"},
        {.what = "a length", .host = "localhost", .length = "12"},
        {.what = "chunked", .host = "localhost", .coding = "Chunked"},
        {.what = "HTTP/1.0 without Host", .is_http_1_0 = true},
        {.what = "no Host", .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "two Hosts",
         .host = "localhost",
         .n_host = 1,
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "two lengths",
         .host = "localhost",
         .length = "3",
         .n_length = 1,
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "two codings",
         .host = "localhost",
         .coding = "chunked",
         .n_coding = 1,
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "length and coding",
         .host = "localhost",
         .length = "3",
         .coding = "chunked",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "another coding",
         .host = "localhost",
         .coding = "gzip, chunked",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "coding in HTTP/1.0",
         .host = "localhost",
         .coding = "chunked",
         .is_http_1_0 = true,
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "signed length",
         .host = "localhost",
         .length = "+3",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "list of lengths",
         .host = "localhost",
         .length = "3, 3",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "empty length",
         .host = "localhost",
         .length = "",
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "100-continue", .host = "localhost", .expect = "100-Continue"},
        {.what = "expecting in HTTP/1.0",
         .host = "localhost",
         .expect = "foo",
         .is_http_1_0 = true},
        {.what = "another expectation",
         .host = "localhost",
         .expect = "foo",
         .fault = TP_FAULT_EXPECTATION_FAILED},
        {.what = "odd name",
         .host = "localhost",
         .has_odd_name = true,
         .fault = TP_FAULT_INVALID_REQUEST},
        {.what = "odd value",
         .host = "localhost",
         .has_odd_value = true,
         .fault = TP_FAULT_INVALID_REQUEST},
    };
    const struct tp_config config = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&config, &cases[i]);
}

static void test_only_our_own_names_are_answered(void **state)
{
    static const struct one cases[] = {
        {.what = "localhost", .host = "localhost:8750"},
        {.what = "capitals", .host = "LocalHost"},
        {.what = "127.0.0.1", .host = "127.0.0.1:1"},
        {.what = "127.9.9.9", .host = "127.9.9.9"},
        {.what = "::1", .host = "[::1]:8750"},
        {.what = "configured name", .host = "gpu-box:8750"},
        {.what = "any name on a unix socket", .host = "docker", .is_unix = true},
        {.what = "foreign name",
         .host = "evil.example",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "foreign address",
         .host = "10.0.0.1",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "ours as a prefix",
         .host = "localhost.evil.example",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "ours as a port",
         .host = "evil.example:localhost",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "open bracket", .host = "[::1", .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "empty", .host = "", .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "ours in the target, whatever Host says",
         .host = "evil.example",
         .target = "HTTP://localhost:8750/types"},
        {.what = "ours in the target without a path",
         .host = "localhost",
         .target = "http://[::1]?x"},
        {.what = "foreign in the target, whatever Host says",
         .host = "localhost",
         .target = "http://evil.example/types",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "ours as a user of a foreign target",
         .host = "localhost",
         .target = "http://localhost:1@evil.example/",
         .fault = TP_FAULT_UNTRUSTED_HOST},
        {.what = "a target without a host",
         .host = "localhost",
         .target = "http:///types",
         .fault = TP_FAULT_UNTRUSTED_HOST},
    };
    char name[] = "gpu-box";
    const struct tp_config config = {.allow_host = {.items = {name}, .n = 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&config, &cases[i]);
}

static void test_pages_of_others_are_refused(void **state)
{
    static const struct one cases[] = {
        {.what = "same origin", .host = "localhost:1", .origin = "http://localhost:1"},
        {.what = "same origin as the target",
         .host = "localhost:1",
         .origin = "http://localhost:2",
         .target = "http://localhost:2/"},
        {.what = "configured origin", .host = "localhost", .origin = "https://ui.x"},
        {.what = "another port",
         .host = "localhost:1",
         .origin = "http://localhost:2",
         .fault = TP_FAULT_UNTRUSTED_ORIGIN},
        {.what = "another scheme",
         .host = "localhost:1",
         .origin = "https://localhost:1",
         .fault = TP_FAULT_UNTRUSTED_ORIGIN},
        {.what = "null",
         .host = "localhost",
         .origin = "null",
         .fault = TP_FAULT_UNTRUSTED_ORIGIN},
        {.what = "a file or extension on a unix socket",
         .host = "localhost",
         .origin = "null",
         .is_unix = true,
         .fault = TP_FAULT_UNTRUSTED_ORIGIN},
        {.what = "longer than ours",
         .host = "localhost",
         .origin = "http://localhost.evil.example",
         .fault = TP_FAULT_UNTRUSTED_ORIGIN},
    };
    char origin[] = "https://ui.x";
    const struct tp_config config = {.allow_origin = {.items = {origin}, .n = 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&config, &cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_with_a_blank_is_refused_and_closes),
        cmocka_unit_test(test_ambiguous_framing_is_refused_and_closes),
        cmocka_unit_test(test_only_our_own_names_are_answered),
        cmocka_unit_test(test_pages_of_others_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
