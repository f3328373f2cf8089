"""Steps that put an output in place: each happens whole or not at all, and none goes over what it should not."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
# What systems and file systems without an exchange say.
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def put_folder(new: Path, place: Path, *, aside: Path) -> None:
    """Put a folder in place, in one step where the system has it.

    Parameters
    ----------
    new
        Folder to put in place. Afterwards its path holds what was at `place`, or nothing.
    place
        Path where it goes, which may be taken.
    aside
        Path where what was at `place` goes if two steps are needed. Between them nothing is at `place`.
    """
    if not os.path.lexists(place):
        # Over nothing but an empty folder, should one appear meanwhile.
        new.rename(place)
    elif not exchange(new, place):
        place.rename(aside)
        new.rename(place)


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names stand for, in one step; return False where that cannot be done."""
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux":
        name, words = "renameat2", (_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    elif sys.platform == "darwin":
        name, words = "renamex_np", (*names, _EXCHANGE)
    else:
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return False
    if call(*words) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def put_file(part: Path, place: Path) -> None:
    """Give a file a second name, which is free; move it there where files have one name only.

    Raises
    ------
    FileExistsError
        The name is taken.
    """
    try:
        os.link(part, place)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        part.rename(place)


def sync(path: Path) -> None:
    """Have the disk hold a file's content or a folder's names before anything else is done."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
