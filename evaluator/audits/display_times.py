"""When the displays of a twin come: at the times of the log's own, with its hours, its growth and its gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.audits.display_column import DisplayColumn
from evaluator.log import Log
from evaluator.log.schema import to_numpy

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DisplayTimes:
    """Arrival times that twins and live runs take theirs from.

    Parameters
    ----------
    times
        Arrival times in ticks, N of them, not decreasing: those of the log's displays, repeated where twins are
        longer.
    displays
        Number of displays of the log, which come first in `times`.
    rate
        Mean rate of the traffic, in displays per tick.
    end
        Last of the times.
    """

    times: DisplayColumn
    displays: int
    rate: float
    end: int

    def __len__(self) -> int:
        return len(self.times)

    @property
    def last_of_log(self) -> int:
        """Time of the log's last display."""
        return int(self.times.read(self.displays - 1, self.displays)[0])

    @property
    def said(self) -> str:
        """What is said of twins."""
        repeated = len(self) > self.displays
        return "at the times of the log's own" + (", which repeat" if repeated else "")

    def stretch(self, n: int, rng: np.random.Generator) -> int:
        """Return the first of `n` displays that follow one another, from any place on; 0 where there are no more."""
        return int(rng.integers(len(self) - n + 1))

    def displays_within(self, arrivals: Ints, ticks: Ints) -> Ints:
        """Return how many displays follow the given ones within so many ticks each, past the end at the mean rate."""
        due = self.times.take(arrivals) + ticks
        beyond = np.floor(np.maximum(due - self.end, 0) * self.rate).astype(np.int64)
        return np.asarray(self._shown_by(due) - 1 - arrivals + beyond)

    def _shown_by(self, due: Ints) -> Ints:
        """Return how many displays come no later than each time, in one pass over all."""
        order = np.argsort(due, kind="stable")
        waiting, low = due[order], 0
        found = np.full(len(due), len(self), np.int64)
        for first, times in self.times.blocks():
            # Times from the block's last display on may count displays of the next block too.
            high = int(np.searchsorted(waiting, times[-1], side="left"))
            found[low:high] = first + np.searchsorted(times, waiting[low:high], side="right")
            low = max(high, low)
        back = np.empty_like(found)
        back[order] = found
        return back


def read_traffic(log: Log, displays: int) -> DisplayTimes:
    """Return the arrival times of a log, at least so many.

    Memory: `evaluator.audits.display_column`, so none that grows with the log.
    """
    n = len(log)
    start, end = (int(t) for t in to_numpy(log.take(np.array([0, n - 1]), ["time"])["time"]))
    span = end - start
    rate = (n - 1) / span
    # The log begins again one mean distance after its end.
    period = span + max(round(1.0 / rate), 1)
    length = max(displays, n)
    times = DisplayColumn(length, np.int64)
    for _, batch in log.batches(["time"]):
        times.append(batch["time"])
    for again in range(1, -(-length // n)):
        for _, block in times.blocks(0, min(n, length - again * n)):
            times.append(block + period * again)
    return DisplayTimes(times, n, rate, int(times.read(length - 1, length)[0]))
