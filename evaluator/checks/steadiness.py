"""How steady is the traffic: what a window in time is worth in rounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.replays.rounds.bursts import BURSTY, peak_within_delay
from evaluator.units import format_duration

Floats = npt.NDArray[np.float64]

# An hour without displays is no chance where so many are usual: exp(-20) is 2e-9.
USUAL = 20.0
# Share of all displays within one hour of at least two days that is a burst.
BURST, FEWEST_HOURS = 0.2, 48
NAME = "traffic"
_HOUR_S = 3600.0


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
