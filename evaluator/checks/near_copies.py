"""Displays that repeat another one within seconds: the same vector, and the same action more often than drawn anew."""

from __future__ import annotations

import math

from evaluator.checks.propensities import homogeneity, p_words
from evaluator.checks.record import Check
from evaluator.checks.repeats import NEAR_S, NEIGHBOURS
from evaluator.checks.result import POWER_Z, CheckResult, not_applicable
from evaluator.checks.significance import normal_tail, poisson_tail, upper_normal_quantile
from evaluator.checks.tables import Tables

NAME = "near copies"
# Share of the displays that are copies from which it matters.
COPIES = 0.002
# Near displays of one vector, a display, among which copies are lost.
CROWDED = 0.75 * NEIGHBOURS
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3


def near_copies(t: Tables, level: float) -> CheckResult:
    """Test that a display soon after one with the same vector has the same action no more often than its propensity.

    One-sided; the larger of a normal and of a Poisson tail, which holds for few pairs too (Hoeffding 1956). What
    neighbours further apart exceed their propensities by is taken off, and what displays of one period do: wrong
    propensities, a visitor who is kept on one action, or a logger that learned, are no copies.
    """
    found, survey = t.repeats, t.logged.survey
    seconds = survey.log.meta.tick_seconds
    if survey.stamp > found.near / 2 or found.near < 2:
        return not_applicable(NAME, "times are too coarse to tell displays some seconds apart")
    if t.logged.propensities.tilted:
        return not_applicable(
            NAME, "displays are no even sample of the traffic, so the chance of an action is not known"
        )
    rows = len(survey.log)
    if found.pairs[0] > CROWDED * rows:
        return not_applicable(NAME, "too many displays share a vector within seconds to tell copies")
    far = max(float(found.same[1] / found.expected[1]), 1.0) if found.z[1] > 2.0 else 1.0
    far = max(far, _of_one_period(t))
    expected = found.expected[0] * far
    # Of displays that copy nothing, this share would have another action.
    anew = max(1.0 - float((t.logged.shares**2).sum()), 1e-9)
    excess = (found.same[0] - expected) / (anew * rows)
    z = float((found.same[0] - expected) / math.sqrt(max(found.variance[0], 1.0) * far**2))
    p = max(normal_tail(z) / 2.0, poisson_tail(float(found.same[0]), expected)) if z > 0.0 else 1.0
    wrong = p <= level and excess >= COPIES
    error = math.sqrt(max(found.variance[0], 1.0)) * far / (anew * rows)
    share = max((upper_normal_quantile(level) + POWER_Z) * error, COPIES + POWER_Z * error)
    share = math.ceil(1e4 * share / max(1.0 - share, 1e-9)) / 1e4  # the copies are displays themselves
    within = f"{found.near} rounds" if seconds is None else f"{NEAR_S:g} s"
    return CheckResult(
        name=NAME, verdict="warn" if wrong else "pass", statistic=z, p_value=p, effect=excess,
        shows=f"{share:.2%} of the displays again within {within}" if share < 1.0 else "",
        number=f"{found.same[0]:,.0f} repeats within {within}, {expected:,.0f} by chance, p {p_words(p)}",
        numbers={"near_pairs": found.pairs[0], "same_action": found.same[0], "expected": expected,
                 "far_pairs": found.pairs[1], "excess_share": excess},
        what=(f"Displays come again within {within} with the same vector and the same action, {excess:.1%} of all "
               "beyond those that chance makes: copies with times of their own, or a logger that does not draw anew. "
               "One draw counts several times, so intervals are narrower than they should be, and outcomes of such "
               "displays go together." if wrong else
               "A display soon after another of its vector has its action no more often than drawn anew."),
        remedy="Remove repeated rows at the source, by the id of the display; if the logger keeps a choice for a "
        "while, log one display a choice." if wrong else "",
    )  # fmt: skip


def _of_one_period(t: Tables) -> float:
    """Return how much more often displays of one period have one action than those of the log, where shares drift.

    A logger that learned shows the same actions for a time, while its propensities are taken as constant.
    """
    if t.logged.constant is None:
        return 1.0
    counts = t.counts[1 : 1 + t.logged.timeline.periods]
    counts = counts[counts.sum(axis=1) > 1]
    if homogeneity(counts, what="").p_value > _NO_DRIFT:
        return 1.0
    n = counts.sum(axis=1)
    alike = ((counts * (counts - 1.0)).sum(axis=1) / (n - 1.0)).sum() / n.sum()
    return max(float(alike / (t.logged.shares**2).sum()), 1.0)


NEAR_COPIES = Check(
    name=NAME,
    finds="displays logged again some seconds later, beyond what chance makes",
    run=near_copies,
)
