"""Delay-naive linear policies: a conversion not yet seen counts as a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.ridge import LEAST_RIDGE, add_display, add_reward, block, estimate_rewards, row
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.optimism import Optimist, begin_round, best, is_best, start_optimist, upper_bound
from evaluator.policies.sampling import (
    PosteriorSampler,
    add_sampled_display,
    begin_among,
    best_sampled,
    draw_theta,
    is_best_sampled,
    score_among,
    start_sampler,
)


class LinUCBState(NamedTuple):
    """Regression and scores, and the constant width."""

    optimist: Optimist
    alpha: float


@dataclass(frozen=True, kw_only=True)
class LinUCB(Policy):
    """LinUCB on what has been seen: <a, theta^> + alpha ||a|| in V⁻¹, unseen conversions counted as failures."""

    name = "linucb"
    among = True
    delays = "naive"
    contextual = True
    unit_rewards = True
    paper = "Li et al. 2010, Algorithm 1 (disjoint); Chu et al. 2011 (shared)"
    alpha: float = parameter(1.0, "width of the confidence bound", at_least=0)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> LinUCBState:
        """Return the state before the first round."""
        return LinUCBState(start_optimist(setting, ridge=self.ridge, squared=False, ties=self.ties), self.alpha)


def _prepare(state: LinUCBState, rng: np.random.Generator) -> None:
    begin_round(state.optimist, state.alpha, rng)


def _choose(state: LinUCBState, vectors: npt.NDArray[np.floating]) -> int:
    return best(state.optimist, vectors)


def _wins(state: LinUCBState, vectors: npt.NDArray[np.floating], action: int, n_actions: int) -> bool:
    return is_best(state.optimist, vectors, action)


def _score(state: LinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return upper_bound(state.optimist, vectors, action)


def _displayed(state: LinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    ridge = state.optimist.ridge
    add_display(ridge, block(ridge, action), vectors, row(vectors, action))


def _converted(state: LinUCBState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    ridge = state.optimist.ridge
    add_reward(ridge, block(ridge, action), vector, value)


def _estimates(state: LinUCBState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    estimate_rewards(state.optimist.ridge, vectors, values)


implement(
    LinUCBState,
    prepare=_prepare,
    choose=_choose,
    wins=_wins,
    displayed=_displayed,
    converted=_converted,
    estimates=_estimates,
    score=_score,
)


class LinTSState(NamedTuple):
    """Posterior, and the constant scale of its draws."""

    sampler: PosteriorSampler
    scale: float


@dataclass(frozen=True, kw_only=True)
class LinTS(Policy):
    """Linear Thompson sampling on what has been seen: theta~ from N(theta^, scale² V⁻¹), one draw a round."""

    name = "lints"
    among = True
    delays = "naive"
    contextual = True
    unit_rewards = True
    posterior = True
    paper = "Agrawal, Goyal 2013, Algorithm 1"
    scale: float = parameter(0.5, "standard deviation of the draws in units of V⁻¹", at_least=0)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)

    def start(self, setting: Setting) -> LinTSState:
        """Return the state before the first round."""
        return LinTSState(start_sampler(setting, self.ridge), self.scale)


def _prepare_ts(state: LinTSState, rng: np.random.Generator) -> None:
    draw_theta(state.sampler, state.scale, rng)


def _begin_among_ts(state: LinTSState, rng: np.random.Generator) -> None:
    begin_among(state.sampler, state.scale, rng)


def _choose_ts(state: LinTSState, vectors: npt.NDArray[np.floating]) -> int:
    return best_sampled(state.sampler, vectors)


def _wins_ts(state: LinTSState, vectors: npt.NDArray[np.floating], action: int, n_actions: int) -> bool:
    return is_best_sampled(state.sampler, vectors, action)


def _score_ts(state: LinTSState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return score_among(state.sampler, vectors, action)


def _displayed_ts(state: LinTSState, vectors: npt.NDArray[np.floating], action: int) -> None:
    add_sampled_display(state.sampler, vectors, action)


def _converted_ts(state: LinTSState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    ridge = state.sampler.ridge
    add_reward(ridge, block(ridge, action), vector, value)


def _estimates_ts(state: LinTSState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    estimate_rewards(state.sampler.ridge, vectors, values)


implement(
    LinTSState,
    prepare=_prepare_ts,
    choose=_choose_ts,
    wins=_wins_ts,
    displayed=_displayed_ts,
    converted=_converted_ts,
    estimates=_estimates_ts,
    begin_among=_begin_among_ts,
    score=_score_ts,
)
