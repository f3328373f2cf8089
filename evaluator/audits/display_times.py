"""When the displays of a twin come: at the times of the log's own, with its hours, its growth and its gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DisplayTimes:
    """Arrival times that twins and live runs take theirs from.

    Parameters
    ----------
    times
        Arrival times in ticks, shape (N,), not decreasing: those of the log's displays, repeated where twins are
        longer.
    displays
        Number of displays of the log, which come first in `times`.
    rate
        Mean rate of the traffic, in displays per tick.
    """

    times: Ints
    displays: int
    rate: float

    @property
    def of_log(self) -> Ints:
        """Times of the log's displays."""
        return self.times[: self.displays]

    @property
    def said(self) -> str:
        """What is said of twins."""
        repeated = len(self.times) > self.displays
        return "at the times of the log's own" + (", which repeat" if repeated else "")

    def stretch(self, n: int, rng: np.random.Generator) -> Ints:
        """Return the times of `n` displays that follow one another, from any place on; all where there are no more."""
        first = int(rng.integers(len(self.times) - n + 1))
        return self.times[first : first + n]

    def displays_within(self, arrivals: Ints, ticks: Ints) -> Ints:
        """Return how many displays follow the given ones within so many ticks each, past the end at the mean rate."""
        due = self.times[arrivals] + ticks
        beyond = np.floor(np.maximum(due - self.times[-1], 0) * self.rate).astype(np.int64)
        return np.asarray(np.searchsorted(self.times, due, side="right") - 1 - arrivals + beyond)


def read_traffic(log: Log, displays: int) -> DisplayTimes:
    """Return the arrival times of a log, at least so many.

    Memory: 8 bytes a display.
    """
    times = np.concatenate([batch["time"] for _, batch in log.batches(["time"])]).astype(np.int64, copy=False)
    span = int(times[-1] - times[0])
    rate = (len(times) - 1) / span
    # The log begins again one mean distance after its end.
    period = span + max(round(1.0 / rate), 1)
    again = -(-displays // len(times))
    repeated = (times[None] + period * np.arange(max(again, 1))[:, None]).reshape(-1)
    return DisplayTimes(repeated[: max(displays, len(times))], len(times), rate)
