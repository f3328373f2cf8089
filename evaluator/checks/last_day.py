"""Whether the log's last day has as many displays, and conversions, as the same hours of the days before."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.log.schema import to_numpy
from evaluator.log.times import dated

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAME = "last day"
# Below this share of what is usual the day is called incomplete.
INCOMPLETE = 0.7
# Hours that the last day must have, days before it, and displays or conversions that must be usual.
_HOURS, _FEWEST_DAYS, _FEWEST = 4, 4, 30.0
_DAY, _WEEK = 24, 7
# Further back, displays have no part in the conversions of a day.
_LAGS = 8


class Shortfall(NamedTuple):
    """What the last day has, what is usual, and the p-value of having so little."""

    what: str
    seen: float
    usual: float
    p: float


class _Days(NamedTuple):
    """The last day, from midnight to the log's last whole hour, and the same hours of the days before.

    `shown` displays in these hours and `whole` in the whole day, latest day first, shape (D,); `came` conversions in
    these hours by how many days ago their displays were shown, shape (D, lags); `weekend` shape (D,), None where times
    are no dates; `hours` of the last day.
    """

    shown: Floats
    whole: Floats
    came: Floats
    weekend: npt.NDArray[np.bool_] | None
    hours: int


def last_day(t: Tables, level: float) -> CheckResult:
    """Test that the last day has its displays and its conversions, against the spread of the days before (Student).

    Displays: logarithms of the counts in the hours that the last day has, in logs of two weeks also those of their
    ratios to a week before; days of a weekend are compared with such days where times are dates. Conversions that come
    in these hours: what the displays of that day and of days before let expect by the days' usual rates, so that more
    or less traffic is no finding, nor are nights in which nothing comes.
    """
    days = _days(t)
    if days is None:
        return not_applicable(NAME, "the log has no hours, ends in the first hours of a day, or covers too few days")
    found = [one for one in (_displays(days), *_conversions(days)) if one is not None]
    if not found:
        return not_applicable(NAME, "too few days like the last one, or too few displays in its hours")
    p = [min(one.p * len(found), 1.0) for one in found]
    short = [i for i, one in enumerate(found) if p[i] <= level and one.seen <= INCOMPLETE * one.usual]
    worst = found[min(short or range(len(found)), key=p.__getitem__)]
    seen, usual, least = worst.seen, worst.usual, min(p)
    wrong = bool(short)
    means = (
        f"In the last {days.hours} hours the log has {seen:,.0f} {worst.what} where the days before let expect "
        f"{usual:,.0f}: a file that was not complete when it was read, or a day like no other. "
        + ("Live traffic is more than the log says." if worst.what == "displays" else
           "Young displays count as failures, and actions shown late look worse than they are.")
    )  # fmt: skip
    return CheckResult(
        name=NAME, verdict="warn" if wrong else "pass", p_value=least, effect=1.0 - seen / usual,
        number=f"{seen / usual:.2f} of the usual {worst.what} in {days.hours} hours, p {p_words(least)}",
        numbers={"hours": days.hours, "days": len(days.shown),
                 **{one.what.replace(" ", "_"): one.seen / one.usual for one in found}},
        what=means if wrong else "The last day has what the days before let expect of its hours.",
        remedy="Read the log again when its last day is complete, or leave that day out (`limit`)." if wrong else "",
    )  # fmt: skip


def _days(t: Tables) -> _Days | None:
    timeline, survey = t.logged.timeline, t.logged.survey
    seconds = survey.log.meta.tick_seconds
    if timeline.hours is None or seconds is None or survey.stamp * seconds > 3600.0:
        return None
    until = t.logged.follow_up.until
    end = (timeline.end if until is None else min(timeline.end, until)) // timeline.hour
    # The whole hours of the last day.
    midnight, hours = end - end % _DAY, end % _DAY
    if hours < _HOURS:
        midnight, hours = midnight - _DAY, _DAY
    first = timeline.start // timeline.hour
    count = (midnight - first) // _DAY + 1
    if count <= _FEWEST_DAYS:
        return None
    origin = midnight - (count - 1) * _DAY
    last = midnight + hours
    shown = np.zeros(count * _DAY)
    inside = timeline.hours[origin - first : last - first]
    shown[: len(inside)] = inside
    by_hour = shown.reshape(count, _DAY)[::-1]
    _, once = np.unique(survey.display, return_index=True)
    when = to_numpy(survey.log.conversions["time"]).astype(np.int64, copy=False)[once] // timeline.hour
    of = survey.shown_at[once] // timeline.hour
    ago = (when - origin) // _DAY - (of - origin) // _DAY
    counted = (of >= origin) & (when < last) & ((when - origin) % _DAY < hours) & (ago < min(_LAGS, count))
    cell = (count - 1 - (when[counted] - origin) // _DAY) * _LAGS + ago[counted]
    came = np.bincount(cell, minlength=count * _LAGS).reshape(count, _LAGS).astype(np.float64)
    weekend = None
    if dated(timeline.start, seconds):
        day = (midnight // _DAY - np.arange(count) + 3) % _WEEK  # 1970-01-01 was a Thursday; 0 is Monday
        weekend = day >= 5
    return _Days(by_hour[:, :hours].sum(axis=1), by_hour.sum(axis=1), came, weekend, hours)


def _displays(days: _Days) -> Shortfall | None:
    like = np.ones(len(days.shown), bool) if days.weekend is None else days.weekend == days.weekend[0]
    like &= days.shown > 0
    if not like[0]:
        return None
    found = _below(days.shown[like])
    if found is None or len(days.shown) < 2 * _WEEK + _FEWEST_DAYS:
        return found
    shown = np.maximum(days.shown, 0.5)
    ratio, noise = np.log(shown[:-_WEEK] / shown[_WEEK:]), 1.0 / shown[:-_WEEK] + 1.0 / shown[_WEEK:]
    by_week = _student(ratio, noise)
    return found._replace(p=max(found.p, by_week))


def _below(counts: Floats) -> Shortfall | None:
    """Return the shortfall of the first of some counts against the others; None where they are too few."""
    usual = float(np.exp(np.log(counts[1:]).mean())) if len(counts) > 1 else 0.0
    if len(counts) <= _FEWEST_DAYS or usual < _FEWEST:
        return None
    return Shortfall("displays", float(counts[0]), usual, _student(np.log(counts), 1.0 / counts))


def _student(values: Floats, noise: Floats) -> float:
    """Return P(a value as low as the first), given the others and the variance that chance alone makes of each."""
    others = values[1:]
    spread = max(float(others.var(ddof=1)), float(noise[1:].mean()))
    error = math.sqrt(spread * (1.0 + 1.0 / len(others)) + max(float(noise[0] - noise[1:].mean()), 0.0))
    return _student_tail((float(values[0]) - float(others.mean())) / error, len(others) - 1)


def _student_tail(t: float, df: int) -> float:
    """Return P(Student's t <= t)."""
    from scipy.special import stdtr

    return float(stdtr(df, t))


def _conversions(days: _Days) -> list[Shortfall]:
    """Return the shortfall of the conversions that come on the last day: of all, and of its own displays."""
    count = len(days.shown)
    expected, seen = np.zeros((count, _LAGS)), days.came
    for lag in range(min(_LAGS, count - 1)):
        # Displays `lag` days before each day: in the same hours of the day itself, else in the whole day.
        shown = days.shown if lag == 0 else np.append(days.whole[lag:], np.zeros(lag))
        if shown[1:].sum() > 0:
            expected[:, lag] = shown * (seen[1:, lag].sum() / shown[1:].sum())
    out = []
    for what, columns in (("conversions", slice(_LAGS)), ("conversions of its own displays", slice(1))):
        some, usual = seen[:, columns].sum(axis=1), expected[:, columns].sum(axis=1)
        # The first days of a log have few: no displays before it.
        used = usual >= _FEWEST / 3.0
        if used.sum() <= _FEWEST_DAYS or usual[0] < _FEWEST:
            continue
        # Square roots of Poisson counts have variance 1/4, whatever their mean.
        root = 2.0 * (np.sqrt(some) - np.sqrt(usual))[used]
        out.append(Shortfall(what, float(some[0]), float(usual[0]), _student(root, np.ones(len(root)))))
    return out


LAST_DAY = Check(name=NAME, finds="half of its displays or conversions missing", run=last_day)
