"""What has no answer where displays have their own eligible actions."""

from __future__ import annotations

from typing import Any

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.policies.base import Policy
from evaluator.policies.registry import POLICIES, resolve
from evaluator.policies.running import is_ours
from evaluator.policies.static import LoggingPolicy
from evaluator.policies.user import UserPolicy
from evaluator.replays.options import ReplayOptions


def refuse_on_sets(log: Log, policy: Any, options: ReplayOptions) -> None:
    """Raise where a policy, or an option, cannot deal with a log in which not every action is always eligible.

    Raises
    ------
    ParameterError
        Naming what can.
    """
    if isinstance(policy, LoggingPolicy):
        return
    where = f"the displays of log {log.meta.name!r} do not all have the same eligible actions"
    if not policy.among:
        raise ParameterError(f"{policy.name} cannot choose among some of its actions, and {where}.", hint=_ways(policy))
    if options.sampler in ("keep", "queue"):
        raise ParameterError(
            f"`sampler='{options.sampler}'` would be biased: {where}, and a choice that is held or queued until it is "
            "eligible tilts the sets of the rounds.",
            hint="use `sampler='rejection'`.",
        )


def _ways(policy: Any) -> str:
    if isinstance(policy, UserPolicy):
        return "let its choose take them: choose(self, vectors, rng, eligible), and return one of `eligible`."
    if not is_ours(policy):
        return "give `implement` a `score` or a `choose_among`, and say among = True."
    able = [name for name in POLICIES if isinstance(found := resolve(name), Policy) and found.among]
    return f"take one that can: {', '.join(able)}."
