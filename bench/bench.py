"""The figures of the service, each beside a yardstick that is measured in the same run.

CPU figures are those of the service's process (user + system, from /proc), so they are "per core" whatever the
load generator costs. Every figure is the median of several rounds. A figure that misses its target is named at the
end; the exit status is 1 only when there is none, or when not every event was kept or accounted for.
"""

import gzip
import http.client
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import emit

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("TRACEPLANE_BUILD", "build"))
BINARY = os.path.join(ROOT, os.environ.get("TRACEPLANED", os.path.join(BUILD, "traceplaned")))
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
ONLY = [w for w in os.environ.get("BENCH_ONLY", "").split(",") if w]
BIG_GB = float(os.environ.get("BENCH_BIG_GB", "4"))
ROUNDS = 5
IDLE = 2000
LOOPS_SECONDS = 3
TRIGGER_IDLE_S = 35  # longer than a poll is held
REAL_FILE = os.path.join(ROOT, "..", "shared", "traces", "cuda-109k-events.json.gz")
failures = []  # targets that were missed
wrong = []  # what must hold on any machine


def tool(name):
    return os.path.join(BUILD, "bench", name)


def report(name, text, value=None, target=None, at_most=False):
    """One line; with a target, says whether it is met."""
    verdict = ""
    if target is not None:
        met = value <= target if at_most else value >= target
        verdict = f"  [{'<=' if at_most else '>='} {target:g}: {'met' if met else 'MISSED'}]"
        if not met:
            failures.append(name)
    print(f"{name:26} {text}{verdict}", flush=True)


def report_counts(name, text, is_exact):
    print(f"{name:26} {text}: {'yes' if is_exact else 'NO'}", flush=True)
    if not is_exact:
        wrong.append(name)


def adds_up(view, posted, stored):
    """Whether emitted = stored + filtered + dropped, in all, for each stream and each producer, and is what was posted."""
    counts = [view["counts"], *(s["counts"] for s in view["streams"]), *(m["counts"] for m in view["matched"])]
    even = all(c["emitted"] == c["stored"] + c["filtered"] + c["dropped"] for c in counts)
    return even and view["counts"]["emitted"] == posted and view["counts"]["stored"] == stored


class Service:
    def __init__(self, *args):
        self.data = tempfile.mkdtemp(prefix="traceplane-bench-")
        self.process = subprocess.Popen([BINARY, "--listen", "127.0.0.1:0", "--data-dir", self.data,
                                         "--kineto-socket", "", *args],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        shutil.rmtree(self.data)

    def cpu(self):
        """CPU seconds of the service so far."""
        return cpu_of(self.process.pid)

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * PAGE

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body=body, headers=headers or {})
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {data[:500]}")
        return data

    def json(self, method, path, value=None):
        body = None if value is None else json.dumps(value)
        return json.loads(self.call(method, path, body, {"Content-Type": "application/json"}))

    def trace(self, **request):
        return self.json("POST", "/traces", request)["id"]

    def stop_trace(self, trace):
        self.json("POST", f"/traces/{trace}/stop")
        while True:
            view = self.json("GET", f"/traces/{trace}")
            if view["state"] in ("complete", "failed"):
                return view
            time.sleep(0.01)

    def wait_sealed(self, trace):
        while True:
            view = self.json("GET", f"/traces/{trace}")
            if all(s["state"] == "sealed" for s in view["streams"]):
                return view
            time.sleep(0.01)

    def post_events(self, trace, connections, batches, events):
        """posted, accepted, filtered, rejected, bytes as the load generator added them up."""
        out = subprocess.run([tool("post_events"), str(self.port), trace, str(connections), str(batches), str(events)],
                             check=True, capture_output=True, text=True).stdout
        return [int(n) for n in out.split()]

    def fetch(self, path, headers=(), rss=None):
        """Bytes, seconds to the first byte and CPU seconds of a download that is thrown away."""
        before = self.cpu()
        command = ["curl", "--noproxy", "*", "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download} %{time_starttransfer}",
                   *[f"-H{h}" for h in headers], f"http://127.0.0.1:{self.port}{path}"]
        curl = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while rss is not None and curl.poll() is None:
            rss.append(self.rss())
            time.sleep(0.01)
        status, size, first = curl.communicate()[0].split()
        if status != "200" or curl.returncode != 0:
            raise RuntimeError(f"{path}: {status}, curl {curl.returncode}")
        return int(size), float(first), self.cpu() - before


