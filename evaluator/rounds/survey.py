"""What every replay of a log must know before its first round, found in one pass over times and actions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evaluator.errors import LogError
from evaluator.log import Log
from evaluator.log.contract import to_numpy


@dataclass(frozen=True, eq=False)
class Survey:
    """A log seen once. Memory: what its conversions take.

    Parameters
    ----------
    log
        The log.
    shown
        Displays of each action, shape (K,).
    smallest, largest
        Smallest and largest logged propensity of each action, shape (K,); nan for actions never shown, and everywhere
        on a log without propensities.
    inverse
        Sums of 1/p and of 1/p² over the displays of each action, shape (2, K); nan on a log without propensities.
    rate
        Logged displays per tick; nan when all displays share one time.
    display
        Number of each conversion's display, shape (c,).
    shown_at
        Time of that display, in ticks.
    delay
        Logged displays that follow it no later than the conversion, shape (c,): its delay in displays.
    limit
        Logged displays that follow it no later than the end of its follow-up, shape (c,): the longest delay that would
        have been seen. None where every display was followed to its end.
    """

    log: Log
    shown: npt.NDArray[np.int64]
    smallest: npt.NDArray[np.float64]
    largest: npt.NDArray[np.float64]
    inverse: npt.NDArray[np.float64]
    rate: float
    display: npt.NDArray[np.int64]
    shown_at: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    limit: npt.NDArray[np.int64] | None

    _until: dict[int, int] = field(default_factory=dict, repr=False)
    _shown_first: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def displays_until(self, time: int) -> int:
        """Return how many displays were shown no later than a time in ticks; one pass for all who ask the same."""
        if time not in self._until:
            self._until[time] = int(displays_until(self.log, np.array([time]))[0][0])
        return self._until[time]

    def shown_first(self, displays: int) -> npt.NDArray[np.int64]:
        """Return how often each action is shown among the first displays, shape (K,); reads those that come after."""
        if displays not in self._shown_first:
            shown = self.shown.copy()
            if displays < len(self.log):
                for _, batch in self.log.after(displays).batches(["action"]):
                    shown -= np.bincount(batch["action"], minlength=len(shown))
            self._shown_first[displays] = shown
        return self._shown_first[displays]


def survey(log: Log) -> Survey:
    """Return what one pass over a log finds.

    Raises
    ------
    LogError
        Some conversions are past the last display and all displays share one time: there is no traffic rate.
    """
    k = log.n_actions
    shown = np.zeros(k, np.int64)
    smallest, largest = np.full(k, np.inf), np.full(k, -np.inf)
    inverse: npt.NDArray[np.float64] | None = None  # until an action has had two propensities
    display = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    shown_at = np.empty(len(display), np.int64)
    columns = ["time", "action"] + ["propensity"] * (log.meta.propensity != "absent")
    start, end = 0, 0
    for first, batch in log.batches(columns):
        time, action = batch["time"], batch["action"].astype(np.intp, copy=False)
        counts = np.bincount(action, minlength=k)
        if "propensity" in batch:
            of_constant = _of_constant(shown, smallest)
            np.minimum.at(smallest, action, batch["propensity"])
            np.maximum.at(largest, action, batch["propensity"])
            if inverse is None and (smallest < largest).any():
                inverse = of_constant
            if inverse is not None:
                once = 1.0 / batch["propensity"]
                inverse += [np.bincount(action, power, k) for power in (once, once * once)]
        shown += counts
        low, high = np.searchsorted(display, [first, first + len(time)])
        shown_at[low:high] = time[display[low:high] - first]
        start, end = (int(time[0]) if first == 0 else start), int(time[-1])
    rate = (len(log) - 1) / (end - start) if end > start else float("nan")
    times = [to_numpy(log.conversions["time"]).astype(np.int64, copy=False)]
    until, longest = log.meta.observed_until, log.meta.attribution_window
    if until is not None:
        times.append(np.full(len(display), until) if longest is None else np.minimum(until, shown_at + longest))
    last = _Last(len(log), end, rate)
    followed = [_past_the_end(count, when, last) - 1 - display
                for count, when in zip(displays_until(log, *times), times, strict=True)]  # fmt: skip
    never = shown == 0
    if inverse is None:
        inverse = np.full((2, k), np.nan) if log.meta.propensity == "absent" else _of_constant(shown, smallest)
    smallest[never | np.isinf(smallest)] = largest[never | np.isinf(largest)] = np.nan
    return Survey(
        log, shown, smallest, largest, inverse, rate, display, shown_at, followed[0],
        followed[1] if until is not None else None,
    )  # fmt: skip


def _of_constant(shown: npt.NDArray[np.int64], p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sums of 1/p and 1/p² of actions with one propensity each, inf where never shown; shape (2, K)."""
    return np.array([shown / p, shown / p**2])


def displays_until(log: Log, *times: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return how many displays were shown no later than each time, arrays of the shapes given, in one pass."""
    order = [np.argsort(when, kind="stable") for when in times]
    waiting = [when[at] for when, at in zip(times, order, strict=True)]
    found = [np.full(len(when), len(log), np.int64) for when in times]
    done = [0] * len(times)
    for first, batch in log.batches(["time"]):
        time = batch["time"]
        for i, when in enumerate(waiting):
            # Times from the batch's last display on may count displays of the next batch too.
            high = int(np.searchsorted(when, time[-1], side="left"))
            found[i][done[i] : high] = first + np.searchsorted(time, when[done[i] : high], side="right")
            done[i] = max(high, done[i])
    out = []
    for count, at in zip(found, order, strict=True):
        back = np.empty_like(count)
        back[at] = count
        out.append(back)
    return out


@dataclass(frozen=True)
class _Last:
    """The end of the displays: how many, the time of the last, and the traffic rate."""

    displays: int
    time: int
    rate: float


def _past_the_end(count: npt.NDArray[np.int64], when: npt.NDArray[np.int64], last: _Last) -> npt.NDArray[np.int64]:
    """Return the counts with the displays that the log's mean traffic rate would have brought after its last one."""
    past = when > last.time
    if not past.any():
        return count
    if not np.isfinite(last.rate):
        raise LogError(
            "displays.time: all displays share one time: no traffic rate for the conversions that come later.",
            hint="give the displays their times, or number them (unit = 'round').",
        )
    beyond = np.where(past, np.floor((when - last.time) * last.rate), 0.0)
    return count + beyond.astype(np.int64)
