"""What somebody who adds a policy writes: one file. test_a_new_policy gives it its line in the registry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement


class LeaderState(NamedTuple):
    """Rounds and rewards of each action, shape (K,), what a mean of none is, and the held choice, shape (1,)."""

    pulls: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    unseen: float
    choice: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Leader(Policy):
    """The action with the largest mean of the rewards seen so far, the lowest index among equals."""

    name = "leader"
    delays = "naive"
    unit_rewards = True
    paper = "Robbins 1952"
    unseen: Literal["first", "last"] = parameter("first", "whether actions never shown come before or after the others")

    def start(self, setting: Setting) -> LeaderState:
        """Return the state before the first round."""
        pulls, rewards = np.zeros((2, setting.n_actions))
        return LeaderState(pulls, rewards, math.inf if self.unseen == "first" else -1.0, np.zeros(1, np.int64))


def _begin(state: LeaderState, rng: np.random.Generator) -> None:
    best = 0
    for k in range(len(state.pulls)):
        if _mean(state, k) > _mean(state, best):
            best = k
    state.choice[0] = best


@inlinable
def _mean(state: LeaderState, k: int) -> float:
    return state.rewards[k] / state.pulls[k] if state.pulls[k] > 0.0 else state.unseen


def _shown(state: LeaderState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.pulls[action] += 1.0


def _told(state: LeaderState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    state.rewards[action] += value


def _estimate(state: LeaderState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    for k in range(len(values)):
        values[k] = state.rewards[k] / max(state.pulls[k], 1.0)


implement(LeaderState, begin=_begin, shown=_shown, told=_told, estimate=_estimate)
