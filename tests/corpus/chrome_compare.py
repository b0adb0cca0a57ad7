"""Compare Chrome traces event by event, exactly: what went in against what came out.

Numbers are read as integers and decimals, never as doubles, so that a nanosecond at epoch scale or an integer
above 2**53 cannot hide. Uses nothing but Python's own JSON parser.
"""

import collections
import decimal
import gzip
import json

LANE_STEP = 1000000  # an overlapping slice moves to tid + k * LANE_STEP

# Members that become part of an event's identity by themselves.
KNOWN = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"}


def load(data):
    """Parse a trace given as bytes (gzip or not) with exact numbers."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data.decode("utf-8"), parse_float=decimal.Decimal)


def nanoseconds(microseconds):
    """Microseconds as JSON has them (number or text of one) to whole nanoseconds."""
    value = decimal.Decimal(microseconds) * 1000
    return int(value.to_integral_value(decimal.ROUND_HALF_UP))


def freeze(value):
    """A hashable form in which values that differ by type or value differ."""
    if isinstance(value, dict):
        return ("object", tuple((k, freeze(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("array", tuple(freeze(v) for v in value))
    if isinstance(value, decimal.Decimal):
        return ("double", float(value))
    return (type(value).__name__, value)


Event = collections.namedtuple("Event", "ph cat name pid tid ts dur id args rest")


def normalise(trace, base=None):
    """The events of a trace in absolute nanoseconds, begin/end pairs joined to slices as a viewer does."""
    if isinstance(trace, list):
        trace = {"traceEvents": trace}
    base = int(trace.get("baseTimeNanoseconds", 0)) if base is None else base
    events, open_begins = [], collections.defaultdict(list)
    for e in trace["traceEvents"]:
        ts = base + nanoseconds(e["ts"]) if "ts" in e else None
        rest = {k: v for k, v in e.items() if k not in KNOWN}
        event = Event("i" if e["ph"] == "I" else e["ph"], e.get("cat"), e.get("name"), freeze(e.get("pid")),
                      freeze(e.get("tid")), ts, nanoseconds(e["dur"]) if "dur" in e else None,
                      freeze(e.get("id")), freeze(e.get("args")), freeze(rest))
        lane = (event.pid, event.tid)
        if event.ph == "B":
            open_begins[lane].append(event)
        elif event.ph == "E":
            if open_begins[lane]:
                begin = open_begins[lane].pop()
                events.append(begin._replace(ph="X", dur=ts - begin.ts))
        else:
            events.append(event)
    for begins in open_begins.values():
        events.extend(begins)
    return events


def as_written(event):
    """What our writer is allowed to change of an event: a negative duration becomes 0."""
    if event.dur is not None and event.dur < 0:
        return event._replace(dur=0)
    return event


def is_moved_lane(tid_in, tid_out):
    """Whether an event may have moved from one thread row to the other because of an overlap."""
    if tid_in == tid_out:
        return True
    if tid_in[0] == "int" and tid_out[0] == "int":
        return tid_out[1] > tid_in[1] and (tid_out[1] - tid_in[1]) % LANE_STEP == 0
    return tid_in[0] == "str" and tid_out[0] == "str" and tid_out[1].startswith(tid_in[1] + " (lane ")


def multiset(events, drop):
    """Count events without the members named in drop."""
    return collections.Counter(e._replace(**{name: None for name in drop}) for e in events)


def describe(counter, limit=3):
    return [f"{n} x {e}" for e, n in list(counter.items())[:limit]]


def compare(sources, out, merged=False):
    """Differences between source traces and one download of them all, as a list of sentences; [] when intact.

    sources: parsed traces, one a rank. merged: process ids and flow ids may be renumbered, one to one.
    """
    problems = []
    wanted = [as_written(e) for s in sources for e in normalise(s)]
    got = normalise(out)
    drop = ("tid", "pid", "id") if merged else ("tid",)
    missing = multiset([e for e in wanted if e.ph != "M"], drop) - multiset([e for e in got if e.ph != "M"], drop)
    extra = multiset([e for e in got if e.ph != "M"], drop) - multiset([e for e in wanted if e.ph != "M"], drop)
    if missing:
        problems.append(f"{sum(missing.values())} events are missing, such as {describe(missing)}")
    if extra:
        problems.append(f"{sum(extra.values())} events are new, such as {describe(extra)}")
    problems += compare_metadata(sources, out, merged)
    problems += compare_lanes(wanted, got, merged)
    if merged and not problems:
        problems += compare_identities(sources, got)
    return problems


def compare_metadata(sources, out, merged):
    """Every metadata event of the sources must be there; labels and order of processes may be ours in a merge."""
    ours = {"process_labels", "process_sort_index", "process_name"} if merged else set()

    def metas(trace):
        return [e for e in normalise(trace, base=0) if e.ph == "M" and e.name not in ours]

    drop = ("pid", "ts") if merged else ("ts",)
    wanted = collections.Counter()
    for s in sources:
        wanted += multiset(metas(s), drop)
    missing = wanted - multiset(metas(out), drop)
    return [f"{sum(missing.values())} metadata events are missing, such as {describe(missing)}"] if missing else []


def compare_lanes(wanted, got, merged):
    """An event stays on its row, or has moved to an extra lane of it."""
    drop = {"tid": None, "pid": None, "id": None} if merged else {"tid": None}
    rows = collections.defaultdict(lambda: ([], []))
    for which, events in ((0, wanted), (1, got)):
        for e in events:
            if e.ph != "M":
                rows[e._replace(**drop)][which].append(e.tid)
    for key, (tids_in, tids_out) in rows.items():
        rest = list(tids_out)
        for tid in sorted(tids_in, key=repr):
            fit = next((t for t in rest if t == tid), None) or next((t for t in rest if is_moved_lane(tid, t)), None)
            if fit is None:
                return [f"row {tid} became one of {tids_out} for {key}"]
            rest.remove(fit)
    return []


def compare_identities(sources, got):
    """In a merge, two processes or flows of different ranks never share a number, and one never has two."""
    problems = []
    for member in ("pid", "id"):
        unique = {}
        for e in got:
            if e.ph != "M":
                key = e._replace(pid=None, tid=None, id=None)
                unique[key] = None if key in unique else getattr(e, member)
        forward, backward = {}, {}
        seen = collections.Counter()
        for s in sources:
            for e in normalise(s):
                if e.ph != "M":
                    seen[as_written(e)._replace(pid=None, tid=None, id=None)] += 1
        for rank, s in enumerate(sources):
            for e in normalise(s):
                key = as_written(e)._replace(pid=None, tid=None, id=None)
                new = unique.get(key)
                if e.ph == "M" or seen[key] != 1 or new is None or getattr(e, member) == freeze(None):
                    continue
                old = (rank, getattr(e, member))
                if forward.setdefault(old, new) != new:
                    problems.append(f"{member} {old} became both {forward[old]} and {new}")
                if backward.setdefault(new, old) != old:
                    problems.append(f"{member} {new} stands for both {backward[new]} and {old}")
                if len(problems) > 3:
                    return problems
    return problems
