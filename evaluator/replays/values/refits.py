"""What was estimated on a log, estimated anew on a resampled one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.policies.base import Need
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.propensity import resolve_propensities
from evaluator.replays.rounds.thinning import thinning
from evaluator.replays.told_delays import told_anew


def rests_on_delays(plan: ReplayPlan) -> bool:
    """Whether a replay depends on delays that were fitted to this log."""
    return plan.maturity.correction is not None or _told_fit(plan)


def rests_on_frequencies(plan: ReplayPlan) -> bool:
    """Whether a replay depends on propensities that are frequencies of this log."""
    return plan.options.propensity == "estimate" and plan.sampler != "logged" and not plan.matched.keeps_all


def refitted(
    plan: ReplayPlan, shown: npt.NDArray[np.int64], times: npt.NDArray[np.integer], rng: np.random.Generator
) -> ReplayPlan:
    """Return a plan as a resampled log makes it.

    Parameters
    ----------
    plan
        Plan made for the log itself.
    shown
        Number of displays of each action in the resampled log, shape (K,).
    times
        Number of times that each of the log's conversions is there, shape (c,).
    rng
        Random stream that draws from what was known of the delays before the log.
    """
    if _told_fit(plan):
        known = None if plan.known is None else plan.known.drawn(rng)
        told = told_anew(plan, known, times)
        if told is not None:  # else no conversion was drawn
            plan = replace(plan, setting=replace(plan.setting, delay_cdf=told))
    if plan.maturity.correction is not None:
        correction = plan.maturity.correction.refitted(plan.survey, times)
        plan = replace(plan, maturity=replace(plan.maturity, correction=correction))
    if rests_on_frequencies(plan):
        propensities = resolve_propensities(replace(plan.survey, shown=shown), "estimate")
        matched = thinning(plan.log, propensities, per_action=plan.sampler in ("keep", "queue"))
        if plan.options.accept_quantile > 0:
            matched = replace(matched, c=plan.matched.c)
        plan = replace(plan, matched=matched)
    return plan


def _told_fit(plan: ReplayPlan) -> bool:
    fits = plan.options.delays == "log" and plan.start is None
    return Need.DELAY_CDF in plan.policy.needs and fits and plan.setting.delay_cdf is not None
