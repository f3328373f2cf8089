"""The greedy and the exploring final policy are two, each in its own intervals as often as they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator import load, replay
from tests.statistical.final_runs import ARMS, CONTEXTUAL, coverage, logs_of

RUNS = 60
# Lowest and highest coverage that so many logs allow where 95 % is true.
REACH = 4 * math.sqrt(0.95 * 0.05 / RUNS)


@pytest.mark.parametrize("tidy", [True, False], ids=["tidy", "rhythm, rates by hour, revenue"])
@pytest.mark.parametrize("policy", [*ARMS, *CONTEXTUAL])
def test_both_final_policies_are_covered(policy: str, tidy: bool) -> None:
    logs = list(logs_of(policy, tidy=tidy, runs=RUNS))
    greedy, exploring = [log["greedy"] for log in logs], [log["exploring"] for log in logs]
    for found in (greedy, exploring):
        for estimator in ("ips", "snips", "dr"):
            values = [getattr(one.found, estimator).value for one in found]
            error = np.array([v.estimate - one.truth for v, one in zip(values, found, strict=True)])
            assert abs(error.mean()) < 4 * error.std(ddof=1) / math.sqrt(RUNS), estimator
            assert abs(coverage(found, estimator) - 0.95) < REACH, estimator
    gap = np.array([one.truth - two.truth for one, two in zip(greedy, exploring, strict=True)])
    assert gap.mean() > 4 * gap.std(ddof=1) / math.sqrt(RUNS), "what was learned is better than what is tried"
    # The tempting way: the frozen policy's value for that of what was learned.
    taken = coverage(exploring, "snips", [one.truth for one in greedy])
    assert taken < 0.95 - REACH, taken


def test_the_width_of_the_theorem_explores_for_ever() -> None:
    """On the bundled log, whose truth is known: random play earns .879, what was learned .97, the next pull .75."""
    log = load("synthetic")
    options = {"window": 2000, "final": "last:20%"}
    greedy, exploring = (
        replay(log, "otflinucb:width=theorem", final_policy=final, **options).final for final in ("greedy", "exploring")
    )
    random = log.column("expected_reward").mean()
    assert greedy.dr.value.low > random + 0.05
    assert exploring.dr.value.high < random - 0.05
    assert greedy.dr.value.low > exploring.dr.value.high + 0.1
