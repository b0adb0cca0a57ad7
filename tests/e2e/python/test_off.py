"""The module without a service, without a library and with wrong options."""
import os
import subprocess
import sys
import unittest
import warnings

import traceplane


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
        with self.assertRaisesRegex(traceplane.Error, "ftp"):
            traceplane.Client("ftp://x")

    def test_without_a_library_a_program_is_warned_once_and_runs(self):
        code = ("import traceplane\n"
                "with traceplane.span('a') as s: s.add(b=1)\n"
                "traceplane.counter('c', 1); traceplane.flush(); traceplane.step()\n"
                "traceplane.traced(print)('runs')\n")
        out = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                             env={**os.environ, "TRACEPLANE_LIBRARY": "/nowhere.so"})
        self.assertEqual((out.returncode, out.stdout), (0, "runs\n"))
        self.assertEqual(out.stderr.count("records nothing"), 1, out.stderr)

    def test_structures_are_as_long_as_those_of_the_header(self):
        """The library reads as much of the options as it is told there is."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            traceplane.open("http://127.0.0.1:1", rank=1, flush_ms=100, log=False)
            traceplane.close()


unittest.main()
