"""Hours without conversions while others have many."""

from __future__ import annotations

import numpy as np

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.replays.rounds.gaps import ConversionGap, conversion_gaps, gap_words

NAME = "gaps in conversions"
# Share of the conversions that a gap swallows: nothing to speak of, and so many that every value is off.
FEW_LOST, MANY_LOST = 0.001, 0.05


def outages(t: Tables) -> CheckResult:
    """Name times without conversions where the same hours of the days around have many (`conversion_gaps`)."""
    survey, timeline = t.logged.survey, t.logged.timeline
    if timeline.hours is None:
        return not_applicable(NAME, "the log counts rounds or days, not hours")
    if not len(survey.display):
        return not_applicable(NAME, "the log has no conversions")
    gaps = conversion_gaps(survey)
    lost = sum(gap.usual for gap in gaps)
    share = lost / (len(survey.display) + lost)
    longest = max(gaps, key=lambda gap: gap.usual, default=None)
    numbers = {"gaps": len(gaps), "lost": lost, "lost_share": share,
               "from": None if longest is None else longest.start,
               "until": None if longest is None else longest.end}  # fmt: skip
    if longest is None or share < FEW_LOST:
        return CheckResult(
            name=NAME, verdict="pass", number="none: every time of day has its conversions", effect=share,
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
        name=NAME, verdict="fail" if grave else "warn", number=f"none {said}, about {share:.1%} lost", effect=share,
        numbers=numbers,
        what=f"Not one conversion comes {said}, while the same hours of the days around have {longest.usual:,} or "
        f"more{_others(gaps)}. {while_shown} Displays shown before and during that time lose conversions, but they "
        f"count as judged: values are too low, for actions shown then more than for others.{usual_weekend}",
        remedy=_repair(t, longest),
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


def _repair(t: Tables, gap: ConversionGap) -> str:
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


OUTAGES = Check(name=NAME, finds="hours without conversions where other days have many", run=outages, tested=False)
