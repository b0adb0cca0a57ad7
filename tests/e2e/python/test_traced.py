"""What traced() and span() make of each kind of thing that can be called: it does what
it did, it is what it was, and what is recorded is as long as it runs."""
import abc
import asyncio
import contextlib
import functools
import inspect
import threading
import types
import unittest
import warnings

import traceplane
from standin import recording_client

BEGIN, END = 0, 2  # phases of an asynchronous event


class WithClient(unittest.TestCase):
    """A client whose library is a stand-in that remembers its calls."""

    def setUp(self):
        traceplane._warned.clear()
        self.c, self.library = recording_client()
        self.addCleanup(self.c.close)


class Traced(WithClient):
    def seen(self):
        """The slices' begins and ends, and the asynchronous events' phases, so far."""
        phases = {BEGIN: "async begin", END: "async end"}
        return [phases[call[1][2]] if call[0] == "async_" else call[0]
                for call in self.library.calls]

    def names(self):
        """The numbers of the names that were begun."""
        return [call[1][1] for call in self.library.calls
                if call[0] in ("begin", "async_") and call[1][2] != END]

    def test_a_generator_lasts_until_it_is_exhausted(self):
        @self.c.traced
        def numbers(n):
            """Some."""
            for i in range(n):
                yield i
            return "returned"

        def outer():
            result = yield from numbers(2)
            self.assertEqual(result, "returned")

        self.assertTrue(inspect.isgeneratorfunction(numbers))
        self.assertEqual((numbers.__name__, numbers.__doc__), ("numbers", "Some."))
        g = outer()
        self.assertEqual((self.seen(), next(g)), ([], 0))
        self.assertEqual((self.seen(), next(g)), (["async begin"], 1))
        self.assertEqual((self.seen(), list(g)), (["async begin"], []))
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_a_generator_gets_what_is_sent_and_thrown_and_closed(self):
        got = []

        @self.c.traced
        def takes():
            try:
                got.append((yield 1))
                yield 2
            except KeyError as e:
                got.append(e)
                try:
                    yield 3
                finally:
                    got.append("closed")

        g, error = takes(), KeyError("thrown")
        self.assertEqual([next(g), g.send("sent"), g.throw(error)], [1, 2, 3])
        self.assertEqual(self.seen(), ["async begin"])
        g.close()
        self.assertEqual(got, ["sent", error, "closed"])
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_a_generator_that_nobody_exhausts_ends_when_it_goes(self):
        g = self.c.traced(lambda: (yield 1))()
        next(g)
        del g
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_an_asynchronous_generator_lasts_until_it_is_exhausted(self):
        @self.c.traced
        async def numbers(n):
            for i in range(n):
                await asyncio.sleep(0)
                yield i

        async def main():
            seen = []
            async for i in numbers(2):
                seen.append((i, self.seen()))
            return seen

        self.assertTrue(inspect.isasyncgenfunction(numbers))
        self.assertEqual(asyncio.run(main()),
                         [(0, ["async begin"]), (1, ["async begin"])])
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_an_asynchronous_generator_gets_what_is_sent_and_thrown_and_closed(self):
        got = []

        @self.c.traced
        async def takes():
            try:
                got.append((yield 1))
                yield 2
            except KeyError as e:
                got.append(e)
            try:
                got.append(inspect.trace())  # no error is being handled
                yield 3
            finally:
                await asyncio.sleep(0)
                got.append("closed")

        async def main():
            g, error = takes(), KeyError("thrown")
            items = [await g.__anext__(), await g.asend("sent"), await g.athrow(error)]
            self.assertEqual((items, self.seen()), ([1, 2, 3], ["async begin"]))
            await g.aclose()
            self.assertEqual(got, ["sent", error, [], "closed"])
            with self.assertRaises(StopAsyncIteration):
                await g.__anext__()
            g = takes()
            await g.__anext__()
            await g.asend(None)
            with self.assertRaisesRegex(ValueError, "passes"):
                await g.athrow(ValueError("passes"))

        asyncio.run(main())
        self.assertEqual(self.seen(), ["async begin", "async end"] * 2)

    def test_an_asynchronous_generator_that_is_left_is_closed_with_the_loop(self):
        @self.c.traced
        async def counts():
            try:
                while True:
                    yield 1
            finally:
                await asyncio.sleep(0)

        troubles, kept = [], []

        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: troubles.append(context))
            kept.append(counts())
            async for _ in kept[0]:
                break

        asyncio.run(main())
        self.assertEqual(troubles, [])
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_those_that_are_context_managers_stay_so(self):
        @contextlib.contextmanager
        @self.c.traced
        def plain():
            yield "value"

        @contextlib.asynccontextmanager
        @self.c.traced
        async def asynchronous():
            yield "value"

        async def main():
            async with asynchronous() as v:
                self.assertEqual(v, "value")
            async with asynchronous():
                raise StopAsyncIteration("passes")

        with plain() as v:
            self.assertEqual(v, "value")
        with self.assertRaisesRegex(StopIteration, "passes"), plain():
            raise StopIteration("passes")
        with self.assertRaisesRegex(StopAsyncIteration, "passes"):
            asyncio.run(main())
        self.assertEqual(self.seen(), ["async begin", "async end"] * 4)

    def test_what_runs_as_a_coroutine_is_one(self):
        class Model:
            async def forward(self, x):
                await asyncio.sleep(0)
                return x

            async def __call__(self, x):
                return await self.forward(x)

        @types.coroutine
        def old_style(x):
            yield
            return x

        m = Model()
        for f in (m, m.forward, functools.partial(m.forward), functools.partial(m)):
            with self.subTest(f=f):
                del self.library.calls[:]
                traced = self.c.traced(f)
                self.assertTrue(inspect.iscoroutinefunction(traced))
                self.assertEqual(asyncio.run(traced(5)), 5)
                self.assertEqual(self.seen(), ["async begin", "async end"])
        del self.library.calls[:]
        traced = self.c.traced(old_style)

        async def main():
            return await traced(6)
        self.assertEqual(asyncio.run(main()), 6)
        self.assertEqual(self.seen(), ["async begin", "async end"])

    def test_an_object_with_a_generator_to_call_is_one(self):
        class Numbers:
            def __call__(self):
                yield 1
        self.assertEqual(list(self.c.traced(Numbers())()), [1])
        self.assertEqual(self.seen(), ["async begin", "async end"])
        self.assertEqual(self.names(), [traceplane._intern(Numbers.__call__.__qualname__)])

    def test_a_class_is_called_and_not_what_its_objects_are(self):
        class Model:
            async def __call__(self):
                pass
        self.assertIsInstance(self.c.traced(Model)(), Model)
        self.assertEqual(self.seen(), ["begin", "end"])

    def test_who_only_makes_a_coroutine_is_warned_of_once(self):
        async def inside():
            return 7
        traced = self.c.traced(lambda: inside(), name="makes")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.assertEqual([asyncio.run(traced()) for _ in range(2)], [7, 7])
        self.assertEqual(self.seen(), ["begin", "end"] * 2)
        self.assertEqual(len(warned), 1, [str(w.message) for w in warned])
        self.assertRegex(str(warned[0].message), "makes.*coroutine.*async def")
        self.assertEqual(warned[0].filename, __file__)

    def test_methods_of_classes_stay_what_they_are(self):
        c = self.c

        class Model(abc.ABC):
            @c.traced
            @staticmethod
            def static(x):
                return x

            @c.traced(name="named")
            @classmethod
            def of_class(cls, x):
                return cls, x

            @c.span("span")
            @classmethod
            def with_span(cls, x):
                return cls, x

            @c.traced
            @classmethod
            async def asynchronous(cls):
                return cls

            @classmethod
            @c.traced
            def below(cls):
                return cls

        self.assertEqual((Model.static(1), Model.of_class(2), Model.with_span(3)),
                         (1, (Model, 2), (Model, 3)))
        self.assertEqual(self.seen(), ["begin", "end"] * 3)
        self.assertEqual(self.names(), [traceplane._intern(name) for name in (
            Model.static.__qualname__, "named", "span")])
        self.assertTrue(inspect.iscoroutinefunction(Model.asynchronous))
        self.assertEqual((asyncio.run(Model.asynchronous()), Model.below()),
                         (Model, Model))

    def test_what_cannot_be_called_is_left_as_it_is_and_warned_of_once(self):
        of_two = property(lambda self: 2)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.assertIs(self.c.traced(of_two), of_two)
            self.assertIs(self.c.span("x")(None), None)
        self.assertEqual(len(warned), 1, [str(w.message) for w in warned])

    def test_a_span_is_a_decorator(self):
        @self.c.span("load", type=7, size=64)
        def load(x):
            """Loads."""
            return load(x - 1) if x else "loaded"

        self.assertEqual((load.__name__, load.__doc__), ("load", "Loads."))
        self.assertEqual((load(2), self.seen()),
                         ("loaded", ["begin"] * 3 + ["end"] * 3))
        for call in self.library.calls[:3]:
            type_id, name, fields = call[1]
            self.assertEqual((type_id, name, fields.n, fields.items[0].value.i),
                             (7, traceplane._intern("load"), 1, 64))

    def test_a_span_that_decorates_is_asynchronous_where_traced_is(self):
        @self.c.span("steps")
        def steps():
            yield 1

        @self.c.span("load")
        async def load():
            pass

        self.assertEqual(list(steps()), [1])
        asyncio.run(load())
        self.assertEqual(self.seen(), ["async begin", "async end"] * 2)
        self.assertEqual(self.names(),
                         [traceplane._intern(name) for name in ("steps", "load")])

    def test_the_modules_spans_use_the_client_that_it_has_by_then(self):
        """A module is imported, and its functions are decorated, before any open()."""
        before = traceplane._default
        traceplane._default = None
        self.addCleanup(setattr, traceplane, "_default", before)
        s = traceplane.span("used again")

        @traceplane.span("decorated")
        def decorated():
            pass

        self.assertIsNone(traceplane._default, "nothing was opened")
        for _ in range(2):
            traceplane._default, library = recording_client()
            with s, s:
                decorated()
            traceplane._default.close()
            self.assertEqual([call[0] for call in library.calls],
                             ["begin"] * 3 + ["end"] * 3 + ["close"])


