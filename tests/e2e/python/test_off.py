"""The module without a service, without a library, with wrong options and with values
that are of no use."""
import ctypes
import ctypes.util
import os
import subprocess
import sys
import threading
import unittest
import warnings

import traceplane
from standin import NOWHERE, recording_client


class Unprintable:
    def __str__(self):
        raise ValueError("cannot be shown")


class Unusable(int):
    """Its every use is an error."""

    def _fail(self, *_):
        raise ArithmeticError(Unprintable())

    __str__ = __repr__ = __format__ = __int__ = __index__ = __float__ = _fail
    __eq__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _fail


AWKWARD = [None, ["list"], {}, Unprintable(), Unusable(1), "zero\0byte", "\ud800",
           b"bytes", 10**5000, -1, 1e300, float("nan"), float("inf"), 1.79e18, object]


def run(code, **env):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], text=True,
                          capture_output=True, env={**os.environ, **env})


def everything(of, value):
    """Every function that records, with a value in each of its places."""
    with of.span(value, x=value) as s:
        s.add(y=value)
    of.instant(value, x=value)
    of.counter("c", value)
    of.counter(value, 1)
    of.complete(value, 1, 2, x=value)
    of.complete("c", value, 2)
    of.complete("c", 1, value)
    of.complete("c", 1, 2, track=value)
    of.flow(value, 1, "start")
    of.flow("f", value, "start")
    of.flow("f", 1, value)
    of.flow("f", 1, "end", track=value, time_ns=value)
    of.traced(len, name=value)("")
    if value is not None and not isinstance(value, int):
        with of.span("s", type=value):
            pass
        of.instant("i", type=value)
        of.counter("c", 1, type=value)
        of.is_on(value)


