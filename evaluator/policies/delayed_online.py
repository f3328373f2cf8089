"""DelayedUCB and DelayedKLUCB with a delay CDF that is estimated while they play (Vernade et al. 2017, Appendix D).

All arms share the delays, so every conversion seen teaches the CDF, whatever arm it came from.

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Setting
from evaluator.policies.indices import delayed_index, estimate_rates, implement_computed


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
def _index(state: Any, k: int, beta: float) -> float:
    n, effective = state.pulls[k], state.effective[k]
    if n == 0.0:
        return np.inf
    stretch = n / effective if effective > 0.0 else 1.0
    return delayed_index(state.conversions[k], effective, stretch, beta, state.kl)


def _estimate(state: Any, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
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
    OnlineGeometric, index=_index, begin=_begin_geometric, shown=_shown_geometric, told=_told_geometric,
    estimate=_estimate, ages=True,
)  # fmt: skip
implement_computed(
    OnlineCounts, index=_index, begin=_begin_counts, shown=_shown_counts, told=_told_counts, estimate=_estimate
)
