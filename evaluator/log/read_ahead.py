"""Bytes of a file far away, fetched in large pieces before they are asked for: a store answers late, but gives much."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from operator import itemgetter
from threading import Lock

# Ranges nearer than this are fetched as one, with what lies between: a question costs as much as so many bytes.
GAP = 1 << 20
# Bytes of a piece, where ranges are not longer.
PIECE = 4 << 20
# Pieces fetched at a time, and pieces kept that were asked for: columns of a row group are read one after the other.
AT_ONCE, KEPT = 4, 4

Ranges = Iterable[tuple[int, int]]


class ReadAhead:
    """Pieces that hold some ranges of a file, fetched in the order of their places, a few before they are asked for.

    Memory: `AT_ONCE` + `KEPT` pieces.

    Parameters
    ----------
    read
        Function that gives the bytes from one place to before another, in any thread.
    ranges
        Places of the bytes that will be asked for, each from one to before another.
    """

    def __init__(self, read: Callable[[int, int], bytes], ranges: Ranges) -> None:
        self._read = read
        self._pieces = pieces(ranges)
        self._taken = 0
        self._coming: deque[Future[bytes]] = deque()
        self._kept: dict[int, bytes] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._one = Lock()
        self._fetch()

    def get(self, start: int, end: int) -> memoryview | None:
        """Return the bytes from one place to before another; None where no piece has them, or has them any more."""
        number = bisect_right(self._pieces, start, key=itemgetter(0)) - 1
        if number < 0 or end > self._pieces[number][1]:
            return None
        with self._one:
            while self._taken <= number:
                self._kept[self._taken] = self._coming[0].result()
                self._coming.popleft()
                self._kept.pop(self._taken - KEPT, None)
                self._taken += 1
                self._fetch()
            if number not in self._kept:
                return None
            first = start - self._pieces[number][0]
            return memoryview(self._kept[number])[first : first + end - start]

    def close(self) -> None:
        """Fetch no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fetch(self) -> None:
        while len(self._coming) < AT_ONCE and (number := self._taken + len(self._coming)) < len(self._pieces):
            self._coming.append(self._pool.submit(self._read, *self._pieces[number]))


def pieces(ranges: Ranges) -> list[tuple[int, int]]:
    """Return the pieces that hold some ranges, in the order of their places.

    >>> pieces([(5_000_000, 5_000_100), (0, 10), (20, 30)])
    [(0, 30), (5000000, 5000100)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + GAP and end - found[-1][0] <= PIECE:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found
