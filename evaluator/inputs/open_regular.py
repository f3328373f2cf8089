"""Files of others: a named pipe in the place of one is waited for without end, and a device may have none."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any


class NotRegularError(OSError):
    """A pipe, a device or a socket where a file is expected; says so without the name."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is no regular file")

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def open_regular(path: Path, *, follow: bool = True) -> Iterator[BufferedReader[Any]]:
    """Open a file to read its bytes, whatever lies there, without waiting for anybody; a link only if `follow`.

    NotRegularError where the path names no regular file, OSError where it cannot be opened.
    """
    more = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | more)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegularError
        yield file


def refuse_irregular(path: Path) -> None:
    """Raise, as `open_regular` does, before another library opens a file by its name."""
    with open_regular(path):
        pass
