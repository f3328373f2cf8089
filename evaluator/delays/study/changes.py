"""Whether delays change along the log, with a flag of a stated false-alarm rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.product_limit import Floats, Ints, Observed, Ticks, checked_delays, risk_table
from evaluator.delays.study.heterogeneity import permutable, permuted
from evaluator.errors import DataError, ParameterError
from evaluator.results.json_documents import Count, Level, NotNegative, NotNegativeOrNull, Positive, Share
from evaluator.streams import seed_stream

# Probability with which a change as large as `shown` is flagged, and the normal quantile of it.
POWER, _POWER_Z = 0.8, 0.8416
# Shares of the days after which such a change is supposed to come.
_SHOWN_AFTER = (0.5, 0.75)
# A part of the days is compared with the rest if either holds this share of the information about a change.
_LEAST_INFORMATION = 0.02
# In standard deviations: changes of the newest displays, by their share of the information, and a steady trend count as
# so much further off. The former are found least of all and make the recommended window wrong; the latter is one
# comparison, steps are as many as days. Measured by ``python -m tests.bench.delays_truth lengthen``.
_NEWEST_SHARE, _NEWEST, _TREND = 0.2, 0.6, 1.0
# Twice the logarithm of the likelihood by which the day of a change may be below the best: 95 % of a chi-square.
_LIKELY = 3.84
# Factors are looked for up to this one, and down to its inverse.
MOST = 20.0
_STEPS = 20
# Steps of the CDF.
_NARROW = 1e-6
# Levels of the quantiles by day.
_LEVELS = (0.25, 0.5, 0.75)
# Permutations whose distances are computed together.
_TOGETHER = 100


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

    day: Count
    conversions: Count
    longest: NotNegativeOrNull
    quantiles: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    position: float


@dataclass(frozen=True)
class ShownChange:
    """The smallest change that the test finds in such a log with a probability of about `POWER`.

    Parameters
    ----------
    after
        Last day before the change.
    ratio
        Factor by which all later delays become longer; None where no factor up to 20 would be found so surely.
    """

    after: int
    ratio: NotNegative | None


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
        Largest distance between the delays before and after the end of a day, or of a trend, in standard deviations,
        with what is added to it (`delay_drift`).
    p
        P-value of the statistic, by permutation.
    false_alarms
        Probability that a change is flagged without drift.
    permutations
        Number of permutations.
    rows, conversions
        Number of conversions that were tested, and of those there are.
    change_by
        Last day before the latest change that is about as likely (95 % by the likelihood); None where none is flagged.
    shown
        What the test could have found: changes after half and after three quarters of the days.
    """

    levels: tuple[Level, ...]
    days: tuple[DayDelays, ...]
    changed: bool
    change_after: int | None
    statistic: float
    p: Share
    false_alarms: Level
    permutations: Positive
    rows: Count
    conversions: Count
    change_by: int | None
    shown: tuple[ShownChange, ...]


def delay_drift(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    days: ArrayLike,
    longest: float | None = None,
    false_alarms: float = 0.01,
    permutations: int = 999,
    rows: int = 100_000,
    seed: int = 0,
) -> DelayDrift:
    """Return delay quantiles by day of display and flag a change.

    Young displays can only show short delays, so every delay is compared with what all days make expected of a display
    followed as long: its score is -log(1 - F(D)) less the mean of that given D <= L, F the product limit of all days
    (`DelayScores`). These are the scores of the log-rank test, the best for delays of a Weibull law that become longer
    or shorter by a factor. The statistic is the largest distance, over the ends of days, between the scores before and
    after, in standard deviations, so that a change in the last days, which say little of long delays, counts by what
    they do say; or the distance of a steady trend over the days. To changes of the newest displays alone, which hold a
    fifth of the information or less, .6 is added, and to a trend 1. The p-value comes from admissible permutations
    (`evaluator.delays.study.heterogeneity`), at least 1 / `false_alarms` - 1; the flag goes up when it is at most
    `false_alarms`, in (0, 1), which is the probability of a false alarm.

    Delays have shape (n,) and limits (n,) or (), in ticks, as for `evaluator.delays.nonparametric.fit_nonparametric`;
    `days` holds the number of the day of each conversion's display, whole, shape (n,). Quantiles are given a delay of
    at most `longest` ticks, so that days compare; days that could not show as much say so. None takes the longest limit
    of each day. Of more conversions than `rows` a random subsample of this size is tested, by the seed; the quantiles
    take all.

    Raises DataError where a delay is impossible, or there are not as many days as delays, and ParameterError where
    there are too few permutations for the false-alarm rate.
    """
    if not 0 < false_alarms < 1 or (permutations + 1) * false_alarms < 1:
        raise ParameterError(
            f"{permutations} permutations cannot show a false-alarm rate of {false_alarms}.",
            remedy="permutations of at least 1 / false_alarms - 1.",
        )
    seen = checked_delays(delays, limits, whole=False)
    day = np.asarray(days)
    if day.shape != seen.delay.shape:
        raise DataError(f"There are {seen.delay.size} delays but days of shape {day.shape}.", remedy="one day a delay.")
    tested = compare_days(seen, day, false_alarms=false_alarms, permutations=permutations, rows=rows, seed=seed)
    out = []
    for name in np.unique(day).tolist():
        mine = day == name
        if longest is not None:
            mine &= seen.delay <= longest
        if not mine.any():
            continue
        fit = fit_nonparametric(*seen.take(mine), longest=longest)
        ends = (fit.quantiles(_LEVELS), *fit.quantile_intervals(_LEVELS))
        quantiles, low, high = (tuple(of.tolist()) for of in ends)
        position = tested.positions.get(name, math.nan)
        out.append(DayDelays(int(name), int(mine.sum()), float(fit.longest), quantiles, low, high, position))
    changed = tested.p <= false_alarms
    return DelayDrift(
        levels=_LEVELS, days=tuple(out), changed=changed, change_after=tested.after if changed else None,
        statistic=tested.statistic, p=tested.p, false_alarms=false_alarms, permutations=permutations, rows=tested.rows,
        conversions=seen.delay.size, change_by=tested.at_latest if changed else None, shown=tested.shown,
    )  # fmt: skip


