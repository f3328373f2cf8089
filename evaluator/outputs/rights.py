"""Who may read what replaces an output: those who could read what was there."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_READ_WRITE = 0o666


def take_rights(new: Path, old: Path) -> None:
    """Give a new file or folder the mode of the old one and, where permitted, its owner and group.

    The owner may do all that writing takes: a folder must be filled, and can be removed if that fails.
    """
    found = old.stat()
    if hasattr(os, "chown"):
        made = new.stat()
        if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
            with suppress(OSError):
                os.chown(new, found.st_uid, found.st_gid)
    _set_mode(new, stat.S_IMODE(found.st_mode) | (stat.S_IRWXU if new.is_dir() else stat.S_IRUSR))


def take_rights_inside(new: Path, old: Path) -> None:
    """Give what lies in a new folder the rights of what has its name in the old one.

    What has no counterpart there may be read and written by nobody who could not do so with the old folder.
    """
    most = stat.S_IMODE(old.stat().st_mode) & _READ_WRITE
    for path in new.iterdir():
        counterpart = old / path.name
        if counterpart.exists() and counterpart.is_dir() == path.is_dir():
            take_rights(path, counterpart)
        elif path.is_file():
            _set_mode(path, stat.S_IMODE(path.stat().st_mode) & most | stat.S_IRUSR)


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:  # file systems without modes refuse others than they show
        path.chmod(mode)
