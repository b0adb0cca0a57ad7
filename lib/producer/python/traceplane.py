"""Record what a Python program does, when a Traceplane service asks for it.

    import traceplane

    with traceplane.span("load batch", size=64):
        ...

    @traceplane.traced
    def forward(x): ...

    for batch in data:
        traceplane.step()
        traceplane.counter("loss", loss)

It is libtraceplane.so by ctypes: nothing to build. The first use opens a client by the
TRACEPLANE_ variables (TRACEPLANE_URL, ...); open() does it with options. While no trace
is on, a span costs a fraction of a microsecond and records nothing; without a library
or a service the program runs on just the same. Spans of one thread nest. What `traced`
makes of an `async def` or a generator is recorded as an asynchronous event, which may
overlap others of its thread; a `with span()` around an await or a yield is not, so
nothing else may use spans meanwhile.

What records (span, traced, step, instant, counter, complete, flow, device_track) raises
nothing, whatever it is given: a value without a text is recorded as a remark of that,
and a call that cannot be understood is left out and warned of once. What prepares
(open, Client, register_type, find_type) raises Error for what is wrong.

Threads: everything may be called from any thread, also while another one closes. Fork:
the child of a process that has a client records nothing until it calls open(). Exit:
what was recorded is sent, for at most flush_ms; likewise when a child of
multiprocessing ends. os._exit() and a signal that kills send nothing: flush() before.
"""

import ctypes
import ctypes.util
import functools
import inspect
import itertools
import operator
import os
import sys
import threading
import time
import types
import warnings

__all__ = [
    "Client", "Error", "open", "close", "client", "span", "traced", "step", "instant",
    "counter", "complete", "flow", "device_track", "register_type", "find_type",
    "is_on", "flush", "stats", "now", "version",
]

NONE = 255  # a type that is never recorded
_NOTHING = bytes(256)  # the types of which a client that is off records any
_TEXT_MAX_NAMES = 65536
_ERR_BYTES = 512
_FIELDS_MAX = 32
_EINVAL = -1  # enum tp_code

_INT, _DOUBLE, _BOOL, _TEXT, _COPY = range(5)
_KINDS = {"slice": 1, "instant": 2, "counter": 3}
_PHASES = {"start": 0, "step": 1, "end": 2}