class OutOfOrder(WithClient):
    """Spans that are held over a yield or an await, where others begin and end."""

    def seen(self):
        """What was begun and ended, by the types, each of which is used once."""
        return [(call[0], call[1][0]) for call in self.library.calls]

    def held(self, type):
        with self.c.span("held", type=type) as s:
            yield s
            s.add(x=1)
            yield s

    def test_one_that_is_left_ends_those_that_are_in_it_and_nothing_else(self):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for _ in range(2):
                del self.library.calls[:]
                with self.c.span("outermost", type=1):
                    g = self.held(2)
                    next(g)
                    with self.c.span("inner", type=3):
                        g.close()
                self.assertEqual(self.seen(), [("begin", 1), ("begin", 2), ("begin", 3),
                                               ("end", 3), ("end", 2), ("end", 1)])
        self.assertEqual(len(warned), 1, [str(w.message) for w in warned])
        self.assertRegex(str(warned[0].message), "held.*yield")
        self.assertEqual(warned[0].filename, __file__)
        self.assertEqual(traceplane._here.spans, [])

    def test_one_that_nobody_leaves_ends_with_the_one_around_it(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.c.span("outer", type=1):
                g = self.held(2)
                next(g)
            with self.c.span("next", type=3):
                g.close()
        self.assertEqual(self.seen(), [("begin", 1), ("begin", 2), ("end", 2),
                                       ("end", 1), ("begin", 3), ("end", 3)])

    def test_no_argument_goes_to_another_span(self):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            g = self.held(1)
            next(g)
            with self.c.span("inner", type=2) as inner:
                next(g)
                inner.add(x=1)
            inner.add(x=2)
            g.close()
        self.assertEqual(self.seen(), [("begin", 1), ("begin", 2), ("add", 2),
                                       ("end", 2), ("end", 1)])
        self.assertEqual(len(warned), 1, [str(w.message) for w in warned])

    def test_tasks_of_one_loop_end_none_of_each_others_later_than_it_ended(self):
        order = []

        async def task(type, goes_on, lets_go):
            with self.c.span("task", type=type):
                await goes_on.wait()
                lets_go.set()
            order.append(type)

        async def main():
            a, b, c = (asyncio.Event() for _ in range(3))
            a.set()
            first = asyncio.ensure_future(task(1, b, c))
            await asyncio.sleep(0)
            await asyncio.gather(task(2, c, b), task(3, a, b), first)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asyncio.run(main())
        self.assertEqual(order, [3, 1, 2])
        self.assertEqual(self.seen(), [("begin", 1), ("begin", 2), ("begin", 3),
                                       ("end", 3), ("end", 2), ("end", 1)])

    def test_spans_of_two_clients_have_an_order_each(self):
        other, library = recording_client()
        self.addCleanup(other.close)
        g = self.held(1)
        next(g)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with other.span("other", type=2) as s:
                next(g)
                g.close()
                s.add(x=1)
        self.assertEqual(self.seen(), [("begin", 1), ("add", 1), ("end", 1)])
        self.assertEqual([call[0] for call in library.calls], ["begin", "add", "end"])

    def test_a_span_that_is_used_by_two_threads_at_once_ends_in_each(self):
        s = self.c.span("shared", type=1)
        is_in, is_out = threading.Event(), threading.Event()

        def enter():
            with s:
                is_in.set()
                is_out.wait()

        thread = threading.Thread(target=enter)
        thread.start()
        is_in.wait()
        with s:
            pass
        s.__exit__()  # nothing of it is open on this thread
        is_out.set()
        thread.join()
        self.assertEqual(self.seen(), [("begin", 1)] * 2 + [("end", 1)] * 2)


unittest.main()
