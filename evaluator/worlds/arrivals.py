"""Arrivals of the displays of a twin: at the times of the log's own, with its hours, its growth and its gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.worlds.disk_column import DisplayColumn, mean_in_blocks

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HOURS, _HOUR_S = 24, 3_600.0
# Judged displays over fewer days cannot tell an hour from a day; chance shows a rhythm this often; hours of fewer
# expected conversions are left as they are.
_FEWEST_DAYS, _LEVEL, _FEWEST = 2.0, 1e-3, 10.0


@dataclass(frozen=True, eq=False)
class DisplayTimes:
    """Arrival times that twins and live runs take theirs from, N of them in ticks, not decreasing.

    They are those of the log's displays, so many of them, which repeat where twins are longer. The `rate` is the mean
    one in displays per tick, and `end` the last of the times.
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

    Memory: `evaluator.worlds.disk_column`, so none that grows with the log.
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


@dataclass(frozen=True, eq=False)
class HourFactors:
    """Factors of all rates by the hour of the day, shape (24,), with mean 1 over the log's displays.

    `by_hour` is None where rates do not follow the hour; an hour has so many `ticks`.
    """

    by_hour: Floats | None = None
    ticks: float = 1.0
    said: tuple[str, ...] = ()

    def factor(self, time: Ints) -> Floats:
        """Return the factor at some times, shape (n,)."""
        return np.ones(len(time)) if self.by_hour is None else self.by_hour[hour_of_day(time, self.ticks)]


def fit_hours(plan: ReplayPlan, converted: Ints, traffic: DisplayTimes | None) -> HourFactors:
    """Return by how much rates follow the hour, each action's own rate allowed for; nothing where chance does as well.

    With O_h conversions in hour h where the actions shown make E_h expected, and mu the rate of all, O_h / E_h has
    variance (1 - mu) / E_h by chance alone. The factors 1 + sqrt(w_h) (O_h / E_h - 1), w_h = tau² / (tau² + (1 - mu) /
    E_h), are spread as the true ones are, as the rates of `evaluator.worlds.rates.rates_by_action`.

    Judged are the used displays of the plan; `converted` are the numbers of those that converted, increasing, shape
    (c,).
    """
    seconds = plan.log.meta.tick_seconds
    if traffic is None or seconds is None or seconds > _HOUR_S or not plan.maturity.known:
        return HourFactors()
    ticks = _HOUR_S / seconds
    n = plan.rounds.used
    first, last = traffic.times.take(np.array([0, n - 1]))
    if last - first < _FEWEST_DAYS * _HOURS * ticks:
        return HourFactors()
    sold, shown = converted_and_shown(plan, converted)
    rate = sold / np.maximum(shown, 1)
    seen = np.bincount(hour_of_day(traffic.times.take(converted), ticks), minlength=_HOURS).astype(np.float64)
    expected = np.zeros(_HOURS)
    for at, batch in plan.log.batches(["action"]):
        action = batch["action"][: max(n - at, 0)]
        if not len(action):
            break
        # Added one by one to what there is, as if all were added at once.
        np.add.at(expected, hour_of_day(traffic.times.read(at, at + len(action)), ticks), rate[action])
    tested = expected >= _FEWEST
    if tested.sum() < 2:
        return HourFactors()
    noise = 1.0 - len(converted) / n
    departure = np.where(tested, seen / np.maximum(expected, 1e-300) - 1.0, 0.0)
    squares, total = float((expected * departure**2).sum()), float(expected[tested].sum())
    df = int(tested.sum()) - 1
    if chdtrc(df, squares / max(noise, 1e-9)) > _LEVEL:
        return HourFactors()
    between = (squares - df * noise) / (total - float((expected[tested] ** 2).sum()) / total)
    weight = between / (between + noise / np.maximum(expected, 1e-300))
    by_hour = np.maximum(1.0 + np.sqrt(weight) * departure, 0.0)

    def factors(low: int, high: int) -> Floats:
        return by_hour[None, hour_of_day(traffic.times.read(low, high), ticks)]

    by_hour /= mean_in_blocks(traffic.displays, factors)
    return HourFactors(
        by_hour,
        ticks,
        (
            f"conversion rates follow the hour of the day, from {by_hour.min():.3g} to {by_hour.max():.3g} times their "
            "mean, alike for all actions",
        ),
    )


def converted_and_shown(plan: ReplayPlan, converted: Ints) -> tuple[Ints, Ints]:
    """Return how many of each action's used displays converted, and how many there are, shape (K,) each.

    `converted` are the numbers of the used displays that converted, increasing, shape (c,).
    """
    sold: Ints = np.zeros(plan.log.n_actions, np.int64)
    for at, batch in plan.log.batches(["action"]):
        low, high = np.searchsorted(converted, [at, at + len(batch["action"])])
        sold += np.bincount(batch["action"][converted[low:high] - at], minlength=len(sold))
    return sold, plan.survey.shown_first(plan.rounds.used)


def hour_of_day(time: Ints, ticks: float) -> Ints:
    """Return the hour of the day at some times, whose hours have so many ticks, shape (n,)."""
    hour: Ints = (time // ticks).astype(np.int64) % _HOURS
    return hour
