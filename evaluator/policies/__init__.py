"""Policies: one family a file, one line each in `evaluator.policies.registry`."""

from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.registry import describe, names, resolve

__all__ = ["Need", "Policy", "Setting", "describe", "implement", "names", "parameter", "resolve"]
