"""Kineto-like traces made from a seed: what real ones hold, with all that makes merging them hard."""

import decimal
import json
import random

BASE = 1790857026000000000


def microseconds(ns):
    return decimal.Decimal(ns) / 1000


def rank_trace(seed, rank, n=400):
    """A trace of one rank; every rank has the same pids, tids, streams and flow numbers."""
    rng = random.Random(seed * 1000 + rank)
    events = [
        {"ph": "M", "name": "process_name", "pid": 4000, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 4000, "tid": 0, "ts": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_sort_index", "pid": 4000, "tid": 0, "ts": 0, "args": {"sort_index": 4000}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7 "}},
        {"ph": "M", "name": "thread_name", "pid": 4000, "tid": 4001, "args": {"name": "autograd \"thread\" é"}},
    ]
    now = 1000 + rank * 17
    for i in range(n):
        now += rng.randrange(0, 50000)
        host, device = rng.randrange(500, 40000), rng.randrange(0, 30000)
        events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 37}", "pid": 4000, "tid": 4000 + i % 2,
                       "ts": microseconds(now), "dur": microseconds(host),
                       "args": {"External id": i, "Input Dims": [[rng.randrange(64), 64], []],
                                "Concrete Inputs": ["", "{\"a\": 1}"], "big": 2**63 + i, "ratio": decimal.Decimal("1.5")}})
        if i % 3 == 0:
            events.append({"ph": "s", "id": i, "pid": 4000, "tid": 4000 + i % 2, "ts": microseconds(now),
                           "cat": "ac2g", "name": "ac2g"})
            events.append({"ph": "X", "cat": "kernel", "name": "void gemm<float, 8>(\"x\\y\")", "pid": 0, "tid": 7,
                           "ts": microseconds(now + 700), "dur": microseconds(device),
                           "args": {"stream": 7, "correlation": i, "grid": [1, 2, 3], "occupancy": None}})
            events.append({"ph": "f", "id": i, "pid": 0, "tid": 7, "ts": microseconds(now + 700), "cat": "ac2g",
                           "name": "ac2g", "bp": "e"})
        if i % 11 == 0:
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 4000,
                           "tid": 4000, "ts": microseconds(now), "args": {"Bytes": -512, "Device Type": 0}})
        if i % 13 == 0:
            events.append({"ph": "C", "name": "HBM", "pid": 4000, "tid": 0, "ts": microseconds(now),
                           "args": {"read": i, "write": decimal.Decimal("0.25")}})
        if i % 17 == 0:
            events.append({"ph": "b", "cat": "copy", "name": "h2d", "id": f"0x{i:x}", "pid": 4000, "tid": 4000,
                           "ts": microseconds(now)})
            events.append({"ph": "e", "cat": "copy", "name": "h2d", "id": f"0x{i:x}", "pid": 4000, "tid": 4000,
                           "ts": microseconds(now + 900)})
    events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
                   "ts": microseconds(1000), "dur": microseconds(now), "args": {"Op count": 0}})
    rng.shuffle(events)
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Fake", "totalGlobalMem": 1073741824}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "host_name": "node\"1",
            "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE, "traceEvents": events, "traceName": f"/tmp/r{rank}.json"}


def dump(value):
    """JSON text with decimals as they are."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(k)}:{dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(v) for v in value) + "]"
    if isinstance(value, decimal.Decimal):
        text = format(value, "f")
        return text if "." in text else text + ".0"

    return json.dumps(value, ensure_ascii=False)
