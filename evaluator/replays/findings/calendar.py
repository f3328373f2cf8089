"""Whether what actions earn, or the traffic, moves with the log's calendar: over its days, or with the time of day.

A replay keeps some of the displays, so between two pushes in time it passes more of the calendar than a deployment
does. That is right where nothing moves with it. The test needs no pass of its own: it compares displays and conversions
that the survey took evenly, at most 65,536 of each.

*Test.* If each action earns alike at all times, its conversions fall into the parts of the calendar as its displays do.
What is left of that is summed over the actions, and looked at action by action: over the days (or tenths of a log of
less than three days) and over the parts of the day. Each sum of squares is compared with what is left in the parts of
single days (Fisher's F; its tail after Paulson 1942), so that users who come back, and bursts, are no finding.
Conversions count by the rank of their value, so that a few large ones do not decide. All displays are followed equally
long: a fifth of the log at the most, and of the last displays that were not, none counts. `evaluate check` tests the
same of all displays, and names the days and the actions.

*False alarms.* The four tests together find something in at most `LEVEL` of the logs in which nothing moves
(`tests/replays/test_calendar.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.log.times import TENTHS, has_days, ticks_a_day
from evaluator.replays.rounds.survey import Survey

# Share of the logs in which nothing moves for which something is found, at most.
LEVEL = 1e-3
# Change of what actions earn (root mean square, relative) that matters.
MATTERS = 0.1
DAYS, TENTHS_OF_LOG, HOURS = "over the log's days", "over the log's time", "with the time of day"
# Sampled conversions below which an action is not looked at, and the most actions that are.
_FEWEST, _MOST_ACTIONS = 50, 64
# The most blocks of days, and the parts of a day, three hours each: what moves smoothly is found by few, large parts.
_MOST_PERIODS, _PARTS_OF_DAY = 10, 8
# Share of the log for which displays are followed, at the most.
_FOLLOWED = 0.2
# Added to variances, so that cells of few expected conversions do not decide.
_CALM = 0.5
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Movement(NamedTuple):
    """With what the earnings of actions move, and by how much: root mean square of the relative change."""

    how: str
    change: float


class Sample(NamedTuple):
    """Displays and conversions taken evenly from a log: their times in ticks, and their actions.

    Conversions are those of displays that were followed for equally long, and so have the times of their displays; each
    counts as much as its `score`, from 1/2 to 3/2. The displays are a share `taken` of all.
    """

    shown_at: Ints
    action: Ints
    converted_at: Ints
    converted: Ints
    score: Floats
    taken: float


def find_movements(survey: Survey, *, level: float = LEVEL) -> list[Movement]:
    """Return with what the earnings of a log's actions move; empty where nothing does, or too little is known."""
    sample, day = _sample(survey), ticks_a_day(survey.log.meta)
    if sample is None or day is None:
        return []
    return [one for one in movements(sample, day, level=level) if one.change >= MATTERS]


def _sample(survey: Survey) -> Sample | None:
    """Return the displays of a log that were followed for long enough, and their conversions; None without any."""
    log = survey.log
    if WEIGHT in log.schema.names or len(log) < 2:
        return None
    last = int(survey.marked_at[-1])
    last = last if log.meta.observed_until is None else min(log.meta.observed_until, last)
    follow = int(_FOLLOWED * max(last - int(survey.marked_at[0]), 0))
    follow = min(follow, follow if log.meta.attribution_window is None else log.meta.attribution_window)
    shown = survey.marked_at[:-1] <= last - follow
    at = survey.shown_at[survey.sample]
    counted = (at <= last - follow) & (survey.delay_ticks[survey.sample] <= follow)
    if not counted.any():
        return None
    value = to_numpy(log.conversions["value"])[survey.sample[counted]]
    _, of, count = np.unique(value, return_inverse=True, return_counts=True)
    score = 0.5 + (np.cumsum(count) - 0.5 * count)[of] / len(value)
    action = survey.marked_action[:-1].astype(np.int64)
    return Sample(
        survey.marked_at[:-1][shown], action[shown], at[counted], survey.sample_action[counted].astype(np.int64), score,
        (len(survey.mark) - 1) / len(log),
    )  # fmt: skip


