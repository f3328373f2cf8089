"""ODAAF, ODAAF-B, ODAAF-V: elimination from the sum that arrives in each round (Pike-Burke et al. 2018, Algorithm 1).

Feedback is aggregated and anonymous: at the end of a round the policy is told the sum of the conversions revealed in
it, not whose they are. It therefore has `told_sum(state, total)`, once a round, in the place of `told`.

Phases i = 1, 2, ... with tolerance e_i = 2^-i. Each active arm is shown, one after the other, until it has n_i displays
in all; the mean Xbar of an arm is over the sums collected in the rounds of its own displays; then the arms with
Xbar + e_i < max Xbar are eliminated. ODAAF-B and ODAAF-V go on with a bridge: n_i - n_(i-1) rounds of one active arm,
whose displays and sums count for nothing. With l = log(T e_i²), E, V and d the mean, variance and bound of the delays:

    ODAAF    n_i = ceil((sqrt(2l) + sqrt(2l + 8/3 e_i l + 6 e_i i E))² / e_i²)
    ODAAF-B  n_i = ceil(max(i d~_i, (sqrt(2l) + sqrt(2l + 8/3 e_i l + 4 e_i E))² / e_i²)), d~_i = min(d, ODAAF n_i / i)
    ODAAF-V  n_i = ceil((sqrt(2l) + sqrt(2l + 8/3 e_i l + 4 e_i (E + 2V)))² / e_i²)

The constants are restored from damaged formulas: 95 % sure for the first, 90 % for the others. E, V and d are those of
the delays that can arrive at all: of the given CDF up to the window and the horizon, before it is told in few steps
(`DelayCDF.moments_within`). Which arm bridges is left open by
the paper; it changes the regret. Phases end at floor(log2(T / e) / 2), as in Auer and Ortner 2010: beyond it l falls
below 1. It is not reached within T rounds unless a single arm is left, which is shown to the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayMoments
from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import NO_ESTIMATE
from evaluator.units import NO_WINDOW

_BRIDGE = -1


class ODAAFState(NamedTuple):
    """Arms, phase and bridge.

    Of each arm, shape (K,): displays and collected sum outside bridges (`plays`, `sums`), and whether it is still
    `active`. `lengths` are the n_i of the phases in rounds, shape (phases,). Of shape (1,): phases completed (`phase`),
    rounds `left` of the bridge and its arm, the arm that is held this round (`choice`), and that of this round's
    display, -1 on the bridge (`shown`). `rule` picks the bridge's arm: 0 the best, 1 the first, 2 one at random.
    """

    plays: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]
    active: npt.NDArray[np.bool_]
    lengths: npt.NDArray[np.int64]
    phase: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    bridge: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]
    shown: npt.NDArray[np.int64]
    bridged: bool
    rule: int


@dataclass(frozen=True, kw_only=True)
class _InPhases(Policy):
    unit_rewards = True
    needs = (Need.DELAY_CDF, Need.HORIZON)

    def start(self, setting: Setting) -> ODAAFState:
        """Return the state before the first round."""
        if setting.horizon == NO_WINDOW:
            raise Need.HORIZON.missing(self.name)
        if setting.delay_cdf is None:
            raise Need.DELAY_CDF.missing(self.name)
        delays = setting.delay_cdf.moments_within(min(setting.window, setting.horizon))
        last = math.floor(0.5 * math.log2(max(setting.horizon, 1) / math.e))
        rule = getattr(self, "bridge", None)
        phase, left, bridge, choice, shown = np.zeros((5, 1), np.int64)
        lengths = np.array([self._length(i, setting.horizon, delays) for i in range(1, last + 1)], np.int64)
        plays, active = np.zeros(setting.n_actions, np.int64), np.ones(setting.n_actions, np.bool_)
        return ODAAFState(
            plays, np.zeros(setting.n_actions), active, lengths, phase, left, bridge, choice, shown, rule is not None,
            0 if rule is None else ("best", "first", "random").index(rule),
        )  # fmt: skip

    def _length(self, i: int, horizon: int, delays: DelayMoments) -> int:
        """Return n_i."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ODAAF(_InPhases):
    """Elimination in phases from each round's sum alone; knows the mean delay."""

    name = "odaaf"
    delays = "is told each round's sum only; eliminates arms in phases; needs the delay CDF and the horizon"
    paper = "Pike-Burke et al. 2018, Section 4.1"

    def _length(self, i: int, horizon: int, delays: DelayMoments) -> int:
        return _odaaf_length(i, horizon, delays)