class DayComparison(NamedTuple):
    """Statistic, its p-value, and how many rows were tested (`DelayDrift`).

    `after` and `at_latest` are the last days before the most likely change and before the latest likely one;
    `positions` the mean places of the days by their numbers; `shown` what could be shown.
    """

    statistic: float
    p: float
    rows: int
    after: int
    at_latest: int
    positions: dict[int, float]
    shown: tuple[ShownChange, ...]


def compare_days(
    seen: Observed, day: Ints, *, false_alarms: float, permutations: int, rows: int, seed: int
) -> DayComparison:
    """Test that days have one delay law (`delay_drift`), on delays that were checked."""
    rng = seed_stream(seed)
    if seen.delay.size > rows:
        chosen = np.sort(rng.choice(seen.delay.size, rows, replace=False))
        seen, day = seen.take(chosen), day[chosen]
    ready = permutable(seen)
    n = ready.kept.size
    names, code = np.unique(day[ready.kept], return_inverse=True)
    tested = seen.delay.size
    seen = seen.take(ready.kept)
    law = DelayScores.of(seen)
    mean, variance_of = law.moments(seen.limit, n)
    information = np.cumsum(np.bincount(code, variance_of))
    share = information / max(information[-1], 1e-300)
    # Of the sum of the scores before, given their sum over all days.
    variance = information * (1.0 - share)
    least = np.minimum(share, 1.0 - share)
    spread = np.sqrt(np.where((least >= _LEAST_INFORMATION) & (variance > 0), variance, np.inf))
    score = law.scores(seen.delay)[ready.owners]
    sums = np.cumsum(np.bincount(code, mean))
    expected = sums + (float(score.sum()) - sums[-1]) * share

    # Of the trend, whose weights add up to nothing over the information.
    weight = names - float(names @ np.diff(information, prepend=0.0)) / max(float(information[-1]), 1e-300)
    trend_spread = math.sqrt(float(weight**2 @ np.diff(information, prepend=0.0))) or math.inf
    if not np.isfinite(spread).any():
        trend_spread = math.inf  # nothing is before and after

    def of_days(taken: Ints) -> Floats:
        return np.bincount(code[taken], score, minlength=names.size).astype(np.float64, copy=False)

    counted = np.where((1.0 - share <= _NEWEST_SHARE) & np.isfinite(spread), _NEWEST, 0.0)

    def largest(sums: Floats) -> tuple[Floats, Floats]:
        """Return the largest distance of each row of scores by day, and the distances at the ends of days."""
        left = np.cumsum(sums, axis=1) - expected
        # Row by row, as the sums of a product of matrices depend on the number of rows.
        trend = np.abs([weight @ row for row in np.diff(left, axis=1, prepend=0.0)]) / trend_spread
        steps = np.abs(left) / spread
        return np.maximum((steps + counted).max(axis=1), np.where(trend > 0, trend + _TREND, 0.0)), steps

    most, (found,) = largest(of_days(ready.owners)[None])
    statistic = float(most[0])
    pool, taken = np.empty(n, np.int64), np.empty(n, np.int64)
    drawn = np.empty(permutations)
    for first in range(0, permutations, _TOGETHER):
        by_day = np.empty((min(_TOGETHER, permutations - first), names.size))
        for i in range(len(by_day)):
            permuted(ready.rows, ready.eligible, rng.random(n), pool, taken)
            by_day[i] = of_days(taken)
        drawn[first : first + len(by_day)] = largest(by_day)[0]
    p = (1 + int((drawn >= statistic * (1.0 - 1e-12)).sum())) / (permutations + 1)
    needed = float(np.sort(drawn)[-max(int(false_alarms * (permutations + 1)), 1)]) + _POWER_Z
    shown = []
    for part in _SHOWN_AFTER:
        # The change would come after whole days, with some before and some after.
        last = int(np.searchsorted(names, names[0] + part * (names[-1] + 1 - names[0]))) - 1
        if 0 <= last < names.size - 1:
            late = code > last
            apart = (needed - counted[last]) * spread[last]
            total = float(mean[late].sum() + apart / max(share[last], 1e-300))
            ratio = law.ratio_of(seen.take(late).limit, int(late.sum()), total)
            shown.append(ShownChange(int(names[last]), ratio))
    position = np.bincount(code, ready.transforms()) / np.bincount(code)
    likely = np.flatnonzero(np.isfinite(spread) & (found**2 >= found.max() ** 2 - _LIKELY))
    return DayComparison(
        statistic=statistic, p=p, rows=tested, after=int(names[found.argmax()]),
        at_latest=int(names[likely[-1] if likely.size else -1]),
        positions=dict(zip(names.tolist(), position.tolist(), strict=True)), shown=tuple(shown),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class DelayScores:
    """Scores -log(1 - F(D)) of delays, and what their limits L make expected of them under one law F, in ticks.

    With F the product limit of the delays (`evaluator.delays.product_limit`), the scores of a delay law are those of an
    exponential one, whatever the law: E[-log(1 - F(D)) | D <= L] = 1 + (1/t - 1) log(1 - t) with t = F(L). A distinct
    delay has the mean over its step of F. The distinct delays `support`, increasing, F at them, `cdf`, and the score of
    each, `steps`, have shape (J,).
    """

    support: Ticks
    cdf: Floats
    steps: Floats

    @classmethod
    def of(cls, seen: Observed) -> DelayScores:
        """Return the scores of the law of these delays, of those whose weight the log identifies; O(n log n)."""
        table = risk_table(seen.delay, seen.ends)
        cdf = np.maximum(table.cdf(), 1e-300)
        before = np.append(0.0, cdf[:-1])
        mass = cdf - before
        middle = -np.log1p(-0.5 * (before + cdf))
        # Of narrow steps the difference would be rounding.
        steps = np.where(mass > _NARROW, np.diff(_below(np.append(0.0, cdf))) / np.maximum(mass, _NARROW), middle)
        return cls(table.support, cdf, steps)

    def scores(self, delays: Ticks) -> Floats:
        """Return the score of each delay, shape (n,); delays between two of the law's count as the longer one."""
        return self.steps[np.minimum(np.searchsorted(self.support, delays), self.support.size - 1)]

    def moments(self, limits: Ticks | None, rows: int, *, ratio: float = 1.0) -> tuple[Floats, Floats]:
        """Return mean and variance of the scores of delays that are `ratio` times as long, of at most each limit.

        Both of shape (rows,). A limit that no delay is within has none, which counts as 0 and 0.
        """
        mass = np.diff(self.cdf, prepend=0.0)
        moved = self.steps if ratio == 1.0 else np.interp(ratio * self.support, self.support, self.steps)
        if limits is None:
            within = np.full(rows, self.support.size)
        else:
            within = np.searchsorted(self.support, limits / ratio, side="right")
        last = np.maximum(within - 1, 0)
        total = self.cdf[last]
        mean = np.where(within > 0, np.cumsum(mass * moved)[last] / total, 0.0)
        variance = np.maximum(np.cumsum(mass * moved**2)[last] / total - mean**2, 0.0)
        return mean, np.where(within > 0, variance, 0.0)

    def ratio_of(self, limits: Ticks | None, rows: int, total: float) -> float | None:
        """Return the factor, at least 1 / 20, by which delays are longer than the law's if their scores have this sum.

        None where it is above 20.
        """
        low, high = -math.log(MOST), math.log(MOST)
        if self.moments(limits, rows, ratio=MOST)[0].sum() < total:
            return None
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            enough = self.moments(limits, rows, ratio=math.exp(middle))[0].sum() >= total
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)


def _below(t: Floats) -> Floats:
    """Return the integral of -log(1 - u) from 0 to t."""
    return t + (1.0 - t) * np.log(np.maximum(1.0 - t, 1e-300))
