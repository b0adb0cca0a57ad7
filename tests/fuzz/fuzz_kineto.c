/*
 * fuzz_kineto.c - whatever processes send, in whatever order: the table keeps its
 * promises. An answer is empty or of exactly the size that it announces; an order is
 * given at most once and never to one that is busy.
 *
 * The input is a list of datagrams: a byte says who sends and how the sender is, a byte
 * how long it is and how much time passes, then it comes. A datagram that begins with
 * '!' is one by the book, so that the fuzzer need not guess headers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kineto/datagram.h"
#include "kineto/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct tp_kineto_peer peer_of(uint8_t who)
{
    struct tp_kineto_peer p = {.listener = who >> 6 & 1,
                               .address_bytes = who & 7,
                               .pid = 1 + (who & 3),
                               .uid = who >> 5 & 1};

    memset(p.address, 'a' + (who & 7), sizeof(p.address));
    return p;
}

static size_t by_the_book(const uint8_t *data, size_t n, char *out)
{
    uint64_t payload = 16 + 4 * (uint64_t)(n > 1 ? data[1] % 64 : 0);
    int32_t n_pids = (int32_t)(payload - 16) / 4;

    memset(out, 7, TP_KINETO_DATAGRAM_MAX_BYTES);
    memset(out, 0, TP_KINETO_HEADER_BYTES);
    memcpy(out, &payload, 8);
    memcpy(out + 8, "req", 3);
    memset(out + 40, 0, 4);
    out[40] = n > 2 ? (char)(data[2] & 3) : 2;
    memcpy(out + 44, &n_pids, 4);
    return TP_KINETO_HEADER_BYTES + payload;
}

static void check_reply(const struct tp_kineto_reply *r, bool has_order,
                        const char *bytes)
{
    uint64_t announced;

    check((r->bytes.len == 0) == (r->answer <= TP_KINETO_ANSWER_NONE_SKIPPED));
    if (r->bytes.len == 0)
        return;
    check(r->bytes.len >= TP_KINETO_HEADER_BYTES);
    memcpy(&announced, r->bytes.ptr, sizeof(announced));
    check(announced == r->bytes.len - TP_KINETO_HEADER_BYTES);
    check(r->answer != TP_KINETO_ANSWER_ORDER ||
          (has_order && (bytes[40] & TP_KINETO_TYPE_ACTIVITIES) != 0));
}

/* A look at the answers of a process, a while after it has asked. */
static void look(struct tp_kineto_table *t, uint64_t id, uint64_t unread_bytes,
                 uint64_t now_ns)
{
    struct tp_kineto_target target;

    if (!tp_kineto_table_get(t, id, &target) || target.state == TP_KINETO_GONE)
        return;
    tp_kineto_table_unread(t, id, unread_bytes, now_ns + TP_KINETO_WINDOW_NS);
    check(tp_kineto_table_get(t, id, &target));
    check(target.rhythm.is_behind == (unread_bytes > 0));
    check(unread_bytes > 0 || target.state != TP_KINETO_LAGGING);
}

static void step(struct tp_kineto_table *t, uint8_t who, const uint8_t *data, size_t n,
                 uint64_t now_ns)
{
    const struct tp_kineto_order order = {{"A=1\n", 4}, now_ns + 9, now_ns + 99};
    char bytes[TP_KINETO_DATAGRAM_MAX_BYTES + 1] = {0};
    struct tp_kineto_target target = {0}, news;
    struct tp_kineto_peer peer = peer_of(who);
    size_t len = n;
    struct tp_kineto_reply r;

    memcpy(bytes, data, n);
    if (n > 0 && data[0] == '!')
        len = by_the_book(data, n, bytes);
    r = tp_kineto_table_receive(t, &peer, bytes, len, who >> 7, now_ns);
    /* What it was when it asked is not known here; it must know itself now. */
    check(r.target == 0 || tp_kineto_table_get(t, r.target, &target));
    check_reply(&r, target.state == TP_KINETO_ARMED, bytes);
    if ((who & 8) != 0)
        tp_kineto_table_unsent(t, &r, (who & 16) != 0);
    else if ((who & 16) != 0)
        (void)tp_kineto_table_order(t, r.target, &order, NULL);
    if (who == 77)
        tp_kineto_table_withdraw(t, r.target);
    if ((who & 6) == 6)
        look(t, r.target, who & 1, now_ns);
    if (who == 99)
        while (tp_kineto_table_next_news(t, &news))
            check(news.news != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_kineto_table *t;
    uint64_t now_ns = 1;

    if (tp_kineto_table_new(&t, NULL) != TP_OK)
        return 0;
    while (size >= 2) {
        size_t n = data[1];

        now_ns += (uint64_t)data[1] << 26;
        n = n < size - 2 ? n : size - 2;
        step(t, data[0], data + 2, n, now_ns);
        data += 2 + n;
        size -= 2 + n;
    }
    tp_kineto_table_sweep(t, now_ns);
    tp_kineto_table_free(t);
    return 0;
}
