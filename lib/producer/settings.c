/*
 * settings.c - one function a kind of value; each knows its variable's name, so that a
 * refusal can say which of the two was wrong.
 */
#include "producer/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <traceplane/traceplane.h>
#include <unistd.h>

#include "base/err.h"
#include "base/utf8.h"
#include "producer/link.h"

#define PREFIX "TRACEPLANE_"
#define URL_DEFAULT "http://127.0.0.1:8750"
#define JOB_DEFAULT "default"
#define RING_BYTES (UINT64_C(1) << 20)
#define RING_BYTES_MIN (UINT64_C(16) << 10)
#define RING_BYTES_MAX (UINT64_C(1) << 30)
#define RINGS_BYTES (UINT64_C(256) << 20)
#define BACKLOG_BYTES (UINT64_C(64) << 20)
#define BACKLOG_BYTES_MIN (UINT64_C(1) << 20)
#define BLOCK_US 1000
#define BLOCK_US_MAX 1000000
#define FLUSH_MS 2000
#define FLUSH_MS_MAX 60000
#define LATE_MS_MAX 5000
#define LABEL_MAX_BYTES 255
#define NAME_MAX_BYTES 127
#define UNIX_PREFIX "unix:"
#define UNIX_PATH_MAX_BYTES 107

/* What a load works on. */
struct load {
    struct tp_options given; /* with zeros where the caller's is shorter */
    tp_variable_fn variable;
    void *arg;
    struct tp_settings *s;
    struct tp_err *err; /* of the first failure; may be NULL */
    struct tp_err last;
    int rc; /* the first failure */
};

struct bounds {
    uint64_t least, most, initial;
    bool is_size; /* K, M and G may follow */
};

/* TRACEPLANE_<name>, or NULL when it is not there or empty. */
static const char *variable(const struct load *l, const char *name)
{
    char full[64];
    const char *value;

    snprintf(full, sizeof(full), PREFIX "%s", name);
    value = l->variable(full, l->arg);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

static void fail(struct load *l, int rc)
{
    if (l->rc != TP_OK)
        return;
    l->rc = rc;
    if (l->err != NULL)
        *l->err = l->last;
}

static void set_text(struct load *l, char **field, const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        fail(l, tp_fail(&l->last, TP_ENOMEM, "no memory for a client's options"));
        return;
    }
    free(*field);
    *field = copy;
}

/* What the service takes as a text: a producer that it refuses is never seen. */
static bool is_text(const char *s)
{
    for (const char *c = s; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return tp_utf8_is_valid(s, strlen(s));
}

/* A text of at most n bytes, from the options or else from the variable. */
static void load_text(struct load *l, char **field, const char *given, const char *name,
                      size_t n)
{
    const char *text = given != NULL ? given : variable(l, name);

    set_text(l, field, text == NULL ? "" : text);
    if (*field == NULL)
        return;
    if (strlen(*field) > n || !is_text(*field))
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        "%s (" PREFIX "%s) must be UTF-8 of at most %zu bytes, without "
                        "control characters",
                        given != NULL ? "the option" : "the variable", name, n));
}

/* A number, for sizes with an optional K, M or G, powers of 1024. */
static bool parse_number(const char *text, bool is_size, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end = NULL;
    const char *unit;
    uint64_t n;
    int shift;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno != 0 || n > UINT32_MAX * UINT64_C(1024))
        return false;
    if (*end == '\0') {
        *out = n;
        return true;
    }
    unit = strchr(units, *end);
    if (!is_size || unit == NULL || end[1] != '\0')
        return false;
    shift = 10 * (int)(unit - units + 1);
    if (n > UINT64_MAX >> shift)
        return false;
    *out = n << shift;
    return true;
}

static uint64_t load_number(struct load *l, uint64_t given, const char *name,
                            struct bounds bounds)
{
    const char *text = given == 0 ? variable(l, name) : NULL;
    uint64_t n = given == 0 ? bounds.initial : given;

    if (text != NULL && !parse_number(text, bounds.is_size, &n))
        fail(l,
             tp_fail(&l->last, TP_EINVAL, PREFIX "%s is no number: %.64s", name, text));
    else if (n < bounds.least || n > bounds.most)
        fail(l, tp_fail(&l->last, TP_EINVAL, PREFIX "%s is %llu, not %llu to %llu",
                        name, (unsigned long long)n, (unsigned long long)bounds.least,
                        (unsigned long long)bounds.most));
    return n;
}

static bool load_flag(struct load *l, bool given, const char *name)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    const char *text = given ? NULL : variable(l, name);

    if (text == NULL)
        return given;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0)
            return true;
        if (strcasecmp(text, no[i]) == 0)
            return false;
    }
    fail(l, tp_fail(&l->last, TP_EINVAL, PREFIX "%s is neither 1 nor 0: %.64s", name,
                    text));
    return false;
}