def wrk(port, path, script=None, seconds=3):
    # A machine that stands still for seconds makes a figure worse, and none impossible.
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "--timeout", "60s", *(["-s", script] if script else []), f"http://127.0.0.1:{port}{path}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def bench_rest(service):
    """Small GET and POST of a known type, 64 keep-alive connections, against libmicrohttpd alone."""
    body = json.dumps({"plugin": "ascend", "type_name": "KERNEL"})
    service.call("POST", "/types", body)
    answers = [service.call("GET", "/types/ascend.KERNEL"), service.call("POST", "/types", body)]
    work = tempfile.mkdtemp()
    paths = []
    for i, answer in enumerate(answers):
        paths.append(os.path.join(work, f"answer{i}"))
        with open(paths[-1], "wb") as f:
            f.write(answer)
    script = os.path.join(work, "post.lua")
    with open(script, "w") as f:
        f.write(f"wrk.method = 'POST'\nwrk.body = '{body}'\nwrk.headers['Content-Type'] = 'application/json'\n")
    bare = subprocess.Popen([tool("bare_mhd"), *paths], stdout=subprocess.PIPE, text=True)
    port = int(bare.stdout.readline())
    try:
        for name, path, lua in (("rest.get", "/types/ascend.KERNEL", None), ("rest.post_type", "/types", script)):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(wrk(service.port, path, lua))
                theirs.append(wrk(port, path, lua))
            a, b = statistics.median(ours), statistics.median(theirs)
            ratio = statistics.median(x / y for x, y in zip(ours, theirs))
            report(name, f"{ratio:.2f} x bare libmicrohttpd ({a:,.0f} against {b:,.0f} requests/s)", ratio, 0.9)
    finally:
        bare.terminate()
        bare.wait()
        shutil.rmtree(work)


