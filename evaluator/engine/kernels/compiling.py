"""The only place that touches Numba's decorators: what is compiled, how, when, and who is told of it.

*Fence.* Where Numba's version is not one that was tested, we do without what it does not promise (`tested`). What lies
behind that fence makes code faster; it never changes what is computed.

*Ahead.* Numba compiles in one thread of a process, so loops that calls will need are compiled side by side in
processes (`compile_ahead`). What is compiled goes to the cache, from which the calls take it. Nothing depends on a
helping process: what one did not compile, the first call does.

*When used.* Numba loads with the first call of a loop. Pieces that are there before wait until then, so that a command
that runs no loop loads no compiler.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
# The versions with which the tests were run, from the first to the last; pyproject.toml installs none later.
FIRST_TESTED, LAST_TESTED = (0, 63), (0, 68)


def is_tested(version: str) -> bool:
    """Return whether a version of Numba is one that was tested.

    Examples
    --------
    >>> is_tested("0.68.1"), is_tested("0.99.0"), is_tested("unknown")
    (True, False, False)
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and FIRST_TESTED <= (int(numbers[1]), int(numbers[2])) <= LAST_TESTED


@cache
def tested() -> bool:
    """Return whether Numba's version is one that was tested."""
    import numba

    return is_tested(numba.__version__)


# Pieces that Numba was not told of yet; None once a loop was called. Modules may load in one thread meanwhile.
_waiting: list[Callable[[], object]] | None = []
_telling = threading.RLock()


def _tell(piece: Callable[[], object]) -> None:
    """Tell Numba of a piece, now or before the first loop."""
    with _telling:
        if _waiting is None:
            piece()
        else:
            _waiting.append(piece)


def _tell_all() -> None:
    global _waiting
    with _telling:
        if _waiting is not None:
            from numba.core import event

            event.Listener.register(_Listener)
            event.register("numba:compile", _Listener())
            waiting, _waiting = _waiting, None
            for piece in waiting:
                piece()
            import_module("evaluator.engine.kernels.instructions")


@cache
def _options() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how loops are compiled, and pieces."""
    loop: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    piece: dict[str, Any] = {"forceinline": True}
    if tested():
        from evaluator.engine.kernels.inlining import Loop, Piece

        loop |= {"pipeline_class": Loop, "no_cfunc_wrapper": True}
        piece |= {"pipeline_class": Piece}
    return loop, piece


class _Loop:
    """A loop that Numba learns of when it is first called, or compiled ahead."""

    def __init__(self, function: Callable[..., Any], *, kept: bool) -> None:
        update_wrapper(self, function)
        self.py_func, self._kept = function, kept

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """What Numba makes of the function: it compiles the loop for the types of a call."""
        import numba

        _tell_all()
        out = numba.njit(**_options()[0])(self.py_func)
        if self._kept:
            from evaluator.engine.kernels.code_cache import CodeCache, cache_folder

            out._cache = CodeCache(self.py_func, cache_folder(), lean=tested())
        return out


def compiled(function: F) -> F:
    """Compile a loop, cached on disk and releasing the GIL. No fastmath: results do not depend on the build."""
    return cast(F, _Loop(function, kept=True))


def compiled_uncached(function: F) -> F:
    """Compile a loop for user policies, whose edits no cache would see."""
    return cast(F, _Loop(function, kept=False))


def inlinable(function: F) -> F:
    """Leave a function plain Python, and let compiled code call it, which copies it into its caller.

    Only so does the caller's knowledge reach it, above all that its arrays are borrowed
    (`evaluator.engine.kernels.intrinsics`).
    """

    def tell() -> None:
        from numba.extending import register_jitable

        register_jitable(**_options()[1])(function)

    _tell(tell)
    return function


def overloads(generic: Callable[..., Any]) -> Callable[[F], F]:
    """Let the decorated function pick, at compile time, what compiled code runs when it calls `generic`.

    What it picks is copied into its caller (see `inlinable`).
    """

    def decorate(pick: F) -> F:
        def tell() -> None:
            from numba.extending import overload

            # Not strict: Numba would compare the annotations of the two signatures too.
            overload(generic, strict=False, jit_options=_options()[1])(pick)

        _tell(tell)
        return pick

    return decorate


def instruction(generator: Callable[..., Any]) -> Any:
    """Let compiled code call what the decorated function generates in the compiler's own language."""
    from numba.extending import intrinsic

    return intrinsic(generator)


