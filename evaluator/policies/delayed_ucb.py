"""DelayedUCB and DelayedKLUCB (Vernade et al. 2017).

S_k conversions seen of arm k, N_k pulls, N~_k effective pulls (`evaluator.engine.kernels.exposure`), theta^_k = S_k /
N~_k, beta = (1 + epsilon) log t. The decision of round t weighs a pull of age a by tau_min(m, a) in the censored model,
by tau_a in the uncensored one.

Without a CDF one is estimated while they play (Appendix D). All arms share the delays, so every conversion seen teaches
the CDF, whatever arm it came from.

*Uncensored*: delays taken as geometric. The n-th delay D moves the mean, mu <- (1 - a) mu + a D, a = n^-gamma, and the
mass still missing of each arm follows by equation 6, O_k <- lambda (O_k + 1{A = k}), lambda = mu / (1 + mu) of that
round; N~_k = N_k - O_k. Delays seen early are short ones; gamma below 1 forgets them. O(K) a round.

*Censored*: delta_a = number of delays seen that are at most a, n_d = number seen; N~_k is the sum over the pulls of
delta_min(m, age) / n_d. It estimates N~_k / tau_m, hence the indices tau_m theta_k. O(distinct delays) a round.

The paper leaves open what holds before the first conversion: here nothing has come due (N~ = 0), so that pulled arms
tie and the tie rule explores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.exposure import Exposure, add_pull, start_exposure
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.indices import (
    NOTHING_DUE,
    Indices,
    convert,
    delayed_index,
    estimate_rates,
    implement_computed,
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


class OnlineGeometric(NamedTuple):
    """State in the uncensored model.

    Of each arm, shape (K,): pulls N, effective pulls N~, missing mass O, conversions S, and index. Of shape (1,): the
    arm that is held this round, rounds so far, rounds for which O has been carried forward (`aged`), the estimate mu of
    the mean delay in rounds, and the number of delays seen (`observed`).
    """

    pulls: npt.NDArray[np.float64]
    effective: npt.NDArray[np.float64]
    missing: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    aged: npt.NDArray[np.int64]
    mean_delay: npt.NDArray[np.float64]
    observed: npt.NDArray[np.int64]
    epsilon: float
    gamma: float
    kl: bool
    random_ties: bool


class OnlineCounts(NamedTuple):
    """State in the censored model.

    Of each arm, shape (K,): pulls N, effective pulls N~, the product n_d N~ (`weighted`), conversions S, and index. Of
    shape (m + 1,): the arm of each of the last pulls, a ring (`history`), the number of delays seen of each length
    (`counts`), and the lengths seen, in the order of their coming (`distinct`). Of shape (1,): the arm that is held
    this round, rounds so far, how many lengths and how many delays were seen (`n_distinct`, `observed`).
    """

    pulls: npt.NDArray[np.float64]
    effective: npt.NDArray[np.float64]
    weighted: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    history: npt.NDArray[np.int64]
    counts: npt.NDArray[np.float64]
    distinct: npt.NDArray[np.int64]
    n_distinct: npt.NDArray[np.int64]
    observed: npt.NDArray[np.int64]
    epsilon: float
    kl: bool
    random_ties: bool


def start_online(
    setting: Setting, *, epsilon: float, gamma: float | None, kl: bool, random_ties: bool
) -> OnlineCounts | OnlineGeometric:
    """Return the state before the first round: uncensored when `gamma` is given."""
    pulls, effective, third, conversions, indices = np.zeros((5, setting.n_actions))
    choice, rounds, observed, aged = np.zeros((4, 1), np.int64)
    both: dict[str, Any] = {
        "pulls": pulls, "effective": effective, "conversions": conversions, "indices": indices, "choice": choice,
        "rounds": rounds, "observed": observed, "epsilon": epsilon, "kl": kl, "random_ties": random_ties,
    }  # fmt: skip
    if gamma is not None:
        return OnlineGeometric(**both, missing=third, aged=aged, mean_delay=np.zeros(1), gamma=gamma)
    held = min(setting.window, setting.horizon) + 1
    return OnlineCounts(
        **both,
        weighted=third,
        history=np.zeros(held, np.int64),
        counts=np.zeros(held),
        distinct=np.zeros(held, np.int64),
        n_distinct=np.zeros(1, np.int64),
    )


@inlinable
def _beta(state: Any) -> float:
    return (1.0 + state.epsilon) * math.log(state.rounds[0] + 1.0)


@inlinable
def _online_index(state: Any, k: int, beta: float) -> float:
    n, effective = state.pulls[k], state.effective[k]
    if n == 0.0:
        return np.inf
    stretch = n / effective if effective > 0.0 else 1.0
    return delayed_index(state.conversions[k], effective, stretch, beta, state.kl)


def _estimate_online(state: Any, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    # N~ of this round's beginning.
    estimate_rates(state.conversions, state.effective, values)


@inlinable
def _begin_geometric(state: OnlineGeometric) -> float:
    """Carry the missing mass forward; return beta."""
    mean = state.mean_delay[0]
    ratio = mean / (1.0 + mean) if state.observed[0] > 0 and state.aged[0] < state.rounds[0] else 1.0
    state.aged[0] = state.rounds[0]
    for k in range(state.missing.shape[0]):
        state.missing[k] *= ratio
        state.effective[k] = max(state.pulls[k] - state.missing[k], 0.0)
    return _beta(state)


def _shown_geometric(state: OnlineGeometric, vectors: npt.NDArray[np.float64], action: int) -> None:
    state.pulls[action] += 1.0
    state.missing[action] += 1.0
    state.rounds[0] += 1


def _told_geometric(
    state: OnlineGeometric, vector: npt.NDArray[np.float64], action: int, delay: int, value: float
) -> None:
    state.conversions[action] += value
    state.observed[0] += 1
    step = float(state.observed[0]) ** -state.gamma
    state.mean_delay[0] = (1.0 - step) * state.mean_delay[0] + step * delay


@inlinable
def _begin_counts(state: OnlineCounts) -> float:
    """Weigh the pulls by the delays seen; return beta."""
    for k in range(state.weighted.shape[0]):
        state.effective[k] = state.weighted[k] / max(state.observed[0], 1)
    return _beta(state)


def _shown_counts(state: OnlineCounts, vectors: npt.NDArray[np.float64], action: int) -> None:
    n, held = state.rounds[0], state.history.shape[0]
    state.history[n % held] = action
    state.pulls[action] += 1.0
    state.rounds[0] = n + 1
    for j in range(state.n_distinct[0]):
        delay = state.distinct[j]
        if delay <= n:
            # The pull that has just reached this age.
            state.weighted[state.history[(n - delay) % held]] += state.counts[delay]


def _told_counts(state: OnlineCounts, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    state.conversions[action] += value
    state.observed[0] += 1
    if state.counts[delay] == 0.0:
        state.distinct[state.n_distinct[0]] = delay
        state.n_distinct[0] += 1
    state.counts[delay] += 1.0
    # One more for every pull of at least this age: for all, less the younger ones.
    for k in range(state.weighted.shape[0]):
        state.weighted[k] += state.pulls[k]
    n, held = state.rounds[0], state.history.shape[0]
    for age in range(delay):
        state.weighted[state.history[(n - 1 - age) % held]] -= 1.0


implement_computed(
    OnlineGeometric, index=_online_index, begin=_begin_geometric, shown=_shown_geometric, told=_told_geometric,
    estimate=_estimate_online, ages=True,
)  # fmt: skip
implement_computed(
    OnlineCounts,
    index=_online_index,
    begin=_begin_counts,
    shown=_shown_counts,
    told=_told_counts,
    estimate=_estimate_online,
)  # fmt: skip
