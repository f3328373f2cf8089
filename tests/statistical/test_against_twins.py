"""The compiled run is, to the round, what a plain loop and the policies' twins make of the same streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.delays.laws import parse_law
from evaluator.policies import dispatch, resolve
from evaluator.policies.base import NO_WINDOW, Setting
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem, simulate
from evaluator.simulations.options import SimulateOptions
from tests.simulations.problems import LINEAR_WORLDS, WORLDS
from tests.simulations.slow import slow_run
from tests.twins import twin_of


class Interpreted:
    """A policy's own functions, not compiled.

    Unit vectors tie up to rounding before the first display, where a twin takes the lowest index and a policy the
    largest rounding: linear indices meet themselves here, and their twins in tests/policies.
    """

    def __init__(self, policy: Any, setting: Setting) -> None:
        self._state = policy.start(setting)

    def choose(self, vectors: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
        dispatch.begin(self._state, rng)
        return dispatch.choose(self._state, vectors)

    def displayed(self, vectors: npt.NDArray[np.float64], action: int) -> None:
        dispatch.shown(self._state, vectors, action)

    def converted(self, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
        dispatch.told(self._state, vector, action, delay, value)


def agree(spec: str, problem: Problem, *, told: str = "geometric:12", twin: bool = True) -> None:
    policy = resolve(spec)
    linear = isinstance(problem, LinearProblem) and policy.contextual
    setting = Setting(
        n_actions=problem.n_actions,
        dimension=problem.dimension if linear else 0,
        rows=problem.n_actions if linear else 0,
        window=problem.window or NO_WINDOW,
        horizon=problem.horizon,
        delay_cdf=parse_law(told).closed,
    )
    slow = [
        twin_of(policy.name)(setting, **policy.parameters) if twin else Interpreted(policy, setting) for _ in range(2)
    ]
    agree_with(slow, policy, problem, setting, told)


def agree_with(slow: list[Any], policy: Any, problem: Problem, setting: Setting, told: str) -> None:
    """Check two runs against what these make of the same streams."""
    runs = [slow_run(slow[r], problem, setting, seed=7, run=r) for r in range(2)]
    assert len(set(runs[0].actions)) > 1
    found = simulate(problem, [policy], SimulateOptions(runs=2, seed=7, delays=told)).curves[0]
    # Sums of up to 150 gaps below 1, in another order.
    np.testing.assert_allclose(found.regret, np.mean([r.regret for r in runs], axis=0), rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.observed, np.mean([r.observed for r in runs], axis=0), rtol=0, atol=1e-11)
    error = np.abs(np.subtract(runs[0].regret, runs[1].regret)) / 2
    np.testing.assert_allclose(found.regret_se, error, rtol=0, atol=1e-11)
    assert found.conversions == {fate: sum(r.counts[fate] for r in runs) for fate in found.conversions}


@pytest.mark.parametrize("problem", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("spec", ["random", "ucb1:ties=lowest", "thompson"])
def test_policies_without_contexts(spec: str, problem: BernoulliProblem) -> None:
    agree(spec, problem)


@pytest.mark.parametrize("spec", ["delayed-ucb:ties=lowest", "delayed-klucb:ties=lowest", "klucb:ties=lowest"])
@pytest.mark.parametrize("world", ["geometric, window", "geometric, no window", "an arm a law"])
def test_indices(spec: str, world: str) -> None:
    agree(spec, WORLDS[world])


# Told of zeros or not, and with a window or not.
@pytest.mark.parametrize("world", [name for name in WORLDS if "zero" in name or "geometric" in name])
def test_queues(world: str) -> None:
    agree("qpm-d:ties=lowest", WORLDS[world])


@pytest.mark.parametrize("problem", LINEAR_WORLDS.values(), ids=LINEAR_WORLDS)
@pytest.mark.parametrize("spec", ["otflints", "ucb1:ties=lowest"])
def test_linear_worlds(spec: str, problem: LinearProblem) -> None:
    agree(spec, problem)


@pytest.mark.parametrize("problem", LINEAR_WORLDS.values(), ids=LINEAR_WORLDS)
@pytest.mark.parametrize("spec", ["linucb", "otflinucb", "otflinucb:bonus=exact"])
def test_linear_indices(spec: str, problem: LinearProblem) -> None:
    agree(spec, problem, twin=False)


def test_waiting_for_the_window() -> None:
    agree("waitlinucb", LINEAR_WORLDS["window"], twin=False)
