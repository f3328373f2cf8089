"""Zeros that are told: to those that take them, after a delay of the conversions' law, and to nobody else."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from evaluator import load
from evaluator.datasets import generate
from evaluator.delays.laws import DelayLaw, exponential, fixed, geometric
from evaluator.policies import names, resolve
from evaluator.simulations import BernoulliProblem, LinearProblem, Simulation, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.worlds.scenarios.scenario import BernoulliScenario
from evaluator.worlds.world import load_problem

SIGMAS = 4
RUNS, HORIZON = 40, 3000


def arms(law: DelayLaw, zeros: str) -> BernoulliProblem:
    return BernoulliProblem(name="arms", means=(0.3, 0.6), laws=(law,), horizon=HORIZON, zeros=zeros)


def play(problem: BernoulliProblem | LinearProblem, *specs: str, runs: int = RUNS, **options: int | str) -> Simulation:
    return simulate(problem, [resolve(spec) for spec in specs], SimulateOptions(runs=runs, **options))


def test_under_a_fixed_delay_a_zero_is_told_when_its_window_closes() -> None:
    told, closed = (play(arms(fixed(40), zeros), "qpm-d", window=40).curve_table for zeros in ("told", "window"))
    assert told.equals(closed)
    # Told, it needs no window; not told, it never hears of a zero without one.
    assert play(arms(fixed(40), "told"), "qpm-d").curve_table["regret"].equals(told["regret"])
    assert not play(arms(fixed(40), "window"), "qpm-d").curve_table["regret"].equals(told["regret"])


def test_a_delay_costs_what_is_on_its_way_and_a_window_costs_the_window() -> None:
    """Joulani et al. 2013: R(T) is at most the base's, and the gap times the most displays on their way at any time.

    With one display a round and a mean delay of 40 these are Poisson of mean 40: 6 standard deviations more are never
    reached in 3,000 rounds. Where a zero is known only when a window of 400 closes, its wait comes on top.
    """
    late, base, closed = (
        play(arms(law, zeros), "qpm-d", **options).curves[0]
        for law, zeros, options in (
            (exponential(40), "told", {}),
            (fixed(0), "told", {}),
            (exponential(40), "window", {"window": 400}),
        )
    )
    bound = base.regret[-1] + 0.3 * (40 + 6 * math.sqrt(40))
    assert late.regret[-1] <= bound + SIGMAS * math.hypot(late.regret_se[-1], base.regret_se[-1])
    assert closed.regret[-1] > bound + SIGMAS * math.hypot(closed.regret_se[-1], base.regret_se[-1])


@pytest.mark.parametrize("spec", ["random", "thompson", "delayed-klucb:cdf=online", "klucb", "odaaf"])
def test_nobody_else_hears_of_a_zero(spec: str) -> None:
    takers = [name for name in names() if resolve(name).takes_zeros]
    assert takers == ["qpm-d"], "a policy that takes zeros needs a test here of what it makes of them, and its name"
    told, silent = (play(arms(geometric(12), zeros), spec, runs=3, window=60) for zeros in ("told", "window"))
    assert told.curve_table.equals(silent.curve_table)
    assert told.to_dict() == silent.to_dict()
    assert told.told_zeros == ()


def test_a_zero_is_no_conversion() -> None:
    found = play(arms(geometric(12), "told"), "qpm-d", runs=5)
    counts = found.curves[0].conversions
    assert counts["generated"] == sum(counts.values()) - counts["generated"]
    rate = counts["generated"] / (5 * HORIZON)
    # Not the 1 that it would be with zeros among them.
    assert 0.3 < rate < 0.6 + SIGMAS * math.sqrt(0.24 / (5 * HORIZON))
    assert (found.told_zeros, found.to_dict()["told_zeros"]) == (("qpm-d",), ["qpm-d"])


def test_a_policy_without_contexts_is_told_in_a_linear_world_too() -> None:
    problem = LinearProblem(name="sets", n_actions=3, dimension=2, laws=(fixed(30),), horizon=400)
    told, closed = (
        play(dataclasses.replace(problem, zeros=zeros), "qpm-d", runs=3, window=30).curve_table
        for zeros in ("told", "window")
    )
    assert told.equals(closed)


def test_scenarios_say_so() -> None:
    assert load_problem("pikeburke2018-exponential").zeros == "told"
    assert load_problem("vernade2017-low").zeros == load_problem("vernade2020-100-100").zeros == "window"


def test_a_log_knows_no_zeros() -> None:
    log, same = (
        generate(BernoulliScenario(kind="bernoulli", means=[0.2, 0.4], zeros=zeros), displays=500)
        for zeros in ("told", "window")
    )
    assert log.conversions.equals(same.conversions)
    assert log.meta.fingerprint == same.meta.fingerprint
    assert np.all(load("pikeburke2018-uniform", limit=500).conversions["value"].to_numpy() == 1.0)
