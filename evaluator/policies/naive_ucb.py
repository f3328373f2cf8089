"""Delay-naive index policies: a conversion not yet seen counts as a failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.indices import (
    Indices,
    bernoulli_index,
    bernoulli_slope,
    convert,
    implement_index,
    mean_conversions,
    start_indices,
    touch,
)


class NaiveState(NamedTuple):
    """Pulls N and conversions S of each arm, shape (K,), their indices, and the held choice, shape (1,)."""

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: Indices
    choice: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    exploration: float
    kl: bool


@dataclass(frozen=True, kw_only=True)
class UCB1(Policy):
    """UCB1 on what has been seen: mean + sqrt(exploration · log t / N), unseen conversions counted as failures."""

    name = "ucb1"
    among = True
    delays = "naive: not yet seen is a failure"
    unit_rewards = True
    paper = "Auer, Cesa-Bianchi, Fischer 2002, Figure 1"
    exploration: float = parameter(2.0, "factor of log t in the width", at_least=0)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def start(self, setting: Setting) -> NaiveState:
        """Return the state before the first round."""
        return _start(setting, self.exploration, kl=False, ties=self.ties)


@dataclass(frozen=True, kw_only=True)
class KLUCB(Policy):
    """KL-UCB on what has been seen: max{q: N d(mean, q) <= log t + c log log t}, d the Bernoulli divergence."""

    name = "klucb"
    among = True
    delays = "naive"
    unit_rewards = True
    clips_at_zero = True
    paper = "Garivier, Cappe 2011, Algorithm 1"
    c: float = parameter(0.0, "factor of log log t; 0 is what the authors run, 3 what they prove", at_least=0)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def start(self, setting: Setting) -> NaiveState:
        """Return the state before the first round."""
        return _start(setting, self.c, kl=True, ties=self.ties)


def _start(setting: Setting, exploration: float, *, kl: bool, ties: str) -> NaiveState:
    arms = np.zeros(setting.n_actions)
    choice, rounds = np.zeros(1, np.int64), np.zeros(1, np.int64)
    indices = start_indices(setting.n_actions, ties=ties)
    return NaiveState(arms, arms.copy(), indices, choice, rounds, exploration, kl)


def _index(state: NaiveState, k: int, log_t: float) -> tuple[float, float]:
    n = state.pulls[k]
    if n == 0.0:
        return np.inf, 0.0
    mean = min(state.conversions[k] / n, 1.0)
    if state.kl:
        budget, growth = log_t, 1.0
        if state.exploration > 0.0:
            budget += state.exploration * math.log(max(log_t, 1.0))
            growth += state.exploration / max(log_t, 1.0)
        mean = max(mean, 0.0)
        q = bernoulli_index(mean, budget / n)
        return q, bernoulli_slope(mean, q) * growth / n
    width = math.sqrt(state.exploration * log_t / n)
    return mean + width, 0.5 * width / log_t


@inlinable
def _weight(state: NaiveState, k: int) -> float:
    return state.pulls[k]


@inlinable
def _log_t(state: NaiveState) -> float:
    return math.log(state.rounds[0] + 1.0)


def _shown(state: NaiveState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.pulls[action] += 1.0
    state.rounds[0] += 1
    touch(state.indices, action)


def _told(state: NaiveState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    state.conversions[action] += value
    convert(state.indices, action, value)


implement_index(
    NaiveState, index=_index, weight=_weight, log_t=_log_t, shown=_shown, told=_told, estimate=mean_conversions
)
