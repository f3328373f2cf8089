"""The variants of a study: every policy with every window, planned one by one on what all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evaluator.log import Log
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.shared_inputs import read_basis
from evaluator.replays.warm_start import learned_among, numbered_as_learned

Window = str | int | None


class Variants:
    """Policies with windows on one log, numbered from 0, policy by policy, within it window by window.

    Parameters
    ----------
    log
        The log that all are replayed on.
    policies, windows
        Descriptions of the policies, and the windows that each is replayed with, as `ReplayOptions.window`.
    options
        Options that all variants share; their own window is not used.
    """

    def __init__(self, log: Log, policies: Sequence[Any], windows: Sequence[Window], options: ReplayOptions) -> None:
        own = learned_among(policies, options)
        self._asked = [(policy, replace(asked, window=window)) for policy, asked in own for window in windows]
        self._basis = read_basis(numbered_as_learned(log, [policy for policy, _ in own]), options)

    def __len__(self) -> int:
        return len(self._asked)

    def plan(self, number: int) -> ReplayPlan:
        """Plan a variant."""
        return plan_replay(self._basis, *self._asked[number])
