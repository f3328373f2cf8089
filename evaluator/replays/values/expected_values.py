"""Expected values of learning policies, and their differences: intervals from the values of resampled replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import SamplerName
from evaluator.errors import ParameterError
from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import effective, spread_interval, too_few
from evaluator.findings.codes import MIXED_HORIZONS, NO_SPREAD, PROPENSITIES_NOT_RESAMPLED, ordered
from evaluator.replays.findings.plan import few_clusters_warning
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult

# Sampler of the logging policy.
LOGGED: SamplerName = "logged"


@dataclass(frozen=True, eq=False)
class ResampledValues:
    """Values of one plan's replays of resampled logs, shape (B,): mean reward per round.

    In `short` of them the rounds were not reached. The rounds are worth so many clusters of equal size; None where
    displays were drawn one by one.
    """

    values: npt.NDArray[np.float64]
    short: int
    clusters: float | None


def clusters_shown(plan: ReplayPlan, displays: Sequence[npt.NDArray[np.int64]]) -> float | None:
    """Return how many clusters of equal size the displays of a plan's repeats are worth, the fewest of them."""
    if plan.clusters is None:
        return None
    return min(effective(plan.clusters.code[shown]) for shown in displays)


def with_expected_value(result: ReplayResult, resampled: ResampledValues) -> ReplayResult:
    """Return a result with the interval that the resampled values give its expected value."""
    values, short = resampled.values, resampled.short
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        none = NO_SPREAD.found(
            f"No interval of the expected value: all {len(values):,} resampled replays earned the same, and a width of "
            "0 would call known what did not show."
        )
        return replace(result, resampled=tuple(values.tolist()), findings=ordered((*result.findings, none)))
    target = f"expected value of the learning policy at {result.rounds:,} rounds"
    clusters = resampled.clusters
    interval = spread_interval(
        result.value.estimate, values, n=result.value.n, level=result.plan["options"]["level"], target=target,
        clusters=clusters,
    )  # fmt: skip
    said = list(result.findings)
    if short:
        said.append(
            MIXED_HORIZONS.found(
                f"{short:,} of {len(values):,} resampled replays ended before their rounds were reached: the "
                "interval of the expected value mixes horizons.",
                short=short,
            )
        )
    if result.plan["options"]["propensity"] == "estimate:context":
        said.append(
            PROPENSITIES_NOT_RESAMPLED.found(
                "The interval of the expected value takes the estimated propensities as given: it is too short."
            )
        )
    if too_few(clusters):
        said.append(few_clusters_warning("the expected value", clusters, result.plan["options"]["cluster_by"]))
    return replace(
        result, expected_value=interval, resampled=tuple(values.tolist()), clusters=clusters, findings=ordered(said)
    )


def expected_differences(
    results: Sequence[ReplayResult], *, baseline: int = 0, level: float | None = None, times: float = 1.0
) -> tuple[Interval, ...]:
    """Return expected value minus that of a baseline for each result, at the horizon that all share.

    The logging policy has none: its value is the mean of a log. The values of both come from the same resampled logs,
    so what the two have in common cancels. Of the baseline's value so many `times` are subtracted; its own difference
    is 0. The level is that of the replays where it is None.

    Raise ParameterError if there was no bootstrap, or policies other than the logging one have different numbers of
    rounds: their values then are expectations at different horizons.
    """
    if len({len(result.resampled) for result in results}) != 1 or not results[0].resampled:
        raise ParameterError("There are no common resampled replays.", remedy="replay all with the same `bootstrap`.")
    horizons = {result.rounds for result in results if result.plan["sampler"] != LOGGED}
    if len(horizons) > 1:
        raise ParameterError("The replays have different numbers of rounds.", remedy="give a common `horizon`.")
    of = results[baseline]
    return tuple(
        spread_interval(
            result.value.estimate - times * of.value.estimate,
            np.subtract(result.resampled, times * np.asarray(of.resampled)),
            n=result.value.n,
            level=result.plan["options"]["level"] if level is None else level,
            target=f"difference of expected values at {max(horizons, default=of.rounds):,} rounds",
            clusters=None if of.clusters is None or result.clusters is None else min(of.clusters, result.clusters),
        )
        for result in results
    )