def movements(sample: Sample, day: int, *, level: float) -> list[Movement]:
    """Return with what the earnings of the actions of a sample move, however little; a day has so many ticks."""
    actions = np.bincount(sample.converted)
    looked_at = np.argsort(-actions, kind="stable")[:_MOST_ACTIONS]
    looked_at = looked_at[actions[looked_at] >= _FEWEST]
    start = int(sample.shown_at[0])
    span = int(sample.shown_at[-1]) - start + 1
    if not len(looked_at) or span < TENTHS:
        return []
    days = span // day
    if has_days(days):
        together = -(-days // _MOST_PERIODS)
        parts, length, within, names = days // together, together * day, day, (DAYS, HOURS)
    else:
        parts, length, within, names = TENTHS, span // TENTHS, span // TENTHS, (TENTHS_OF_LOG, "")
    # Of a tenth of the log its quarters, which are not looked at by themselves.
    pieces = _PARTS_OF_DAY if names[1] else 4
    number = np.full(max(int(sample.action.max()), len(actions)) + 1, -1)
    number[looked_at] = np.arange(len(looked_at))

    def cells(time: Ints, action: Ints, weight: Floats | None = None) -> Floats:
        since = time - start
        part, piece, k = since // length, since % within * pieces // within, number[action]
        kept = (part < parts) & (k >= 0)
        cell = ((part * pieces + piece) * len(looked_at) + k)[kept]
        counts = np.bincount(cell, None if weight is None else weight[kept], parts * pieces * len(looked_at))
        return counts.reshape(parts, pieces, len(looked_at)).astype(np.float64)

    shown = cells(sample.shown_at, sample.action)
    score = cells(sample.converted_at, sample.converted, sample.score)
    square = cells(sample.converted_at, sample.converted, sample.score**2).sum(axis=(0, 1))
    total = np.maximum(shown.sum(axis=(0, 1)), 1.0)
    rate = score.sum(axis=(0, 1)) / total
    # Of a conversion that is seen; less what is known of its display where all displays are counted.
    spread = np.maximum(square / total + rate**2 * (1.0 - 2.0 * sample.taken), 1e-12)
    # Of cells, shape (P, H, K), the sums over the parts of a day, over the days, and over each half of these: halves
    # find what drifts one way, of which each day tells little.
    half = np.array([0, parts // 2])
    folds: list[tuple[str, Callable[[Floats], Floats]]] = [
        (names[0], lambda of: of.sum(axis=1)),
        (names[1], lambda of: of.sum(axis=0)),
        (names[0], lambda of: np.add.reduceat(of.sum(axis=1), half)),
    ]
    z = _normal_quantile(level / (2 * sum(bool(name) for name, _ in folds)))
    found: dict[str, float] = {}
    for joined in (True, False):
        of_cells = _squares(score, shown, rate, spread, joined=joined)
        squares = [_squares(fold(score), fold(shown), rate, spread, joined=joined) for _, fold in folds]
        df = of_cells.df - squares[0].df - squares[1].df
        rest = max((of_cells.square - squares[0].square - squares[1].square) / max(df, 1.0), 1.0)
        for (name, _), (square, own, of_one) in zip(folds, squares, strict=True):
            if name and own >= 0.5 and df >= 1.0 and _paulson(square / own / rest, own, df) > z:
                found[name] = max(math.sqrt(max(square - rest * own, 0.0) / of_one), found.get(name, 0.0))
    return [Movement(name, change) for name, change in found.items()]


def uneven_traffic(survey: Survey) -> float:
    """Return the displays of the busiest tenth of a log's time over those of the quietest, or of a part of its days.

    The larger of the two ratios; nan where the log does not tell.
    """
    time, day = survey.marked_at[:-1] - survey.marked_at[0], ticks_a_day(survey.log.meta)
    span = int(survey.marked_at[-1] - survey.marked_at[0]) + 1
    if day is None or len(time) < TENTHS * _FEWEST or span < TENTHS:
        return math.nan
    counts = [np.bincount(time * TENTHS // span, minlength=TENTHS)]
    if span >= 2 * day:
        of_days = time[time < span // day * day] % day
        counts.append(np.bincount(of_days * _PARTS_OF_DAY // day, minlength=_PARTS_OF_DAY))
    return max(float(count.max() / max(count.min(), 1)) for count in counts)


class _Squares(NamedTuple):
    """A sum of squares of what is left in some cells, its mean if nothing moves, and what a change of 1 would add."""

    square: float
    df: float
    for_one: float


def _squares(score: Floats, shown: Floats, rate: Floats, spread: Floats, *, joined: bool) -> _Squares:
    """Return the sum of squares over cells and actions, shape (..., K), or over cells with all actions `joined`."""
    expected, variance = rate * shown, spread * shown
    free = variance * (1.0 - shown / np.maximum(shown.sum(axis=tuple(range(shown.ndim - 1))), 1.0))
    left = score - expected
    if joined:
        left, expected, variance, free = (of.sum(axis=-1) for of in (left, expected, variance, free))
    scale = variance + _CALM
    return _Squares(float((left**2 / scale).sum()), float((free / scale).sum()), float((expected**2 / scale).sum()))


def _paulson(ratio: float, upper: float, lower: float) -> float:
    """Return about how many standard errors the F ratio of so many degrees of freedom lies above its mean.

    >>> round(_paulson(2.0, 23, 200), 2)  # P(F > 2) = .0061: 2.51
    2.51
    """
    a, b, root = 2.0 / (9.0 * upper), 2.0 / (9.0 * lower), ratio ** (1.0 / 3.0)
    return float(((1.0 - b) * root - (1.0 - a)) / math.sqrt(b * root * root + a))


def _normal_quantile(tail: float) -> float:
    """Return the z that a standard normal variable exceeds with this probability.

    >>> round(_normal_quantile(0.025), 2)
    1.96
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(1.0 - tail)
