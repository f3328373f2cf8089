"""Beta Thompson sampling, delay-naive: a conversion not yet seen counts as a failure.

A display that earns r of [0, 1] counts as r successes and 1 - r failures. Agrawal and Goyal draw one or the other with
probability r instead (their Algorithm 2), which has the same mean; rewards of 0 and 1 are told alike by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import count_conversion, count_pull


class ThompsonState(NamedTuple):
    """Pulls and conversions of each arm, shape (K,), the round's posterior draws, and the held choice, shape (1,)."""

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BetaThompson(Policy):
    """Thompson sampling with Beta posteriors on what has been seen, unseen conversions counted as failures."""

    name = "thompson"
    among = True
    delays = "naive"
    unit_rewards = True
    clips_at_zero = True
    posterior = True
    paper = "Agrawal, Goyal 2012, Algorithm 1"
    successes: float = parameter(1.0, "first parameter of the Beta prior", above=0)
    failures: float = parameter(1.0, "second parameter of the Beta prior", above=0)

    def start(self, setting: Setting) -> ThompsonState:
        """Return the state before the first round."""
        arms = np.zeros(setting.n_actions)
        prior = np.array([self.successes, self.failures])
        return ThompsonState(arms, arms.copy(), arms.copy(), np.zeros(1, np.int64), prior)


def _begin(state: ThompsonState, rng: np.random.Generator) -> None:
    for k in range(state.draws.shape[0]):
        # No display earns more than 1, unless it is said wrongly what the most is.
        successes = min(max(state.conversions[k], 0.0), state.pulls[k])
        state.draws[k] = rng.beta(state.prior[0] + successes, state.prior[1] + (state.pulls[k] - successes))
    state.choice[0] = argmax(state.draws, True, rng)


def _score(state: ThompsonState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return state.draws[action]


def _estimate(state: ThompsonState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write the mean of each posterior."""
    for k in range(values.shape[0]):
        successes = min(max(state.conversions[k], 0.0), state.pulls[k])
        values[k] = (state.prior[0] + successes) / (state.prior[0] + state.prior[1] + state.pulls[k])


implement(ThompsonState, begin=_begin, score=_score, shown=count_pull, told=count_conversion, estimate=_estimate)
