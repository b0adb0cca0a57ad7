"""A program that a scenario records: it waits until it is recorded, works, ends."""
import asyncio
import os
import sys
import threading
import time
import warnings

import traceplane

KERNEL = traceplane.register_type("pytest", "KERNEL")
MEMORY = traceplane.register_type("pytest", "MEMORY", kind="counter", unit="bytes")


class Unprintable:
    def __str__(self):
        raise ValueError("cannot be shown")


@traceplane.traced
def decorated(x):
    return x + 1


@traceplane.traced(name="renamed", type=KERNEL)
def with_name():
    return "value"


@traceplane.traced
async def asynchronous(seconds):
    await asyncio.sleep(seconds)
    return seconds


@traceplane.span("spanned", rows=9)
def with_a_span():
    return "spanned"


@traceplane.traced
def generator():
    for i in range(3):
        time.sleep(0.01)
        yield i


@traceplane.traced
async def asynchronous_generator():
    for i in range(3):
        await asyncio.sleep(0.01)
        yield i


async def overlap():
    got = [i async for i in asynchronous_generator()]
    return got + await asyncio.gather(asynchronous(0.02), asynchronous(0.01))


def out_of_order():
    """A generator holds a span; it is closed in one that begins later."""
    def holds():
        with traceplane.span("held"):
            yield
    g = holds()
    next(g)
    with warnings.catch_warnings(), traceplane.span("around"):
        warnings.simplefilter("ignore")
        g.close()
        traceplane.instant("let go")


def on_a_thread():
    for i in range(100):
        with traceplane.span("threaded", i=i):
            pass


def main():
    print("ready", traceplane.step(), flush=True)
    end = time.monotonic() + 20
    while not (traceplane.is_on() and traceplane.stats()["is_recording"]):
        if time.monotonic() > end:
            sys.exit("not recorded")
        time.sleep(0.005)
    with traceplane.span("outer", a=1, b=2.5, c=True, d="text ✓", e=[1, 2]) as s:
        with traceplane.span("inner", type=KERNEL):
            assert decorated(1) == 2
        s.add(rows=7)
    assert with_name() == "value" and with_a_span() == "spanned"
    assert list(generator()) == [0, 1, 2]
    out_of_order()
    try:
        with traceplane.span("raises"):
            raise KeyError("passes through")
    except KeyError:
        pass
    traceplane.counter("used", 2**53 + 1, type=MEMORY)
    traceplane.counter("loss", 0.5)
    traceplane.counter("diverged", float("nan"))
    traceplane.instant("mark", where="here")
    traceplane.instant("awkward", v=Unprintable(), nothing=None)
    traceplane.instant(["list"])
    traceplane.complete("at a float", time.time() * 1e9, 1000)
    assert asyncio.run(overlap()) == [0, 1, 2, 0.02, 0.01]
    start = traceplane.now()
    track = traceplane.device_track(3, 7)
    traceplane.complete("gemm", start, 1000, type=KERNEL, track=track, grid=4)
    threads = [threading.Thread(target=on_a_thread) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    child = os.fork()
    if child == 0:
        assert not traceplane.is_on()
        with traceplane.span("of the child"):
            decorated(1)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    traceplane.flush(10000)
    print("done", traceplane.stats()["emitted"], flush=True)
    if len(sys.argv) > 1:
        traceplane.close()


main()
