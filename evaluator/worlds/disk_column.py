"""A column of numbers, one a display, that takes no more memory for more displays: what is long lies in a file."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.schema import BATCH
from evaluator.outputs.staging import writing

Ints = npt.NDArray[np.int64]

# Bytes of a column that is kept in memory.
IN_MEMORY = 8_000_000


class DisplayColumn:
    """Numbers of displays, written once from the first display to the last, then read by any thread, in pieces.

    A long column lies in a temporary file without a name, uncompressed, which ends with it.
    """

    def __init__(self, n: int, kind: npt.DTypeLike) -> None:
        self._n, self._kind = n, np.dtype(kind)
        self._written = 0
        self._held: npt.NDArray[Any] | None = None
        self._map: mmap.mmap | None = None
        self._lock = Lock()
        if n * self._kind.itemsize <= IN_MEMORY:
            self._held = np.empty(n, self._kind)
            return
        with writing(_place()):
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="evaluate-column-")  # noqa: SIM115  # ends with it
        weakref.finalize(self, _close, self._file)

    def __len__(self) -> int:
        return self._n

    def append(self, numbers: npt.NDArray[Any]) -> None:
        """Write the numbers of the next displays."""
        if self._held is not None:
            self._held[self._written : self._written + len(numbers)] = numbers
        else:
            with writing(_place()), self._lock:
                self._file.seek(self._written * self._kind.itemsize)
                self._file.write(np.ascontiguousarray(numbers, self._kind).data)
                self._file.flush()
        self._written += len(numbers)

    def read(self, first: int, end: int) -> npt.NDArray[Any]:
        """Return the numbers of the displays `first` to `end` (excluded), not to be written to."""
        if self._held is not None:
            found = self._held[first:end]
        else:
            found = np.empty(max(min(end, self._n) - first, 0), self._kind)
            with self._lock:
                self._file.seek(first * self._kind.itemsize)
                self._file.readinto(found.data)  # type: ignore[attr-defined]  # a buffered file has it
        found.flags.writeable = False
        return found

    def blocks(self, first: int = 0, end: int | None = None) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield (number of its first display, numbers of some displays), from `first` to `end` (excluded)."""
        for at, past in spans(first, self._n if end is None else min(end, self._n)):
            yield at, self.read(at, past)

    def take(self, displays: Ints) -> npt.NDArray[Any]:
        """Return the numbers of some displays, shape (m,), in one pass over the column."""
        if self._held is not None:
            return self._held[displays]
        order = None if (displays[1:] >= displays[:-1]).all() else np.argsort(displays, kind="stable")
        wanted = displays if order is None else displays[order]
        found = np.empty(len(wanted), self._kind)
        low, reach = (int(wanted[0]), int(wanted[-1]) + 1) if len(wanted) else (0, 0)
        for first, numbers in self.blocks(low, reach):
            part = slice(*np.searchsorted(wanted, [first, first + len(numbers)]))
            found[part] = numbers[wanted[part] - first]
        if order is None:
            return found
        back = np.empty_like(found)
        back[order] = found
        return back

    def mapped(self) -> npt.NDArray[Any]:
        """Return all numbers, not to be written to: of a file those that are looked at come into memory.

        They stay there until `forget`.
        """
        if self._held is not None:
            return self.read(0, self._n)
        with self._lock:
            if self._map is None:
                self._map = mmap.mmap(self._file.fileno(), self._n * self._kind.itemsize, access=mmap.ACCESS_READ)
        return np.frombuffer(self._map, self._kind)

    def forget(self) -> None:
        """Let go of what came into memory of a file that was `mapped`, where the system can: it is read again."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def spans(first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the first display of each part of some displays, as many as are worked on at a time, and its end."""
    for at in range(first, end, BATCH):
        yield at, min(at + BATCH, end)


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # what could not be written is lost with the file
        file.close()


def _place() -> Path:
    """Return the folder of temporary files, which errors name."""
    return Path(tempfile.gettempdir())


def taken(log: Log, displays: Ints, column: str) -> npt.NDArray[Any]:
    """Return a column of the displays with these numbers, increasing, shape (m,) or (m, ...). Cost: one scan of it."""
    found: npt.NDArray[Any] | None = None
    for first, batch in log.batches([column]):
        numbers = batch[column]
        if found is None:
            found = np.empty((len(displays), *numbers.shape[1:]), numbers.dtype)
        low, high = np.searchsorted(displays, [first, first + len(numbers)])
        found[low:high] = numbers[displays[low:high] - first]
        if high == len(displays):
            break
    assert found is not None
    return found


Floats = npt.NDArray[np.float64]


def mean_in_blocks(n: int, numbers: Callable[[int, int], Floats], *, block: int = BATCH) -> Floats:
    """Return the mean of n numbers, above 0, of several kinds at once, in O(block) memory.

    `numbers` returns those from one number to another (excluded), asked in their order, at most `block` at once (at
    least 128), shape (kinds, m). NumPy adds up numbers in pairs of halves, each of a multiple of 8 numbers but for the
    last (`pairwise_sum` of its `loops_utils.h.src`). Here the same halves are added up, each made when it is needed.

    >>> x = np.random.default_rng(1).random((2, 1000))
    >>> (mean_in_blocks(1000, lambda first, end: x[:, first:end], block=200) == [x[0].mean(), x[1].mean()]).all()
    np.True_
    """
    return _total(0, n, numbers, block) / n


def _total(first: int, m: int, numbers: Callable[[int, int], Floats], block: int) -> Floats:
    if m <= block:
        return np.array([np.add.reduce(np.ascontiguousarray(row)) for row in numbers(first, first + m)])
    half = m // 2
    half -= half % 8
    return np.asarray(_total(first, half, numbers, block) + _total(first + half, m - half, numbers, block))


def mean_of_columns(n: int, numbers: Callable[[int, int], Floats], *, block: int = BATCH) -> Floats:
    """Return the means of n numbers of several kinds as NumPy's where those of one place lie together in memory.

    There it adds up one number after the other; of a single kind, as in `mean_in_blocks`, whose parameters these are.
    """
    total = numbers(0, min(block, n)).T
    if total.shape[1] == 1:
        return mean_in_blocks(n, numbers, block=block)
    total = np.add.reduce(total, axis=0)
    for first in range(block, n, block):
        total = np.add.reduce(np.vstack([total, numbers(first, min(first + block, n)).T]), axis=0)
    found: Floats = total / n
    return found
