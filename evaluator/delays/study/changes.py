"""Whether delays change along the log, with a flag of a stated false-alarm rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.permutations import permutable, permuted
from evaluator.delays.usable import Floats, Ints, checked_delays
from evaluator.errors import DataError, ParameterError
from evaluator.streams import seed_stream


@dataclass(frozen=True)
class DayDelays:
    """Delays of the displays of one day.

    Parameters
    ----------
    day
        Number of the day, as it was given.
    conversions
        Number of delays of that day.
    longest
        Longest delay, in ticks, that the quantiles are conditional on: that of the common range, or what this day could
        show.
    quantiles, low, high
        Product-limit quantiles and their intervals, in ticks, in the order of `DelayDrift.levels`.
    position
        Mean place of the day's delays among what all days make expected under the same limits: 0.5 without drift, more
        where they come later.
    """

    day: int
    conversions: int
    longest: float
    quantiles: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    position: float


@dataclass(frozen=True)
class DelayDrift:
    """Delays day by day (`delay_drift`).

    Parameters
    ----------
    levels
        Levels of the quantiles, in (0, 1).
    days
        Delays of each day, in the order of the days.
    changed
        Whether a change is flagged.
    change_after
        Last day before the most likely change; None where none is flagged.
    statistic
        Largest excursion of the cumulated positions, in standard deviations of a delay's position times sqrt(n).
    p
        P-value of the statistic, by permutation.
    false_alarms
        Probability that a change is flagged without drift.
    permutations
        Number of permutations.
    rows, conversions
        Number of conversions that were tested, and of those there are.
    """

    levels: tuple[float, ...]
    days: tuple[DayDelays, ...]
    changed: bool
    change_after: int | None
    statistic: float
    p: float
    false_alarms: float
    permutations: int
    rows: int
    conversions: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        days = [{k: list(v) if isinstance(v, tuple) else v for k, v in day.__dict__.items()} for day in self.days]
        return {**self.__dict__, "levels": list(self.levels), "days": days}


def delay_drift(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    days: ArrayLike,
    levels: tuple[float, ...] = (0.25, 0.5, 0.75),
    longest: float | None = None,
    false_alarms: float = 0.01,
    permutations: int = 999,
    rows: int = 100_000,
    seed: int = 0,
) -> DelayDrift:
    """Return delay quantiles by day of display and flag a change.

    Young displays can only show short delays, so days are compared by U = F(D) / F(L), F the product limit of all days,
    which is about uniform on every day without drift whatever the limits. With the rows in order of days, the statistic
    is the largest |sum_{i <= k} (U_i - mean U)| / (sd(U) sqrt(n)) over the ends of days (CUSUM). Its p-value comes from
    admissible permutations (`evaluator.delays.study.permutations`); the flag goes up when it is at most `false_alarms`,
    which is the probability of a false alarm.

    Parameters
    ----------
    delays, limits
        Delays, shape (n,), and their limits, shape (n,) or (), in ticks; None where nothing was cut off
        (`evaluator.delays.nonparametric.fit_nonparametric`).
    days
        Number of the day of each conversion's display, whole, shape (n,).
    levels
        Levels of the quantiles, in (0, 1).
    longest
        Longest delay, in ticks, that the quantiles are conditional on, so that days compare; days that could not show
        as much say so. None takes the longest limit of each day.
    false_alarms
        Probability, in (0, 1), that a change is flagged without drift.
    permutations
        Number of permutations, at least 1 / `false_alarms` - 1.
    rows
        Number of conversions to test at most: of more, a random subsample of this size; the quantiles take all.
    seed
        Seed of the subsample and of the permutations.

    Raises
    ------
    DataError
        A delay is impossible, or there are not as many days as delays.
    ParameterError
        There are too few permutations for the false-alarm rate.
    """
    if not 0 < false_alarms < 1 or (permutations + 1) * false_alarms < 1:
        raise ParameterError(
            f"{permutations} permutations cannot show a false-alarm rate of {false_alarms}.",
            hint="permutations of at least 1 / false_alarms - 1.",
        )
    delay, limit = checked_delays(delays, limits, whole=False)
    day = np.asarray(days)
    if day.shape != delay.shape:
        raise DataError(f"There are {delay.size} delays but days of shape {day.shape}.", hint="one day a delay.")
    rng = seed_stream(seed)
    chosen = np.arange(delay.size)
    if delay.size > rows:
        chosen = np.sort(rng.choice(delay.size, rows, replace=False))
    ready = permutable(delay[chosen], None if limit is None else limit[chosen])
    kept_day = day[chosen][ready.kept]
    names, code = np.unique(kept_day, return_inverse=True)
    statistic, at = _excursion(ready.mass, ready.ends, ready.owners, code, names.size)
    n = kept_day.size
    pool, taken = np.empty(n, np.int64), np.empty(n, np.int64)
    above = 0
    for _ in range(permutations):
        permuted(ready.rows, ready.eligible, rng.random(n), pool, taken)
        above += _excursion(ready.mass, ready.ends, taken, code, names.size)[0] >= statistic * (1.0 - 1e-12)
    p = (1 + above) / (permutations + 1)
    position = np.bincount(code, ready.transforms()) / np.bincount(code)
    found = dict(zip(names.tolist(), position.tolist(), strict=True))
    out = []
    for name in np.unique(day).tolist():
        mine = day == name
        if longest is not None:
            mine &= delay <= longest
        if not mine.any():
            continue
        fit = fit_nonparametric(delay[mine], None if limit is None else limit[mine], longest=longest)
        low, high = fit.quantile_intervals(levels)
        out.append(
            DayDelays(
                day=int(name),
                conversions=int(mine.sum()),
                longest=float(fit.longest),
                quantiles=tuple(fit.quantiles(levels).tolist()),
                low=tuple(low.tolist()),
                high=tuple(high.tolist()),
                position=found.get(name, float("nan")),
            )
        )
    changed = p <= false_alarms
    return DelayDrift(
        levels=tuple(levels),
        days=tuple(out),
        changed=changed,
        change_after=int(names[at]) if changed else None,
        statistic=statistic,
        p=p,
        false_alarms=false_alarms,
        permutations=permutations,
        rows=chosen.size,
        conversions=delay.size,
    )


def _excursion(mass: Floats, ends: Floats, taken: Ints, code: Ints, n_days: int) -> tuple[float, int]:
    """Return the largest excursion and the day that ends it."""
    u = mass / ends[taken]
    sums = np.bincount(code[taken], u - u.mean(), minlength=n_days)
    path = np.abs(np.cumsum(sums))
    spread = float(u.std()) * np.sqrt(u.size)
    return (float(path.max() / spread) if spread > 0 else 0.0), int(path.argmax())
