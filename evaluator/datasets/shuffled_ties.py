"""The displays of a pass put into the order of the log: displays of one time are shuffled, whatever the chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.log.ties import tie_order, tied

Ints = npt.NDArray[np.int64]

# Rows read beyond a limit at first, to see where the displays of its last time end.
MARGIN = 10_000


class Ties(Protocol):
    """What is known of the displays of a pass once they are in the order of the log."""

    @property
    def displays(self) -> int:
        """Number of displays handed on."""

    @property
    def sharing(self) -> int:
        """Number of displays that share their time with another."""

    def numbers(self) -> Ints:
        """Return the number in the log of each display that was asked for, in the order asked."""


class JoinedTies:
    """The same of passes over displays that follow each other, of which no two share a time."""

    def __init__(self, following: Sequence[Ties]) -> None:
        self._following = following
        self.displays = sum(ties.displays for ties in following)
        self.sharing = sum(ties.sharing for ties in following)

    def numbers(self) -> Ints:
        """Return the number in the log of each display that was asked for, in the order asked."""
        before = np.cumsum([0, *(ties.displays for ties in self._following)])
        numbers = [ties.numbers() + first for ties, first in zip(self._following, before.tolist(), strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *numbers])


class TieShuffler:
    """Hands displays on in the order of the log. Memory: the chunk at hand and the largest group of one time.

    Parameters
    ----------
    write
        Function that gets the displays, frame by frame.
    time
        Name of the column of the time in these frames.
    shuffle
        Whether displays of one time are shuffled; else they keep the order they come in.
    limit
        Number of displays to hand on, the first ones in the log's order; None hands on all.
    before
        Number of displays of the log before the first of these, none of which shares its time.

    Attributes
    ----------
    displays
        Number of displays handed on.
    sharing
        Number of displays that share their time with another.
    """

    def __init__(
        self,
        write: Callable[[pl.DataFrame], None],
        time: str,
        *,
        shuffle: bool,
        limit: int | None = None,
        before: int = 0,
    ) -> None:
        self._write, self._time, self._shuffle, self._limit, self._before = write, time, shuffle, limit, before
        self._held: list[pl.DataFrame] = []
        self._asked: list[Ints] = [np.zeros(0, np.int64)]
        self._found: list[Ints] = [np.zeros(0, np.int64)]
        self._settled = 0
        self._last: tuple[int, bool] | None = None
        self.displays = self.sharing = 0

    def add(self, frame: pl.DataFrame, asked: Ints) -> None:
        """Take the next displays.

        Parameters
        ----------
        frame
            Displays to take, in the order of the source.
        asked
            Places, in the order of `frame`, of the displays whose number in the log is wanted, sorted, shape (q,).
        """
        self._asked.append(asked)
        if frame.height == 0:
            return
        if not self._shuffle:
            self._hand_on([frame])
            return
        times = frame[self._time].to_numpy()
        # The last group may go on in the next chunk.
        start = int(np.flatnonzero(np.append(True, times[1:] != times[:-1]))[-1])
        goes_on = bool(self._held) and self._held[0][self._time][0] == times[0]
        if start == 0 and goes_on:
            self._held.append(frame)
            return
        whole = [*self._held, frame.head(start)] if start else self._held
        self._held = [frame.slice(start)]
        self._hand_on(whole)

    def close(self) -> None:
        """Hand on what was held back."""
        self._hand_on(self._held)
        self._held = []

    def numbers(self) -> Ints:
        """Return the number in the log of each display that was asked for, in the order asked."""
        return np.concatenate([*self._found, *self._asked])

    def _hand_on(self, frames: list[pl.DataFrame]) -> None:
        """Hand on displays whose last group is whole."""
        if not frames:
            return
        frame = frames[0] if len(frames) == 1 else pl.concat(frames)
        first, self._settled = self._settled, self._settled + frame.height
        order = tie_order(frame[self._time].to_numpy(), first=self._before + first) if self._shuffle else None
        self._settle(first, order)
        if order is not None:
            frame = frame.select(pl.all().gather(pl.Series(order)))
        if self._limit is not None:
            frame = frame.head(self._limit - self.displays)
        if frame.height:
            self._count(frame[self._time].to_numpy())
            self.displays += frame.height
            self._write(frame)

    def _settle(self, first: int, order: Ints | None) -> None:
        asked = np.concatenate(self._asked)
        known = int(np.searchsorted(asked, self._settled))
        now, self._asked = asked[:known], [asked[known:]]
        if order is not None:
            new = np.empty_like(order)
            new[order] = np.arange(len(order))
            now = np.where(now >= first, first + new[np.maximum(now - first, 0)], now)
        self._found.append(now)

    def _count(self, times: Ints) -> None:
        same = tied(times)
        last, shared = self._last or (0, False)
        same[0] = self._last is not None and int(times[0]) == last
        begun = same & ~np.append(shared, same[:-1])
        self.sharing += int(same.sum() + begun.sum())
        self._last = int(times[-1]), bool(same[-1])


def whole_ties(read: Callable[[int | None], Iterable[pl.DataFrame]], time: str, limit: int) -> Iterator[pl.DataFrame]:
    """Yield the first `limit` rows and those after them that share the time of the last one.

    Parameters
    ----------
    read
        Function that gives so many of the first rows, or all for None.
    time
        Name of the column of the time.
    limit
        Number of rows wanted, at least 1.
    """
    left, last = limit, None
    for chunk in _as_needed(read, limit + MARGIN):
        taken = chunk.head(left)
        left -= taken.height
        if left == 0:
            last = taken[time][-1] if taken.height else last
            rest = chunk[time].slice(taken.height)
            # A time that cannot be read ties with none.
            other = rest.is_null() | (pl.Series([True]) if last is None else rest != last).fill_null(True)
            taken = chunk.head(taken.height + int(other.arg_max() or 0) if other.any() else chunk.height)
        if taken.height:
            yield taken
        if taken.height < chunk.height:
            return


def _as_needed(read: Callable[[int | None], Iterable[pl.DataFrame]], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the first `rows` rows, which are read without the rest of a file; then, if asked for, the others."""
    seen = 0
    for chunk in read(rows):
        seen += chunk.height
        yield chunk
    if seen < rows:
        return
    for chunk in read(None):
        skipped = min(seen, chunk.height)
        seen -= skipped
        if skipped < chunk.height:
            yield chunk.slice(skipped)
