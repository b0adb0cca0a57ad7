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
is on, a span costs a fraction of a microsecond and records nothing; without a library or
a service the program runs on just the same. Spans of one thread nest. What is `async
def` is recorded as an asynchronous event, which may overlap others of its thread.

Threads: everything may be called from any thread. Fork: the child records nothing until
it calls open(). Exit: what was recorded is sent, for at most flush_ms.
"""

import ctypes
import ctypes.util
import functools
import inspect
import itertools
import os
import threading
import warnings

__all__ = [
    "Client", "Error", "open", "close", "client", "span", "traced", "step", "instant",
    "counter", "complete", "flow", "device_track", "register_type", "find_type",
    "is_on", "flush", "stats", "now", "version",
]

NONE = 255  # a type that is never recorded
_TEXT_MAX_NAMES = 65536
_ERR_BYTES = 512
_FIELDS_MAX = 32

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
    """The functions of libtraceplane.so as attributes."""

    def __init__(self, path):
        slow, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, result, arguments, is_slow in _FUNCTIONS:
            function = getattr(slow if is_slow else quick, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, {"tp_async": "async_"}.get(name, name[3:]), function)


def _candidates():
    here = os.path.dirname(os.path.abspath(__file__))
    if "TRACEPLANE_LIBRARY" in os.environ:
        yield os.environ["TRACEPLANE_LIBRARY"]
        return
    yield os.path.join(here, "libtraceplane.so")
    yield os.path.join(here, "../../../build/libtraceplane.so")  # in a source tree
    yield "libtraceplane.so.0"
    found = ctypes.util.find_library("traceplane")
    if found is not None:
        yield found


@functools.lru_cache(maxsize=None)
def _library():
    failures = []
    for path in _candidates():
        try:
            return _Library(path)
        except OSError as e:
            failures.append(str(e))
    raise OSError("libtraceplane.so cannot be loaded: " + "; ".join(failures))


_names = {}


def _intern(text):
    """The library's number of a text."""
    number = _names.get(text)
    if number is None:
        number = _library().intern(str(text).encode("utf-8", "replace"))
        if len(_names) < _TEXT_MAX_NAMES:
            _names[text] = number
    return number


def _fields_of(arguments):
    """Arguments as the library takes them: what is no number is text."""
    if not arguments:
        return _NO_FIELDS
    n = min(len(arguments), _FIELDS_MAX)
    items = (_Field * n)()
    for item, (key, value) in zip(items, arguments.items()):
        item.key = _intern(key)
        if isinstance(value, bool):
            item.kind, item.value.i = _BOOL, value
        elif isinstance(value, int) and -(2**63) <= value < 2**63:
            item.kind, item.value.i = _INT, value
        elif isinstance(value, float):
            item.kind, item.value.d = _DOUBLE, value
        else:
            item.kind = _COPY
            item.value.s = str(value).encode("utf-8", "replace")
    return _Fields(items, n)


def _bytes(text):
    return None if text is None else os.fsencode(text)


