"""What stands for a library that records."""
import traceplane

NOWHERE = "http://127.0.0.1:1"


class Recording:
    """Stands for the library: calls are looked at, and what is closed is not used."""

    def __init__(self, real):
        self.real, self.calls, self.open = real, [], set()

    def __getattr__(self, name):
        def call(pointer, *arguments):
            assert pointer in self.open, f"{name}() of what is closed"
            self.calls.append((name, arguments))
            if name == "close":
                self.open.remove(pointer)
            return getattr(self.real, name)(pointer, *arguments)
        return call


def recording_client():
    """A client that believes that all is recorded, and its library."""
    c = traceplane.Client(NOWHERE)
    c._library = Recording(c._library)
    c._library.open.add(c._pointer)
    c._enabled = bytes([1]) * 256
    return c, c._library