class Error(Exception):
    """A call failed; `code` is the library's (enum tp_code)."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class _Err(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * _ERR_BYTES)]


class _Options(ctypes.Structure):
    _fields_ = [
        ("options_bytes", ctypes.c_size_t),
        ("url", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("has_rank", ctypes.c_bool),
        ("rank", ctypes.c_uint32),
        ("world_size", ctypes.c_uint32),
        ("backend", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("ring_bytes", ctypes.c_size_t),
        ("rings_bytes_max", ctypes.c_size_t),
        ("backlog_bytes", ctypes.c_size_t),
        ("when_full", ctypes.c_int),
        ("block_us", ctypes.c_uint32),
        ("flush_ms", ctypes.c_uint32),
        ("is_off", ctypes.c_bool),
        ("log", ctypes.c_bool),
        ("late_ms", ctypes.c_uint32),
    ]


class _Value(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("d", ctypes.c_double), ("s", ctypes.c_char_p)]


class _Field(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("value", _Value)]


class _Fields(ctypes.Structure):
    _fields_ = [("items", ctypes.POINTER(_Field)), ("n", ctypes.c_size_t)]


class _Interval(ctypes.Structure):
    _fields_ = [
        ("start_ns", ctypes.c_uint64),
        ("duration_ns", ctypes.c_uint64),
        ("track", ctypes.c_uint32),
    ]


class _FlowPoint(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("phase", ctypes.c_int),
        ("track", ctypes.c_uint32),
        ("time_ns", ctypes.c_uint64),
    ]


class _Stats(ctypes.Structure):
    _fields_ = [
        ("emitted", ctypes.c_uint64),
        ("sent", ctypes.c_uint64),
        ("waiting", ctypes.c_uint64),
        ("filtered", ctypes.c_uint64),
        ("dropped_ring_full", ctypes.c_uint64),
        ("dropped_backlog", ctypes.c_uint64),
        ("dropped_too_large", ctypes.c_uint64),
        ("is_registered", ctypes.c_bool),
        ("is_recording", ctypes.c_bool),
        ("dropped_after_stop", ctypes.c_uint64),
        ("dropped_refused", ctypes.c_uint64),
        ("types_refused", ctypes.c_uint32),
    ]


_CLIENT = ctypes.c_void_p
_NO_FIELDS = _Fields(None, 0)

# Name, result, arguments, and whether it may take long: then the interpreter goes on.
_FUNCTIONS = [
    ("tp_open", ctypes.c_int,
     [ctypes.POINTER(_Options), ctypes.POINTER(_CLIENT), ctypes.POINTER(_Err)], True),
    ("tp_close", None, [_CLIENT], True),
    ("tp_flush", ctypes.c_int, [_CLIENT, ctypes.c_uint32, ctypes.POINTER(_Err)], True),
    ("tp_register_type", ctypes.c_int,
     [_CLIENT, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
      ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(_Err)], False),
    ("tp_find_type", ctypes.c_int,
     [_CLIENT, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(_Err)],
     False),
    ("tp_get_stats", None, [_CLIENT, ctypes.POINTER(_Stats), ctypes.c_size_t], False),
    ("tp_step", ctypes.c_uint64, [_CLIENT], False),
    ("tp_version", ctypes.c_char_p, [], False),
    ("tp_intern", ctypes.c_uint32, [ctypes.c_char_p], False),
    ("tp_now", ctypes.c_uint64, [], False),
    ("tp_begin", None, [_CLIENT, ctypes.c_uint, ctypes.c_uint32, _Fields], False),
    ("tp_add", None, [_CLIENT, ctypes.c_uint, _Fields], False),
    ("tp_end", None, [_CLIENT, ctypes.c_uint], False),
    ("tp_instant", None, [_CLIENT, ctypes.c_uint, ctypes.c_uint32, _Fields], False),
    ("tp_counter", None, [_CLIENT, ctypes.c_uint, ctypes.c_uint32, ctypes.c_double],
     False),
    ("tp_counter_int", None, [_CLIENT, ctypes.c_uint, ctypes.c_uint32, ctypes.c_int64],
     False),
    ("tp_device_track", ctypes.c_uint32, [ctypes.c_uint32, ctypes.c_uint32], False),
    ("tp_complete", None,
     [_CLIENT, ctypes.c_uint, ctypes.c_uint32, ctypes.POINTER(_Interval), _Fields],
     False),
    ("tp_flow", None,
     [_CLIENT, ctypes.c_uint, ctypes.c_uint32, ctypes.POINTER(_FlowPoint)], False),
    ("tp_async", None,
     [_CLIENT, ctypes.c_uint, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint64], False),
]


class _Library:
    """The functions of libtraceplane.so as attributes, and where it was found."""

    def __init__(self, path):
        self.path = path
        slow, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, result, arguments, is_slow in _FUNCTIONS:
            try:
                function = getattr(slow if is_slow else quick, name)
            except AttributeError:
                raise OSError(f"{path} is of another version: no {name}()") from None
            function.restype = result
            function.argtypes = arguments
            setattr(self, {"tp_async": "async_"}.get(name, name[3:]), function)


def _candidates():
    here = os.path.dirname(os.path.realpath(__file__))
    if "TRACEPLANE_LIBRARY" in os.environ:
        yield os.environ["TRACEPLANE_LIBRARY"]
        return
    yield os.path.join(here, "libtraceplane.so")
    yield os.path.join(here, "../../../build/libtraceplane.so")  # in a source tree
    yield os.path.join(here, "../../../lib/libtraceplane.so.0")  # as it is installed
    yield "libtraceplane.so.0"
    found = ctypes.util.find_library("traceplane")
    if found is not None:
        yield found


@functools.lru_cache(maxsize=None)
def _find_library():
    """The library, or the text of why there is none: it is looked for once."""
    failures = []
    for path in _candidates():
        try:
            return _Library(path)
        except OSError as e:
            failures.append(str(e))
    return "libtraceplane.so cannot be loaded: " + "; ".join(failures)


def _library():
    found = _find_library()
    if isinstance(found, str):
        raise OSError(found)
    return found


_warned = set()  # what has been warned of


def _level_of_program():
    """How far up the stack of who asks the program is: what called this module."""
    level, frame = 1, sys._getframe(1)
    ours = frame.f_code.co_filename
    while frame.f_back is not None and frame.f_code.co_filename == ours:
        level, frame = level + 1, frame.f_back
    return level


def _warn_once(of, message):
    """Warn where nothing may be raised: a filter may make an error of a warning."""
    if of in _warned:
        return
    _warned.add(of)
    message = f"traceplane {message}"
    try:
        warnings.warn(message, RuntimeWarning, _level_of_program())
    except Exception:
        try:
            print(f"RuntimeWarning: {message}", file=sys.stderr)
        except Exception:
            pass


def _left_out(what, error, type_id=0):
    """A call was left out, since its values are of no use; maybe that of its type."""
    why = f"{type(error).__name__}: {_text_of(error)}"
    if not isinstance(type_id, int):
        why = f"type is no id of register_type() or find_type(): {_text_of(type_id)}"
    _warn_once(what, f"leaves out a call of {what}: {why}")


def _records_nothing(reason):
    _warn_once(None, f"records nothing: {reason}")


def _text_of(value):
    """A value as a plain str, whatever its __str__ does."""
    try:
        text = str(value)
        return text if type(text) is str else str.__str__(text)
    except Exception as e:
        return f"<{type(value).__name__} without a text: {type(e).__name__}>"


def _bytes_of(text):
    """A plain str as the library takes it: UTF-8 that ends at its first zero byte."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")


