/*
 * settings.h - the options of a client as they hold: what was given, else the
 * environment, else the default.
 *
 * It reads variables when a client is opened and never again. Settings are plain data
 * that nobody changes afterwards, so any thread may read them.
 */
#ifndef TP_PRODUCER_SETTINGS_H
#define TP_PRODUCER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process_key.h"
#include "producer/launcher.h"

struct tp_err;
struct tp_options;

/* Strings are the settings' own and never NULL; "" = not known. */
struct tp_settings {
    char *url;         /* "http://host:port": without a slash at the end */
    char *socket_path; /* of the unix socket behind url; "" = TCP */
    char *token;
    char *job;
    char *name; /* of the producer; "" = the service makes one from the rank */
    char *host;
    char *backend;
    char *device;
    int64_t rank; /* -1 = not known */
    uint32_t world_size;
    int64_t pid;
    char process[TP_PROCESS_KEY_BYTES]; /* "" = not known */
    size_t ring_bytes;                  /* a power of two */
    size_t rings_bytes_max;
    size_t backlog_bytes;
    bool blocks_when_full;
    uint64_t block_ns;
    uint64_t flush_ms;
    uint64_t late_ms;
    bool is_off;
    bool has_log; /* wants lines on stderr: troubles, and what it is told */
};

/*
 * Make the settings of a client.
 *
 * options   may be NULL: nothing is given.
 * variable  gives variables of the environment; as getenv().
 * out       set only on success; release it with tp_settings_fini().
 *
 * TP_EINVAL  an option or a variable; the message names it. TP_ENOMEM.
 */
int tp_settings_load(const struct tp_options *options, tp_variable_fn variable,
                     void *arg, struct tp_settings *out, struct tp_err *err);

/* Release the strings. All-zero is allowed. */
void tp_settings_fini(struct tp_settings *s);

#endif