class Client:
    """A connection to a service. One a process is usual; the functions of the module
    use one of their own. Options are those of struct tp_options; what is not given comes
    from the environment.

    Raises Error for a wrong option, OSError when there is no library.
    """

    def __init__(self, url=None, *, token=None, job=None, name=None, rank=None,
                 world_size=0, backend=None, device=None, ring_bytes=0,
                 rings_bytes_max=0, backlog_bytes=0, when_full="drop", block_us=0,
                 flush_ms=0, is_off=False, log=False):
        self._library = _library()
        options = _Options(
            ctypes.sizeof(_Options), _bytes(url), _bytes(token), _bytes(job),
            _bytes(name), rank is not None, rank or 0, world_size, _bytes(backend),
            _bytes(device), ring_bytes, rings_bytes_max, backlog_bytes,
            {"drop": 0, "block": 1}[when_full], block_us, flush_ms, is_off, log)
        pointer = _CLIENT()
        self._call("open", ctypes.byref(options), ctypes.byref(pointer))
        self._pid = os.getpid()
        self._use(pointer.value)
        self._lock = threading.Lock()  # guards _counter_type
        self._counter_type = NONE
        self._span_type = self.find_type("user_annotation")

    def _use(self, pointer):
        self._pointer = pointer
        # The library sets a byte for each type that is being recorded.
        self.enabled = (ctypes.c_ubyte * 256).from_address(pointer)

    def _call(self, name, *arguments):
        err = _Err()
        code = getattr(self._library, name)(*arguments, ctypes.byref(err))
        if code != 0:
            raise Error(code, err.message.decode("utf-8", "replace"))

    def close(self):
        """Send what is recorded and end. The client may be used on: it is off."""
        pointer, self._pointer = self._pointer, None
        self.enabled = bytes(256)
        if pointer is not None and self._pid == os.getpid():
            self._library.close(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def register_type(self, plugin, type_name, kind="slice", unit=None):
        """Register an activity type, or find it; returns its id."""
        type_id = ctypes.c_uint(NONE)
        if self._pointer is not None:
            self._call("register_type", self._pointer, plugin.encode(),
                       type_name.encode(), _KINDS[kind],
                       None if unit is None else unit.encode(), ctypes.byref(type_id))
        return type_id.value

    def find_type(self, name):
        """The id of a type by name, such as "plugin.TYPE" or Kineto's "kernel"."""
        type_id = ctypes.c_uint(NONE)
        if self._pointer is not None:
            self._call("find_type", self._pointer, name.encode(), ctypes.byref(type_id))
        return type_id.value

    def is_on(self, type=None):
        """Whether a type is being recorded; by default that of spans."""
        return self.enabled[self._span_type if type is None else type] != 0

    def span(self, name, type=None, **arguments):
        """A slice for a `with` statement. Its add() gives it more arguments."""
        return Span(self, name, self._span_type if type is None else type, arguments)

    def traced(self, function=None, *, name=None, type=None):
        """Decorator: each call is a slice, named as the function unless told otherwise.
        An `async def` becomes an asynchronous event."""
        if function is None:
            return functools.partial(self.traced, name=name, type=type)
        return _traced(lambda: self, function, name, type)

    def step(self):
        """Say that a step of the workload begins; returns its number, from 1."""
        return 0 if self._pointer is None else self._library.step(self._pointer)

    def instant(self, name, type=None, **arguments):
        """An instant on this thread."""
        type = self._span_type if type is None else type
        if self.enabled[type]:
            self._library.instant(self._pointer, type, _intern(name),
                                  _fields_of(arguments))

    def counter(self, name, value, type=None):
        """A value at this moment. Without a type it is one of python.COUNTER."""
        if type is None:
            type = self._type_of_counters()
        if not self.enabled[type]:
            return
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            self._library.counter_int(self._pointer, type, _intern(name), value)
        else:
            self._library.counter(self._pointer, type, _intern(name), float(value))

    def _type_of_counters(self):
        if self._counter_type == NONE:
            with self._lock:
                self._counter_type = self.register_type("python", "COUNTER", "counter")
        return self._counter_type

    def complete(self, name, start_ns, duration_ns, type=None, track=0, **arguments):
        """A slice that is over; start_ns on the clock of now(), track of
        device_track()."""
        type = self._span_type if type is None else type
        if self.enabled[type]:
            when = _Interval(start_ns, duration_ns, track)
            self._library.complete(self._pointer, type, _intern(name),
                                   ctypes.byref(when), _fields_of(arguments))

    def flow(self, name, id, phase, type=None, track=0, time_ns=0):
        """A point of an arrow between slices; phase "start", "step" or "end"."""
        type = self._span_type if type is None else type
        if self.enabled[type]:
            point = _FlowPoint(id, _PHASES[phase], track, time_ns)
            self._library.flow(self._pointer, type, _intern(name), ctypes.byref(point))

    def flush(self, timeout_ms=2000):
        """Wait until all that was recorded is with the service. Raises Error when it is
        not in time."""
        if self._pointer is not None:
            self._call("flush", self._pointer, timeout_ms)

    def stats(self):
        """What became of the events of the present trace, or the last, as a dict."""
        stats = _Stats()
        if self._pointer is not None:
            self._library.get_stats(self._pointer, ctypes.byref(stats),
                                    ctypes.sizeof(stats))
        return {name: getattr(stats, name) for name, _ in _Stats._fields_}


class Span:
    """One slice. Enter and leave it in the same thread, innermost first."""

    __slots__ = ("_client", "_name", "_type", "_arguments", "_is_on")

    def __init__(self, client, name, type, arguments):
        self._client = client
        self._name = name
        self._type = type
        self._arguments = arguments
        self._is_on = False

    def __enter__(self):
        client = self._client
        if client.enabled[self._type]:
            client._library.begin(client._pointer, self._type, _intern(self._name),
                                  _fields_of(self._arguments))
            self._is_on = True
        return self

    def add(self, **arguments):
        """Add arguments to the slice while it is open."""
        if self._is_on and self._client._pointer is not None:
            self._client._library.add(self._client._pointer, self._type,
                                      _fields_of(arguments))

    def __exit__(self, *_):
        if self._is_on and self._client._pointer is not None:
            self._client._library.end(self._client._pointer, self._type)
        self._is_on = False


_async_ids = itertools.count(1)


def _traced(client_of, function, name, type):
    name = name or getattr(function, "__qualname__", "function")

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            c = client_of()
            kind = c._span_type if type is None else type
            if not c.enabled[kind]:
                return await function(*args, **kwargs)
            id, number = next(_async_ids), _intern(name)
            c._library.async_(c._pointer, kind, number, 0, id)
            try:
                return await function(*args, **kwargs)
            finally:
                if c._pointer is not None:
                    c._library.async_(c._pointer, kind, number, 2, id)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            c = client_of()
            kind = c._span_type if type is None else type
            if not c.enabled[kind]:
                return function(*args, **kwargs)
            with Span(c, name, kind, None):
                return function(*args, **kwargs)

    return wrapper


class _Off:
    """What the module uses when there is no client: it records nothing."""

    _span_type = NONE
    _pointer = None
    enabled = bytes(256)

    def span(self, name, type=None, **arguments):
        return Span(self, name, NONE, None)

    def register_type(self, plugin, type_name, kind="slice", unit=None):
        return NONE

    def find_type(self, name):
        return NONE

    def is_on(self, type=None):
        return False

    def step(self):
        return 0

    def _nothing(self, *arguments, **more):
        pass

    close = instant = counter = complete = flow = flush = _nothing

    def stats(self):
        return {name: 0 for name, _ in _Stats._fields_}


_default = None  # the client of the functions below
_default_lock = threading.Lock()


def client():
    """The module's client; it is opened by the environment at the first use. A library
    that is not there, or a wrong variable, is warned of once."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                try:
                    _default = Client()
                except (Error, OSError) as e:
                    warnings.warn(f"traceplane records nothing: {e}", RuntimeWarning, 3)
                    _default = _Off()
    return _default


def open(*args, **options):
    """Open the module's client with options of Client; one that was open is closed."""
    global _default
    fresh = Client(*args, **options)
    with _default_lock:
        old, _default = _default, fresh
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
    global _default, _default_lock
    _default_lock = threading.Lock()
    if _default is not None:
        _default = _Off()


os.register_at_fork(after_in_child=_after_fork)


def traced(function=None, *, name=None, type=None):
    """As Client.traced(), with the module's client at the time of the call."""
    if function is None:
        return functools.partial(traced, name=name, type=type)
    return _traced(client, function, name, type)


def span(name, type=None, **arguments):
    """As Client.span()."""
    return client().span(name, type, **arguments)


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
    """As Client.register_type()."""
    return client().register_type(plugin, type_name, kind, unit)


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


def device_track(device, stream):
    """The track of a stream of a device, for complete() and flow()."""
    return _library().device_track(device, stream)


def now():
    """Nanoseconds on the clock that events are recorded with."""
    return _library().now()


def version():
    """The version of the library."""
    return _library().version().decode()