class Awkward(unittest.TestCase):
    def setUp(self):
        traceplane._warned.clear()

    def test_no_value_stops_a_program_that_is_recorded(self):
        for value in AWKWARD:
            c, _ = recording_client()
            with self.subTest(kind=type(value)), warnings.catch_warnings(), c:
                warnings.simplefilter("ignore")
                everything(c, value)
                traceplane.device_track(value, value)

    def test_a_value_without_a_text_is_recorded_as_a_remark_of_that(self):
        c, library = recording_client()
        with c, warnings.catch_warnings():
            warnings.simplefilter("error")
            c.instant("i", a=1, b=Unprintable(), c="x\0y")
            c.instant(Unprintable())
            with c.span(["list"]):
                pass
        names = [call[0] for call in library.calls]
        self.assertEqual(names, ["instant", "instant", "begin", "end", "close"])
        fields = library.calls[0][1][2]
        self.assertEqual([fields.items[0].value.i, fields.items[1].value.s.decode(),
                          fields.items[2].value.s.decode()],
                         [1, "<Unprintable without a text: ValueError>", "x\ufffdy"])
        remark = traceplane._intern("<Unprintable without a text: ValueError>")
        self.assertEqual([library.calls[1][1][1], library.calls[2][1][1]],
                         [remark, traceplane._intern("['list']")])

    def test_a_name_is_its_text_and_not_what_it_is_equal_to(self):
        c, library = recording_client()
        with c:
            for name in (1, True, 1.0):
                c.instant(name)
        self.assertEqual([call[1][1] for call in library.calls[:3]],
                         [traceplane._intern(name) for name in ("1", "True", "1.0")])

    def test_a_call_without_sense_is_left_out_and_warned_of_once(self):
        c, library = recording_client()
        with c, warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                c.counter("loss", None)
                c.flow("f", 1, "begin")
                c.complete("k", None, 1)
        self.assertEqual([call[0] for call in library.calls], ["close"])
        self.assertEqual(len(seen), 3, [str(w.message) for w in seen])
        self.assertIn("counter", str(seen[0].message))
        self.assertIn("start, step, end", str(seen[1].message))

    def test_a_type_that_is_no_id_is_said_to_be_the_fault(self):
        c, _ = recording_client()
        with c, warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            c.instant("i", type="ascend.KERNEL")
            c.counter("c", 1, type="ascend.KERNEL")
            c.complete("k", 1, 2, type="ascend.KERNEL")
            c.flow("f", 1, "start", type="ascend.KERNEL")
            with c.span("image", type="jpeg"):
                pass
        self.assertEqual(len(seen), 5)
        for w in seen:
            self.assertRegex(str(w.message), "type is no id .*(ascend.KERNEL|jpeg)")

    def test_a_warning_names_the_line_of_the_program(self):
        c, _ = recording_client()
        of_module = traceplane.open(NOWHERE)
        of_module._enabled = bytes([1]) * 256
        calls = (lambda: c.counter("loss", None),
                 lambda: traceplane.counter("loss", None),
                 lambda: c.span("s", type="x").__enter__(),
                 lambda: c.traced(5), lambda: traceplane.traced(5),
                 lambda: traceplane.device_track("x", 1))
        with c, warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for call in calls:
                traceplane._warned.clear()
                call()
        traceplane.close()
        self.assertEqual([w.filename for w in seen], [__file__] * len(calls))

    def test_times_may_be_floats_and_are_cut_to_64_bits(self):
        c, library = recording_client()
        with c:
            c.complete("k", 1.79e18, 2.5)
            c.complete("k", -5, 2**70)
            c.flow("f", -1, "start")
        times = [ctypes.cast(call[1][2], ctypes.POINTER(traceplane._Interval))[0]
                 for call in library.calls[:2]]
        self.assertEqual([(t.start_ns, t.duration_ns) for t in times],
                         [(1790000000000000000, 2), (0, 2**64 - 1)])

    def test_where_warnings_are_errors_they_are_no_errors_of_the_program(self):
        out = run("import traceplane\n"
                  "traceplane.open('http://127.0.0.1:1')\n"
                  "traceplane.client()._enabled = bytes([1]) * 256\n"
                  "traceplane.counter('loss', None)\n"
                  "print('runs')\n")
        self.assertEqual((out.returncode, out.stdout), (0, "runs\n"), out.stderr)
        self.assertRegex(out.stderr, "^RuntimeWarning: .*leaves out a call of counter.*\n$")

    def test_near_the_end_of_the_stack_recording_fails_no_sooner(self):
        def deep(n, c):
            if n > 0:
                return deep(n - 1, c)
            with c.span("s", x=Unprintable()) as s:
                s.add(y=2)
            c.instant("i", x=1)
            return True

        def most(c):
            for n in range(1000, 0, -1):
                try:
                    return deep(n, c) and n
                except RecursionError:
                    pass
        off, (on, _) = traceplane.Client(NOWHERE), recording_client()
        with off, on:
            self.assertEqual(most(on), most(off))


