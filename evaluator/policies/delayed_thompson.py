"""Beta Thompson sampling on delay-corrected counts.

With a known delay CDF a pull of age a has shown its conversion, if it has one, with probability tau_min(m, a). Counting
it as that share of a trial (N~_k of `evaluator.engine.kernels.exposure`) makes S_k / N~_k the estimate of Vernade et
al. 2017 and Beta(successes + S_k, failures + max(N~_k - S_k, 0)) a posterior of that mean. It is a heuristic: the
likelihood of a pull without a conversion is 1 - theta tau, of which (1 - theta)^tau is the approximation used. No
delays and no window give back `thompson`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax
from evaluator.engine.kernels.exposure import Exposure, add_pull, start_exposure
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import count_conversion


class DelayedThompsonState(NamedTuple):
    """Effective pulls; conversions and the round's draws, shape (K,); held choice, shape (1,); prior, shape (2,)."""

    exposure: Exposure
    conversions: npt.NDArray[np.float64]
    draws: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class DelayedThompson(Policy):
    """Thompson sampling with Beta posteriors on delay-corrected counts: Beta(1 + S, 1 + max(N~ - S, 0))."""

    name = "delayed-thompson"
    among = True
    delays = "counts a display as the chance of having seen its conversion; needs the delay CDF"
    unit_rewards = True
    clips_at_zero = True
    divides_by_delays = True
    paper = "N~ of Vernade et al. 2017, Section 5.1, in Agrawal, Goyal 2012, Algorithm 1; a heuristic of neither"
    posterior = True
    needs = (Need.DELAY_CDF,)
    successes: float = parameter(1.0, "first parameter of the Beta prior", above=0)
    failures: float = parameter(1.0, "second parameter of the Beta prior", above=0)

    def start(self, setting: Setting) -> DelayedThompsonState:
        """Return the state before the first round."""
        if setting.delay_cdf is None:
            raise Need.DELAY_CDF.missing(self.name)
        conversions, draws = np.zeros((2, setting.n_actions))
        return DelayedThompsonState(
            exposure=start_exposure(setting.n_actions, setting.window, setting.horizon, setting.delay_cdf),
            conversions=conversions,
            draws=draws,
            choice=np.zeros(1, np.int64),
            prior=np.array([self.successes, self.failures]),
        )


def _begin(state: DelayedThompsonState, rng: np.random.Generator) -> None:
    for k in range(state.draws.shape[0]):
        # No display earns more than 1, unless it is said wrongly what the most is.
        successes = min(max(state.conversions[k], 0.0), state.exposure.pulls[k])
        failures = max(state.exposure.effective[k] - successes, 0.0)
        state.draws[k] = rng.beta(state.prior[0] + successes, state.prior[1] + failures)
    state.choice[0] = argmax(state.draws, True, rng)


def _score(state: DelayedThompsonState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return state.draws[action]


def _shown(state: DelayedThompsonState, vectors: npt.NDArray[np.float64], action: int) -> None:
    add_pull(state.exposure, action)


def _estimate(state: DelayedThompsonState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write the mean of each posterior."""
    for k in range(values.shape[0]):
        successes = min(max(state.conversions[k], 0.0), state.exposure.pulls[k])
        failures = max(state.exposure.effective[k] - successes, 0.0)
        values[k] = (state.prior[0] + successes) / (state.prior[0] + state.prior[1] + successes + failures)


implement(
    DelayedThompsonState,
    begin=_begin,
    shown=_shown,
    told=count_conversion,
    estimate=_estimate,
    score=_score,
)
