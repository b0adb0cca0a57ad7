"""A program whose work is done in children of multiprocessing: fork, forkserver, spawn,
or executor. A child waits until it is recorded, works, and returns."""
import concurrent.futures
import multiprocessing
import multiprocessing.util
import sys
import threading
import time

import traceplane

WORK = traceplane.register_type("pytest", "WORK")  # in some children, before they begin


def wait_until_recorded():
    end = time.monotonic() + 60
    while not (traceplane.is_on(WORK) and traceplane.stats()["is_recording"]):
        if time.monotonic() > end:
            sys.exit("not recorded")
        time.sleep(0.005)


def on_a_thread(is_late):
    is_late.wait()
    for i in range(10):
        traceplane.instant("late", type=WORK, i=i)


def child(is_forked):
    if is_forked:
        traceplane.open(name="child")
    wait_until_recorded()
    for i in range(10):
        traceplane.instant("work", type=WORK, i=i)
    # The thread goes on when all that multiprocessing does at the end has begun.
    is_late = threading.Event()
    multiprocessing.util.Finalize(None, is_late.set, exitpriority=-1000)
    threading.Thread(target=on_a_thread, args=(is_late,)).start()


def task(i):
    wait_until_recorded()
    traceplane.instant("work", type=WORK, i=i)


def main(method):
    if method == "executor":
        context = multiprocessing.get_context("fork")
        pool = concurrent.futures.ProcessPoolExecutor(2, context, traceplane.open)
        with pool:
            list(pool.map(task, range(20)))
    else:
        context = multiprocessing.get_context(method)
        process = context.Process(target=child, args=(method == "fork",))
        process.start()
        process.join()
        assert process.exitcode == 0, process.exitcode


if __name__ == "__main__":
    main(sys.argv[1])