/* It goes into a header as it is, and nobody may see it in a message. */
static void load_token(struct load *l)
{
    load_text(l, &l->s->token, l->given.token, "TOKEN", 4096);
    if (l->rc != TP_OK)
        return;
    for (const char *c = l->s->token; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            fail(l, tp_fail(&l->last, TP_EINVAL,
                            PREFIX "TOKEN has byte 0x%02x at %zu: no token has spaces "
                                   "or characters beyond ASCII",
                            (unsigned char)*c, (size_t)(c - l->s->token)));
}

static void load_url(struct load *l)
{
    struct tp_settings *s = l->s;
    const size_t n = sizeof(UNIX_PREFIX) - 1;
    size_t len;

    load_text(l, &s->url, l->given.url, "URL", 2048);
    set_text(l, &s->socket_path, "");
    if (l->rc != TP_OK)
        return;
    if (s->url[0] == '\0')
        set_text(l, &s->url, URL_DEFAULT);
    if (strncmp(s->url, UNIX_PREFIX, n) == 0) {
        set_text(l, &s->socket_path, s->url + n);
        set_text(l, &s->url, "http://localhost");
        if (l->rc == TP_OK &&
            (s->socket_path[0] != '/' || strlen(s->socket_path) > UNIX_PATH_MAX_BYTES))
            fail(l, tp_fail(&l->last, TP_EINVAL,
                            "'unix:%.128s' has no absolute path of at most %d bytes",
                            s->socket_path, UNIX_PATH_MAX_BYTES));
    } else if (strncmp(s->url, "http://", 7) != 0 &&
               strncmp(s->url, "https://", 8) != 0) {
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        "the URL '%.128s' begins neither with http:// or https:// nor "
                        "with unix:",
                        s->url));
    } else if (tp_link_check_url(s->url, &l->last) != TP_OK) {
        fail(l, l->last.code);
    }
    for (len = l->rc == TP_OK ? strlen(s->url) : 0; len > 0 && s->url[len - 1] == '/';)
        s->url[--len] = '\0';
}

static void load_rank(struct load *l, const struct tp_launcher *launcher)
{
    const struct bounds numbers = {.most = INT32_MAX};
    struct tp_settings *s = l->s;
    bool has_variable = variable(l, "RANK") != NULL;
    uint32_t size = l->given.world_size;

    s->rank = launcher->rank;
    if (l->given.has_rank)
        s->rank = l->given.rank > INT32_MAX ? INT64_MAX : l->given.rank;
    else if (has_variable)
        s->rank = (int64_t)load_number(l, 0, "RANK", numbers);
    s->world_size = (uint32_t)load_number(l, size, "WORLD_SIZE", numbers);
    if (s->rank > INT32_MAX)
        fail(l, tp_fail(&l->last, TP_EINVAL, "rank %lu is over %d",
                        (unsigned long)l->given.rank, INT32_MAX));
    else if (s->world_size != 0 && s->rank >= (int64_t)s->world_size)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        "rank %lld is not below the world size (" PREFIX
                        "WORLD_SIZE), which is %u",
                        (long long)s->rank, s->world_size));
    /* A rank that was given may be of another world than the launcher's. */
    if (s->world_size == 0 && s->rank < (int64_t)launcher->world_size)
        s->world_size = launcher->world_size;
}

static void load_job(struct load *l, const struct tp_launcher *launcher)
{
    char name[TP_LAUNCHER_JOB_BYTES];

    load_text(l, &l->s->job, l->given.job, "JOB", 255);
    if (l->rc != TP_OK)
        return;
    if (l->s->job[0] == '\0')
        set_text(l, &l->s->job, launcher->job[0] == '\0' ? JOB_DEFAULT : launcher->job);
    if (l->rc != TP_OK)
        return;
    tp_launcher_job_name(l->s->job, name);
    if (strcmp(name, l->s->job) != 0)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        "the job '%.100s' is not 1 to %d of [A-Za-z0-9._-] without a "
                        "dot in front",
                        l->s->job, TP_LAUNCHER_JOB_BYTES - 1));
}

/* Without a rank the program and its pid tell producers apart: two of one name would
 * write into one stream. */
static void load_name(struct load *l)
{
    struct tp_settings *s = l->s;
    char name[NAME_MAX_BYTES + 1], host[256] = "";

    load_text(l, &s->name, l->given.name, "NAME", NAME_MAX_BYTES);
    s->pid = getpid();
    tp_process_key(0, s->process);
    if (gethostname(host, sizeof(host) - 1) != 0 || !is_text(host))
        host[0] = '\0';
    set_text(l, &s->host, host);
    if (l->rc != TP_OK || s->name[0] != '\0' || s->rank >= 0)
        return;
    snprintf(name, sizeof(name), "%.64s-%lld", program_invocation_short_name,
             (long long)s->pid);
    if (!is_text(name))
        snprintf(name, sizeof(name), "process-%lld", (long long)s->pid);
    set_text(l, &s->name, name);
}