class Closed(unittest.TestCase):
    def setUp(self):
        traceplane._warned.clear()

    def test_a_client_that_is_closed_while_a_value_is_converted_is_not_used(self):
        class Closing:
            def __str__(self):
                c.close()
                return "closed"

        for what in ("instant", "complete", "span", "add", "name"):
            c, library = recording_client()
            with self.subTest(what):
                if what == "complete":
                    c.complete("k", 1, 2, x=Closing())
                elif what == "span":
                    with c.span("s", x=Closing()) as s:
                        s.add(y=1)
                elif what == "add":
                    with c.span("s") as s:
                        s.add(y=Closing())
                elif what == "name":
                    c.instant(Closing())
                else:
                    c.instant("i", x=Closing())
                names = [call[0] for call in library.calls]
                begun = ["begin"] if what == "add" else []
                self.assertEqual(names, begun + ["close"])

    def test_who_is_inside_at_a_close_ends_it(self):
        """As a signal handler or a finalizer may close in the middle of a call."""
        c, library = recording_client()
        pointer, seen = c._pointer, []

        def closes(at):
            c.close()
            seen.append((at == pointer, pointer in library.open))
            return 5
        self.assertEqual(c._do(closes), 5)
        self.assertEqual(seen, [(True, True)])
        self.assertEqual([call[0] for call in library.calls], ["close"])
        self.assertEqual(c._do(closes), 0)

    def test_threads_may_record_while_another_closes(self):
        """They switch as often as can be; a use of what is closed is an assertion."""
        before, failures = sys.getswitchinterval(), []
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(10):
                c, _ = recording_client()
                is_over = threading.Event()

                def record():
                    try:
                        while not is_over.is_set():
                            with c.span("s", a="x") as s:
                                s.add(b=1)
                            c.step()
                            c.stats()
                    except BaseException as e:
                        failures.append(e)
                threads = [threading.Thread(target=record) for _ in range(3)]
                for t in threads:
                    t.start()
                c.close()
                is_over.set()
                for t in threads:
                    t.join()
                self.assertIsNone(c._left)
        finally:
            sys.setswitchinterval(before)
        self.assertEqual((failures, traceplane._warned), ([], set()))


