"""What every loop that runs policies does alike: its form for a policy, and errors that name a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evaluator.errors import EvaluatorError, PolicyError
from evaluator.policies.base import Policy, Setting


@contextmanager
def blamed(policy: Any, n_actions: int) -> Iterator[None]:
    """Turn what a user's policy raises into an error that names it."""
    try:
        yield
    except Exception as error:
        if isinstance(error, EvaluatorError) or _is_ours(policy):
            raise
        raise PolicyError(
            f"{policy.name} raised {type(error).__name__}: {error}.",
            hint=f"actions go from 0 to {n_actions - 1}; --debug shows where.",
        ) from error


def loop_for(policy: Any, cached: Any, uncached: Any, interpreted: Any) -> Any:
    """Return the form of a loop that a policy runs in."""
    if not isinstance(policy, Policy):
        return interpreted
    return cached if _is_ours(policy) else uncached


def reward_unit(policy: Any, setting: Setting) -> float:
    """Return what rewards are divided by before the policy is told of them: 1 where it is told them as they are."""
    return setting.reward_max if policy.unit_rewards else 1.0


def _is_ours(policy: Any) -> bool:
    return type(policy).__module__.startswith("evaluator.") and isinstance(policy, Policy)
