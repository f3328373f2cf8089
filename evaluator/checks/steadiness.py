"""How steady is the traffic: what a window in time is worth in rounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.replays.rounds.gaps_and_bursts import (
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
NAME = "traffic"
_HOUR_S = 3600.0
_OUTAGES = "gaps in conversions"
# Share of the conversions that a gap swallows: nothing to speak of, and so many that every value is off.
FEW_LOST, MANY_LOST = 0.001, 0.05


def traffic(t: Tables) -> CheckResult:
    """Say how displays vary by the hour and within a delay, and name hours without any that usually have many."""
    timeline, survey = t.logged.timeline, t.logged.survey
    hours, seconds = timeline.hours, survey.log.meta.tick_seconds
    if seconds is not None and survey.stamp * seconds >= _HOUR_S:
        unit = format_duration(survey.stamp * seconds)
        return not_applicable(NAME, f"times are multiples of {unit}: what happens within one is not known")
    if hours is None:
        return not_applicable(NAME, "the log counts rounds or days, not hours")
    inner = hours[1:-1].astype(np.float64)
    if len(inner) < 3:
        return not_applicable(NAME, "the log covers fewer than five hours")
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
        name=NAME, verdict="warn" if said else "pass",
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


TRAFFIC = Check(name=NAME, finds="missing hours and bursts", run=traffic, tested=False)


def outages(t: Tables) -> CheckResult:
    """Name times without conversions where the same hours of the days around have many (`conversion_gaps`)."""
    survey, timeline = t.logged.survey, t.logged.timeline
    if timeline.hours is None:
        return not_applicable(_OUTAGES, "the log counts rounds or days, not hours")
    if not len(survey.display):
        return not_applicable(_OUTAGES, "the log has no conversions")
    gaps = conversion_gaps(survey)
    lost = sum(gap.usual for gap in gaps)
    share = lost / (len(survey.display) + lost)
    longest = max(gaps, key=lambda gap: gap.usual, default=None)
    numbers = {"gaps": len(gaps), "lost": lost, "lost_share": share,
               "from": None if longest is None else longest.start,
               "until": None if longest is None else longest.end}  # fmt: skip
    if longest is None or share < FEW_LOST:
        return CheckResult(
            name=_OUTAGES, verdict="pass", number="none: every time of day has its conversions", effect=share,
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
        name=_OUTAGES, verdict="fail" if grave else "warn", number=f"none {said}, about {share:.1%} lost", effect=share,
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


OUTAGES = Check(name=_OUTAGES, finds="hours without conversions where other days have many", run=outages, tested=False)
