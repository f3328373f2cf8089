"""Adapt-PatientBandits: PatientBandits with the tail index estimated meanwhile (Manegueu et al. 2020, Section 6.3).

I the most shown arm (among equals the lowest), T~ its pulls, D = floor(T~ / 2), d = floor((c / 2)^(1 / alpha_) D),
m_D the mean over those pulls of I that are at least D rounds old of the value that converted within D, m_d likewise:

    alpha^ = min(-log(m_D - m_d) / log T~, 1/2), 1/2 where m_D <= m_d;
    alpha_t = max(alpha^ - log(24 sqrt(log(2 K T³)) / (c mu_)) / log T~, alpha_).

The paper divides m_D by T~ - D; the number of pulls of that age takes its place, being what makes m_D a mean. With the
printed constants alpha_t stays at its floor alpha_ for every T <= 10^4, so Figures 6 and 7 do not reproduce.

D grows with the largest number of pulls, by at most one a round, whichever arm that is; a pull is old enough from the
round its age reaches D on, and stays so. Sums of every arm are therefore kept up in O(1) a display and a conversion,
and O(K) when D grows: a conversion later than D waits, by arm and delay, until D has reached it. Memory is
O(K min(m, T / 2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.indices import implement_computed, mean_conversions
from evaluator.policies.patient_bandits import log_term, patient_index


class AdaptPatientState(NamedTuple):
    """Sums of PatientBandits, and those behind the tail index.

    Of each arm, shape (K,): pulls T_k, `conversions` seen, and `indices`; of the round, shape (1,): the `choice` held,
    `rounds` so far, and the estimate `alpha` of the tail index.

    Rings of shape (D + 1,), which reach back to age D: `history`, the arm of each display, and `seen`, what it has
    shown so far. `limits` are the ages D and d in rounds, and in this order come `old`, each arm's pulls that are at
    least so old, `within`, the value of these that converted within the age, both of shape (2, K), and `waiting`, the
    value that converted later, by arm and delay, shape (2, K, longest D + 1).

    `log_term` is 2 log(2 K T³), `share` the ratio d / D before rounding down, and `margin`
    log(24 sqrt(log(2 K T³)) / (c mu_)).
    """

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    alpha: npt.NDArray[np.float64]
    history: npt.NDArray[np.int64]
    seen: npt.NDArray[np.float64]
    limits: npt.NDArray[np.int64]
    old: npt.NDArray[np.float64]
    within: npt.NDArray[np.float64]
    waiting: npt.NDArray[np.float64]
    log_term: float
    share: float
    margin: float
    alpha_min: float
    width_scale: float
    random_ties: bool


@dataclass(frozen=True, kw_only=True)
class AdaptPatientBandits(Policy):
    """PatientBandits that estimates a lower bound on the delays' tail index from its most shown arm."""

    name = "adapt-patient-bandits"
    among = True
    delays = "the same, with the tail index estimated meanwhile"
    unit_rewards = True
    takes_costs = takes_refunds = False
    why_not_negative = "it knows a lower bound above 0 on every arm's mean (mu_min)"
    paper = "Manegueu et al. 2020, Algorithm 2"
    needs = (Need.HORIZON,)
    note = (
        "T is `horizon`; without it a number of rounds that the replay reaches all but surely. With the constants of "
        "the paper the estimate stays at alpha_min for every T <= 10,000."
    )
    c: float = parameter(0.7, "c a^-alpha <= 1 - tau_a <= a^-alpha for every arm", above=0, at_most=1)
    mu_min: float = parameter(0.6, "mu_ of the paper: lower bound on every arm's mean", above=0, at_most=1)
    alpha_min: float = parameter(0.1, "alpha_ of the paper: lower bound on the tail index", above=0)
    width_scale: float = parameter(1.0, "factor of the confidence width; 1 as printed", at_least=0)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def start(self, setting: Setting) -> AdaptPatientState:
        """Return the state before the first round."""
        term = log_term(setting, policy=self.name)
        n_actions, most = setting.n_actions, setting.horizon // 2
        pulls, conversions, indices = np.zeros((3, n_actions))
        choice, rounds, limits = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(2, np.int64)
        old, within = np.zeros((2, 2, n_actions))
        waiting = np.zeros((2, n_actions, min(setting.window, most) + 1))
        share = (self.c / 2.0) ** (1.0 / self.alpha_min)
        margin = math.log(24.0 * math.sqrt(term / 2.0) / (self.c * self.mu_min))
        return AdaptPatientState(
            pulls, conversions, indices, choice, rounds, np.array([self.alpha_min]), np.zeros(most + 2, np.int64),
            np.zeros(most + 2), limits, old, within, waiting, term, share, margin, self.alpha_min, self.width_scale,
            self.ties == "random",
        )  # fmt: skip


