"""Beta Thompson sampling: delay-naive, and on delay-corrected counts.

A display that earns r of [0, 1] counts as r successes and 1 - r failures. Agrawal and Goyal draw one or the other with
probability r instead (their Algorithm 2), which has the same mean; rewards of 0 and 1 are told alike by both.

*Naive*: a conversion not yet seen counts as a failure. *Delayed*: with a known delay CDF a pull of age a has shown its
conversion, if it has one, with probability tau_min(m, a). Counting it as that share of a trial (N~_k of
`evaluator.engine.kernels.exposure`) makes S_k / N~_k the estimate of Vernade et al. 2017 and
Beta(successes + S_k, failures + max(N~_k - S_k, 0)) a posterior of that mean. It is a heuristic: the likelihood of a
pull without a conversion is 1 - theta tau, of which (1 - theta)^tau is the approximation used. No delays and no window
give back `thompson`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax
from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.exposure import Exposure, add_pull, start_exposure
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import count_conversion, count_pull


class ThompsonState(NamedTuple):
    """Pulls and conversions of each arm, shape (K,), the round's posterior draws, and the held choice, shape (1,)."""

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]


class DelayedThompsonState(NamedTuple):
    """Effective pulls; conversions and the round's draws, shape (K,); held choice, shape (1,); prior, shape (2,)."""

    exposure: Exposure
    conversions: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _BetaThompson(Policy):
    unit_rewards = True
    clips_at_zero = True
    posterior = True
    among = True
    successes: float = parameter(1.0, "first parameter of the Beta prior", above=0)
    failures: float = parameter(1.0, "second parameter of the Beta prior", above=0)


@dataclass(frozen=True, kw_only=True)
class BetaThompson(_BetaThompson):
    """Thompson sampling with Beta posteriors on what has been seen, unseen conversions counted as failures."""

    name = "thompson"
    delays = "naive"
    paper = "Agrawal, Goyal 2012, Algorithm 1"

    def start(self, setting: Setting) -> ThompsonState:
        """Return the state before the first round."""
        pulls, conversions, draws = np.zeros((3, setting.n_actions))
        prior = np.array([self.successes, self.failures])
        return ThompsonState(pulls, conversions, draws, np.zeros(1, np.int64), prior)


@dataclass(frozen=True, kw_only=True)
class DelayedThompson(_BetaThompson):
    """Thompson sampling with Beta posteriors on delay-corrected counts: Beta(1 + S, 1 + max(N~ - S, 0))."""

    name = "delayed-thompson"
    delays = "counts a display as the chance of having seen its conversion; needs the delay CDF"
    divides_by_delays = True
    paper = "N~ of Vernade et al. 2017, Section 5.1, in Agrawal, Goyal 2012, Algorithm 1; a heuristic of neither"
    needs = (Need.DELAY_CDF,)

    def start(self, setting: Setting) -> DelayedThompsonState:
        """Return the state before the first round."""
        if setting.delay_cdf is None:
            raise Need.DELAY_CDF.missing(self.name)
        exposure = start_exposure(setting.n_actions, setting.window, setting.horizon, setting.delay_cdf)
        conversions, draws = np.zeros((2, setting.n_actions))
        prior = np.array([self.successes, self.failures])
        return DelayedThompsonState(exposure, conversions, draws, np.zeros(1, np.int64), prior)


def _implement(state: type, counts: Callable[..., tuple[float, float]], **own: Any) -> None:
    """Register a state of which ``counts(state, k)`` are the successes and the failures of arm k."""

    def begin(state: Any, rng: np.random.Generator) -> None:
        for k in range(state.draws.shape[0]):
            successes, failures = counts(state, k)
            state.draws[k] = rng.beta(state.prior[0] + successes, state.prior[1] + failures)
        state.choice[0] = argmax(state.draws, True, rng)

    implement(state, begin=begin, score=_score, told=count_conversion, **own)


def _score(state: Any, vectors: npt.NDArray[np.floating], action: int) -> float:
    return state.draws[action]


@inlinable
def _successes(conversions: float, pulls: float) -> float:
    # No display earns more than 1, unless it is said wrongly what the most is.
    return min(max(conversions, 0.0), pulls)


@inlinable
def _counts(state: ThompsonState, k: int) -> tuple[float, float]:
    successes = _successes(state.conversions[k], state.pulls[k])
    return successes, state.pulls[k] - successes


@inlinable
def _corrected_counts(state: DelayedThompsonState, k: int) -> tuple[float, float]:
    successes = _successes(state.conversions[k], state.exposure.pulls[k])
    return successes, max(state.exposure.effective[k] - successes, 0.0)


# Estimates are the means of the posteriors.
def _estimate(state: ThompsonState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    for k in range(values.shape[0]):
        successes, _ = _counts(state, k)
        values[k] = (state.prior[0] + successes) / (state.prior[0] + state.prior[1] + state.pulls[k])


def _corrected_estimate(
    state: DelayedThompsonState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]
) -> None:
    for k in range(values.shape[0]):
        successes, failures = _corrected_counts(state, k)
        values[k] = (state.prior[0] + successes) / (state.prior[0] + state.prior[1] + successes + failures)


def _add_pull(state: DelayedThompsonState, vectors: npt.NDArray[np.floating], action: int) -> None:
    add_pull(state.exposure, action)


_implement(ThompsonState, _counts, shown=count_pull, estimate=_estimate)
_implement(DelayedThompsonState, _corrected_counts, shown=_add_pull, estimate=_corrected_estimate)
