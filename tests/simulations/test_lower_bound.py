"""Theorems 3 and 4 of Vernade et al. 2017, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.laws import fixed, geometric, packet_loss, pareto
from evaluator.errors import ParameterError
from evaluator.policies import resolve
from evaluator.simulations import Problem, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.runs import lower_bound
from tests.simulations.problems import bernoulli, linear


def divergence(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_by_hand() -> None:
    uncensored = 0.25 / divergence(0.25, 0.5) + 0.1 / divergence(0.4, 0.5)
    assert lower_bound([0.5, 0.25, 0.4]) == pytest.approx(uncensored, rel=1e-12)
    assert lower_bound([0.5, 0.25], 0.5) == pytest.approx(0.5 * 0.25 / divergence(0.125, 0.25), rel=1e-12)


def test_edges() -> None:
    assert lower_bound([0.3, 0.3]) == 0
    assert lower_bound([1.0, 0.3]) == 0  # one failure tells the worse arm from an arm that never fails
    assert lower_bound([0.5, 0.0]) == pytest.approx(0.5 / math.log(2))
    for means, tau in (([0.5, 1.2], 1.0), ([], 1.0), ([0.5, 0.4], 0.0), ([0.5, 0.4], 1.1)):
        with pytest.raises(ParameterError):
            lower_bound(means, tau)


def test_beside_the_regret() -> None:
    found = simulate(bernoulli(geometric(12), window=20), [resolve("random")], SimulateOptions(runs=1))
    tau = 1 - (12 / 13) ** 21
    assert found.tau_window == (pytest.approx(tau),)
    observed = lower_bound([0.5, 0.3, 0.7], tau) * np.log(found.rounds)
    np.testing.assert_allclose(found.observed_lower_bound, observed)
    np.testing.assert_allclose(found.lower_bound, observed / tau)


def test_lost_conversions_are_no_regret() -> None:
    found = simulate(bernoulli(packet_loss(0.2)), [resolve("random")], SimulateOptions(runs=1))
    np.testing.assert_allclose(found.lower_bound, found.observed_lower_bound)


@pytest.mark.parametrize(
    "problem", [linear(), bernoulli(pareto(1), pareto(1), pareto(0.3)), bernoulli(fixed(9), window=8)]
)
def test_none_where_the_theorems_are_silent(problem: Problem) -> None:
    found = simulate(problem, [resolve("random")], SimulateOptions(runs=1))
    assert found.lower_bound is None
    assert found.observed_lower_bound is None
    assert found.curve_table["lower_bound"].null_count == found.curve_table.num_rows