_names = {}


def _intern(text):
    """The library's number of a text."""
    if type(text) is not str:
        text = _text_of(text)
    number = _names.get(text)
    if number is None:
        number = _library().intern(_bytes_of(text))
        if len(_names) < _TEXT_MAX_NAMES:
            _names[text] = number
    return number


def _set_value(item, value):
    if isinstance(value, bool):
        item.kind, item.value.i = _BOOL, value
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        item.kind, item.value.i = _INT, value
    elif isinstance(value, float):
        item.kind, item.value.d = _DOUBLE, value
    else:
        item.kind, item.value.s = _COPY, _bytes_of(_text_of(value))


def _fields_of(arguments):
    """Arguments as the library takes them: what is no number is text."""
    if not arguments:
        return _NO_FIELDS
    n = min(len(arguments), _FIELDS_MAX)
    items = (_Field * n)()
    for item, (key, value) in zip(items, arguments.items()):
        item.key = _intern(key)
        _set_value(item, value)
    return _Fields(items, n)


def _ns(value):
    """A time or a duration in nanoseconds, from 0 to 2^64 - 1."""
    return min(max(int(value), 0), 2**64 - 1)


def _option_text(name, value):
    """A str, bytes or path as the library takes it; None stays None."""
    if value is None:
        return None
    try:
        data = os.fsencode(value)
    except (TypeError, UnicodeError) as e:
        raise Error(_EINVAL, f"{name} is no text: {e}") from None
    if b"\0" in data:
        raise Error(_EINVAL, f"{name} has a zero byte in it")
    return data


def _option_number(name, value, bits):
    """A whole number from 0 that fits; None is 0."""
    try:
        number = 0 if value is None else operator.index(value)
    except TypeError as e:
        raise Error(_EINVAL, f"{name} is no whole number: {e}") from None
    if not 0 <= number < 2**bits:
        raise Error(_EINVAL, f"{name} is not from 0 to {2**bits - 1}: {number}")
    return number


def _option_word(name, value, words):
    try:
        return words[value]
    except (KeyError, TypeError):
        raise Error(_EINVAL, f"{name} is none of {', '.join(words)}: "
                             f"{_text_of(value)}") from None


