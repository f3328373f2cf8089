"""Which sampler replays a policy without bias, and which of those keeps most rounds.

rejection   each display is accepted when the policy's choice is the logged action and a draw is below c / propensity,
c one
            number for the whole log. Right for every policy; the only one for contextual policies.
keep        the choice of a non-contextual policy, with its randomness, is held until a logged display matches it. Needs
            no propensities when the logger ignored contexts and outcomes. Keeps the order of the log.
queue       each action's displays wait in a queue; every round is served from the queue of its choice (Mandel et al.
2015).
            Up to N rounds; the order of the log is lost, so drift becomes bias.
logged      the logging policy itself: every display is a round.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError, nearest
from evaluator.policies.static import LoggingPolicy

SamplerName = Literal["rejection", "keep", "queue", "logged"]
SAMPLERS: tuple[SamplerName, ...] = ("rejection", "keep", "queue")


def choose_sampler(
    policy: Any, requested: str | None, *, even: bool, horizon: int | None, guaranteed: int
) -> SamplerName:
    """Return the sampler of a replay.

    Parameters
    ----------
    policy
        The policy.
    requested
        What the user asked for, or None.
    even
        Whether the logger shows every action equally often: then keep stops at a point that no outcome moves.
    horizon
        Rounds the user asked for, or None.
    guaranteed
        Rounds keep will have, about: the displays of the rarest action.

    Raises
    ------
    ParameterError
        Unknown, or biased for the policy.
    """
    if requested is not None and requested not in SAMPLERS:
        raise ParameterError(f"--sampler {requested!r} is not a choice.", hint=nearest(requested, SAMPLERS))
    if isinstance(policy, LoggingPolicy):
        return "logged"
    if requested is not None:
        if policy.contextual and requested != "rejection":
            raise ParameterError(
                f"--sampler {requested} would be biased for {policy.name}, which reads contexts.",
                hint="use --sampler rejection.",
            )
        return requested
    if policy.contextual:
        return "rejection"
    return "keep" if even and (horizon is None or horizon <= guaranteed) else "queue"


def sure_rounds(displays: int, acceptance: float, *, deviations: float = 3.0) -> int:
    """Return the rounds of a replay that accepts each display with at least this probability, all but surely.

    floor(cN - z sqrt(cN (1 - c))) for c = `acceptance`, N = `displays` and z = `deviations`; no outcome moves it. At
    least 0.
    """
    expected = acceptance * displays
    return max(math.floor(expected - deviations * math.sqrt(expected * (1.0 - acceptance))), 0)


def safe_horizon(action: npt.NDArray[np.int32], n_actions: int) -> int:
    """Return the rounds that no queue can cut short: the displays of the rarest action, among those not thinned out."""
    return int(np.bincount(action[action >= 0], minlength=n_actions).min())
