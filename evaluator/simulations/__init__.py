"""Live runs: a policy plays a bandit problem whose truth is known, with delayed, censored feedback and no log."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.simulations.problem import BernoulliProblem, LinearProblem, Problem
    from evaluator.simulations.result import RegretCurve, Simulation
    from evaluator.simulations.runs import simulate

__all__ = ["BernoulliProblem", "LinearProblem", "Problem", "RegretCurve", "Simulation", "simulate"]

# Names resolve on first use, so that the options of a simulation are read without numba.
_HOMES = {
    "BernoulliProblem": "problem",
    "LinearProblem": "problem",
    "Problem": "problem",
    "RegretCurve": "result",
    "Simulation": "result",
    "simulate": "runs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator.simulations' has no attribute {name!r}")
    return getattr(import_module(f"evaluator.simulations.{_HOMES[name]}"), name)
