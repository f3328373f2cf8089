"""One process at a time writes an output, known by the lock beside it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from evaluator.errors import OutputInUseError
from evaluator.outputs.signals import held_back, undone_if_abandoned

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Bytes: longer names leave no room, of the 255 that most systems allow, for what is put around them.
_LONGEST = 128
_KEPT = 40
# What file systems without locks say.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def locked(target: Path) -> Iterator[bool]:
    """Hold the lock of an output, whose folder must exist; a link and its target are one output.

    The lock is the system's, on a hidden file beside the output: it ends with the process, however that ends, and is
    seen from other containers on the same volume. The file vanishes at the end; one that a killed process left is
    taken over, of whichever user. A file of that name that holds anything is locked as well, and left.

    Yields
    ------
    bool
        Whether the lock is held: False where the system or the file system has no locks.

    Raises
    ------
    OutputInUseError
        Another process holds the lock.
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
                # Before it is let go: afterwards it may be someone else's.
                _remove(file, handle)
                os.close(handle)


def _take(file: Path, target: Path) -> int | None:
    """Return the locked file, open; None where there are no locks."""
    while fcntl is not None:
        handle = _open(file)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed it between the two calls.
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
        # Another user's, which may be read: that is enough to lock it. What cannot be made fails once more.
        try:
            return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            pass
        raise


def _remove(file: Path, handle: int) -> None:
    """Remove a lock file that is ours: empty, and nothing but a file."""
    found = os.fstat(handle)
    with suppress(OSError):  # in a folder such as /tmp another user's stays, and can be locked again
        if stat.S_ISREG(found.st_mode) and found.st_size == 0 and _is_at(file, handle):
            file.unlink()


def _is_at(file: Path, handle: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def base_name(name: str) -> str:
    """Return what names beside an output begin with: its name, of a very long one the beginning and a hash.

    >>> base_name("run1")
    'run1'
    >>> base_name("a" * 250)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-3f3e35e0a775d9b1'
    """
    whole = os.fsencode(name)
    return name if len(whole) <= _LONGEST else f"{name[:_KEPT]}-{hashlib.sha256(whole).hexdigest()[:16]}"
