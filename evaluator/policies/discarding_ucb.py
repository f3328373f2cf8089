"""DiscardingUCB and DiscardingKLUCB: indices on the pulls whose window has closed (Vernade et al. 2017, Section 6).

N(t-m) pulls of age m or more, S(t-m) the conversions of those pulls, all of which have been revealed;
theta^m = S(t-m) / (tau_m N(t-m)). UCB: theta^m + sqrt(beta / (2 tau_m N(t-m))) as printed; the width of DelayedUCB
tends to sqrt(beta / (2 tau_m² N)) instead, so the printed one is narrower by sqrt(tau_m) in the limit. KL:
max{q in [theta^m, 1]: tau_m N(t-m) d_Pois(theta^m, q) <= beta}. Round robin until every arm has a pull of age m:
m + K rounds.

The paper prints S_k(t-m) for what its text calls the rewards of the first t - m pulls: those, as known at round t, are
taken, since conversions known at round t - m would count open windows as failures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax
from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import computed_index, delayed_index, estimate_rates


class DiscardingState(NamedTuple):
    """Closed pulls and the ring of open ones.

    The ring holds arm and summed conversion value of each of the last m + 1 pulls, shape (m + 1,); it is empty when no
    window closes before the horizon. Of each arm, shape (K,): closed pulls N(t-m), the value S(t-m) of their
    conversions, and the index. Of shape (1,): the arm that is held this round, rounds so far, and pulls whose window
    has closed. `tau` is the share tau_m of the conversions that come within the window.
    """

    actions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    closed: npt.NDArray[np.int64]
    tau: float
    epsilon: float
    kl: bool
    random_ties: bool


@dataclass(frozen=True, kw_only=True)
class _Discarding(Policy):
    among = True
    kl: ClassVar[bool] = False
    unit_rewards = True
    divides_by_delays = True
    needs = (Need.WINDOW, Need.DELAY_CDF)
    note = (
        "Plays in turn for the first m + K rounds: without a window, or with one as long as the horizon, it never "
        "does anything else."
    )
    epsilon: float = parameter(0.0, "beta = (1 + epsilon) log t", at_least=0)
    cdf: Literal["known", "online"] = parameter(
        "known",
        "tau_m as given, or that of the delays seen, which is 1: indices then estimate tau_m theta and need no CDF",
    )
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def __post_init__(self) -> None:
        """Check the parameters; an estimated CDF need not be given."""
        super().__post_init__()
        if self.cdf == "online":
            object.__setattr__(self, "needs", (Need.WINDOW,))

    def start(self, setting: Setting) -> DiscardingState:
        """Return the state before the first round."""
        tau = 1.0
        if self.cdf == "known":
            if setting.delay_cdf is None:
                raise Need.DELAY_CDF.missing(self.name, instead="cdf=online")
            tau = float(setting.delay_cdf(min(setting.window, setting.horizon)))
        pulls, conversions, indices = np.zeros((3, setting.n_actions))
        choice, rounds, closed = np.zeros((3, 1), np.int64)
        held = setting.window + 1 if setting.window < setting.horizon else 0
        return DiscardingState(
            np.zeros(held, np.int64), np.zeros(held), pulls, conversions, indices, choice, rounds, closed, tau,
            self.epsilon, self.kl, self.ties == "random",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DiscardingUCB(_Discarding):
    """UCB on the pulls whose window has closed, the younger ones left out: theta^m + sqrt(beta / (2 tau_m N(t-m)))."""

    name = "discarding-ucb"
    delays = "learns from a display once its window has closed, forgets the others; needs the delay CDF"
    paper = "Vernade et al. 2017, Section 6"


@dataclass(frozen=True, kw_only=True)
class DiscardingKLUCB(_Discarding):
    """KL index on the pulls whose window has closed: max{q in [theta^m, 1]: tau_m N(t-m) d_Pois(theta^m, q) <= beta}.

    1 when theta^m >= 1.
    """

    name = "discarding-klucb"
    delays = "the same, with a Kullback-Leibler index"
    kl = True
    clips_at_zero = True
    paper = "Vernade et al. 2017, Section 6"


@inlinable
def _close_window(state: DiscardingState) -> None:
    """Let the pull whose age has just reached the window count."""
    n, held = state.rounds[0], state.actions.shape[0]
    if held > 0 and n - held >= state.closed[0]:
        # The window is m = held - 1.
        slot = (n - held) % held
        state.closed[0] = n - held + 1
        state.pulls[state.actions[slot]] += 1.0
        state.conversions[state.actions[slot]] += state.values[slot]


@inlinable
def _rank(state: DiscardingState) -> None:
    beta = (1.0 + state.epsilon) * math.log(state.rounds[0] + 1.0)
    for k in range(state.indices.shape[0]):
        if state.pulls[k] == 0.0:
            state.indices[k] = np.inf
        else:
            state.indices[k] = delayed_index(state.conversions[k], state.tau * state.pulls[k], 1.0, beta, state.kl)


def _begin(state: DiscardingState, rng: np.random.Generator) -> None:
    _close_window(state)
    n, held, n_actions = state.rounds[0], state.actions.shape[0], state.indices.shape[0]
    if held == 0 or n < held - 1 + n_actions:
        state.choice[0] = n % n_actions
        return
    _rank(state)
    state.choice[0] = argmax(state.indices, state.random_ties, rng)


def _begin_among(state: DiscardingState, rng: np.random.Generator) -> None:
    # There is no taking turns in sets that differ: arms of which no window has closed come first, at random.
    _close_window(state)
    _rank(state)


def _shown(state: DiscardingState, vectors: npt.NDArray[np.float64], action: int) -> None:
    if state.actions.shape[0] > 0:
        slot = state.rounds[0] % state.actions.shape[0]
        state.actions[slot] = action
        state.values[slot] = 0.0
    state.rounds[0] += 1


def _told(state: DiscardingState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    if state.actions.shape[0] > 0:
        state.values[(state.rounds[0] - 1 - delay) % state.actions.shape[0]] += value


def _estimate(state: DiscardingState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write theta^m of each arm."""
    estimate_rates(state.conversions, state.pulls, values)
    if state.tau > 0.0:
        for k in range(values.shape[0]):
            values[k] /= state.tau


implement(
    DiscardingState,
    begin=_begin,
    shown=_shown,
    told=_told,
    estimate=_estimate,
    begin_among=_begin_among,
    score=computed_index,
    ages=True,
)
