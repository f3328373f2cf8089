"""Whether displays and conversions keep coming: outages, missing hours, bursts, a last day cut off, young displays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluator.checks.result import Check, CheckResult, not_applicable
from evaluator.checks.significance import p_words
from evaluator.checks.tables import Flags, Floats, Tables
from evaluator.checks.timeline import JUDGED, MANY_MISSING
from evaluator.log.schema import to_numpy
from evaluator.log.times import (
    dated,
    time_words,
    with_date,
)
from evaluator.replays.support import (
    BURSTY,
    ConversionGap,
    conversion_gaps,
    gap_words,
    peak_within_delay,
)
from evaluator.units import format_duration, ticks_words

# An hour without displays is no chance where so many are usual: exp(-20) is 2e-9.
USUAL = 20.0
# Share of all displays within one hour of at least two days that is a burst.
BURST, FEWEST_HOURS = 0.2, 48
_HOUR_S = 3600.0
# Share of the conversions that a gap swallows: nothing to speak of, and so many that every value is off.
FEW_LOST, MANY_LOST = 0.001, 0.05
# Share of the displays beyond which leaving them out leaves another log.
MANY_IMMATURE = 0.5
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
    edges = np.flatnonzero(np.diff(np.concatenate(([False], gaps, [False])).astype(np.int8)))
    longest = int((edges[1::2] - edges[::2]).max()) if len(edges) else 0
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
    others = "" if len(gaps) == 1 else f", and so it is at {len(gaps) - 1} other times"
    grave = share >= MANY_LOST and not usual_weekend
    return CheckResult(
        verdict="fail" if grave else "warn", number=f"none {said}, about {share:.1%} lost", effect=share,
        numbers=numbers,
        what=f"Not one conversion comes {said}, while the same hours of the days around have {longest.usual:,} or "
        f"more{others}. {while_shown} Displays shown before and during that time lose conversions, but they "
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


def immature_displays(t: Tables) -> CheckResult:
    """Say how many displays were not followed long enough, and whether conversions stop where the log says they do."""
    survey, follow = t.logged.survey, t.logged.follow_up
    meta, n = survey.log.meta, len(survey.log)
    until, window = meta.observed_until, meta.attribution_window
    immature = None
    if until is not None and window is not None:
        immature = n - survey.displays_until(until - window)
    missing = follow.beyond / max(len(follow.delay), 1)
    numbers = {"immature": immature, "observed_until": until, "attribution_window": window,
               "expected_after_last_conversion": follow.beyond, "missing_share": missing,
               "strays": len(follow.strays)}  # fmt: skip
    if immature == n:
        return _none_judged(t, {**numbers, "immature_share": 1.0})
    if (len(follow.strays) or follow.stopped) and _coarse(t):
        return CheckResult(
            verdict="warn", numbers=numbers, statistic=float(follow.beyond), p_value=follow.p_value,
            number=f"{follow.beyond:,} conversions ({missing:.1%}) fewer at the end than before", effect=missing,
            what="Times are as coarse as the delays, so that a last day of which the log holds a part cannot be told "
            "from conversions that are missing: young displays may count as failures.",
            remedy="Give finer times, or say in the spec until when conversions were followed ([log] observed_until) "
            "and for how long after a display (attribution_window).",
        )  # fmt: skip
    if len(follow.strays):
        return _strays(t, missing, numbers)
    if follow.stopped and not follow.by_day and until is not None and window is not None:
        return CheckResult(
            verdict="pass", statistic=float(follow.beyond), p_value=follow.p_value, effect=missing,
            number=f"{(immature or 0) / n:.1%} were not followed for {_long(t, window)}; the end cannot be tested",
            numbers={**numbers, "immature_share": (immature or 0) / n},
            what=f"No conversion comes at the end, where {follow.beyond:,} were to be expected at any other time: in "
            "a log of about a day that may be a night. It says until when it was followed, which is taken for true.",
        )  # fmt: skip
    if follow.stopped:
        end = (
            "at its end"
            if until is None
            else f"before observed_until = {with_date(until, t.logged.survey.log.meta.tick_seconds)}"
        )
        short = "" if follow.by_day else (
            " A log of about a day cannot tell that from a night in which no conversion comes."
        )  # fmt: skip
        return CheckResult(
            verdict="fail" if missing >= MANY_MISSING and follow.by_day else "warn",
            number=f"{follow.beyond:,} conversions ({missing:.1%}) missing after the last one, p "
                   f"{p_words(follow.p_value)}",
            statistic=float(follow.beyond), p_value=follow.p_value, effect=missing, numbers=numbers,
            what=f"The log stops looking {end} and does not say so: earlier displays had conversions at ages at which "
            "the last ones have none. Young displays count as failures, and actions shown late look worse than they "
            f"are.{short}",
            remedy=_said_wrong(t) if until is not None else
            "Say in the spec until when conversions were followed ([log] observed_until), and for how long after a "
            "display (attribution_window).",
        )  # fmt: skip
    if until is not None and window is None:
        return CheckResult(
            verdict="warn", number="no attribution window", numbers=numbers,
            what="The log stops looking at some time, but nothing says how long conversions take, so nothing says "
            "which displays are too young to be judged.",
            remedy="Give the spec an attribution_window, or every replay a `window`; `evaluate delays` recommends one.",
        )  # fmt: skip
    if immature is None:
        return CheckResult(
            verdict="pass", number="none: displays were followed to their end", numbers=numbers,
            statistic=float(follow.beyond), p_value=follow.p_value, effect=missing,
            what="Conversions go on after the last display as they did before, as far as the log can tell.",
        )  # fmt: skip
    share = immature / n
    many = share > MANY_IMMATURE
    long = _long(t, window or 0)
    return CheckResult(
        verdict="warn" if many else "pass", number=f"{share:.1%} were not followed for {long}",
        numbers={**numbers, "immature_share": share}, effect=share, statistic=float(follow.beyond),
        p_value=follow.p_value,
        what=f"{immature:,} displays are left out of a replay, or corrected by the delays of their action."
        + (" That is most of the log." if many else ""),
        remedy="Replay with `immature='correct'`, a shorter attribution_window, or a log that was followed longer."
        if many else "",
    )  # fmt: skip


def _none_judged(t: Tables, numbers: dict[str, float | None]) -> CheckResult:
    """Return the finding of a log that a replay refuses: no display was followed for the attribution window."""
    survey, timeline = t.logged.survey, t.logged.timeline
    meta = survey.log.meta
    window, until = meta.attribution_window, meta.observed_until
    assert window is not None
    assert until is not None
    # Followed as long were the first displays, so many as JUDGED says.
    shorter = until - int(timeline.asked[-1])
    seconds = meta.tick_seconds
    value = str(shorter) if seconds is None else format_duration(shorter * seconds).replace(" ", "")
    cut = f"Take a shorter one, which cuts later conversions off: `attribution_window={value}` judges {JUDGED:.0%} of "
    return CheckResult(
        verdict="fail", effect=1.0, numbers=numbers,
        number=f"all: none was followed for {_long(t, window)}",
        what=f"The attribution window, {_long(t, window)}, is longer than any display was followed: the first one was "
        f"for {_long(t, until - timeline.start)}. No display can be judged, and replay refuses the log.",
        remedy=(cut + "the displays. " if shorter > 0 else "") + "Or take a log that covers more time.",
    )  # fmt: skip


def _strays(t: Tables, missing: float, numbers: dict[str, float | None]) -> CheckResult:
    """Return the finding of a log whose end is set by a few conversions that came long after all others."""
    survey, follow, timeline = t.logged.survey, t.logged.follow_up, t.logged.timeline
    meta, of = survey.log.meta, survey.display[follow.strays]
    seconds, last = meta.tick_seconds, follow.last
    assert last is not None
    when = sorted((follow.delay[follow.strays] + survey.shown_at[follow.strays]).tolist())
    lone = ", ".join(time_words(at, seconds, start=timeline.start) for at in when)
    ends = time_words(last, seconds, start=timeline.start)
    rests = "" if meta.observed_until is None else ", while observed_until takes the log for followed until then"
    few = "A conversion comes" if len(when) == 1 else f"{len(when)} conversions come"
    named = ", ".join(str(d) for d in of.tolist())
    return CheckResult(
        verdict="fail" if missing >= MANY_MISSING else "warn",
        number=f"stray at {lone}; {follow.beyond:,} ({missing:.1%}) missing before, p {p_words(follow.p_value)}",
        statistic=float(follow.beyond), p_value=follow.p_value, effect=missing,
        numbers={**numbers, "last_but_strays": last},
        what=f"{few} at {lone} (display {named}), but none between it and {ends}, where {follow.beyond:,} were to be "
        f"expected{rests}. Displays too young to be judged count as failures.",
        remedy=f"Say how long the log really looked: observed_until = {last} under [log] of the spec, which is "
        f"{ends}, and leave out the stray rows, which come after it.",
    )  # fmt: skip


def _said_wrong(t: Tables) -> str:
    """Return what to do where the log says until when it was followed, and was not."""
    last, timeline = t.logged.follow_up.last, t.logged.timeline
    when = "" if last is None else f", {time_words(last, t.logged.survey.log.meta.tick_seconds, start=timeline.start)},"
    return (
        f"Give the last time at which conversions were really fetched: observed_until = {last} under [log] of the "
        f"spec{when} is when the last one came. If they were fetched later, find out why none came."
    )


def _coarse(t: Tables) -> bool:
    """Return whether most delays are shorter than ten time stamps of hours or days."""
    survey = t.logged.survey
    seconds = survey.log.meta.tick_seconds
    if seconds is None or survey.stamp * seconds < 3600.0 or not len(survey.display):
        return False
    return survey.blurs(float(np.median(survey.delay_ticks)))


def _long(t: Tables, ticks: int) -> str:
    seconds = t.logged.survey.log.meta.tick_seconds
    return ticks_words(ticks, seconds)


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
    weekend: Flags | None
    hours: int


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
    from scipy.special import stdtr

    others = values[1:]
    spread = max(float(others.var(ddof=1)), float(noise[1:].mean()))
    error = math.sqrt(spread * (1.0 + 1.0 / len(others)) + max(float(noise[0] - noise[1:].mean()), 0.0))
    return float(stdtr(len(others) - 1, (float(values[0]) - float(others.mean())) / error))


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


TRAFFIC = Check(name="traffic", finds="missing hours and bursts", run=traffic, tested=False)
OUTAGES = Check(
    name="gaps in conversions", finds="hours without conversions where other days have many", run=outages, tested=False
)
IMMATURE = Check(
    name="immature displays",
    finds="young displays, also where the log ends without saying so; strays; windows longer than the log",
    run=immature_displays, by_kind=True, twins_have_it=True,
)  # fmt: skip
LAST_DAY = Check(name="last day", finds="half of its displays or conversions missing", run=last_day)
