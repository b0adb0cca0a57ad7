"""What recording costs: bench/micro_emit, with LTTng-UST in the same run where Debian's lttng-tools and
liblttng-ust-dev are installed. Its provider is written and compiled here, so that nothing else depends on it.
"""

import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile

ROUNDS = 5
EVENTS = 2000000
TURNS = 15  # of ours and LTTng's: short ones, since a shared machine changes its speed within seconds
TURN_EVENTS = 400000

PROVIDER = """
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"
#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(bench, mark, LTTNG_UST_TP_ARGS(uint32_t, name),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))
LTTNG_UST_TRACEPOINT_EVENT(bench, mark_1, LTTNG_UST_TP_ARGS(uint32_t, name, int64_t, n),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name) lttng_ust_field_integer(int64_t, n, n)))
LTTNG_UST_TRACEPOINT_EVENT(bench, end, LTTNG_UST_TP_ARGS(uint32_t, type),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, type, type)))
#endif
#include <lttng/tracepoint-event.h>
"""

# The loops of micro_emit.c, kind by kind, on one thread or several; it prints "name value unit" too.
PROGRAM = """
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static uint32_t n_events;
static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
#define KIND(kind, body) static void kind(void) { for (uint32_t i = 0; i < n_events; i++) { \\
    __asm__ volatile("" : : "r"(i) : "memory"); body; } }
KIND(instant, lttng_ust_tracepoint(bench, mark, 1))
KIND(instant_1_int, lttng_ust_tracepoint(bench, mark_1, 1, i))
KIND(slice, lttng_ust_tracepoint(bench, mark, 1); lttng_ust_tracepoint(bench, end, 1))
KIND(slice_1_int, lttng_ust_tracepoint(bench, mark_1, 1, i); lttng_ust_tracepoint(bench, end, 1))
static void *run(void *record)
{
    double *spent = malloc(sizeof(*spent));
    double begin = cpu_ns();
    ((void (*)(void))record)();
    *spent = cpu_ns() - begin;
    return spent;
}
int main(int argc, char **argv)
{
    struct { const char *name; void (*record)(void); } kinds[] = {{"instant", instant},
        {"instant_1_int", instant_1_int}, {"slice", slice}, {"slice_1_int", slice_1_int}};
    int n_threads = argc > 2 ? atoi(argv[2]) : 1;
    n_events = (uint32_t)strtoul(argv[1], NULL, 10);
    if (!lttng_ust_tracepoint_enabled(bench, mark) || !lttng_ust_tracepoint_enabled(bench, mark_1) ||
        !lttng_ust_tracepoint_enabled(bench, end)) return 3;
    for (int k = 0; k < 4; k++) {
        pthread_t threads[16];
        double spent = 0;
        void *one;
        for (int i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, run, (void *)kinds[k].record);
        for (int i = 0; i < n_threads; i++) { pthread_join(threads[i], &one); spent += *(double *)one; }
        printf("%s %.2f ns\\n", kinds[k].name, spent / n_events / n_threads);
    }
    return 0;
}
"""


def figures(command, env=None):
    """The lines "name value unit" of a program."""
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    return {name: float(value) for name, value in re.findall(r"^(\S+) (\S+) \S+$", out, re.M)}


def median_of(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


class Lttng:
    """A session of LTTng with the provider enabled, of a daemon of its own. `work` is None, and `why` says why, when there is none."""

    def __init__(self):
        self.work = None
        self.why = "lttng-tools and liblttng-ust-dev are not installed (deploy/install-deps bench)"
        tools = all(shutil.which(name) for name in ("lttng", "lttng-sessiond", "pkg-config", "gcc"))
        if not tools or subprocess.run(["pkg-config", "--exists", "lttng-ust"], check=False).returncode != 0:
            return
        self.work = tempfile.mkdtemp(prefix="traceplane-lttng-")
        self.env = dict(os.environ, HOME=self.work, LTTNG_HOME=self.work, LTTNG_UST_REGISTER_TIMEOUT="3000")
        for name, text in (("provider.h", PROVIDER), ("program.c", PROGRAM)):
            with open(os.path.join(self.work, name), "w") as f:
                f.write(text)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "lttng-ust"], check=True, capture_output=True,
                               text=True).stdout.split()
        subprocess.run(["gcc", "-O2", "-I.", "-o", "program", "program.c", *flags, "-ldl", "-pthread"], check=True,
                       cwd=self.work)
        self.pid_file = os.path.join(self.work, "pid")
        if subprocess.run(["lttng-sessiond", "--no-kernel", "--daemonize", "--pidfile", self.pid_file], env=self.env,
                          capture_output=True, check=False).returncode != 0:
            shutil.rmtree(self.work)
            self.work = None
            self.why = "lttng-sessiond does not start: is one running?"
            return
        self.lttng("create", "bench", "--output", os.path.join(self.work, "out"))
        self.lttng("enable-channel", "-u", "wide", "--subbuf-size=16M", "--num-subbuf=8")
        self.lttng("enable-event", "-u", "-c", "wide", "bench:*")
        self.lttng("start")

    def lttng(self, *args):
        done = subprocess.run(["lttng", "--no-sessiond", *args], env=self.env, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr + done.stdout)
        return done.stdout

    def discarded(self):
        """Events that it had no room for, since the session began."""
        return sum(map(int, re.findall(r"Discarded events: (\d+)", self.lttng("list", "bench"))))

    def figures(self, events, threads):
        """Those of a run; None, and `why`, when it records nothing."""
        try:
            return figures([os.path.join(self.work, "program"), str(events), str(threads)], self.env)
        except subprocess.CalledProcessError as e:
            self.why = "its tracepoints are not enabled" if e.returncode == 3 else f"its program ended with {e.returncode}"
            return None

    def stop(self):
        if self.work is None:
            return
        self.lttng("destroy", "bench")
        with open(self.pid_file) as f:
            os.kill(int(f.read()), signal.SIGTERM)
        shutil.rmtree(self.work)


