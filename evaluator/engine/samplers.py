"""Which sampler replays a policy without bias, also where rates drift and the logger is uneven.

rejection   A display is accepted when the policy's choice is the logged action and a draw is below c / propensity, with
            one number c for the whole log. Right for every policy, and the only one for contextual policies. How many
            displays are accepted depends on no outcome.
keep        The choice of a non-contextual policy is held, with its randomness, until a logged display matches it. It
            needs no propensities where the logger ignored contexts and outcomes, and keeps the order of the log. Where
            the logger is uneven, the number of rounds depends on what the policy chose.
queue       Each action's displays wait in a queue of their own, and every round is served from the queue of its choice
            (Mandel et al. 2015). It gives up to N rounds, until the log has no more displays of what is chosen. The
            policy meets an action's displays earlier or later than the others', so rates that drift while an action is
            chosen more often than it was logged become bias. Used only where it is asked for by name.
logged      The logging policy itself: every display is a round.
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
        Description of the policy.
    requested
        Name of the sampler that the user asked for; None chooses.
    even
        Whether the logger shows every action equally often.
    known
        Whether propensities are known or estimated.

    Raises
    ------
    ParameterError
        The sampler is not known, or is biased for the policy.
    """
    if requested is not None and requested not in SAMPLERS:
        raise ParameterError(f"`sampler` {requested!r} is not a choice.", remedy=nearest(requested, SAMPLERS))
    if isinstance(policy, LoggingPolicy):
        return "logged"
    if requested is not None:
        if policy.contextual and requested != "rejection":
            raise ParameterError(
                f"`sampler='{requested}'` would be biased for {policy.name}, which reads contexts.",
                remedy="use `sampler='rejection'`.",
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