_clients = set()  # that are open, in this process


class Client:
    """A connection to a service. One a process is usual; the functions of the module
    use one of their own. Options are those of struct tp_options; what is not given
    comes from the environment.

    Raises Error for a wrong option, OSError when there is no library.
    """

    def __init__(self, url=None, *, token=None, job=None, name=None, rank=None,
                 world_size=0, backend=None, device=None, ring_bytes=0,
                 rings_bytes_max=0, backlog_bytes=0, when_full="drop", block_us=0,
                 flush_ms=0, is_off=False, log=False, late_ms=0):
        self._start_off(_library())
        options = _Options(
            ctypes.sizeof(_Options), _option_text("url", url),
            _option_text("token", token), _option_text("job", job),
            _option_text("name", name), rank is not None,
            _option_number("rank", rank, 32),
            _option_number("world_size", world_size, 32),
            _option_text("backend", backend), _option_text("device", device),
            _option_number("ring_bytes", ring_bytes, 64),
            _option_number("rings_bytes_max", rings_bytes_max, 64),
            _option_number("backlog_bytes", backlog_bytes, 64),
            _option_word("when_full", when_full, {"drop": 0, "block": 1}),
            _option_number("block_us", block_us, 32),
            _option_number("flush_ms", flush_ms, 32), bool(is_off), bool(log),
            _option_number("late_ms", late_ms, 32))
        pointer, err = _CLIENT(), _Err()
        _check(self._library.open(ctypes.byref(options), ctypes.byref(pointer),
                                  ctypes.byref(err)), err)
        self._pointer = pointer.value
        # The library sets a byte for each type that is being recorded.
        self._enabled = (ctypes.c_ubyte * 256).from_address(pointer.value)
        _clients.add(self)
        _plan_end_of_child()
        try:
            self._span_type = self.find_type("user_annotation")
            self._counter_type = self.register_type("python", "COUNTER", "counter")
        except BaseException:
            self.close()
            raise

    def _start_off(self, library):
        self._library = library
        self._enabled = _NOTHING
        self._span_type = self._counter_type = NONE
        self._pointer = None  # into the library; close() takes it away
        self._left = None  # what it took away and nobody has given back yet
        self._inside = []  # an item for each call that may be using either
        self._lock = threading.RLock()  # guards the taking; finalizers close, too

    def _do(self, function, *arguments):
        """Call a function of the library with the client; 0 when that is closed.

        Who gives the pointer back has first taken it away and then looked who is
        inside; who uses it is first inside and then looks for it. So it stays while it
        is used, whatever threads, signal handlers and finalizers do meanwhile."""
        inside = self._inside  # in the child of a fork it is another one
        try:
            inside.append(None)
            pointer = self._pointer
            return 0 if pointer is None else function(pointer, *arguments)
        finally:
            inside.pop()
            if self._left is not None:
                self._give_back()

    def _ask(self, function, *arguments):
        """As _do(), for what may fail."""
        err = _Err()
        _check(self._do(function, *arguments, ctypes.byref(err)), err)

    def _give_back(self):
        with self._lock:
            if self._inside:
                return  # the last of them does it
            pointer, self._left = self._left, None
        if pointer is not None:
            self._library.close(pointer)

    def _forget(self):
        """In the child of a fork: all is the parent's, and its threads are not here."""
        self._start_off(self._library)

    def close(self):
        """Send what is recorded and end. The client may be used on: it is off. When a
        flush() of another thread is under way, it is that one that ends it."""
        with self._lock:
            self._enabled = _NOTHING
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                self._left = pointer
        _clients.discard(self)
        self._give_back()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def register_type(self, plugin, type_name, kind="slice", unit=None):
        """Register an activity type, or find it; returns its id."""
        plugin = _option_text("plugin", plugin)
        type_name = _option_text("type_name", type_name)
        unit = _option_text("unit", unit)
        kind = _option_word("kind", kind, _KINDS)
        type_id = ctypes.c_uint(NONE)
        if self._pointer is not None:
            self._ask(self._library.register_type, plugin, type_name, kind, unit,
                      ctypes.byref(type_id))
        return type_id.value

    def find_type(self, name):
        """The id of a type by name, such as "plugin.TYPE" or Kineto's "kernel"."""
        name = _option_text("name", name)
        type_id = ctypes.c_uint(NONE)
        if self._pointer is not None:
            self._ask(self._library.find_type, name, ctypes.byref(type_id))
        return type_id.value

    def is_on(self, type=None):
        """Whether a type is being recorded; by default that of spans."""
        try:
            return self._enabled[self._span_type if type is None else type] != 0
        except (IndexError, TypeError):
            return False

    def span(self, name, type=None, **arguments):
        """A slice for a `with` statement, or a decorator that does what traced() does.
        Its add() gives it more arguments. Up to 32 arguments are kept, and 1023 bytes
        of a text."""
        return Span(self, name, type, arguments)

    def traced(self, function=None, *, name=None, type=None):
        """Decorator: each call is a slice, named as the function unless told otherwise.

        What is left and gone on with (an `async def`, a generator, an asynchronous
        generator) becomes an asynchronous event, which lasts from its first step to its
        end. It is still what the inspect module says of it. A classmethod or a
        staticmethod remains one; what cannot be called is given back as it is."""
        if function is None:
            return functools.partial(self.traced, name=name, type=type)
        return _traced(self, function, name, type)

    def step(self):
        """Say that a step of the workload begins; returns its number, from 1."""
        return 0 if self._pointer is None else self._do(self._library.step)

    # A RecursionError is passed over in silence: there is no room for a warning.

    def instant(self, name, type=None, **arguments):
        """An instant on this thread."""
        try:
            type = self._span_type if type is None else type
            if self._enabled[type]:
                self._do(self._library.instant, type, _intern(name),
                         _fields_of(arguments))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("instant()", e, type)

    def counter(self, name, value, type=None):
        """A value at this moment. Without a type it is one of python.COUNTER."""
        try:
            type = self._counter_type if type is None else type
            if not self._enabled[type]:
                return
            if isinstance(value, int) and -(2**63) <= value < 2**63:
                self._do(self._library.counter_int, type, _intern(name), value)
            else:
                self._do(self._library.counter, type, _intern(name), float(value))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("counter()", e, type)

    def complete(self, name, start_ns, duration_ns, type=None, track=0, **arguments):
        """A slice that is over; start_ns on the clock of now(), track of
        device_track()."""
        try:
            type = self._span_type if type is None else type
            if self._enabled[type]:
                when = _Interval(_ns(start_ns), _ns(duration_ns), int(track))
                self._do(self._library.complete, type, _intern(name),
                         ctypes.byref(when), _fields_of(arguments))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("complete()", e, type)

    def flow(self, name, id, phase, type=None, track=0, time_ns=0):
        """A point of an arrow between slices; phase "start", "step" or "end". Of the id
        the lower 63 bits count."""
        try:
            type = self._span_type if type is None else type
            if self._enabled[type]:
                phase = _option_word("phase", phase, _PHASES)
                point = _FlowPoint(int(id) % 2**63, phase, int(track), _ns(time_ns))
                self._do(self._library.flow, type, _intern(name), ctypes.byref(point))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("flow()", e, type)

    def flush(self, timeout_ms=2000):
        """Wait until all that was recorded is with the service. Raises Error when it is
        not in time."""
        timeout_ms = _option_number("timeout_ms", timeout_ms, 32)
        if self._pointer is None:
            return
        self._ask(self._library.flush, timeout_ms)

    def stats(self):
        """What became of the events of the present trace, or the last, as a dict."""
        stats = _Stats()
        if self._pointer is not None:
            self._do(self._library.get_stats, ctypes.byref(stats), ctypes.sizeof(stats))
        return {name: getattr(stats, name) for name, _ in _Stats._fields_}