class Off(unittest.TestCase):
    def test_spans_pass_values_and_exceptions_when_nothing_is_recorded(self):
        @traceplane.traced
        def double(x):
            """Twice."""
            return 2 * x

        with traceplane.Client("http://127.0.0.1:1") as c:
            self.assertFalse(c.is_on())
            with c.span("a", x=1) as s:
                s.add(y=2)
            with self.assertRaises(ZeroDivisionError), c.span("b"):
                1 / 0
            c.counter("n", 1)
            c.instant("i")
            self.assertEqual(c.stats()["emitted"], 0)
        self.assertEqual(double(4), 8)
        self.assertEqual((double.__name__, double.__doc__), ("double", "Twice."))

    def test_ids_are_those_of_the_rfc(self):
        with traceplane.Client("http://127.0.0.1:1") as c:
            kernel = c.register_type("ascend", "KERNEL")
            self.assertEqual(kernel, 154)
            self.assertEqual(c.find_type("ascend.KERNEL"), kernel)
            self.assertEqual(c.register_type("ascend", "KERNEL"), kernel)
            with self.assertRaises(traceplane.Error):
                c.find_type("nobody.KNOWS")
            with self.assertRaises(traceplane.Error):
                c.register_type("a b", "X")

    def test_types_of_the_module_are_those_of_every_client_that_it_opens(self):
        traceplane.open(NOWHERE)
        early = traceplane.register_type("pytest", "EARLY", "counter", "GB")
        traceplane.open(NOWHERE)
        self.assertEqual(traceplane.find_type("pytest.EARLY"), early)
        child = os.fork()
        if child == 0:
            try:
                between = traceplane.register_type("pytest", "BETWEEN")
                traceplane.open(NOWHERE, flush_ms=1)
                os._exit(traceplane.find_type("pytest.EARLY") != early or
                         traceplane.find_type("pytest.BETWEEN") != between)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        traceplane.close()
        with self.assertRaises(traceplane.Error):
            traceplane.register_type("no.plugin", "X")

    def test_steps_are_counted(self):
        with traceplane.Client("http://127.0.0.1:1") as c:
            self.assertEqual([c.step(), c.step()], [1, 2])

    def test_a_closed_client_is_off(self):
        c = traceplane.Client("http://127.0.0.1:1")
        c.close()
        c.close()
        with c.span("a"):
            pass
        self.assertEqual(c.step(), 0)
        self.assertEqual(c.stats()["emitted"], 0)

    def test_a_wrong_option_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(traceplane.Error, "RING_BYTES"):
            traceplane.Client(ring_bytes=5)
        with self.assertRaisesRegex(traceplane.Error, "LATE_MS is 6000"):  # the last field
            traceplane.Client(late_ms=6000)
        with self.assertRaisesRegex(traceplane.Error, "ftp"):
            traceplane.Client("ftp://x")
        for name, value in (("rank", 2**32), ("rank", "zero"), ("ring_bytes", -1),
                            ("flush_ms", 0.5), ("job", "a\0b"), ("job", 5),
                            ("when_full", "wait"), ("when_full", [])):
            with self.subTest(name=name, value=value):
                with self.assertRaisesRegex(traceplane.Error, name):
                    traceplane.Client(NOWHERE, **{name: value})
        with traceplane.Client(NOWHERE) as c:
            for wrong in ((5, "X"), ("a", None), ("a", "X\0"), ("a", "X", "slices")):
                with self.subTest(wrong), self.assertRaises(traceplane.Error):
                    c.register_type(*wrong)

    def test_without_a_library_a_program_is_warned_once_and_runs(self):
        code = ("import traceplane\n"
                "a = traceplane.now()\n"
                "with traceplane.span('a') as s: s.add(b=1)\n"
                "traceplane.counter('c', 1); traceplane.flush(); traceplane.step()\n"
                "traceplane.instant('i', type='none')\n"
                "traceplane.flow('f', 1, 'start')\n"
                "traceplane.complete('k', a, 1, track=traceplane.device_track(1, 2))\n"
                "with traceplane.open(job='j') as c: c.traced(len)('')\n"
                "assert traceplane.version() == '' and traceplane.now() >= a > 1e18\n"
                "assert traceplane.register_type('a', 'B') == traceplane.NONE\n"
                "traceplane.traced(print)('runs')\n")
        for library in ("/nowhere.so", ctypes.util.find_library("c")):
            for flags in ("error", "default"):
                with self.subTest(library=library, flags=flags):
                    flag = f"import warnings; warnings.simplefilter('{flags}')\n"
                    out = run(flag + code, TRACEPLANE_LIBRARY=library)
                    self.assertEqual((out.returncode, out.stdout), (0, "runs\n"),
                                     out.stderr)
                    self.assertEqual(out.stderr.count("records nothing"), 1, out.stderr)

    def test_a_wrong_variable_is_warned_of_once_and_the_program_runs(self):
        out = run("import traceplane\n"
                  "with traceplane.span('a'): traceplane.traced(print)('runs')\n",
                  TRACEPLANE_RING_BYTES="5")
        self.assertEqual((out.returncode, out.stdout), (0, "runs\n"), out.stderr)
        self.assertRegex(out.stderr, "^RuntimeWarning: .*nothing.*RING_BYTES.*\n$")

    def test_a_warning_that_is_shown_by_what_is_traced_is_no_dead_end(self):
        out = run("import warnings; warnings.simplefilter('default')\n"
                  "import traceplane\n"
                  "def show(*_, **__):\n"
                  "    with traceplane.span('shows'): print('shown')\n"
                  "warnings.showwarning = show\n"
                  "with traceplane.span('a'): print('runs')\n",
                  TRACEPLANE_LIBRARY="/nowhere.so")
        self.assertEqual((out.returncode, out.stdout), (0, "shown\nruns\n"), out.stderr)

    def test_off_is_as_closed_for_every_function_of_a_client(self):
        off, closed = traceplane._Off(), traceplane.Client(NOWHERE)
        closed.close()
        for c in (off, closed):
            everything(c, 1)
            self.assertEqual((c.step(), c.is_on(), c.register_type("a", "B"),
                              c.find_type("kernel"), c.flush(), c.stats()["emitted"]),
                             (0, False, traceplane.NONE, traceplane.NONE, None, 0))

    def test_structures_are_as_long_as_those_of_the_header(self):
        """The library reads as much of the options as it is told there is."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            traceplane.open("http://127.0.0.1:1", rank=1, flush_ms=100, late_ms=50)
            traceplane.close()


unittest.main()
