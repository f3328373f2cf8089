"""Steps that no signal cuts in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def held_back() -> Iterator[None]:
    """Let signals that Python handles wait until the block has ended; it should be short.

    Handlers that raise would leave between two calls what nobody knows of: a file just made, a folder half removed.
    Python calls handlers in its main thread alone, so that other threads need nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in raising:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