def _check(code, err):
    if code != 0:
        raise Error(code, err.message.decode("utf-8", "replace"))


class _Off(Client):
    """What the module uses when there is no client: it is as one that is closed."""

    def __init__(self):
        self._start_off(None)


class _Here(threading.local):
    def __init__(self):
        self.spans = []  # that are open on the thread: each with its client and type


_here = _Here()


class Span:
    """One slice. Enter and leave it in the same thread, innermost first: not around a
    yield or an await, where others may begin and end theirs. For that there is traced().
    Who leaves it while others are open in it ends them, too, and is warned of it once.

    As a decorator it records each call of the function, as traced() does, with its
    arguments where that is a slice."""

    __slots__ = ("_owner", "_name", "_type", "_arguments")

    def __init__(self, owner, name, type, arguments):
        self._owner = owner  # None: the module's client when it is entered
        self._name = name
        self._type = type  # None: that of spans
        self._arguments = arguments

    def __call__(self, function):
        return _traced(self._owner, function, self._name, self._type, self._arguments)

    def __enter__(self):
        try:
            c, type = self._owner or client(), self._type
            type = c._span_type if type is None else type
            if c._enabled[type]:
                spans = _here.spans
                c._do(c._library.begin, type, _intern(self._name),
                      _fields_of(self._arguments))
                spans.append((self, c, type))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("span()", e, self._type)
        return self

    def add(self, **arguments):
        """Add arguments to the slice while it is open, up to 32 with those it has. What
        is more is left out, and so are all while other slices are open in it."""
        try:
            spans = _here.spans
            at = _find(self, spans)
            if at is None:
                return
            _, c, type = spans[at]
            if any(other[1] is c for other in spans[at + 1:]):
                raise ValueError("others are open in it")
            c._do(c._library.add, type, _fields_of(arguments))
        except RecursionError:
            pass
        except Exception as e:
            _left_out("add() of a span", e)

    def __exit__(self, *_):
        try:
            spans = _here.spans
            if spans and spans[-1][0] is self:
                _, c, type = spans.pop()
                c._do(c._library.end, type)
            elif spans:
                _end_with_others(self, spans)
        except RecursionError:
            pass


