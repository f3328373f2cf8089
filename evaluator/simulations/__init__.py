"""Live runs: a policy plays a bandit problem whose truth is known, with delayed, censored feedback and no log."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.simulations.result import RegretCurve, Simulation
    from evaluator.simulations.runs import simulate
    from evaluator.worlds.scenarios.problem import BernoulliProblem, LinearProblem, Problem

__all__ = ["BernoulliProblem", "LinearProblem", "Problem", "RegretCurve", "Simulation", "simulate"]

# Names resolve on first use, so that the options of a simulation are read without numba.
_HOMES = {
    "BernoulliProblem": "worlds.scenarios.problem",
    "LinearProblem": "worlds.scenarios.problem",
    "Problem": "worlds.scenarios.problem",
    "RegretCurve": "simulations.result",
    "Simulation": "simulations.result",
    "simulate": "simulations.runs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator.simulations' has no attribute {name!r}")
    return getattr(import_module(f"evaluator.{_HOMES[name]}"), name)
