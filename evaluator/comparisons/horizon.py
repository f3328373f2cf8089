"""The number of rounds at which replays of one log are compared: the same for all, and no outcome moves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.comparisons.lines import names_of
from evaluator.engine.log_replay import sure_rounds
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.support import least_acceptance
from evaluator.replays.values.rewards import observed_rewards
from evaluator.results.json_documents import Count

# Probability that any of the replays ends before the horizon: three standard deviations for a single one.
_MISSED = 0.00135


@dataclass(frozen=True)
class CommonHorizon:
    """Rounds at which replays are compared.

    Parameters
    ----------
    rounds
        Number of rounds T of each replay that are compared.
    fixed
        Whether T was fixed before any outcome was seen, as the intervals assume.
    why
        Clause for reports that says why it is this number.
    """

    rounds: Count
    fixed: bool
    why: str


@dataclass(frozen=True, eq=False)
class FirstRounds:
    """What a replay showed in its first T rounds, and earned: one array a repeat, shape (T,) each."""

    displays: tuple[npt.NDArray[np.int64], ...]
    rewards: tuple[npt.NDArray[np.float64], ...]


def common_horizon(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> CommonHorizon:
    """Return the common horizon of replays.

    It is the one asked for, or as many rounds as each replay gets all but surely, whatever its policy does: rejection
    and keep accept each of N displays with a probability of at least c, so floor(cN - z sqrt(cN(1 - c))), where z is 3
    for one replay and grows with their number; queue stops by itself at the displays of the rarest action, logging
    after all N. Should a replay end before that, the horizon is where the shortest one ended. Replays that are
    not `comparable` are left out; one at least has a round.
    """
    from scipy.special import ndtri

    asked = asked_horizon(plans)
    lived = comparable(results)
    z = -float(ndtri(_MISSED / sum(plans[i].options.repeats for i in lived)))
    planned = asked or min(_rounds_before_any(plans[i], results[i], z) for i in lived)
    last = min(lived, key=lambda i: results[i].rounds)
    shortest = results[last].rounds
    if planned > shortest or planned < 1:
        short = (
            f"short of the {planned:,} rounds {'asked for' if asked else 'fixed beforehand'}"
            if planned > 0
            else "and on this log no number of rounds is sure beforehand"
        )
        return CommonHorizon(
            shortest,
            False,
            f"{names_of(results)[last]} ended there, {short}, so that the horizon depended on the run and the "
            "intervals of the differences may be too short",
        )
    return CommonHorizon(planned, True, "as asked for" if asked else "fixed from the log alone, before any outcome")


def asked_horizon(plans: Sequence[ReplayPlan]) -> int | None:
    """Return the number of rounds that was asked for, if any: the logging policy's has none."""
    return next((plan.options.horizon for plan in plans if plan.sampler != "logged"), None)


def comparable(results: Sequence[ReplayResult]) -> list[int]:
    """Return which replays are compared: those with rounds that no action without a usable display cut short, if any.

    An action that nobody can replay decides nothing for the others.
    """
    lived = [i for i, result in enumerate(results) if result.rounds]
    return [i for i in lived if not results[i].ended_by] or lived


def first_rounds(plan: ReplayPlan, result: ReplayResult, rounds: int) -> FirstRounds:
    """Return the first rounds of every repeat; rewards observed by the horizon are those observed by this one."""
    table = result.trajectory
    starts = np.searchsorted(to_numpy(table["repeat"]), np.arange(plan.options.repeats))
    numbers = to_numpy(table["display_id"])
    numbers = numbers - plan.before if plan.before else numbers
    displays = tuple(numbers[start : start + rounds] for start in starts)
    if plan.options.reward == "observed":
        return FirstRounds(displays, tuple(observed_rewards(plan, of_repeat) for of_repeat in displays))
    return FirstRounds(displays, tuple(to_numpy(table["reward"])[start : start + rounds] for start in starts))


def _rounds_before_any(plan: ReplayPlan, result: ReplayResult, z: float) -> int:
    n = len(plan.rounds)
    if plan.sampler == "logged":
        return n
    if plan.sampler == "queue":
        return result.rounds
    return sure_rounds(n, least_acceptance(plan.matched, plan.usable), deviations=z)
