"""Who is told what is being compiled, which takes seconds: nobody, unless somebody listens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_thread = threading.local()


@contextmanager
def compiling_for(name: str) -> Iterator[None]:
    """Say for what this thread compiles, if it comes to that."""
    before = getattr(_thread, "name", "")
    _thread.name = name
    try:
        yield
    finally:
        _thread.name = before


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Call `say` with a sentence whenever a loop begins to be compiled, and with an empty one when it is done.

    What the cache holds is not compiled and not announced.
    """
    listener = _Listener(say)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


class _Listener(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Hears of every function; of those that others need no word is said."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        # Functions begun and not done. Numba compiles in one thread at a time.
        self._open = 0

    def on_start(self, event: Any) -> None:
        """Announce what is compiled for its own sake."""
        self._open += 1
        if self._open == 1:
            name = getattr(_thread, "name", "") or "the replay"
            kept = event.data["dispatcher"].stats.cache_path is not None
            self._say(f"Compiling {name}, once on this machine" if kept else f"Compiling {name}")

    def on_end(self, event: Any) -> None:
        """Announce that it is done."""
        self._open -= 1
        if self._open == 0:
            self._say("")
