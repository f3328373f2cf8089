"""The files of a log, on disk or far away: how they are opened, and what tells them from others put in their place."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.inputs.regular import open_regular
from evaluator.log.read_ahead import Ranges, ReadAhead


class RemoteFile(ABC):
    """A file in an object store, as it was listed: what is read of it is of that one, or an error."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in its folder."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of bytes."""

    @abstractmethod
    def state(self) -> object:
        """Return what tells it from one that was put in its place; None where it is not there."""

    @abstractmethod
    def read(self, start: int, end: int) -> bytes:
        """Return its bytes from one place to before another; threads may call it at once.

        Raises
        ------
        SourceError
            The store does not give them, or the file is another one now.
        """


# A file of a log.
LogFile = Path | RemoteFile


def file_state(file: LogFile) -> object:
    """Return what tells a file from one that was put in its place: of a path inode, size and time; None for no file."""
    if isinstance(file, RemoteFile):
        return file.state()
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def file_states(files: Sequence[LogFile]) -> tuple[object, ...]:
    """Return the state of each of some files."""
    return tuple(map(file_state, files))


def size_of(file: LogFile) -> int:
    """Return the number of bytes of a file; raises OSError as `opened`."""
    return file.size if isinstance(file, RemoteFile) else file.stat().st_size


@contextmanager
def opened(file: LogFile) -> Iterator[io.BufferedReader[Any]]:
    """Open a file to read its bytes, whatever lies there, without waiting for anybody.

    Raises
    ------
    OSError
        There is no such file, or it cannot be opened.
    """
    if isinstance(file, RemoteFile):
        with RemoteReader(file) as raw, io.BufferedReader(raw, 1 << 20) as stream:
            yield stream
        return
    with open_regular(file) as stream:
        yield stream


class RemoteReader(io.RawIOBase):
    """The bytes of a remote file as a stream; what is expected to be asked for next is fetched meanwhile."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file, self._at, self._size = file, 0, file.size
        self._ahead: ReadAhead | None = None
        # What the store said where it did not give bytes: libraries that read have words of their own for it.
        self.failure: EvaluatorError | None = None

    def expect(self, ranges: Ranges) -> None:
        """Fetch ahead what will be read next: ranges of bytes, in whatever order."""
        self._ahead = ReadAhead(self._file.read, ranges)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with the next bytes, and return how many there are."""
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        try:
            known = None if self._ahead is None else self._ahead.get(self._at, end)
            buffer[: end - self._at] = self._file.read(self._at, end) if known is None else known
        except EvaluatorError as error:
            self.failure = error
            raise
        found, self._at = end - self._at, end
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = max(offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence], 0)
        return self._at

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that any place can be gone to."""
        return True

    def close(self) -> None:
        """Forget what was fetched."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        super().close()
