"""Whether displays and conversions keep coming: outages, missing hours, bursts, and a last day cut off."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.result import Check, CheckResult, not_applicable
from evaluator.checks.significance import p_words
from evaluator.checks.tables import Tables
from evaluator.log.schema import to_numpy
from evaluator.log.times import dated
from evaluator.replays.support import (
    BURSTY,
    ConversionGap,
    conversion_gaps,
    gap_words,
    peak_within_delay,
)
from evaluator.units import format_duration

Floats = npt.NDArray[np.float64]
# An hour without displays is no chance where so many are usual: exp(-20) is 2e-9.
USUAL = 20.0
# Share of all displays within one hour of at least two days that is a burst.
BURST, FEWEST_HOURS = 0.2, 48
_HOUR_S = 3600.0
# Share of the conversions that a gap swallows: nothing to speak of, and so many that every value is off.
FEW_LOST, MANY_LOST = 0.001, 0.05
Ints = npt.NDArray[np.int64]
# Below this share of what is usual the day is called incomplete.
INCOMPLETE = 0.7
# Hours that the last day must have, days before it, and displays or conversions that must be usual.
_HOURS, _FEWEST_DAYS, _FEWEST = 4, 4, 30.0
_DAY, _WEEK = 24, 7
# Further back, displays have no part in the conversions of a day.
_LAGS = 8


def traffic(t: Tables) -> CheckResult:
    """Say how displays vary by the hour and within a delay, and name hours without any that usually have many."""
    timeline, survey = t.logged.timeline, t.logged.survey
    hours, seconds = timeline.hours, survey.log.meta.tick_seconds
    if seconds is not None and survey.stamp * seconds >= _HOUR_S:
        unit = format_duration(survey.stamp * seconds)
        return not_applicable(f"times are multiples of {unit}: what happens within one is not known")
    if hours is None:
        return not_applicable("the log counts rounds or days, not hours")
    inner = hours[1:-1].astype(np.float64)
    if len(inner) < 3:
        return not_applicable("the log covers fewer than five hours")
    usual = _usual(inner, timeline.hour_of_day + 1)
    gaps = (inner == 0) & (usual >= USUAL)
    busy = inner[inner > 0]
    low, high = (float(q) for q in np.quantile(busy, (0.05, 0.95))) if len(busy) else (0.0, 0.0)
    top = float(hours.max() / hours.sum())
    burst = len(hours) >= FEWEST_HOURS and top > BURST
    mean = float(hours.mean())
    longest = _longest(gaps)
    numbers = {"mean_per_hour": mean, "median_per_hour": float(np.median(inner)), "p05_per_hour": low,
               "p95_per_hour": high, "empty_hours": int(gaps.sum()), "longest_gap_hours": longest,
               "busiest_hour_share": top, "hours": len(hours)}  # fmt: skip
    words = f"{low:,.0f} to {high:,.0f} displays in most hours"
    worth = (
        f"The traffic clock takes the mean rate, {mean:,.0f} an hour, for every hour: a window of that many rounds is "
        f"an hour by it, but {mean / max(high, 1e-9):.2g} hours at busy times and {mean / max(low, 1e-9):.2g} at quiet "
        "ones."
    )
    said = []
    if gaps.any():
        said.append(
            f"{gaps.sum()} hours have no display although their time of day usually has many (longest gap {longest} "
            "hours): displays are missing, or the system stood still. Delays across the gap are too short in rounds."
        )
    delay, peak = peak_within_delay(survey)
    numbers["peak_within_delay"] = peak
    if peak >= BURSTY:
        within = format_duration(delay * (seconds or 1.0))
        said.append(
            f"Within {within}, in which a good part of the conversions come, up to {peak:.2g} times as many displays "
            "follow one as on average: on the traffic clock a policy that learns knows otherwise in and between such "
            "bursts than live, and its value may be off either way."
        )
    if burst:
        said.append(f"One hour holds {top:.0%} of all displays: a burst, or times in a wrong unit.")
    return CheckResult(
        verdict="warn" if said else "pass",
        number=f"{gaps.sum()} hours missing, {words}" if gaps.any() else words,
        effect=float(gaps.sum()), numbers=numbers, what=" ".join([*said, worth]),
        remedy=" ".join(
            what
            for what, needed in (
                ("Find the missing displays; otherwise replay the parts before and after apart.", gaps.any()),
                ("Trust values of policies that learn only for a rollout on the share that a replay with "
                 "`clock='wall'` names.",
                 peak >= BURSTY or burst),
            )
            if needed
        ),
    )  # fmt: skip


def _usual(hours: Floats, first: int) -> Floats:
    """Return the displays an hour usually has: the median of its time of day or, over few days, of its neighbours."""
    if len(hours) >= 72:
        of = (first + np.arange(len(hours))) % 24
        by_time: Floats = np.array([np.median(hours[of == h]) for h in range(24)])
        return by_time[of]
    padded = np.concatenate((hours[:4][::-1], hours, hours[-4:][::-1]))
    around = np.lib.stride_tricks.sliding_window_view(padded, 9)
    usual: Floats = np.minimum(np.median(around[:, :4], axis=1), np.median(around[:, 5:], axis=1))
    return usual


def _longest(gaps: npt.NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], gaps, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


TRAFFIC = Check(name="traffic", finds="missing hours and bursts", run=traffic, tested=False)


def outages(t: Tables) -> CheckResult:
    """Name times without conversions where the same hours of the days around have many (`conversion_gaps`)."""
    survey, timeline = t.logged.survey, t.logged.timeline
    if timeline.hours is None:
        return not_applicable("the log counts rounds or days, not hours")
    if not len(survey.display):
        return not_applicable("the log has no conversions")
    gaps = conversion_gaps(survey)
    lost = sum(gap.usual for gap in gaps)
    share = lost / (len(survey.display) + lost)
    longest = max(gaps, key=lambda gap: gap.usual, default=None)
    numbers = {"gaps": len(gaps), "lost": lost, "lost_share": share,
               "from": None if longest is None else longest.start,
               "until": None if longest is None else longest.end}  # fmt: skip
    if longest is None or share < FEW_LOST:
        return CheckResult(
            verdict="pass", number="none: every time of day has its conversions", effect=share,
            numbers=numbers, what="Conversions come in on all days at the times of day at which they usually do.",
        )  # fmt: skip
    said = gap_words(survey, longest, start=timeline.start)
    shown = _displays(t, longest)
    while_shown = (
        "No display is logged then either: the system stood still, or a part of the log is missing."
        if shown == 0
        else f"{shown:,} displays were shown meanwhile: the conversions are missing, or were never counted."
    )
    usual_weekend = "" if longest.weekly or longest.hours < 24 else (
        " The log is too short to tell whether weeks are like that; if they are, nothing is wrong."
    )  # fmt: skip
    grave = share >= MANY_LOST and not usual_weekend
    return CheckResult(
        verdict="fail" if grave else "warn", number=f"none {said}, about {share:.1%} lost", effect=share,
        numbers=numbers,
        what=f"Not one conversion comes {said}, while the same hours of the days around have {longest.usual:,} or "
        f"more{_others(gaps)}. {while_shown} Displays shown before and during that time lose conversions, but they "
        f"count as judged: values are too low, for actions shown then more than for others.{usual_weekend}",
        remedy=_remedy(t, longest),
    )  # fmt: skip


def _displays(t: Tables, gap: ConversionGap) -> int:
    """Return the displays of the hours of a gap."""
    timeline = t.logged.timeline
    hours = timeline.hours
    assert hours is not None
    first = timeline.start // timeline.hour
    low, high = (np.clip(time // timeline.hour - first, 0, len(hours)) for time in (gap.start, gap.end))
    return int(hours[low:high].sum())


def _others(gaps: list[ConversionGap]) -> str:
    return "" if len(gaps) == 1 else f", and so it is at {len(gaps) - 1} other times"


def _remedy(t: Tables, gap: ConversionGap) -> str:
    """Return what to do: the displays followed to their end before the gap are known where the log names a window."""
    survey = t.logged.survey
    window = survey.log.meta.attribution_window
    start = (
        "Find the missing conversions. Otherwise keep what was followed without the gap: a file that starts after it"
    )
    if window is None:
        return f"{start}, or with `limit` the displays long before it."
    kept = survey.displays_until(gap.start - window)
    if kept == 0:
        return f"{start}; no display before it was followed for the whole attribution window."
    return f"{start}, or `limit={kept}`, the displays followed for the whole attribution window before it."


OUTAGES = Check(
    name="gaps in conversions", finds="hours without conversions where other days have many", run=outages, tested=False
)


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
        return not_applicable("the log has no hours, ends in the first hours of a day, or covers too few days")
    found = [one for one in (_missing_displays(days), *_conversions(days)) if one is not None]
    if not found:
        return not_applicable("too few days like the last one, or too few displays in its hours")
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
        verdict="warn" if wrong else "pass", p_value=least, effect=1.0 - seen / usual,
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


def _missing_displays(days: _Days) -> Shortfall | None:
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


LAST_DAY = Check(name="last day", finds="half of its displays or conversions missing", run=last_day)
