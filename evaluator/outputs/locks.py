"""Locks, and steps that no signal interrupts: one process at a time writes an output, and holds a lock beside it."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FrameType

from evaluator.errors import OutputInUseError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_to_undo: list[Callable[[], None]] = []
_STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
# Largest number of bytes of a name that is used whole: most systems allow 255, and prefix and ending are added.
_LONGEST = 128
_KEPT = 40
# Error numbers of file systems without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


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


@contextmanager
def locked(target: Path) -> Iterator[bool]:
    """Hold the lock of an output, whose folder must exist; a link and its destination are one output.

    The operating system locks a hidden file beside the output. The lock ends with the process, however the process
    ends, and other containers on the same volume see it. The file is removed at the end. A file that a killed process
    of any user left is locked anew. A file of that name that is not empty is locked as well, and is not removed. The
    block is given whether the lock is held: False where the system or the file system has no locks. OutputInUseError if
    another process holds it.
    """
    place = Path(os.path.realpath(target))
    file = place.with_name(f".{base_name(place.name)}.evaluate-lock")
    handle = None
    try:
        with held_back():
            handle = _take(file, target)
        with nullcontext() if handle is None else undone_if_abandoned(partial(_remove, file, handle)):
            yield handle is not None
    finally:
        with held_back():
            if handle is not None:
                # The file is removed before it is unlocked: afterwards it may belong to another process.
                _remove(file, handle)
                os.close(handle)


def _take(file: Path, target: Path) -> int | None:
    """Return the locked file, open; None where there are no locks."""
    while fcntl is not None:
        handle = _open(file)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file between the two calls.
            if _is_at(file, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise OutputInUseError(
                f"Output {target} is being written by another process.",
                remedy="wait until it ends, or name another output.",
            ) from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                _remove(file, handle)
            os.close(handle)
            if error.errno in _NO_LOCKS:
                return None
            raise
        os.close(handle)
    return None


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        # A file of another user can be locked if it can be read. A file that cannot be made fails once more.
        try:
            return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            pass
        raise


def _remove(file: Path, handle: int) -> None:
    """Remove a lock file of ours, which is an empty regular file."""
    status = os.fstat(handle)
    with suppress(OSError):  # in a folder such as /tmp a file of another user stays, and can be locked again
        if stat.S_ISREG(status.st_mode) and status.st_size == 0 and _is_at(file, handle):
            file.unlink()


def _is_at(file: Path, handle: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def base_name(name: str) -> str:
    """Return how names beside an output begin: with its name, or the beginning of a very long name and its hash.

    >>> base_name("run1")
    'run1'
    >>> base_name("a" * 250)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-3f3e35e0a775d9b1'
    """
    whole = os.fsencode(name)
    if len(whole) <= _LONGEST:
        return name
    import hashlib

    return f"{name[:_KEPT]}-{hashlib.sha256(whole).hexdigest()[:16]}"
