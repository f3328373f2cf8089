"""Protect steps that a signal must not interrupt."""

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
    """Delay signals that Python handles until the block has ended; the block should be short.

    A handler that raises between two calls would leave a file that is just made, or a folder that is half removed, and
    no code would know of it. Python calls handlers in its main thread only, so that other threads need no protection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def record(number: int, frame: FrameType | None) -> None:
        received.append(number)

    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in raising:
            signal.signal(number, record)
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        for number in received:
            signal.raise_signal(number)


@contextmanager
def undone_if_abandoned(undo: Callable[[], None]) -> Iterator[None]:
    """Register `undo`, which `undo_all` calls if the process must end while the block runs."""
    _to_undo.append(undo)
    try:
        yield
    finally:
        _to_undo.remove(undo)


def undo_all() -> None:
    """Undo the work of all running blocks, the last first, from another thread, before the process ends."""
    for undo in reversed(_to_undo):
        with suppress(Exception):  # the block's own thread may be undoing the same; the next run cleans up
            undo()
