"""Standard streams that may be closed or full: a message that cannot be written never loses a computed result."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from evaluator.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class SafeStream(io.FileIO):
    """A standard stream that outlives its reader: text that can no longer be written is dropped.

    Parameters
    ----------
    descriptor
        Number of the stream's file descriptor, open or not; it stays open.
    needed
        Whether the text is the result of the command: then failing to write it is an error, which is raised once.
    """

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._needed = needed
        self._gone = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the data, or drop them if they cannot be written.

        Raises
        ------
        OutputError
            The text is needed, and the cause is not that its reader closed the pipe.
        """
        if not self._gone:
            try:
                return super().write(data)
            except BrokenPipeError:
                self._gone = True
            except OSError as error:
                self._gone = True
                if self._needed:
                    raise OutputError(
                        f"stdout: cannot be written ({os.strerror(error.errno or 0)}).",
                        remedy="make room, or send it elsewhere; what --out names is written.",
                    ) from None
        return memoryview(data).nbytes


def guard_streams() -> None:
    """Replace stdout and stderr by safe streams, if they are the process's own."""
    _occupy_closed()
    sys.stdout = _safe(sys.stdout, 1, needed=True)
    sys.stderr = _safe(sys.stderr, 2, needed=False)


def _occupy_closed() -> None:
    """Occupy the numbers of closed standard streams, so that no file opened later receives the text of a stream."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def _is_own(stream: TextIO, descriptor: int) -> bool:
    """Whether a stream is the process's own, and not a test's, a notebook's, or a Windows console, which needs text."""
    try:
        return stream.fileno() == descriptor and not (os.name == "nt" and stream.isatty())
    except OSError:
        return False


def _safe(stream: TextIO | None, descriptor: int, *, needed: bool) -> TextIO:
    if stream is not None and not _is_own(stream, descriptor):
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    raw = SafeStream(descriptor, needed=needed)
    # Letters that the encoding lacks are escaped: they must not end the command.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=raw.isatty() or not needed
    )
