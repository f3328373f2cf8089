"""What policies that do not learn are expected to earn, from the rewards of all actions in all contexts of a world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.special import erf

from evaluator.errors import ParameterError
from evaluator.policies.static import FixedAction, LoggingPolicy, RandomPolicy
from evaluator.streams import Stream, random_stream
from evaluator.worlds.scenarios.problem import LinearProblem, Problem
from evaluator.worlds.scenarios.scenario import flight_parts
from evaluator.worlds.scenarios.synthetic import action_sets, eligible_rounds, logging_chances, rates_of

Floats = npt.NDArray[np.float64]
# Rounds whose vectors are drawn where a logging policy follows them, and numbers of them at most.
_DRAWN, _NUMBERS = 200_000, 10_000_000


@dataclass(frozen=True, eq=False)
class TrueReward:
    """What a policy that does not learn is expected to earn.

    Parameters
    ----------
    policy
        Spec of the policy.
    value
        Expected reward per round: all that ever comes of it, less refunds and what its display costs.
    standard_error
        Standard error of `value`; 0 where it is known exactly, as everywhere but for a logging policy that follows
        vectors which every round draws anew.
    cost
        What a display costs on average, which is taken off already; 0 without costs.
    shown
        Share of the rounds in which each action is shown, shape (K,).
    by_action
        Expected reward of the rounds that show each action, shape (K,); nan where it is never shown.
    by_context
        Expected reward in each context, shape (P,): of the displays of a scenario's own log where it is in time, or of
        those of a log that a fitted world draws contexts from; one entry where there are none.
    """

    policy: str
    value: float
    standard_error: float
    cost: float
    shown: Floats
    by_action: Floats
    by_context: Floats

    def __repr__(self) -> str:
        return f"TrueReward({self.policy!r}, value={self.value:.6g})"


class TrueRewards(NamedTuple):
    """Expected rewards of all actions in all contexts of a world.

    Parameters
    ----------
    weights
        Share of the rounds that each context has, shape (P,).
    rewards
        Expected reward of each action in each context, before the cost of its display, shape (P, K).
    eligible
        Whether each action is eligible in each context, shape (P, K).
    logger
        Chance that the logging policy shows each action in each context, shape (P, K).
    costs
        What a display of each action costs, shape (K,).
    labels
        Labels of the actions, K of them.
    drawn
        Whether contexts are a sample of those that rounds have, so that means have errors.
    """

    weights: Floats
    rewards: Floats
    eligible: npt.NDArray[np.bool_]
    logger: Floats
    costs: Floats
    labels: Sequence[str]
    drawn: bool = False

    def of(self, policy: FixedAction | LoggingPolicy | RandomPolicy) -> TrueReward:
        """Return what a policy earns; a fixed action that is not eligible gives way to all that are, alike."""
        chances = self.eligible / self.eligible.sum(axis=1, keepdims=True)
        if isinstance(policy, LoggingPolicy):
            chances = self.logger
        elif isinstance(policy, FixedAction):
            k = policy.on_actions(self.labels).index
            if k >= len(self.labels):
                raise ParameterError(
                    f"{policy.spec}: the world has {len(self.labels)} actions.",
                    remedy=f"take 0 to {len(self.labels) - 1}, or a label.",
                )
            chances = np.where(self.eligible[:, [k]], np.arange(len(self.labels)) == k, chances)
        earned, shown = chances * (self.rewards - self.costs), self.weights @ chances
        by_context = earned.sum(axis=1)
        brings = self.weights @ earned
        return TrueReward(
            policy=policy.spec,
            value=float(self.weights @ by_context),
            standard_error=float(by_context.std(ddof=1) / len(by_context) ** 0.5) if self.drawn else 0.0,
            cost=float(shown @ self.costs),
            shown=shown,
            by_action=np.divide(brings, shown, out=np.full(len(shown), np.nan), where=shown > 0),
            by_context=by_context,
        )


def of_problem(problem: Problem, rounds: int) -> TrueRewards:
    """Return the rewards of a problem's first rounds; a context is a part of them with the same eligible actions."""
    k = problem.n_actions
    starts = [part.start for part in flight_parts(problem.flights, k) if part.start < rounds]
    drawn = isinstance(problem, LinearProblem) and problem.temperature is not None
    if isinstance(problem, LinearProblem) and drawn:
        n = max(min(_DRAWN, _NUMBERS // (k * problem.dimension)), 2)
        rates = rates_of(action_sets(n, k, problem.dimension, random_stream(Stream.LIVE_WORLD, 0, 0)))
        # A round of each part in turn: what is eligible does not depend on the vectors.
        at = np.sort(np.arange(n) * rounds // n)
    else:
        mean = linear_mean(problem.dimension) if isinstance(problem, LinearProblem) else problem.means
        rates = np.broadcast_to(np.asarray(mean, np.float64), (len(starts), k))
        at = np.array(starts)
    eligible = eligible_rounds(problem, rounds)[at] if problem.flights else np.ones((len(at), k), np.bool_)
    logger = logging_chances(problem, rates) * eligible
    lengths = np.diff([*starts, rounds]) / rounds if not drawn else np.full(len(at), 1.0 / len(at))
    return TrueRewards(
        weights=lengths,
        rewards=rates * [law.reach for law in problem.laws],
        eligible=eligible,
        logger=logger / logger.sum(axis=1, keepdims=True),
        costs=np.zeros(k),
        labels=[str(i) for i in range(k)],
        drawn=drawn,
    )


def linear_mean(dimension: int) -> float:
    """Return the mean of <x, theta> over x uniform on [0, 1]^d, scaled to unit length, and theta = 1/sqrt(d).

    It is sqrt(d) E[x_1 / |x|], where 1/|x| is the integral over s >= 0 of 2/sqrt(pi) exp(-s² |x|²).

    >>> round(linear_mean(1), 12), round(linear_mean(2), 6)
    (1.0, 0.916118)
    """
    if dimension == 1:
        return 1.0

    def at(s: float) -> float:
        own = -np.expm1(-s * s) / (2.0 * s * s)  # E[x exp(-s² x²)]
        other = np.pi**0.5 * erf(s) / (2.0 * s)  # E[exp(-s² x²)]
        return float(own * other ** (dimension - 1))

    return float(dimension**0.5 * 2.0 / np.pi**0.5 * (quad(at, 0.0, 1.0)[0] + quad(at, 1.0, np.inf)[0]))
