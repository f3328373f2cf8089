"""What coarse time stamps leave unknown of the delays, and how far a value depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import SamplerName
from evaluator.estimates.confidence import Interval
from evaluator.findings.codes import COARSE_TIMES, COARSE_TIMES_OF_TWINS, DELAYS_WITHIN_STAMPS, TIME_STAMPS_DECIDE
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.references import References
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.values.rewards import observed_rewards
from evaluator.units import format_duration


def warn_of_stamps(plan: ReplayPlan) -> list[Finding]:
    """Say what time stamps leave unknown of which conversions come within the window."""
    survey, window, seconds = plan.survey, plan.window, plan.log.meta.tick_seconds
    if seconds is None:
        return []
    unit = format_duration(survey.stamp * seconds)
    if window.ticks is not None and survey.blurs(window.ticks):
        known = f"Times are multiples of {unit}, so whether a conversion came within the window is known up to {unit}."
        return [COARSE_TIMES.found(known)]
    displays = plan.clock.rate * plan.clock.share * survey.stamp
    if window.ticks is None and window.rounds < displays and survey.stamp > 1:
        by = "the order of displays that share a time, which means nothing"
        by = by if survey.ends is None else "where conversions are drawn within their time stamp"
        return [
            COARSE_TIMES.found(
                f"Times are multiples of {unit}, and {displays:,.0f} rounds share one: which conversions come within "
                f"{window.rounds:,} rounds is decided by {by}."
            )
        ]
    return []


def state_drawn_delays(survey: Survey, policy: Any, sampler: SamplerName) -> list[Finding]:
    """Say by which rule delays are drawn, where time stamps are coarse and the policy learns from them."""
    if survey.ends is None or sampler == "logged" or not policy.learns:
        return []
    unit = format_duration(survey.stamp * (survey.log.meta.tick_seconds or 1.0))
    return [
        DELAYS_WITHIN_STAMPS.found(
            f"times are multiples of {unit}, and most delays are shorter than ten of these: within a stamp they are "
            "drawn from the exponential law whose mean is that of the stamps between displays and their conversions, "
            "and displays are spread evenly"
        )
    ]


def warn_of_twins(plan: ReplayPlan) -> list[Finding]:
    """Say that twins of a log whose time stamps are coarse know the delays that it does not tell."""
    if plan.survey.ends is None or not plan.policy.learns:
        return []
    unit = format_duration(plan.survey.stamp * (plan.log.meta.tick_seconds or 1.0))
    return [
        COARSE_TIMES_OF_TWINS.found(
            f"Times are multiples of {unit}, and most delays are shorter than ten of these: twins have delays as a "
            "replay draws them, so that no error below says what the time stamps leave unknown. A replay does."
        )
    ]


def mean_reward(plan: ReplayPlan, shown: Sequence[npt.NDArray[np.int64]], references: References) -> float:
    """Return the mean reward of the displays of each repeat's rounds, over the repeats; nan without rounds."""
    if not all(len(displays) for displays in shown):
        return float("nan")
    if plan.options.reward == "observed":
        return float(np.mean([observed_rewards(plan, displays).mean() for displays in shown]))
    return float(np.mean([references.logged(plan, len(d)).taken(d).mean() for d in shown]))


def stamps_warning(plan: ReplayPlan, value: Interval, ends: Sequence[float]) -> list[Finding]:
    """Return a warning where the value depends on when, within their time stamps, conversions are told.

    Parameters
    ----------
    plan
        Plan of the replay.
    value
        Value with its interval.
    ends
        Values if conversions are told at the beginning of their stamps, and at the end; empty where stamps are fine.
    """
    half = (value.high - value.low) / 2.0
    if not ends or not abs(ends[0] - ends[1]) > half:
        return []
    unit = format_duration(plan.survey.stamp * (plan.log.meta.tick_seconds or 1.0))
    return [
        TIME_STAMPS_DECIDE.found(
            f"Time stamps decide this value. Times are multiples of {unit}, and conversions that are told at the "
            f"beginning of their stamp make it {ends[0]:.4g}, at its end {ends[1]:.4g}: they differ by more than half "
            f"the interval's width, {half:.2g}, which does not allow for it.",
            "Log finer times; until then decide only what holds at both.",
            at_beginning=ends[0],
            at_end=ends[1],
        )
    ]
