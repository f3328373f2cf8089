"""Replays of the bundled promotions give what is true of it: sets that change with time, refunds, costs, unsubscribes.

The truth of a policy that does not learn is a mean over the log's displays, of which a replay accepts an even sample:
the two differ by the luck of that sample and of its events. Over logs of several seeds, whose luck is independent, the
mean difference lies within three standard errors. That such a test can fail says what the logging policy's value for
that of even choices would be off by.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from evaluator import replay
from evaluator.datasets import load
from evaluator.log.schema import to_numpy
from evaluator.reading.resolve import dataset_spec, spec_path
from evaluator.reading.spec import ScenarioSpec
from evaluator.worlds.scenarios.promotions import true_values
from evaluator.worlds.scenarios.scenario import PromotionsScenario

SEEDS = range(8)
# Action 2 is always eligible, 3 out of stock at times, and then gives way at random.
POLICIES = ("random", "fixed:action=2", "fixed:action=3")
NUMBERS = ("profit", "revenue", "cost", "unsubscribe")


class Found(NamedTuple):
    """What a replay found less the truth, with standard errors; the true profit of the logging policy and its own."""

    off: dict[str, float]
    errors: dict[str, float]
    logged: float
    truth: float


@cache
def found(policy: str, seed: int) -> Found:
    spec = dataset_spec("promotions")
    assert isinstance(spec, ScenarioSpec)
    assert isinstance(spec.scenario, PromotionsScenario)
    log = load("promotions", seed=seed)
    values = true_values(spec.scenario, log, spec_path("promotions").parent)
    truth = next(row for row in values if row.policy == policy)
    result = replay(log, policy, window=None)
    shown = to_numpy(result.trajectory["display_id"])
    left = np.bincount(to_numpy(log.outcomes["display_id"]), minlength=len(log))[shown]
    profit, cost = to_numpy(result.trajectory["reward"]), log.column("cost")[shown]
    rounds = {"profit": profit, "revenue": profit + cost, "cost": cost, "unsubscribe": left}
    assert result.money is not None
    said = {
        "profit": result.value.estimate, "revenue": result.money.revenue.estimate,
        "cost": result.money.cost.estimate, "unsubscribe": result.outcomes[0].value.estimate,
    }  # fmt: skip
    return Found(
        off={name: said[name] - getattr(truth, name) for name in NUMBERS},
        errors={name: float(rounds[name].std() / len(shown) ** 0.5) for name in NUMBERS},
        logged=values[0].profit,
        truth=truth.profit,
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_replay_finds_what_is_true(policy: str, number: str) -> None:
    runs = [found(policy, seed) for seed in SEEDS]
    off = np.mean([run.off[number] for run in runs])
    error = np.sqrt(np.sum([run.errors[number] ** 2 for run in runs])) / len(runs)
    # A cost that is the same at every display has no error but that of a sum.
    assert abs(off) <= 3 * error + 1e-12


def test_taking_the_logging_policy_for_uniform_would_fail() -> None:
    runs = [found("random", seed) for seed in SEEDS]
    error = np.sqrt(np.sum([run.errors["profit"] ** 2 for run in runs])) / len(runs)
    assert np.mean([run.truth - run.logged for run in runs]) > 5 * error
