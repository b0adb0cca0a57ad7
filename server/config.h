/*
 * config.h - every setting of the service, from one table.
 *
 * A setting is a flag (--data-dir DIR), an environment variable (TRACEPLANE_DATA_DIR)
 * and a line of the file named by --config (data-dir = DIR). A flag wins over the
 * environment, that over the file, that over the default. The limits of core/limits.h
 * are settings like the others. It opens nothing but that file. Filled once before
 * threads start, then constant.
 */
#ifndef TP_SERVER_CONFIG_H
#define TP_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/limits.h"

struct tp_err;

#define TP_CONFIG_LIST_MAX 16

/* A setting that may be given several times. */
struct tp_config_list {
    char *items[TP_CONFIG_LIST_MAX]; /* owned */
    size_t n;
    int source; /* private: from where the items are */
};

/* Plain data; strings are owned and never NULL after tp_config_load(). */
struct tp_config {
    struct tp_config_list listen;       /* empty: the default address, v4 and v6 */
    struct tp_config_list allow_host;   /* further Host names that are ours */
    struct tp_config_list allow_origin; /* web origins that may call us */
    struct tp_config_list kineto_dirs;  /* with a Kineto socket each */
    struct tp_config_list kineto_uids; /* whose processes may be traced: ours besides */
    char *kineto_socket;               /* abstract name; empty = none */
    char *kineto_trace_dir;            /* empty: made from the user */
    char *dynolog_listen;              /* empty = nowhere */
    struct tp_config_list dynolog_log_dirs; /* where its clients may have files */
    char *data_dir;
    char *store;                /* sqlite:PATH, or empty for a file in data_dir */
    char *on_collision;         /* "reject", "probe" */
    char *durability;           /* "process", "disk" */
    char *ready_file;           /* written when listening; empty = none */
    char *log_level;            /* "error", "warning", "info", "debug" */
    uint64_t http_threads;      /* 0 = one a core */
    uint64_t idle_timeout_s;    /* of a connection without traffic */
    uint64_t seal_threads;      /* 0 = one a core */
    uint64_t http_buffer_bytes; /* memory of one connection */
    struct tp_limits limits;
    bool wants_help, wants_version, wants_print; /* flags that end the program */
};

/*
 * Load all settings.
 *
 * argc, argv  of main().
 * environ     NULL-terminated, as environ(7).
 * out         filled in on success; release with tp_config_fini().
 *
 * TP_EINVAL  an unknown name (the nearest is told), a bad value, a broken file; the
 *            message says where. TP_EIO  the file cannot be read. TP_ENOMEM.
 */
int tp_config_load(int argc, char **argv, char **environment, struct tp_config *out,
                   struct tp_err *err);

/* Release the strings. All-zero is allowed. */
void tp_config_fini(struct tp_config *config);

/* Write the usage text, made from the table. */
void tp_config_usage(FILE *out);

/* Write all settings in effect as lines of a --config file. */
void tp_config_print(const struct tp_config *config, FILE *out);

#endif
