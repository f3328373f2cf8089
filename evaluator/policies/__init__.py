"""Policies: one family a file, one line each in `evaluator.policies.registry`.

Importing this package loads none of numpy and numba, so that names of policies are completed at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from evaluator.policies.registry import describe, names, resolve

if TYPE_CHECKING:
    from evaluator.policies.base import Need, Policy, Setting, parameter
    from evaluator.policies.dispatch import implement

__all__ = ["Need", "Policy", "Setting", "describe", "implement", "names", "parameter", "resolve"]

_HOMES = {"Need": "base", "Policy": "base", "Setting": "base", "implement": "dispatch", "parameter": "base"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
