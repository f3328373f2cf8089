"""Standard streams that may be closed, full or gone: what is said there never costs what was computed."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from evaluator.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class SafeStream(io.FileIO):
    """A standard stream that outlives its reader: what can no longer be written there is dropped.

    Parameters
    ----------
    descriptor
        Number of the stream's file descriptor, open or not; it stays open.
    needed
        Whether the text is what the user asked for: that it cannot be written is then an error, raised once.
    """

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._needed = needed
        self._gone = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or drop what cannot be written.

        Raises
        ------
        OutputError
            The text is needed, and its reader did not leave of its own accord.
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
    """Put safe streams in the place of stdout and stderr, where these are the process's own."""
    _occupy_closed()
    sys.stdout = _safe(sys.stdout, 1, needed=True)
    sys.stderr = _safe(sys.stderr, 2, needed=False)


def _occupy_closed() -> None:
    """Let no file that is opened later take the number, and the text, of a standard stream that is closed."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def _is_own(stream: TextIO, descriptor: int) -> bool:
    """Whether a stream is the process's, not a test's or a notebook's; consoles of Windows take more than bytes."""
    try:
        return stream.fileno() == descriptor and not (os.name == "nt" and stream.isatty())
    except OSError:
        return False


def _safe(stream: TextIO | None, descriptor: int, *, needed: bool) -> TextIO:
    if stream is not None and not _is_own(stream, descriptor):
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    raw = SafeStream(descriptor, needed=needed)
    # Letters that the terminal does not have are no reason to fail.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=raw.isatty() or not needed
    )
