"""What has no answer where displays have their own eligible actions."""

from __future__ import annotations

from typing import Any

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.policies.running import refuse_choosing_among
from evaluator.policies.static import LoggingPolicy
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
    refuse_choosing_among(policy, where)
    if options.sampler in ("keep", "queue"):
        raise ParameterError(
            f"`sampler='{options.sampler}'` would be biased: {where}, and a choice that is held or queued until it is "
            "eligible tilts the sets of the rounds.",
            hint="use `sampler='rejection'`.",
        )