def _find(span, spans):
    """Where a span is among those that are open; None: it is not recorded here."""
    for at in range(len(spans) - 1, -1, -1):
        if spans[at][0] is span:
            return at
    return None


def _end_with_others(span, spans):
    """It is not the innermost: those in it end with it, as they do in the library, and
    their own ends, which are still to come, find them no more."""
    at = _find(span, spans)
    if at is None:
        return
    c, n = spans[at][1], 0
    for i in range(len(spans) - 1, at - 1, -1):
        if spans[i][1] is c:
            c._do(c._library.end, spans.pop(i)[2])
            n += 1
    if n > 1:
        _warn_once("order", f"ends a span ({_text_of(span._name)}) and those in it: one "
                   "was held over an await or a yield")


class _AsyncSpan:
    """One asynchronous event, for a `with` statement around an await or a yield."""

    __slots__ = ("_owner", "_client", "_name", "_type", "_id")

    def __init__(self, owner, name, type):
        self._owner = owner
        self._name = name
        self._type = type
        self._id = 0

    def _part(self, phase):
        try:
            c = self._client
            c._do(c._library.async_, self._type, _intern(self._name), phase, self._id)
        except RecursionError:
            pass
        except Exception as e:
            _left_out("traced()", e, self._type)

    def __enter__(self):
        try:
            c = self._client = self._owner or client()
            if self._type is None:
                self._type = c._span_type
            if c.is_on(self._type):
                self._id = next(_async_ids)
                self._part(0)
        except RecursionError:
            pass

    def __exit__(self, *_):
        if self._id != 0:
            self._part(2)


_async_ids = itertools.count(1)