def why_not_compiled(error: Exception) -> str | None:
    """Return the one reason of a page that tells of every call around it, with file and line where they are told.

    None for an error that is none of compiling.
    """
    from numba.core.errors import NumbaError

    if not isinstance(error, NumbaError):
        return None
    inner = re.split(r"Failed in .* \(step: .*\)\n", re.sub(r"\x1b\[[0-9;]*m", "", str(error)))[-1]
    reason = next((line.strip() for line in inner.splitlines() if line.strip()), type(error).__name__)
    place = re.search(r'File "(.*)", line (\d+)', inner)
    return f"{reason.rstrip('.')} ({Path(place[1]).name}, line {place[2]})" if place else reason.rstrip(".")


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


# Who is told of what is compiled; None without anybody.
_told: Callable[[str], None] | None = None


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Call `say` with a sentence whenever a loop begins to be compiled, and with an empty one when it is done.

    What the cache holds is not compiled and not announced.
    """
    global _told
    _told = say
    try:
        yield
    finally:
        _told = None


class _Listener:
    """Hears of every function; of those that others need no word is said."""

    # Functions begun and not done. Numba compiles in one thread at a time.
    _open = 0

    def notify(self, event: Any) -> None:
        """Announce what is compiled for its own sake, and that it is done."""
        self._open += -1 if event.is_end else 1
        if _told is None or self._open != (0 if event.is_end else 1):
            return
        if event.is_end:
            _told("")
            return
        name = getattr(_thread, "name", "") or "the replay"
        kept = event.data["dispatcher"].stats.cache_path is not None
        _told(f"Compiling {name}, once on this machine" if kept else f"Compiling {name}")


# Each holds a compiler, some 200 MB.
_MOST_HELPERS = 3
_HELP = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); " \
        "from evaluator.engine.kernels import compiling; compiling.help_out()"  # fmt: skip


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

    Loops that are interpreted, or compiled for one process alone, are left to their calls. Where fewer than `least` are
    missing nothing is done: a single one is compiled as fast when it is called.
    """
    found: dict[tuple[Any, ...], _Job] = {}
    for call in calls:
        job = _missing(call)
        if job is not None:
            found.setdefault((job.where, job.types), job)
    if not found or len(found) < least:
        return []
    from evaluator.engine.kernels.code_cache import cache_folder

    if not os.access(cache_folder(), os.W_OK):
        return []
    left = deque(found.values())
    helpers = [_Helper(left) for _ in range(min(_processors(), len(found), _MOST_HELPERS + 1) - 1)]
    try:
        while (job := _next_job(left)) is not None:
            with compiling_for(job.name), suppress(Exception):  # its call says what is wrong
                job.loop.dispatcher.compile(job.types)
        for helper in helpers:
            helper.join()
    finally:
        for helper in helpers:
            helper.stop()
    return [job.name for job in found.values()]


def _missing(call: LoopCall) -> _Job | None:
    """Return what has to be compiled for a call, if anything has, without compiling it."""
    from evaluator.engine.kernels.code_cache import CodeCache

    if not isinstance(call.loop, _Loop):
        return None
    loop = call.loop.dispatcher
    if not isinstance(loop._cache, CodeCache):
        return None
    types = tuple(map(loop.typeof_pyval, call.arguments))
    if types in loop.overloads or loop._cache.holds(types, loop.targetctx):
        return None
    module = call.loop.py_func.__module__
    name = next((name for name, value in vars(sys.modules[module]).items() if value is call.loop), None)
    return None if name is None else _Job(call.name, (module, name), call.loop, types)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _next_job(left: deque[_Job]) -> _Job | None:
    """Take the first of the jobs that nobody has taken; None without any. Threads may call it at once."""
    try:
        return left.popleft()
    except IndexError:
        return None


class _Helper(threading.Thread):
    """A process that compiles, and the thread that gives it jobs until none is left or the process ends."""

    def __init__(self, left: deque[_Job]) -> None:
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
        from evaluator.engine.kernels.code_cache import cache_folder

        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._send(sys.path)
            self._send(str(cache_folder()))
            while self._process.stdout.read(1) and (job := _next_job(self._left)) is not None:
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
    from evaluator.engine.kernels.code_cache import cache_folder

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
                getattr(sys.modules[module], name).dispatcher.compile(types)
