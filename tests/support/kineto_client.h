/*
 * kineto_client.h - a stand-in for libkineto's on-demand client and its profiler.
 *
 * It does what the real one does as far as a daemon can see it: how it asks, waits,
 * reads, lags, and what it makes of a configuration, silences included; where the real
 * one would abort the process, this one does. It is written from a description of the
 * protocol and shares no code with the service. Both ages are there, and a knob for
 * each misbehaviour. One client a process; it runs two threads of its own.
 */
#ifndef TP_SUPPORT_KINETO_CLIENT_H
#define TP_SUPPORT_KINETO_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What to be. Plain data; times in milliseconds, 0 or NULL = as usual or never. */
struct kineto_client_options {
    const char *name;       /* of the daemon; NULL = "dynolog" */
    const char *socket_dir; /* as KINETO_IPC_SOCKET_DIR; NULL = abstract */
    const char *trace_dir;  /* as KINETO_ONDEMAND_TRACE_DIR; NULL = "/tmp" */
    bool is_old;            /* 2025: 50 ms window, types 3 and 1 */
    int number;             /* of this client, for its lines */
    int64_t job;            /* as SLURM_JOB_ID */
    unsigned interval_ms;   /* between requests; 0 = 5000 */
    unsigned first_ms;      /* before the first */
    unsigned run_ms;        /* then it ends; 0 = never */
    unsigned events;        /* in each file; 0 = 10 */
    unsigned step_ms;       /* the application steps so often; 0 = never */
    unsigned process_ms;    /* to write a file */
    bool sends_context;     /* introduces itself first, as torch_npu does */
    bool is_quiet;          /* prints nothing */
    bool writes_gpu;        /* a kernel on device 0 in each file */
    unsigned writes_rank;   /* with writes_world: "distributedInfo" in each file */
    unsigned writes_world;

    /* Misbehaviour. */
    unsigned late_reads;   /* so many answers are not read in time */
    unsigned busy_from_ms; /* the application profiles itself from then */
    unsigned busy_ms;      /* for so long */
    unsigned die_ms;       /* SIGKILL to itself so long after it took a configuration */
    bool preempts;         /* its application profiles itself while it records for us */
    bool drops_files;      /* records and writes nothing */
    bool is_mute;          /* asks with type 3 whatever it does, as torch_npu does */
    bool ends_with_file;   /* it ends when its file has its name */
    bool is_early;         /* records as soon as it has warmed up */
    bool has_two_sockets;  /* asks from each in turn */
    bool writes_damage;    /* a file that ends in the middle */
    bool writes_other_id;  /* a file with a trace_id of somebody else */
    bool writes_link;      /* a symbolic link to /etc/passwd for a file */
};

/*
 * Be a client until run_ms are over or a signal ends the process. Each event is a line
 * of JSON on standard output. Returns an exit status.
 */
int kineto_client_run(const struct kineto_client_options *options);

#endif