def run(tool, report):
    """One and two threads; the ratios to LTTng are the medians of those of each turn."""
    lttng = Lttng()
    try:
        for threads in (1, 2):
            ours, theirs = [], []
            for _ in range(TURNS):
                ours.append(figures([tool("micro_emit"), str(TURN_EVENTS), str(threads)]))
                if lttng.work is not None:
                    theirs.append(lttng.figures(TURN_EVENTS // 4, threads))
            if lttng.work is not None and (lost := lttng.discarded()) > 0:
                lttng.why, theirs = f"it discarded {lost} events", [None]
            recorded = theirs and None not in theirs
            tell(report, threads, median_of(ours))
            if recorded:
                tell_lttng(report, threads, ours, theirs)
            else:
                report(f"emit.{threads}.lttng", f"not measured: {lttng.why}")
    finally:
        lttng.stop()


def run_post(tool, report, report_counts, adds_up, service):
    """The agent of a linked process, from the rings to the answers of the service: half a million slices a second."""
    costs = []
    exact = True
    for _ in range(ROUNDS):
        env = dict(os.environ, TRACEPLANE_URL=f"http://127.0.0.1:{service.port}")
        process = subprocess.Popen([tool("emit_post"), str(EVENTS // 2)], stdout=subprocess.PIPE, text=True, env=env)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("emit_post has not come up")
        trace = service.trace()
        out = process.communicate(timeout=300)[0]
        if process.returncode != 0:
            raise RuntimeError("emit_post failed")
        told = {name: float(value) for name, value in re.findall(r"^(\S+) (\S+) \S+$", out, re.M)}
        view = service.stop_trace(trace)
        exact = exact and told["dropped"] == 0 and all(adds_up(v, told["sent"], told["sent"]) for v in (view, service.wait_sealed(trace)))
        costs.append(told["agent"])
        service.call("DELETE", f"/traces/{trace}")
    cost = statistics.median(costs)
    report("emit.agent", f"{cost:.1f} ns of CPU a slice with an argument, encoded, posted and answered", cost, 60, True)
    report_counts("emit.post_exact", "emitted = stored = sent, before and after the seal, nothing dropped", exact)


def tell(report, threads, us):
    of = f"emit.{threads}."
    off = max(us[name] for name in us if name.startswith("off_") and name != "off_empty") - us["off_empty"]
    argument = us["argument"]
    agent = us["slice_1_int_agent"]
    report(of + "off", f"{max(off, 0):.2f} ns above an empty loop ({us['off_empty']:.2f} ns), {threads} thread(s)", off,
           1, True)
    report(of + "instant", f"{us['instant']:.1f} ns, CPU time of the thread, of which the clock is {us['read_clock']:.1f}", us["instant"], 16, True)
    report(of + "slice", f"{us['slice']:.1f} ns, begin and end, of which the clock is {2 * us['read_clock']:.1f}",
           us["slice"], 30, True)
    report(of + "argument", f"{max(argument, 0):.1f} ns an integer argument", argument, 6, True)
    report(of + "agent", f"{agent:.1f} ns of the agent's CPU a slice with an argument, to a batch of "
           f"{us['slice_1_int_size']:.0f} bytes a slice (without the post)", agent, 60, True)
    report(of + "exact", "events kept = events emitted: yes (micro_emit fails otherwise)")


def tell_lttng(report, threads, ours, theirs):
    us, lttng = median_of(ours), median_of(theirs)
    for kind in ("instant", "instant_1_int", "slice", "slice_1_int"):
        ratio = statistics.median(b[kind] / a[kind] for a, b in zip(ours, theirs))
        report(f"emit.{threads}.lttng.{kind}", f"{ratio:.1f} x faster than LTTng-UST ({lttng[kind]:.1f} ns, "
               f"{us[kind]:.1f} ns here)", ratio, 5)