static void load_memory(struct load *l)
{
    const struct bounds ring = {RING_BYTES_MIN, RING_BYTES_MAX, RING_BYTES, true};
    const struct bounds rings = {RING_BYTES_MIN, UINT64_C(1) << 40, RINGS_BYTES, true};
    const struct bounds backlog = {BACKLOG_BYTES_MIN, UINT64_C(1) << 40, BACKLOG_BYTES,
                                   true};
    struct tp_settings *s = l->s;

    s->ring_bytes = load_number(l, l->given.ring_bytes, "RING_BYTES", ring);
    s->rings_bytes_max =
        load_number(l, l->given.rings_bytes_max, "RINGS_BYTES_MAX", rings);
    s->backlog_bytes = load_number(l, l->given.backlog_bytes, "BACKLOG_BYTES", backlog);
    if ((s->ring_bytes & (s->ring_bytes - 1)) != 0)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        PREFIX "RING_BYTES is %zu, which is no power of two",
                        s->ring_bytes));
    else if (s->ring_bytes > s->rings_bytes_max)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        PREFIX "RING_BYTES is %zu, which is over " PREFIX
                               "RINGS_BYTES_MAX, %zu",
                        s->ring_bytes, s->rings_bytes_max));
}

/* One is for when a thread's ring is full, the other for which clock times are by. */
static void load_choices(struct load *l)
{
    struct tp_settings *s = l->s;
    const char *clock = variable(l, "CLOCK");
    const char *text = NULL;

    if (l->given.when_full != TP_FULL_DROP && l->given.when_full != TP_FULL_BLOCK)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        "when_full is %d, neither TP_FULL_DROP nor TP_FULL_BLOCK",
                        (int)l->given.when_full));
    s->blocks_when_full = l->given.when_full == TP_FULL_BLOCK;
    if (!s->blocks_when_full)
        text = variable(l, "WHEN_FULL");
    if (text != NULL && strcmp(text, "block") == 0)
        s->blocks_when_full = true;
    else if (text != NULL && strcmp(text, "drop") != 0)
        fail(l, tp_fail(&l->last, TP_EINVAL,
                        PREFIX "WHEN_FULL is neither drop nor block: %.64s", text));
    if (clock != NULL && strcmp(clock, "monotonic") != 0) /* ticks.c reads it */
        fail(l, tp_fail(&l->last, TP_EINVAL, PREFIX "CLOCK is not monotonic: %.64s",
                        clock));
}

static void load_behaviour(struct load *l)
{
    const struct bounds block = {0, BLOCK_US_MAX, BLOCK_US, false};
    const struct bounds flush = {0, FLUSH_MS_MAX, FLUSH_MS, false};
    const struct bounds late = {0, LATE_MS_MAX, 0, false};
    struct tp_settings *s = l->s;

    s->block_ns = load_number(l, l->given.block_us, "BLOCK_US", block) * 1000;
    s->flush_ms = load_number(l, l->given.flush_ms, "FLUSH_MS", flush);
    s->late_ms = load_number(l, l->given.late_ms, "LATE_MS", late);
    s->is_off = load_flag(l, l->given.is_off, "OFF");
    s->has_log = load_flag(l, l->given.log, "LOG");
}

/* An older caller's struct is shorter: what it does not have is not given. One that
 * does not say its size is taken for the oldest. */
static void take_given(struct load *l, const struct tp_options *options)
{
    size_t n = offsetof(struct tp_options, late_ms);

    if (options == NULL)
        return;
    if (options->options_bytes != 0)
        n = options->options_bytes < sizeof(l->given) ? options->options_bytes
                                                      : sizeof(l->given);
    memcpy(&l->given, options, n);
}

int tp_settings_load(const struct tp_options *options, tp_variable_fn get, void *arg,
                     struct tp_settings *out, struct tp_err *err)
{
    struct tp_settings s = {.rank = -1};
    struct load l = {.variable = get, .arg = arg, .s = &s, .err = err};
    struct tp_launcher launcher;

    tp_launcher_find(get, arg, &launcher);
    take_given(&l, options);
    load_url(&l);
    load_token(&l);
    load_rank(&l, &launcher);
    load_job(&l, &launcher);
    load_name(&l);
    load_text(&l, &s.backend, l.given.backend, "BACKEND", LABEL_MAX_BYTES);
    load_text(&l, &s.device, l.given.device, "DEVICE", LABEL_MAX_BYTES);
    load_memory(&l);
    load_choices(&l);
    load_behaviour(&l);
    if (l.rc != TP_OK) {
        tp_settings_fini(&s);
        return l.rc;
    }
    *out = s;
    return TP_OK;
}

void tp_settings_fini(struct tp_settings *s)
{
    char **const texts[] = {&s->url,  &s->socket_path, &s->token,   &s->job,
                            &s->name, &s->host,        &s->backend, &s->device};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}
