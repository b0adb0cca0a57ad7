/*
 * chrome_reading.h - reads Chrome JSON in a test and shows what came out as lines.
 *
 * Every text is read in one piece, byte by byte, in pieces of 2, 3, 7 and 16 bytes and,
 * when it is short, cut in two at each place: the answers must be the same. Each piece
 * is a heap block of its own, so that a sanitizer sees a read past its end. Where they
 * differ, the running test ends. Call it in the thread of the test, while no fault is
 * armed.
 *
 * An event is a line such as
 *   X 12500+3000 1/2 name="k" cat="c" id=5 scope=g bp "a"=i1,"b"=s"x" extra="tts":5
 * with ts and dur, pid/tid, and the kind of each argument before its value (i, u, d, s,
 * j for JSON); OTHER has a ? behind its phase. A member is a line `# "key": json`.
 */
#ifndef TP_SUPPORT_CHROME_READING_H
#define TP_SUPPORT_CHROME_READING_H

#include "base/buf.h"
#include "trace/chrome_reader.h"

/* What came of a text. Plain data; release text with tp_buf_fini(). */
struct chrome_reading {
    int rc;
    struct tp_err err;
    struct tp_chrome_stats stats;
    struct tp_buf text; /* the lines, NUL-terminated */
};

/* Two events, and their lines. */
#define CHROME_A "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":2}"
#define CHROME_B "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":4,\"dur\":2}"
#define CHROME_A_OUT "X 1000+2000 1/2 name=\"a\"\n"
#define CHROME_B_OUT "X 4000+2000 1/2 name=\"b\"\n"

/* A tp_event_fn: appends the line of an event to the struct chrome_reading at arg. */
int chrome_show_event(const struct tp_event *ev, struct tp_err *err, void *arg);

/* Feed n bytes as a heap block of exactly that size; as tp_chrome_reader_feed(). */
int chrome_feed_copy(struct tp_chrome_reader *r, const char *p, size_t n,
                     struct tp_err *err);

/* Read a text once, the first piece `first` bytes long, the others `piece` bytes. */
struct chrome_reading chrome_read_pieces(const struct tp_chrome_reader_opts *opts,
                                         const char *p, size_t n, size_t first,
                                         size_t piece);

/* Read a text in all manners and check that they agree. */
struct chrome_reading chrome_read(const struct tp_chrome_reader_opts *opts,
                                  const char *p, size_t n);

/* The text is accepted and gives these lines. The text of the answer is released. */
struct chrome_reading chrome_expect_with(const struct tp_chrome_reader_opts *opts,
                                         const char *p, size_t n, const char *expected);

/* As chrome_expect_with() for a C string. */
struct chrome_reading chrome_limited(struct tp_chrome_reader_opts opts,
                                     const char *text, const char *expected);

/* As above with the default options; salvaging; as NDJSON. */
struct chrome_reading chrome_expect(const char *text, const char *expected);
struct chrome_reading chrome_expect_salvaged(const char *text, const char *expected);
struct chrome_reading chrome_expect_lines(const char *text, const char *expected);

/* The text ends with TP_EINVAL and this message, after these lines. */
void chrome_refuse_with(const struct tp_chrome_reader_opts *opts, const char *text,
                        const char *message, const char *before);

/* As above with the default options. */
void chrome_refuse(const char *text, const char *message, const char *before);

#endif
