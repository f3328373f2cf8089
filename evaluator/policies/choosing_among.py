"""Which policies have an answer where only some of the actions are eligible, and by which rule of equals."""

from __future__ import annotations

from typing import Any

from evaluator.errors import ParameterError
from evaluator.policies.base import Policy
from evaluator.policies.registry import POLICIES, resolve
from evaluator.policies.running import is_ours
from evaluator.policies.user import UserPolicy


def refuse_choosing_among(policy: Any, where: str, *, live: bool = False) -> None:
    """Raise where a policy's definition has no answer to some of its actions being eligible.

    Parameters
    ----------
    policy
        Description of the policy.
    where
        Clause that says where they are not.
    live
        Whether there is no log, whose columns a policy could read.

    Raises
    ------
    ParameterError
        Naming those that have one.
    """
    if not policy.among:
        raise ParameterError(
            f"{policy.name} cannot choose among some of its actions, and {where}.", hint=_ways(policy, live=live)
        )


def has_random_ties(policy: Any) -> bool:
    """Return whether the policy's equal scores go by a random order of the actions; else by the lower index."""
    return bool(getattr(policy, "ties", "random") == "random")


def _ways(policy: Any, *, live: bool) -> str:
    if isinstance(policy, UserPolicy):
        return "let its choose take them: choose(self, vectors, rng, eligible), and return one of `eligible`."
    if not is_ours(policy):
        return "give `implement` a `score` or a `choose_among`, and say among = True."
    described = {name: resolve(name) for name in POLICIES}
    able = [
        name
        for name, found in described.items()
        if isinstance(found, Policy) and found.among and not (live and found.reads == "target")
    ]
    return f"take one that can: {', '.join(able)}."