def _inside(function):
    """What runs when it is called: of a partial and of an object, a function."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return getattr(type(function), "__call__", function)


def _traced(owner, function, name, type, arguments=None):
    if isinstance(function, (classmethod, staticmethod)):
        inner = _traced(owner, function.__func__, name, type, arguments)
        return function.__class__(inner)
    if not callable(function):
        _left_out("traced()", TypeError(f"{_text_of(function)} is no function"))
        return function
    inside = _inside(function)
    if name is None:
        name = getattr(function, "__qualname__", None)
        name = name or getattr(inside, "__qualname__", "function")

    def is_a(question):
        return question(function) or question(inside)

    if is_a(inspect.iscoroutinefunction):
        wrapper = _traced_coroutine(owner, function, name, type)
    elif is_a(inspect.isasyncgenfunction):
        wrapper = _traced_async_generator(owner, function, name, type)
    elif is_a(inspect.isgeneratorfunction):
        wrapper = _traced_generator(owner, function, name, type)
        code = getattr(inside, "__code__", None)
        if code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            wrapper = types.coroutine(wrapper)
    else:
        wrapper = _traced_call(owner, function, name, type, arguments)
    return functools.update_wrapper(wrapper, function)


def _traced_call(owner, function, name, type, arguments):
    def wrapper(*args, **kwargs):
        with Span(owner, name, type, arguments) as s:
            result = function(*args, **kwargs)
            if isinstance(result, types.CoroutineType) and _find(s, _here.spans) is not None:
                text = _text_of(name)
                _warn_once(("coroutine", text), f"records of {text} how a coroutine is "
                           "made, not how it runs: trace the `async def` itself")
            return result
    return wrapper


def _traced_coroutine(owner, function, name, type):
    async def wrapper(*args, **kwargs):
        with _AsyncSpan(owner, name, type):
            return await function(*args, **kwargs)
    return wrapper


def _traced_generator(owner, function, name, type):
    def wrapper(*args, **kwargs):
        with _AsyncSpan(owner, name, type):
            return (yield from function(*args, **kwargs))
    return wrapper


def _first_step(inner):
    """The loop is not to know of it, or both would close it when the loop ends: the one
    that the loop knows does."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return inner.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


def _traced_async_generator(owner, function, name, type):
    async def wrapper(*args, **kwargs):
        with _AsyncSpan(owner, name, type):
            inner = function(*args, **kwargs)
            step = _first_step(inner)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as e:
                    step = inner.athrow(e)
                else:
                    step = inner.asend(sent)
    return wrapper


_default = None  # the client of the functions below
_types = {}  # that it has registered: the kind and the unit of each
_default_lock = threading.RLock()  # guards _default and _is_opening
_is_opening = False


def client():
    """The module's client; it is opened by the environment at the first use. A library
    that is not there, or a wrong variable, is warned of once."""
    c = _default
    return c if c is not None else _open_default()


def _open_default():
    global _default, _is_opening
    reason = None
    with _default_lock:
        if _default is not None:
            return _default
        if _is_opening:  # this is a signal handler or a finalizer in what is below
            return _Off()
        _is_opening = True
        try:
            _default = Client()
        except Exception as e:
            _default, reason = _Off(), _text_of(e)
        finally:
            _is_opening = False
        c = _default
    if reason is not None:
        _records_nothing(reason)
    return c


def _register_types(c):
    """The program has their ids, and they are the same with every client."""
    for name, rest in list(_types.items()):
        try:
            c.register_type(*name, *rest)
        except Error as e:
            _warn_once(name, f"records nothing of {'.'.join(map(_text_of, name))}: {e}")


def open(*args, **options):
    """Open the module's client with options of Client; one that was open is closed, and
    the types that it has registered are the new one's, too. Without a library it is
    warned of, and the client is off."""
    global _default
    reason = None
    try:
        fresh = Client(*args, **options)
    except OSError as e:
        fresh, reason = _Off(), e
    _register_types(fresh)
    with _default_lock:
        old, _default = _default, fresh
    if reason is not None:
        _records_nothing(reason)
    if old is not None:
        old.close()
    return fresh


def close():
    """Close the module's client: from here on nothing is recorded."""
    global _default
    with _default_lock:
        old, _default = _default, _Off()
    if old is not None:
        old.close()


def _after_fork():
    global _default, _default_lock, _is_opening
    _default_lock = threading.RLock()
    _is_opening = False
    if _default is not None:
        _default = _Off()
    for c in _clients:
        c._forget()
    _clients.clear()


