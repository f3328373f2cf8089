"""Loops compiled before they are called, side by side: Numba compiles in one thread of a process, so in processes.

What is compiled goes to the cache, from which the calls take it. Nothing depends on a helping process: what one did not
compile, the first call does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, NamedTuple

from evaluator.engine.kernels.announcing import compiling_for
from evaluator.engine.kernels.code_cache import CodeCache, cache_folder

# Each holds a compiler, some 200 MB.
_MOST_HELPERS = 3
_HELP = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); " \
        "from evaluator.engine.kernels import precompile; precompile.help_out()"  # fmt: skip


class LoopCall(NamedTuple):
    """A call that will come: for whom, of which loop, with which arguments, or others of their types."""

    name: str
    loop: Any
    arguments: tuple[Any, ...]


class _Job(NamedTuple):
    """A loop to be compiled for types of arguments; `where` is its module and its name there."""

    name: str
    where: tuple[str, str]
    loop: Any
    types: tuple[Any, ...]


def compile_ahead(calls: Iterable[LoopCall], *, least: int = 2) -> list[str]:
    """Compile what some calls need and the cache does not hold, side by side; return for whom.

    Parameters
    ----------
    calls
        Calls to come, of compiled loops. Loops that are interpreted, or compiled for one process alone, are left to
        their calls.
    least
        Fewest loops to compile: where fewer are missing, nothing is done, as a single one is compiled as fast when it
        is called.
    """
    found: dict[tuple[Any, ...], _Job] = {}
    for call in calls:
        job = _missing(call)
        if job is not None:
            found.setdefault((job.where, job.types), job)
    if not found or len(found) < least or not os.access(cache_folder(), os.W_OK):
        return []
    left = _Left(list(found.values()))
    helpers = [_Helper(left) for _ in range(min(_processors(), len(found), _MOST_HELPERS + 1) - 1)]
    try:
        while (job := left.take()) is not None:
            with compiling_for(job.name), suppress(Exception):  # its call says what is wrong
                job.loop.compile(job.types)
        for helper in helpers:
            helper.join()
    finally:
        for helper in helpers:
            helper.stop()
    return [job.name for job in found.values()]


def _missing(call: LoopCall) -> _Job | None:
    """Return what has to be compiled for a call, if anything has, without compiling it."""
    cache = getattr(call.loop, "_cache", None)
    if not isinstance(cache, CodeCache):
        return None
    types = tuple(call.loop.typeof_pyval(argument) for argument in call.arguments)
    if types in call.loop.overloads or cache.holds(types, call.loop.targetctx):
        return None
    module = call.loop.py_func.__module__
    name = next((name for name, value in vars(sys.modules[module]).items() if value is call.loop), None)
    return None if name is None else _Job(call.name, (module, name), call.loop, types)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Left:
    """Jobs that nobody has taken."""

    def __init__(self, jobs: list[_Job]) -> None:
        self._jobs = jobs[::-1]
        self._lock = Lock()

    def take(self) -> _Job | None:
        with self._lock:
            return self._jobs.pop() if self._jobs else None


class _Helper(Thread):
    """A process that compiles, and the thread that gives it jobs until none is left or the process ends."""

    def __init__(self, left: _Left) -> None:
        super().__init__(daemon=True)
        self._left = left
        # In a session of its own: what stops this process from the keyboard ends it by its closed input.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _HELP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self.start()

    def run(self) -> None:
        """Hand out jobs one by one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._send(sys.path)
            self._send(str(cache_folder()))
            while self._process.stdout.read(1) and (job := self._left.take()) is not None:
                self._send((job.where, job.types))

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(value, self._process.stdin)
        self._process.stdin.flush()


def help_out() -> None:
    """Compile what the process at the other end of stdin asks for, one after the other, and tell it of each."""
    wanted, done = sys.stdin.buffer, sys.stdout.buffer
    # Only the process that started this one writes to its input.
    if pickle.load(wanted) != str(cache_folder()):
        return
    with suppress(EOFError, OSError):
        while True:
            done.write(b".")
            done.flush()
            (module, name), types = pickle.load(wanted)
            __import__(module)
            with suppress(Exception):  # the call says what is wrong
                getattr(sys.modules[module], name).compile(types)
