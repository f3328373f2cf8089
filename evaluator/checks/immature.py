"""Displays too young to be judged, and logs that do not say that they have some."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.result import Check, CheckResult
from evaluator.checks.significance import p_words
from evaluator.checks.tables import Tables
from evaluator.checks.timeline import JUDGED, MANY_MISSING
from evaluator.log.times import time_words, with_date
from evaluator.units import format_duration, ticks_words

Ints = npt.NDArray[np.int64]
# Share of the displays beyond which leaving them out leaves another log.
MANY_IMMATURE = 0.5


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


IMMATURE = Check(
    name="immature displays",
    finds="young displays, also where the log ends without saying so; strays; windows longer than the log",
    run=immature_displays,
    by_kind=True,
    twins_have_it=True,
)