os.register_at_fork(after_in_child=_after_fork)


# A child that multiprocessing forked ends by os._exit(), of which the library hears
# nothing. Before that it calls its finalizers; those that were there when the child
# began are cleared then, and what was registered for after a fork is called next.

_has_plan = False


def _plan_end_of_child():
    global _has_plan
    util = sys.modules.get("multiprocessing.util")  # there in each of its children
    if util is not None and not _has_plan:
        _has_plan = True
        util.register_after_fork(_end_of_child, _add_finalizer)
        _add_finalizer(None)


def _add_finalizer(_):
    util = sys.modules["multiprocessing.util"]
    util.Finalize(None, _end_of_child, exitpriority=-100)  # after all others


def _threads_that_keep_it():
    """Those that the end of the process waits for, but for this one and the first."""
    leave = (threading.main_thread(), threading.current_thread())
    return [t for t in threading.enumerate() if not t.daemon and t not in leave]


def _end_of_child():
    if sys.modules["multiprocessing.process"].parent_process() is None:
        return  # it ends as every program does
    if _threads_that_keep_it():
        threading.Thread(target=_close_when_alone, name="traceplane-end").start()
    else:
        _close_all()


def _close_when_alone():
    threads = _threads_that_keep_it()
    while threads:
        for t in threads:
            t.join()
        threads = _threads_that_keep_it()
    _close_all()


def _close_all():
    for c in list(_clients):
        c.close()


def traced(function=None, *, name=None, type=None):
    """As Client.traced(), with the module's client at the time of the call."""
    if function is None:
        return functools.partial(traced, name=name, type=type)
    return _traced(None, function, name, type)


def span(name, type=None, **arguments):
    """As Client.span(), with the module's client when it is entered."""
    return Span(None, name, type, arguments)


def step():
    """As Client.step()."""
    return client().step()


def instant(name, type=None, **arguments):
    """As Client.instant()."""
    client().instant(name, type, **arguments)


def counter(name, value, type=None):
    """As Client.counter()."""
    client().counter(name, value, type)


def complete(name, start_ns, duration_ns, type=None, track=0, **arguments):
    """As Client.complete()."""
    client().complete(name, start_ns, duration_ns, type, track, **arguments)


def flow(name, id, phase, type=None, track=0, time_ns=0):
    """As Client.flow()."""
    client().flow(name, id, phase, type, track, time_ns)


def register_type(plugin, type_name, kind="slice", unit=None):
    """As Client.register_type(); it holds for what open() opens later, too."""
    type_id = client().register_type(plugin, type_name, kind, unit)
    if type_id == NONE:
        type_id = _id_to_come(plugin, type_name, kind, unit)
    if type_id != NONE:
        _types[plugin, type_name] = kind, unit
    return type_id


def _id_to_come(*of_type):
    """The id that a type has when there is a client again; NONE when there cannot be."""
    try:
        c = Client(is_off=True)
    except Exception:  # it is warned of where one is opened
        return NONE
    with c:
        return c.register_type(*of_type)


def find_type(name):
    """As Client.find_type()."""
    return client().find_type(name)


def is_on(type=None):
    """As Client.is_on()."""
    return client().is_on(type)


def flush(timeout_ms=2000):
    """As Client.flush()."""
    client().flush(timeout_ms)


def stats():
    """As Client.stats()."""
    return client().stats()


def _library_or_none():
    found = _find_library()
    if not isinstance(found, str):
        return found
    _records_nothing(found)
    return None


def device_track(device, stream):
    """The track of a stream of a device, for complete() and flow()."""
    library = _library_or_none()
    try:
        return 0 if library is None else library.device_track(int(device), int(stream))
    except RecursionError:
        return 0
    except Exception as e:
        _left_out("device_track()", e)
        return 0


def now():
    """Nanoseconds on the clock that events are recorded with."""
    library = _library_or_none()
    return time.time_ns() if library is None else library.now()


def version():
    """The version of the library; empty when there is none."""
    library = _library_or_none()
    return "" if library is None else library.version().decode()