@dataclass(frozen=True, kw_only=True)
class ODAAFB(_InPhases):
    """Elimination in phases with bridges, from each round's sum alone; knows mean and bound of the delays."""

    name = "odaaf-b"
    delays = "the same, with bridges for bounded delays"
    paper = "Pike-Burke et al. 2018, Section 4.2"
    bridge: Literal["best", "first", "random"] = parameter("best", "arm of a bridge: best so far, first, or random")

    def _length(self, i: int, horizon: int, delays: DelayMoments) -> int:
        flushed = min(i * delays.bound, _odaaf_length(i, horizon, delays))
        return math.ceil(max(flushed, _plays(i, horizon, 4.0 * delays.mean)))


@dataclass(frozen=True, kw_only=True)
class ODAAFV(_InPhases):
    """Elimination in phases with bridges, from each round's sum alone; knows mean and variance of the delays."""

    name = "odaaf-v"
    delays = "the same, with bridges, by the delays' variance"
    paper = "Pike-Burke et al. 2018, Section 4.3"
    bridge: Literal["best", "first", "random"] = parameter("best", "arm of a bridge: best so far, first, or random")

    def _length(self, i: int, horizon: int, delays: DelayMoments) -> int:
        return math.ceil(_plays(i, horizon, 4.0 * (delays.mean + 2.0 * delays.variance)))


def _plays(i: int, horizon: int, corruption: float) -> float:
    """Return (sqrt(2l) + sqrt(2l + 8/3 e_i l + e_i corruption))² / e_i²."""
    e = 2.0**-i
    twice = 2.0 * math.log(horizon * e * e)
    return float((math.sqrt(twice) + math.sqrt(twice * (1.0 + 4.0 / 3.0 * e) + e * corruption)) ** 2 / (e * e))


def _odaaf_length(i: int, horizon: int, delays: DelayMoments) -> int:
    return math.ceil(_plays(i, horizon, 6.0 * i * delays.mean))


@inlinable
def _mean(state: ODAAFState, k: int) -> float:
    return state.sums[k] / max(state.plays[k], 1)


@inlinable
def _best(state: ODAAFState) -> int:
    """Return the active arm with the largest mean; the lowest index among equals."""
    best = -1
    for k in range(state.plays.shape[0]):
        if state.active[k] and (best < 0 or _mean(state, k) > _mean(state, best)):
            best = k
    return best


@inlinable
def _bridging(state: ODAAFState, rng: np.random.Generator) -> int:
    """Return the arm of the bridge that begins."""
    if state.rule == 0:
        return _best(state)
    place = int(rng.random() * np.sum(state.active)) if state.rule == 2 else 0
    for k in range(state.plays.shape[0]):
        if state.active[k]:
            if place == 0:
                return k
            place -= 1
    return 0


@inlinable
def _end_phase(state: ODAAFState, rng: np.random.Generator) -> None:
    """Eliminate arms and begin the bridge."""
    i = state.phase[0]
    tolerance = 2.0 ** -(i + 1.0)
    largest = _mean(state, _best(state))
    for k in range(state.plays.shape[0]):
        if _mean(state, k) + tolerance < largest:
            state.active[k] = False
    state.phase[0] = i + 1
    if state.bridged:
        state.left[0] = state.lengths[i] - (state.lengths[i - 1] if i > 0 else 0)
        state.bridge[0] = _bridging(state, rng)


def _begin(state: ODAAFState, rng: np.random.Generator) -> None:
    while state.left[0] == 0 and state.phase[0] < state.lengths.shape[0] and np.sum(state.active) > 1:
        length = state.lengths[state.phase[0]]
        for k in range(state.plays.shape[0]):
            if state.active[k] and state.plays[k] < length:
                state.choice[0] = k
                return
        _end_phase(state, rng)
    state.choice[0] = state.bridge[0] if state.left[0] > 0 else _best(state)


def _shown(state: ODAAFState, vectors: npt.NDArray[np.floating], action: int) -> None:
    if state.left[0] > 0:
        state.left[0] -= 1
        state.shown[0] = _BRIDGE
    else:
        state.plays[action] += 1
        state.shown[0] = action


def _told_sum(state: ODAAFState, total: float) -> None:
    if state.shown[0] != _BRIDGE:
        state.sums[state.shown[0]] += total


def _estimate(state: ODAAFState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write Xbar of each active arm; what was eliminated stays so."""
    for k in range(values.shape[0]):
        values[k] = _mean(state, k) if state.active[k] and state.plays[k] > 0 else NO_ESTIMATE


implement(ODAAFState, begin=_begin, shown=_shown, told_sum=_told_sum, estimate=_estimate, ages=True)
