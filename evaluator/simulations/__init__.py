"""Live runs: a policy plays a bandit problem whose truth is known, with delayed, censored feedback and no log."""

from evaluator.simulations.lower_bound import lower_bound
from evaluator.simulations.problem import BernoulliProblem, LinearProblem, Problem
from evaluator.simulations.result import RegretCurve, Simulation
from evaluator.simulations.runs import simulate

__all__ = ["BernoulliProblem", "LinearProblem", "Problem", "RegretCurve", "Simulation", "lower_bound", "simulate"]