@inlinable
def _tail_index(state: AdaptPatientState) -> float:
    """Return alpha_t; its floor until some arm has two pulls."""
    most = np.argmax(state.pulls)
    if state.pulls[most] < 2.0:
        return state.alpha_min
    log_pulls = math.log(state.pulls[most])
    gain = state.within[0, most] / state.old[0, most] - state.within[1, most] / state.old[1, most]
    estimate = min(-math.log(gain) / log_pulls, 0.5) if gain > 0.0 else 0.5
    return max(estimate - state.margin / log_pulls, state.alpha_min)


@inlinable
def _begin(state: AdaptPatientState) -> float:
    """Estimate the tail index; return the factor of the round's widths."""
    state.alpha[0] = _tail_index(state)
    return state.width_scale * math.sqrt(state.log_term)


@inlinable
def _index(state: AdaptPatientState, k: int, width: float) -> float:
    n = state.pulls[k]
    # The first 2 K rounds show every arm twice.
    return patient_index(state.conversions[k], n, state.alpha[0], width, 1.0) if n >= 2.0 else np.inf


@inlinable
def _grow_older(state: AdaptPatientState, i: int, limit: int) -> None:
    """Move to the next round, in which the limit i (0: D, 1: d) is `limit`: its own, or one more than before."""
    if limit > state.limits[i]:
        state.limits[i] = limit
        # Pulls are one round older and so is the limit: the same ones are old enough, and a longer delay counts.
        if limit < state.waiting.shape[2]:
            for k in range(state.pulls.shape[0]):
                state.within[i, k] += state.waiting[i, k, limit]
        return
    reached = state.rounds[0] - 1 - limit
    if reached >= 0:
        # Whatever this pull has shown came within its age, which is the limit.
        slot = reached % state.history.shape[0]
        state.old[i, state.history[slot]] += 1.0
        state.within[i, state.history[slot]] += state.seen[slot]


def _shown(state: AdaptPatientState, vectors: npt.NDArray[np.float64], action: int) -> None:
    slot = state.rounds[0] % state.history.shape[0]
    state.history[slot] = action
    state.seen[slot] = 0.0
    state.pulls[action] += 1.0
    state.rounds[0] += 1
    longest = int(np.max(state.pulls)) // 2
    _grow_older(state, 0, longest)
    _grow_older(state, 1, math.floor(state.share * longest))


def _told(state: AdaptPatientState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    state.conversions[action] += value
    # The delay is the age: it is at least the limit exactly when the pull is old enough.
    if delay <= state.limits[0]:
        state.seen[(state.rounds[0] - 1 - delay) % state.history.shape[0]] += value
    for i in range(2):
        if delay == state.limits[i]:
            state.within[i, action] += value
        elif delay > state.limits[i] and delay < state.waiting.shape[2]:
            state.waiting[i, action, delay] += value


implement_computed(AdaptPatientState, index=_index, begin=_begin, shown=_shown, told=_told, estimate=mean_conversions)
