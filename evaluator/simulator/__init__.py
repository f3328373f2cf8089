"""Live runs: a policy plays a bandit problem whose truth is known, with delayed, censored feedback and no log."""

from evaluator.simulator.lower_bound import lower_bound
from evaluator.simulator.problem import BernoulliProblem, LinearProblem, Problem
from evaluator.simulator.result import Curve, Simulation
from evaluator.simulator.runs import simulate

__all__ = ["BernoulliProblem", "Curve", "LinearProblem", "Problem", "Simulation", "lower_bound", "simulate"]
