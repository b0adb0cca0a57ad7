/*
 * wire_read.c - what the service answers. Members are looked for by name; the order and
 * whatever else is there do not matter.
 */
#include <ctype.h>
#include <string.h>

#include "base/err.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_scan.h"
#include "base/timefmt.h"
#include "producer/wire.h"

#define DEPTH_MAX 16
#define PROBLEM_PREFIX "urn:traceplane:problem:"

/* A walk over the elements of an array. */
static bool open_array(struct tp_str text, struct tp_json *c)
{
    *c = (struct tp_json){.p = text.ptr, .end = text.ptr + text.len};
    if (text.len == 0 || tp_json_space(c) != TP_OK || *c->p != '[')
        return false;
    c->p++;
    return true;
}

static bool next_element(struct tp_json *c, struct tp_str *out)
{
    unsigned oddities = 0;
    const char *start;

    if (tp_json_space(c) != TP_OK || *c->p == ']')
        return false;
    if (*c->p == ',') {
        c->p++;
        if (tp_json_space(c) != TP_OK)
            return false;
    }
    start = c->p;
    if (tp_json_skip(c, DEPTH_MAX, &oddities) != TP_OK || c->p == start)
        return false;
    *out = (struct tp_str){start, (size_t)(c->p - start)};
    return true;
}

/* The bytes between the quotes of a string that needs no decoding. */
static bool plain_string(struct tp_str value, struct tp_str *out)
{
    if (value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"' ||
        memchr(value.ptr, '\\', value.len) != NULL)
        return false;
    *out = (struct tp_str){value.ptr + 1, value.len - 2};
    return true;
}

static bool find_string(struct tp_str object, const char *key, struct tp_str *out)
{
    struct tp_str value;

    return tp_json_members_find(object, key, &value) && plain_string(value, out);
}

static bool find_u64(struct tp_str object, const char *key, uint64_t *out)
{
    struct tp_json_number number;
    struct tp_str value;

    return tp_json_members_find(object, key, &value) &&
           tp_json_number_parse(value, &number) && tp_json_number_uint64(&number, out);
}

static bool find_time(struct tp_str object, const char *key, int64_t *out)
{
    struct tp_str text;

    return find_string(object, key, &text) &&
           tp_timefmt_parse(text.ptr, text.len, out, NULL) == TP_OK;
}

/* An id goes into paths, so it must be made of harmless characters. */
static bool find_id(struct tp_str object, const char *key, char *out)
{
    struct tp_str id;

    if (!find_string(object, key, &id) || id.len == 0 || id.len >= TP_WIRE_ID_BYTES)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!isalnum((unsigned char)id.ptr[i]) && id.ptr[i] != '-' && id.ptr[i] != '_')
            return false;
    memcpy(out, id.ptr, id.len);
    out[id.len] = '\0';
    return true;
}

static int find_kind(struct tp_str name)
{
    for (int i = 0; i < TP_ORDERS; i++)
        if (tp_str_is(name, tp_order_name((enum tp_order_kind)i)))
            return i;
    return -1;
}

static bool read_ids(struct tp_str array, struct tp_typeset *out)
{
    struct tp_str element;
    struct tp_json c;

    if (!open_array(array, &c))
        return false;
    while (next_element(&c, &element)) {
        int64_t id;

        if (!tp_json_members_int(element, &id) || id < 0 || id > 255)
            return false;
        tp_typeset_add(out, (unsigned)id);
    }
    return true;
}

/* Read one order; TP_EAGAIN when it is of a kind that we do not know. */
static int read_order(struct tp_str object, struct tp_order *out, struct tp_err *err)
{
    struct tp_str name, types;
    uint64_t stream_no = 0;
    int kind;

    memset(out, 0, sizeof(*out));
    if (!find_string(object, "command", &name))
        return tp_fail(err, TP_EINVAL, "a command has no name");
    kind = find_kind(name);
    if (kind < 0)
        return TP_EAGAIN;
    out->kind = (enum tp_order_kind)kind;
    if (!find_id(object, "trace_id", out->trace_id))
        return tp_fail(err, TP_EINVAL, "'%s' names no trace", tp_order_name(out->kind));
    find_u64(object, "stream", &stream_no);
    out->stream_no = stream_no > UINT16_MAX ? 0 : (uint32_t)stream_no;
    find_u64(object, "min_duration_ns", &out->min_duration_ns);
    find_u64(object, "start_step", &out->start_step);
    find_u64(object, "steps", &out->steps);
    find_u64(object, "duration_ms", &out->duration_ms);
    find_time(object, "start_at", &out->start_at_ns);
    if (out->kind != TP_ORDER_PREPARE)
        return TP_OK;
    if (!tp_json_members_find(object, "types", &types) || !read_ids(types, &out->types))
        return tp_fail(err, TP_EINVAL, "'prepare' has no list of type ids");
    return TP_OK;
}

int tp_wire_read_orders(struct tp_str body, struct tp_orders *out, struct tp_err *err)
{
    struct tp_orders orders = {.n = 0};
    struct tp_str list, element;
    struct tp_json c;

    if (!tp_json_members_open(body, &c))
        return tp_fail(err, TP_EINVAL, "the answer to a sync is no JSON object");
    if (!tp_json_members_find(body, "commands", &list) || !open_array(list, &c))
        return tp_fail(err, TP_EINVAL, "the answer to a sync has no list of commands");
    while (orders.n < TP_WIRE_ORDERS_MAX && next_element(&c, &element)) {
        int rc = read_order(element, &orders.items[orders.n], err);

        if (rc == TP_OK)
            orders.n++;
        else if (rc != TP_EAGAIN)
            return rc;
    }
    find_u64(body, "seq", &orders.seq);
    find_time(body, "server_received_at", &orders.server_received_ns);
    find_time(body, "server_sent_at", &orders.server_sent_ns);
    *out = orders;
    return TP_OK;
}

int tp_wire_read_id(struct tp_str body, char *out, struct tp_err *err)
{
    if (find_id(body, "id", out))
        return TP_OK;
    return tp_fail(err, TP_EINVAL, "the answer to a registration names no producer");
}

int tp_wire_read_types(struct tp_str body, size_t n, unsigned *out, struct tp_err *err)
{
    struct tp_str list, element;
    struct tp_json c;
    size_t found = 0;

    if (!tp_json_members_find(body, "types", &list) || !open_array(list, &c))
        return tp_fail(err, TP_EINVAL, "the answer about types has no list of them");
    while (next_element(&c, &element)) {
        uint64_t id;

        if (found == n || !find_u64(element, "id", &id) || id > 255)
            return tp_fail(err, TP_EINVAL, "type %zu of the answer has no id", found);
        out[found++] = (unsigned)id;
    }
    if (found != n)
        return tp_fail(err, TP_EINVAL, "%zu types were registered, %zu answered", n,
                       found);
    return TP_OK;
}

struct tp_str tp_wire_problem(struct tp_str body)
{
    const size_t n = sizeof(PROBLEM_PREFIX) - 1;
    struct tp_str type;

    if (!find_string(body, "type", &type) || type.len <= n ||
        memcmp(type.ptr, PROBLEM_PREFIX, n) != 0)
        return (struct tp_str){"", 0};
    return (struct tp_str){type.ptr + n, type.len - n};
}
