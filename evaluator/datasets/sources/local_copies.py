"""Local copies of what cannot be read in place: they wait in a folder until the log is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


class Staging:
    """A folder of temporary files, made when the first of them is.

    Parameters
    ----------
    stack
        What removes the folder in the end.
    within
        Folder that holds it; None for that of the system's temporary files.
    """

    def __init__(self, stack: ExitStack, within: Path | None) -> None:
        self._stack, self._within = stack, within
        self._folder: Path | None = None
        self._files = 0

    def new_file(self, name: str) -> Path:
        """Return the path of a new file, whose name ends with `name`."""
        if self._folder is None:
            made = TemporaryDirectory(prefix="evaluate-", dir=self._within)
            self._folder = Path(self._stack.enter_context(made))
        self._files += 1
        return self._folder / f"{self._files}-{name}"


@contextmanager
def staging(within: Path | None) -> Iterator[Staging]:
    """Give a place for copies that vanishes with the block, inside of a folder or of that of temporary files."""
    with ExitStack() as stack:
        yield Staging(stack, within)
