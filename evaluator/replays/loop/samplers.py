"""Which sampler replays a policy without bias, also where rates drift and the logger is uneven.

rejection   each display is accepted when the policy's choice is the logged action and a draw is below c / propensity,
            c one number for the whole log. Right for every policy; the only one for contextual policies. How many
            displays are accepted depends on no outcome.
keep        the choice of a non-contextual policy, with its randomness, is held until a logged display matches it. Needs
            no propensities when the logger ignored contexts and outcomes. Keeps the order of the log. Where the logger
            is uneven the number of rounds depends on what the policy chose.
queue       each action's displays wait in a queue; every round is served from the queue of its choice (Mandel et al.
            2015). Up to N rounds; from the whole log in its order as far as it has displays of what is chosen, so rates
            that drift while an action is chosen more often than it was logged become bias. By name only.
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


def choose_sampler(policy: Any, requested: str | None, *, even: bool, known: bool) -> SamplerName:
    """Return the sampler of a replay.

    By default rejection for contextual policies; for others keep under an even logger, where its end depends on no
    outcome, else rejection, whose end never does; keep where there are no propensities to reject by.

    Parameters
    ----------
    policy
        The policy.
    requested
        What the user asked for, or None.
    even
        Whether the logger shows every action equally often.
    known
        Whether propensities are known or estimated.

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
    return "keep" if even or not known else "rejection"


def sure_rounds(displays: int, acceptance: float, *, deviations: float = 3.0) -> int:
    """Return the rounds of a replay that accepts each display with at least this probability, all but surely.

    floor(cN - z sqrt(cN (1 - c))) for c = `acceptance`, N = `displays` and z = `deviations`; no outcome moves it. At
    least 0.
    """
    expected = acceptance * displays
    return max(math.floor(expected - deviations * math.sqrt(expected * (1.0 - acceptance))), 0)


def safe_horizon(action: npt.NDArray[np.int32], n_actions: int) -> int:
    """Return the rounds that no queue can cut short: the displays of the rarest action, among those not thinned out.

    An action without any has no queue, and does not decide for the others.
    """
    queued = np.bincount(action[action >= 0], minlength=n_actions)
    return int(queued.min(where=queued > 0, initial=len(action)))
