"""How long the log followed its displays, and whether it stopped looking without saying so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.checks.timeline import Timeline
from evaluator.replays.rounds.survey import Survey

Ints = npt.NDArray[np.int64]

# Rates are compared within a follow-up that this share of the displays had.
JUDGED = 0.8
# Share of the conversions that are missing: nothing to speak of, and too many.
FEW_MISSING, MANY_MISSING = 0.001, 0.01
# Conversions at the end of the log that may stand alone after all others.
STRAYS = 3
# Shifts in time are of whole weeks, or of whole days, where the log has two of them; below so many days it has none.
_DAY, _FEWEST_DAYS = 86_400.0, 1.25


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How far the log saw.

    Parameters
    ----------
    delay
        Delay of each conversion in ticks, shape (c,).
    last
        Time of the last conversion that is no stray, in ticks; None without conversions.
    strays
        Row numbers of conversions that stand alone after all others, shape (r,): they only seem to follow the displays
        for longer.
    beyond
        Number of conversions that were to be expected after the last one (but the strays), had all displays been
        followed as the log says.
    p_value
        Probability of at least as many missing conversions when the log says the truth.
    by_day
        Whether times of day, at some of which nothing comes, cannot be the reason; False for logs of about a day.
    stopped
        Whether the log stopped looking without saying so.
    until
        Time up to which displays were followed, in ticks: as the log says, or the last conversion when it `stopped`;
        None where every display was followed to its end.
    horizon
        Longest delay, in ticks, of the conversions that rates count; None counts all.
    mature
        Number of displays, the first ones, that were followed for as long as `horizon`.
    """

    delay: Ints
    last: int | None
    strays: Ints
    beyond: int
    p_value: float
    by_day: bool
    stopped: bool
    until: int | None
    horizon: int | None
    mature: int

    def counted(self, display: Ints) -> npt.NDArray[np.bool_]:
        """Return which conversions a comparison of rates counts, shape (c,)."""
        within = display < self.mature
        return within if self.horizon is None else within & (self.delay <= self.horizon)


def asked_of_timeline(survey: Survey) -> Ints:
    """Return the displays whose times `follow_up` needs."""
    n = len(survey.log)
    half = survey.display[survey.display < n // 2]
    return np.append(half + n // 2, int(JUDGED * (n - 1)))


def follow_up(survey: Survey, timeline: Timeline, when: Ints, *, level: float) -> FollowUp:
    """Return how far a log saw.

    A conversion of an earlier display, moved to a display some days later, comes at a time at which the log should have
    seen one if it was to come before `observed_until`. Where it falls after the last conversion of the log, it counts
    as one to be expected beyond it. Without drift, moved and actual conversions are exchangeable, so r moved ones after
    all actual ones have probability 2^-r, and r of them after all but j actual ones that of at most j heads in r + j
    tosses: the p-value is the smallest of these times their number. Where the last day brought fewer displays than the
    one that is moved upon it (a Saturday), each toss is as uneven as the two, and so many fewer are to be expected.

    Conversions are moved by whole weeks or days, so that nights, at which no conversion comes, and busy hours stay what
    they are; in logs of rounds, and of about a day, to the display half the log later.

    Parameters
    ----------
    survey, timeline
        Survey of the log, and its timeline with the times that `asked_of_timeline` names.
    when
        Time of each conversion in ticks, shape (c,).
    level
        Probability of a false alarm of the test.
    """
    log, n = survey.log, len(survey.log)
    meta, delay = log.meta, when - survey.shown_at
    until, horizon = meta.observed_until, None
    beyond, last, p_value, strays = 0, None, 1.0, np.zeros(0, np.int64)
    shift = _shift(timeline, meta.tick_seconds)
    fall = 1.0 if shift is None else _fall(survey, timeline.end, shift, _DAY / (meta.tick_seconds or _DAY))
    if len(when):
        if shift is None:
            moved = timeline.asked[:-1] + delay[survey.display < n // 2]
        else:
            shown = survey.shown_at
            moved = when[(shown > timeline.end - 2 * shift) & (shown <= timeline.end - shift)] + shift
        if until is not None:
            moved = moved[moved <= until]
        tail = np.argsort(when, kind="stable")[-1 - STRAYS :][::-1]
        for alone in range(len(tail)):
            found = int(np.count_nonzero(moved > when[tail[alone]]))
            p = min(len(tail) * _heads(alone, found + alone, fall / (1.0 + fall)), 1.0)
            found = round(found * fall)
            stopped = p <= level and found >= FEW_MISSING * len(when)
            if alone == 0 or stopped:
                beyond, p_value, last, strays = found, p, int(when[tail[alone]]), tail[:alone]
            if stopped:
                break
    stopped = p_value <= level and beyond >= FEW_MISSING * len(when)
    if stopped:
        until = last
    mature = n
    if until is not None:
        horizon = max(until - int(timeline.asked[-1]), 0)
        if meta.attribution_window is not None:
            horizon = min(horizon, meta.attribution_window)
        mature = survey.displays_until(until - horizon)
    by_day = shift is not None or meta.tick_seconds is None
    return FollowUp(delay, last, strays, beyond, p_value, by_day, stopped, until, horizon, mature)


def _shift(timeline: Timeline, seconds: float | None) -> int | None:
    """Return the ticks by which conversions are moved: about half the log, in whole weeks or days; None without."""
    if seconds is None:
        return None
    span, day = timeline.end - timeline.start, _DAY / seconds
    if span < _FEWEST_DAYS * day:
        return None
    unit = 7.0 * day if span >= 14.0 * day else day
    return round(max(span // (2.0 * unit), 1.0) * unit)


def _fall(survey: Survey, end: int, shift: int, day: float) -> float:
    """Return the displays of the last day over those of the day that is moved upon it, at most 1."""
    length = min(day, shift)
    times = np.array([end - shift - length, end - shift, end - length, end])
    shown = np.interp(times, survey.marked_at, survey.mark)
    before, last = shown[1] - shown[0], shown[3] - shown[2]
    return float(min(last / before, 1.0)) if before > 0 and last > 0 else 1.0


def _heads(most: int, tosses: int, chance: float = 0.5) -> float:
    """Return the probability of at most so many heads.

    >>> _heads(0, 3), _heads(1, 2), _heads(0, 2, 0.25)
    (0.125, 0.75, 0.5625)
    """
    return sum(
        math.comb(tosses, heads) * chance**heads * (1.0 - chance) ** (tosses - heads) for heads in range(most + 1)
    )
