"""Improved UCB: arms are eliminated in phases of known length (Auer and Ortner 2010, Figure 1); delay-naive.

Phase i = 0, 1, ..., floor(log2(T / e) / 2) with tolerance e_i = 2^-i: every active arm is shown until it has
n_i = ceil(2 log(T e_i²) / e_i²) displays, one arm after the other; then the arms with
mean + w < max(mean - w), w = sqrt(log(T e_i²) / (2 n_i)), are eliminated. The last active arm is shown to the end. A
conversion not yet seen when a phase ends counts as a failure there; it counts for its arm in later phases.

Should more than one arm outlast the last phase, the paper is silent: the one with the largest mean is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import NO_ESTIMATE, count_conversion, count_pull
from evaluator.units import NO_WINDOW


class ImprovedUCBState(NamedTuple):
    """Pulls, conversions and activity of each arm, shape (K,), phase and held choice, shape (1,), T and last phase."""

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    active: npt.NDArray[np.bool_]
    phase: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]
    horizon: float
    last_phase: int


@dataclass(frozen=True, kw_only=True)
class ImprovedUCB(Policy):
    """Elimination of arms in phases of known length, unseen conversions counted as failures."""

    name = "improved-ucb"
    delays = "naive; eliminates arms in phases; needs the horizon"
    unit_rewards = True
    paper = "Auer, Ortner 2010, Figure 1"
    needs = (Need.HORIZON,)
    note = "T is `horizon`; without it a number of rounds that the replay reaches all but surely."

    def start(self, setting: Setting) -> ImprovedUCBState:
        """Return the state before the first round."""
        if setting.horizon == NO_WINDOW:
            raise Need.HORIZON.missing(self.name)
        horizon = float(max(setting.horizon, 1))
        pulls, conversions = np.zeros((2, setting.n_actions))
        phase, choice = np.zeros((2, 1), np.int64)
        last_phase = math.floor(0.5 * math.log2(horizon / math.e))
        active = np.ones(setting.n_actions, np.bool_)
        return ImprovedUCBState(pulls, conversions, active, phase, choice, horizon, last_phase)


@inlinable
def _eliminate(state: ImprovedUCBState, log_term: float, length: float) -> None:
    width = math.sqrt(log_term / (2.0 * length))
    best = -np.inf
    for k in range(state.pulls.shape[0]):
        if state.active[k]:
            best = max(best, state.conversions[k] / state.pulls[k])
    for k in range(state.pulls.shape[0]):
        if state.active[k] and state.conversions[k] / state.pulls[k] + width < best - width:
            state.active[k] = False


@inlinable
def _leader(state: ImprovedUCBState) -> int:
    """Return the active arm with the largest mean; the lowest index among equals."""
    leader, best = 0, -np.inf
    for k in range(state.pulls.shape[0]):
        if state.active[k]:
            mean = state.conversions[k] / max(state.pulls[k], 1.0)
            if mean > best:
                leader, best = k, mean
    return leader


def _begin(state: ImprovedUCBState, rng: np.random.Generator) -> None:
    while state.phase[0] <= state.last_phase and np.sum(state.active) > 1:
        tolerance = 2.0 ** -float(state.phase[0])
        log_term = math.log(state.horizon * tolerance * tolerance)
        length = math.ceil(2.0 * log_term / (tolerance * tolerance))
        for k in range(state.pulls.shape[0]):
            if state.active[k] and state.pulls[k] < length:
                state.choice[0] = k
                return
        _eliminate(state, log_term, length)
        state.phase[0] += 1
    state.choice[0] = _leader(state)


def _estimate(state: ImprovedUCBState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write the mean of each active arm; what was eliminated stays so."""
    for k in range(values.shape[0]):
        known = state.active[k] and state.pulls[k] > 0.0
        values[k] = state.conversions[k] / state.pulls[k] if known else NO_ESTIMATE


implement(ImprovedUCBState, begin=_begin, shown=count_pull, told=count_conversion, estimate=_estimate, ages=True)