def cpu_of(pid):
    """CPU seconds of a process so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def gone_after(pid, port, most=2.0):
    """Seconds until clients that left in the middle of a body are closed, or None when they are not within `most`."""
    def files():
        return len(os.listdir(f"/proc/{pid}/fd"))

    before = files()
    head = b"POST /types HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for client in clients:
        client.sendall(head)
    time.sleep(0.2)
    for client in clients:
        client.sendall(b"x" * 50)
        client.close()
    begun = time.monotonic()
    while time.monotonic() - begun < most:
        if files() <= before:
            return time.monotonic() - begun
        time.sleep(0.01)
    return None


def bench_loops(service):
    """Event loops (docs/decisions/003): the two of libmicrohttpd around a bare handler, and that of the service."""
    service.call("POST", "/types", json.dumps({"plugin": "ascend", "type_name": "KERNEL"}))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.NamedTemporaryFile() as answer:
        answer.write(service.call("GET", "/types/ascend.KERNEL"))
        answer.flush()
        rows = [("loops.service", service.process, service.port)]
        for name, more in (("loops.epoll", []), ("loops.poll", ["poll"])):
            bare = subprocess.Popen([tool("bare_mhd"), answer.name, answer.name, *more], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True)
            rows.append((name, bare, int(bare.stdout.readline())))
        for name, process, port in rows:
            rates = []
            for n_idle in (0, IDLE):
                idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(n_idle)]
                before = cpu_of(process.pid)
                time.sleep(LOOPS_SECONDS)
                share = (cpu_of(process.pid) - before) / LOOPS_SECONDS
                before = cpu_of(process.pid)
                n = wrk(port, "/types/ascend.KERNEL", seconds=LOOPS_SECONDS) * LOOPS_SECONDS
                rates.append(n / (cpu_of(process.pid) - before))
                for client in idle:
                    client.close()
                time.sleep(0.5)
            gone = gone_after(process.pid, port)
            report(name, f"{rates[0]:,.0f} requests per CPU second at 64 connections, {rates[1]:,.0f} with {IDLE} idle ones beside "
                   f"(which alone take {share:.1%} of a core); gone clients closed {'after %.2f s' % gone if gone is not None else 'not within 2 s'}")
        for _, process, _ in rows[1:]:
            process.terminate()
            process.wait()


def bench_events(service):
    """Event JSON into stored streams, with the seal told apart; json-c parsing the same bytes as the yardstick."""
    service.call("POST", "/types", json.dumps({"plugin": "ascend", "type_name": "KERNEL"}))
    rates, speeds, sealed, exact = [], [], [], True
    for _ in range(ROUNDS):
        trace = service.trace(filter={"include": ["ascend.KERNEL"]})
        start = service.cpu()
        posted, accepted, filtered, rejected, size = service.post_events(trace, 8, 1000, 1000)
        used = service.cpu() - start
        view = service.stop_trace(trace)
        whole = service.cpu() - start
        exact = exact and accepted + filtered + rejected == posted == 1000000 and adds_up(view, posted, accepted)
        rates.append(posted / used)
        speeds.append(size / used)
        sealed.append(posted / whole)
        service.call("DELETE", f"/traces/{trace}")
    sample = tempfile.NamedTemporaryFile(suffix=".json")
    one = ('{"ph":"X","cat":"ascend.KERNEL","name":"gemm_bf16_00","pid":4000,"tid":0,"ts":123456.789,"dur":1.250,"args":'
           '{"External id":12345,"correlation":12345,"Input Dims":[[64,64],[]],"pad":"' + "x" * 27 + '"}}')
    sample.write(("[" + ",".join([one] * 20000) + "]").encode())
    sample.flush()
    jsonc = 200000 / float(subprocess.run([tool("jsonc_parse"), sample.name, "10"], check=True, capture_output=True,
                                          text=True).stdout)
    rate, speed = statistics.median(rates), statistics.median(speeds)
    report_counts("events.exact", "1,000,000 events in 1,000 batches from 8 connections: stored + filtered + rejected = posted", exact)
    report("events.rate", f"{rate / 1e6:.2f} M events/s per core, HTTP included; {rate / jsonc:.1f} x json-c's parser "
           f"({jsonc / 1e6:.2f} M/s)", rate / 1e6, 2)
    report("events.bytes", f"{speed / 1e6:,.0f} MB/s per core", speed / 1e6, 400)
    report("events.with_seal", f"{statistics.median(sealed) / 1e6:.2f} M events/s per core, with the sorting at the end")


def bench_native(service):
    """Batches of linked producers from the socket into streams, and from the stop to complete."""
    rates, wall_rates, busy, ends, seals, exact = [], [], [], [], [], True
    for _ in range(ROUNDS):
        trace = service.trace()
        start = service.cpu()
        out = subprocess.run([tool("post_native"), str(service.port), trace, "8", "160"], check=True, capture_output=True,
                             text=True).stdout
        posted, accepted, _, ns = [int(n) for n in out.split()]
        used = service.cpu() - start
        rates.append(posted / used)
        wall_rates.append(posted / ns * 1e9)
        busy.append(used / ns * 1e9)
        start = time.monotonic()
        view = service.stop_trace(trace)
        ends.append((time.monotonic() - start) / posted * 1e6)
        sealed = service.wait_sealed(trace)
        seals.append((time.monotonic() - start) / posted * 1e6)
        exact = exact and accepted == posted and all(adds_up(v, posted, posted) for v in (view, sealed))
        service.call("DELETE", f"/traces/{trace}")
    rate, end = statistics.median(rates), statistics.median(ends)
    report_counts("native.exact", f"{posted:,} slices in 160 batches from 8 producers: emitted = stored = posted, before and after the seal", exact)
    report("native.rate", f"{rate / 1e6:.2f} M slices/s per core from socket to stream", rate / 1e6, 5)
    # The load generator, whose sends do a part of the receiving, has the rest of the processors; so what all of them could do is that of one,
    # measured while several are at work.
    cores = len(os.sched_getaffinity(0))
    report("native.all_cores", f"{cores * rate / 1e6:.2f} M slices/s with {cores} cores, by the cost while {statistics.median(busy):.2f} of them were "
           f"at work; {statistics.median(wall_rates) / 1e6:.2f} M by the clock, the load generator beside it", cores * rate / 1e6, 5 * cores)
    report("native.complete", f"{end:.3f} s from stop to complete, per million events", end, 0.1, at_most=True)
    report("native.sealed", f"{statistics.median(seals):.3f} s from stop to sealed, which a first download waits for")


def bench_downloads(service):
    """Downloads of a finished trace of 2 M events; gzip -1 as a yardstick."""
    trace = service.trace()
    posted, accepted, *_ = service.post_events(trace, 8, 400, 5000)
    exact = accepted == posted and adds_up(service.stop_trace(trace), posted, posted)
    report_counts("download.exact", f"{posted:,} events: emitted = stored = posted", exact)
    service.fetch(f"/traces/{trace}/download")
    chrome, packed, perfetto, first = [], [], [], []
    for _ in range(ROUNDS):
        size, latency, used = service.fetch(f"/traces/{trace}/download")
        chrome.append(size / used)
        first.append(latency)
        _, _, used = service.fetch(f"/traces/{trace}/download", ["Accept-Encoding: gzip"])
        packed.append(size / used)
        pf, _, used = service.fetch(f"/traces/{trace}/download?format=perfetto")
        perfetto.append(pf / used)
    sample = tempfile.NamedTemporaryFile(suffix=".json")
    subprocess.run(["curl", "--noproxy", "*", "-s", "-r", "0-199999999", "-o", sample.name,
                    f"http://127.0.0.1:{service.port}/traces/{trace}/download"], check=True)
    before = os.times()
    subprocess.run(["gzip", "-1", "-c", sample.name], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    yardstick = os.path.getsize(sample.name) / used
    rate = statistics.median(chrome)
    report("download.chrome", f"{rate / 1e6:,.0f} MB/s per core, socket included ({size / 1e6:,.0f} MB)", rate / 1e6, 1000)
    rate = statistics.median(packed)
    report("download.chrome_gzip", f"{rate / 1e6:,.0f} MB/s of JSON per core; {rate / yardstick:.1f} x gzip -1 of the "
           f"finished text ({yardstick / 1e6:,.0f} MB/s)", rate / 1e6, 400)
    rate = statistics.median(perfetto)
    report("download.perfetto", f"{rate / 1e6:,.0f} MB/s per core ({pf / 1e6:,.0f} MB)", rate / 1e6, 1000)
    report("download.first_byte", f"{statistics.median(first) * 1e3:.1f} ms", statistics.median(first) * 1e3, 10, True)
    service.call("DELETE", f"/traces/{trace}")


def bench_big(service):
    """Memory while a trace of several gigabytes of JSON is sent."""
    trace = service.trace()
    batches = int(BIG_GB * 1e9 / 183 / 20000 / 8 + 1) * 8
    posted, accepted, *_ = service.post_events(trace, 8, batches, 20000)
    start = time.monotonic()
    view = service.stop_trace(trace)
    seconds = time.monotonic() - start
    report_counts("download.big_exact", f"{posted:,} events: emitted = stored = posted", accepted == posted and adds_up(view, posted, posted))
    time.sleep(3)  # the seal's memory is given back after a second without work
    idle = service.rss()
    samples = []
    size, first, used = service.fetch(f"/traces/{trace}/download", rss=samples)
    growth = max(samples) - idle
    report("download.big", f"{size / 1e9:.2f} GB of JSON at {size / used / 1e6:,.0f} MB/s per core, first byte after "
           f"{first * 1e3:.1f} ms, sealed in {seconds:.1f} s")
    report("download.big_memory", f"RSS grew by {growth / 1e6:.1f} MB", growth / 1e6, 32, True)
    service.call("DELETE", f"/traces/{trace}")


def bench_files(service):
    """Whole gzipped files in, gunzip included; json-c on the finished text as the yardstick."""
    if os.path.exists(REAL_FILE):
        with open(REAL_FILE, "rb") as f:
            packed = f.read()
        what = "cuda-109k-events"
    else:
        sys.path.insert(0, os.path.join(ROOT, "tests", "corpus"))
        import synthetic
        packed = gzip.compress(synthetic.dump(synthetic.rank_trace(1, 0, 50000)).encode(), 6)
        what = "a synthetic trace (../shared/traces is not there)"
    text = gzip.decompress(packed)
    speeds, sealed, exact = [], [], True
    for _ in range(ROUNDS):
        trace = service.trace()
        start = service.cpu()
        replies = [json.loads(service.call("POST", f"/traces/{trace}/files?rank={i}", packed, {"Content-Type": "application/gzip"}))
                   for i in range(8)]
        used = service.cpu() - start
        view = service.stop_trace(trace)
        speeds.append(8 * len(text) / used)
        sealed.append(8 * len(text) / (service.cpu() - start))
        posted, accepted = (sum(r[key] for r in replies) for key in ("posted", "accepted"))
        exact = exact and posted > 0 and accepted == posted and adds_up(view, posted, posted)
        service.call("DELETE", f"/traces/{trace}")
    sample = tempfile.NamedTemporaryFile(suffix=".json")
    sample.write(text)
    sample.flush()
    jsonc = len(text) / float(subprocess.run([tool("jsonc_parse"), sample.name], check=True, capture_output=True,
                                             text=True).stdout)
    rate = statistics.median(speeds)
    report_counts("files.exact", f"{posted:,} events in 8 files: emitted = stored = posted", exact)
    report("files.gzip", f"{rate / 1e6:,.0f} MB/s of JSON per core, {what}; {rate / jsonc:.1f} x json-c without gunzip",
           rate / 1e6, 300)
    report("files.with_seal", f"{statistics.median(sealed) / 1e6:,.0f} MB/s with the sorting at the end")


def bench_emit(service):
    """What recording costs the threads of a linked process, and its agent; LTTng-UST beside it where it is installed."""
    emit.run(tool, report)
    emit.run_post(tool, report, report_counts, adds_up, service)


def run_trigger(service, where, n, rounds, idle_s):
    """The last line of the load generator, or what it complained about; and the CPU of the service while all are idle."""
    process = subprocess.Popen([tool("trigger"), where, str(n), str(rounds), str(idle_s)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    line, idle = "", []
    for line in process.stdout:
        if line in ("joined\n", "idle\n"):
            idle.append(service.cpu())
    complaint = process.stderr.read().strip()
    if process.wait() != 0:
        return None, complaint, None
    return [float(x) for x in line.split()], None, (idle[1] - idle[0]) / idle_s


def bench_trigger(_):
    """From POST /traces to the first events of simulated producers, in a service of their own; over its unix socket and over TCP."""
    for n, rounds, most, idle_s in ((100, 20, 20, 1), (1000, 10, 50, TRIGGER_IDLE_S), (10000, 5, 300, 1)):
        trigger_at("unix", n, rounds, most, 1)
        trigger_at("tcp", n, rounds, most, idle_s)


def trigger_at(way, n, rounds, most, idle_s):
    with tempfile.TemporaryDirectory(prefix="traceplane-bench-") as folder:
        path, room = os.path.join(folder, "socket"), str(2 * n + 64)
        service = Service("--listen", f"unix:{path}", "--max-connections", room, "--max-connections-per-peer", room, "--max-producers-per-job", room,
                          "--max-streams-per-trace", room)
        try:
            figures, complaint, idle = run_trigger(service, path if way == "unix" else str(service.port), n, rounds, idle_s)
        finally:
            service.stop()
        if figures is None:
            report(f"trigger.{n}.{way}", f"no figure: {complaint}")
            wrong.append(f"trigger.{n}.{way}")
            return
        p50, p99, _, skew, own, told, read = figures
        report(f"trigger.{n}.{way}", f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; at the worst the last was told at {told:.1f} ms, which was read at "
               f"{read:.1f} ms; the load generator used {own:.0f} ms CPU a round", p99, most, at_most=True)
        report(f"trigger.{n}.{way}.skew", f"{skew:.2f} ms at the worst", skew, 1, at_most=True)
        if n == 1000 and way == "tcp":
            report(f"trigger.{n}.idle", f"{idle:.2%} of a core with {n} idle producers", idle * 100, 1, at_most=True)


def leave_last_processor(pid):
    """Keep the threads of a process away from the last processor, where a load generator is that stays there."""
    others = sorted(os.sched_getaffinity(0))[:-1]
    for thread in os.listdir(f"/proc/{pid}/task") if others else []:
        os.sched_setaffinity(int(thread), others)


def bench_kineto(_):
    """How PyTorch processes are answered: a thousand at the same moment, and a few beside one that floods."""
    name = f"traceplane-bench-{os.getpid()}"
    service = Service("--kineto-socket", name)

    def run(*args):
        out = subprocess.run([tool("kineto"), args[0], name, *map(str, args[1:])], check=True, capture_output=True, text=True)
        return [int(n) for n in out.stdout.split()]

    try:
        leave_last_processor(service.process.pid)
        p50, p99, worst, answered, asked, again, whole = run("polls", 1000, 5)
        report("kineto.polls", f"p50 {p50} us, p99 {p99} us, worst {worst} us; {answered} of {asked} answered; "
               f"{again} found the queue full and came again, all of it p99 {whole / 1e3:.0f} ms", p99 / 1e3, 1, at_most=True)
    finally:
        service.stop()
    service = Service("--kineto-socket", name)
    try:
        alone = run("flood", 5, 5, 0, 0, 0)
        for kind, waits, rate in (("100k.nonblocking", 0, 100000), ("100k.blocking", 1, 100000), ("nonblocking", 0, 0), ("blocking", 1, 0)):
            asked, answered, sends, tries, worst, tried, flood = run("flood", 5, 5, 1, waits, rate)
            report(f"kineto.flood.{kind}", f"one process sent {tried:,} datagrams/s, and {flood:,} came through; {answered} of {asked} "
                   f"polls of five others answered, {answered / max(alone[1], 1):.2f} x as many as without; {tries - sends} of {tries} "
                   f"sends found the queue full; slowest answer {worst / 1e3:.1f} ms", answered / max(asked, 1), 0.95)
    finally:
        service.stop()


def main():
    # The loops are a comparison behind a decision and not a figure of the service: only when they are named.
    parts = [("loops", bench_loops)] if "loops" in ONLY else []
    parts += [("rest", bench_rest), ("events", bench_events), ("native", bench_native), ("emit", bench_emit), ("trigger", bench_trigger),
              ("kineto", bench_kineto), ("downloads", bench_downloads), ("files", bench_files), ("big", bench_big)]
    room = ["--max-connections-per-peer", "8192"] if "loops" in ONLY else []
    service = Service(*room)
    for name, run in parts:
        if ONLY and name not in ONLY:
            continue
        try:
            run(service)
        except (RuntimeError, OSError, http.client.HTTPException, subprocess.SubprocessError) as e:
            report(name, f"no figure: {e} {getattr(e, 'stderr', None) or ''}")
            wrong.append(name)
            service.stop()  # it may be left with a trace that runs
            service = Service(*room)
    service.stop()
    if failures:
        print(f"missed: {', '.join(failures)}")
    if wrong:
        sys.exit(f"wrong: {', '.join(wrong)}")


main()
