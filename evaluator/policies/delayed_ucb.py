"""DelayedUCB and DelayedKLUCB (Vernade et al. 2017).

S_k conversions seen of arm k, N_k pulls, N~_k effective pulls (`evaluator.engine.kernels.exposure`), theta^_k = S_k /
N~_k, beta = (1 + epsilon) log t. The decision of round t weighs a pull of age a by tau_min(m, a) in the censored model,
by tau_a in the uncensored one. A CDF that is estimated online: `evaluator.policies.delayed_online`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.exposure import Exposure, add_pull, start_exposure
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.delayed_online import OnlineCounts, OnlineGeometric, start_online
from evaluator.policies.indices import (
    NOTHING_DUE,
    Indices,
    convert,
    estimate_rates,
    implement_index,
    poisson_index,
    poisson_slope,
    start_indices,
    touch,
)
from evaluator.units import NO_WINDOW


class DelayedState(NamedTuple):
    """Effective pulls, conversions and indices of each arm, shape (K,), and the held choice, shape (1,)."""

    exposure: Exposure
    conversions: npt.NDArray[np.float64]
    indices: Indices
    choice: npt.NDArray[np.int64]
    epsilon: float
    kl: bool


@dataclass(frozen=True, kw_only=True)
class _Delayed(Policy):
    among = True
    kl: ClassVar[bool] = False
    unit_rewards = True
    divides_by_delays = True
    needs = (Need.DELAY_CDF,)
    note = (
        "Under a window the uncensored model counts conversions that the window has cut off as failures; the paper "
        "uses it without one."
    )
    epsilon: float = parameter(0.0, "beta = (1 + epsilon) log t", at_least=0)
    model: Literal["censored", "uncensored"] = parameter(
        "censored", "weigh a pull of age a by tau_min(m, a), or by tau_a as if nothing were cut off"
    )
    cdf: Literal["known", "online"] = parameter(
        "known", "tau as given, or estimated from the delays seen: geometric if uncensored, by their counts if censored"
    )
    gamma: float = parameter(
        0.75, "online, uncensored: the n-th delay moves the mean delay by n^-gamma of the way", at_least=0.5, at_most=1
    )
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def __post_init__(self) -> None:
        """Check the parameters; an estimated CDF need not be given."""
        super().__post_init__()
        if self.cdf == "online":
            object.__setattr__(self, "needs", ())

    def start(self, setting: Setting) -> DelayedState | OnlineCounts | OnlineGeometric:
        """Return the state before the first round."""
        uncensored, kl = self.model == "uncensored", self.kl
        if self.cdf == "online":
            gamma, random_ties = self.gamma if uncensored else None, self.ties == "random"
            return start_online(setting, epsilon=self.epsilon, gamma=gamma, kl=kl, random_ties=random_ties)
        if setting.delay_cdf is None:
            raise Need.DELAY_CDF.missing(self.name)
        window = NO_WINDOW if uncensored else setting.window
        exposure = start_exposure(setting.n_actions, window, setting.horizon, setting.delay_cdf)
        indices = start_indices(setting.n_actions, ties=self.ties)
        return DelayedState(exposure, np.zeros(setting.n_actions), indices, np.zeros(1, np.int64), self.epsilon, kl)


@dataclass(frozen=True, kw_only=True)
class DelayedUCB(_Delayed):
    """UCB on the delay-corrected rate: theta^ + sqrt(N / N~) sqrt(beta / (2 N~)).

    The paper does not give epsilon for its figures; 0 fits them.
    """

    name = "delayed-ucb"
    delays = "divides by the chance of having seen a conversion; needs the delay CDF, or estimates it (`cdf=online`)"
    paper = "Vernade et al. 2017, Section 5.2, Appendix D (online)"


@dataclass(frozen=True, kw_only=True)
class DelayedKLUCB(_Delayed):
    """KL index on the delay-corrected rate: max{q in [theta^, 1]: N~ d_Pois(theta^, q) <= beta}; 1 when theta^ >= 1."""

    name = "delayed-klucb"
    delays = "the same, with a Kullback-Leibler index"
    kl = True
    clips_at_zero = True
    paper = "Vernade et al. 2017, Section 5.3, Appendix D (online)"


def _index(state: DelayedState, k: int, log_t: float) -> tuple[float, float]:
    n = state.exposure.pulls[k]
    if n == 0.0:
        return np.inf, 0.0
    effective = state.exposure.effective[k]
    if effective <= 0.0:
        return (1.0 if state.kl else NOTHING_DUE), 0.0
    growth = 1.0 + state.epsilon
    beta = growth * log_t
    mean = state.conversions[k] / effective
    if state.kl:
        mean = max(mean, 0.0)
        q = poisson_index(mean, beta / effective)
        return q, poisson_slope(mean, q) * growth / effective
    width = math.sqrt(n / effective) * math.sqrt(beta / (2.0 * effective))
    return mean + width, 0.5 * width / log_t


@inlinable
def _weight(state: DelayedState, k: int) -> float:
    return state.exposure.effective[k]


@inlinable
def _log_t(state: DelayedState) -> float:
    return math.log(state.exposure.rounds[0] + 1.0)


@inlinable
def _begin(state: DelayedState, rng: np.random.Generator) -> None:
    for k in range(state.conversions.shape[0]):
        if state.conversions[k] < 0.0:  # its mean rises as N~ grows
            touch(state.indices, k)


def _shown(state: DelayedState, vectors: npt.NDArray[np.floating], action: int) -> None:
    add_pull(state.exposure, action)
    touch(state.indices, action)


def _told(state: DelayedState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    state.conversions[action] += value
    convert(state.indices, action, value)


def _estimate(state: DelayedState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    estimate_rates(state.conversions, state.exposure.effective, values)


implement_index(
    DelayedState, index=_index, weight=_weight, log_t=_log_t, begin=_begin, shown=_shown, told=_told, estimate=_estimate
)
