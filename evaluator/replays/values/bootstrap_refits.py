"""A resampled log: its displays drawn by clusters, and what was estimated on the log estimated anew.

As many clusters as the log has are drawn from them with replacement, once for each time through the log: the cluster
bootstrap (Davison, Hinkley. Bootstrap Methods and their Application, 1997: Section 3.8; Field, Welsh. Bootstrapping
clustered data. Journal of the Royal Statistical Society B 69(3), 2007). A display comes as often as its cluster was
drawn, in its block of the log. Where in the block? Copies of one display that follow one another would show a policy
the same reward several times in a row, and a block in random order would tear apart displays that came together: the
first rounds of a log whose users come one after the other are few users' rounds, and so they must be in a resampled
log. So each copy of a cluster's part of a block is shifted as a whole by a random number of displays, around the end of
the block: its displays keep their distances, and its copies come at different places. Where every display is a cluster
of its own, this is the draw of single displays in random order. Of 95 % intervals of expected values, measured: 96 %
hold where users are spread over the log, 93 % where they come one after the other, for there the resampled values vary
a little less than values over logs (`tests/bench/clusters.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.log.column import Column
from evaluator.policies.base import Need
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.policy_delays import told_anew
from evaluator.replays.rounds.propensity import resolve_propensities
from evaluator.replays.rounds.thinning import thinning
from evaluator.streams import STEP, mixed

Numbers = npt.NDArray[np.int64]

# Odd numbers that spread consecutive ones over 64 bits.
_OF_CLUSTER, _OF_COPY = STEP, np.uint64(0xD1342543DE82EF95)


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


class ClusterDraws:
    """What one resampled log has drawn, for one time through the log. Memory: 2 bytes a cluster.

    Parameters
    ----------
    clusters
        Clusters of the log's displays.
    rng
        Random stream that all of it is drawn from.
    """

    def __init__(self, clusters: Column, rng: np.random.Generator) -> None:
        g = clusters.count
        self._code = clusters.code
        self._copies = np.bincount(rng.integers(0, g, g), minlength=g).astype(np.uint16)
        self._rng = rng

    def __call__(self, first: int, n: int) -> Numbers:
        """Return the displays drawn from the next block, `n` from number `first` on: theirs within it, in order."""
        code = self._code[first : first + n]
        copies = self._copies[code].astype(np.int64)
        at = np.repeat(np.arange(n), copies)
        copy = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
        key = self._rng.integers(2**64, dtype=np.uint64)
        with np.errstate(over="ignore"):
            shift = mixed(code[at].astype(np.uint64) * _OF_CLUSTER + copy.astype(np.uint64) * _OF_COPY + key)
            place = at.astype(np.uint64) * np.uint64((2**64 - 1) // n) + shift
        return np.asarray(at[np.argsort(place, kind="stable")])
