"""Steps that no signal cuts in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_to_undo: list[Callable[[], None]] = []
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


@contextmanager
def undone_if_abandoned(undo: Callable[[], None]) -> Iterator[None]:
    """Have `undo` called if the process ends by `undo_all` while the block runs, and not by leaving it."""
    _to_undo.append(undo)
    try:
        yield
    finally:
        _to_undo.remove(undo)


def undo_all() -> None:
    """Undo what the blocks that run now began, the last first, from another thread than theirs: the process ends."""
    for undo in reversed(_to_undo):
        with suppress(Exception):  # the thread of the block may be at it, too; the next run clears up
            undo()
