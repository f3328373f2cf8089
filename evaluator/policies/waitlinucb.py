"""WaitLinUCB: least squares on displays whose window has closed (Vernade et al. 2018, Section 3.2).

A display enters V, and its conversions B, once its age reaches the window m: from then on nothing about it is unknown.
Uniformly random play until the first conversion has entered. The width of that paper is lost in its text; f_t of the
2020 paper takes its place (theorem), or the squared norms behind the 2020 figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import LEAST_RIDGE, add_display, add_reward, block
from evaluator.policies.base import Need, Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    Optimist,
    begin_round,
    confidence_width,
    hold_display,
    implement_optimist,
    start_optimist,
    upper_bound,
)
from evaluator.units import NO_WINDOW


class WaitLinUCBState(NamedTuple):
    """Regression and scores, and the displays whose window is open.

    Parameters
    ----------
    optimist
        State of the regression, and what a round's scores depend on.
    vectors, actions, values
        Vectors of the last m + 1 displays, shape (m + 1, d), their actions and summed conversion values, shape (m +
        1,), as rings.
    rounds, closed
        Number of displays so far, and of those whose window has closed, shape (1,).
    forced
        Random action that is held before the first conversion has entered, else -1, shape (1,).
    started
        Number 1 once a conversion has entered, else 0, shape (1,).
    window
        Window m in rounds.
    dimension
        Length d of the coefficients, those of all blocks together.
    alpha, delta, ridge
        Factor of the bonus, level of its width, and regularisation, from the policy.
    """

    optimist: Optimist
    vectors: npt.NDArray[np.float64]
    actions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    closed: npt.NDArray[np.int64]
    forced: npt.NDArray[np.int64]
    started: npt.NDArray[np.int64]
    window: int
    dimension: int
    alpha: float
    delta: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class WaitLinUCB(LinearPolicy):
    """Linear UCB that waits for each display's window to close before learning from it."""

    name = "waitlinucb"
    delays = "learns from a display once its window has closed"
    paper = "Vernade et al. 2018, Section 3.2"
    needs = (Need.WINDOW,)
    alpha: float = parameter(1.0, "factor of the bonus", at_least=0)
    delta: float = parameter(0.1, "confidence level of the width", above=0, below=1)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    width: Literal["figures", "theorem"] = parameter("figures", "squared norms as in the 2020 figures, or f_t ||a||")
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> WaitLinUCBState:
        """Return the state before the first round."""
        if setting.window == NO_WINDOW:
            raise Need.WINDOW.missing(self.name, because="without one it would wait for ever")
        held = min(setting.window, setting.horizon) + 1
        return WaitLinUCBState(
            optimist=start_optimist(setting, ridge=self.ridge, squared=self.width == "figures", ties=self.ties),
            vectors=np.zeros((held, setting.dimension)),
            actions=np.zeros(held, np.int64),
            values=np.zeros(held),
            rounds=np.zeros(1, np.int64),
            closed=np.zeros(1, np.int64),
            forced=np.full(1, -1),
            started=np.zeros(1, np.int64),
            window=min(setting.window, setting.horizon),
            dimension=setting.coefficients,
            alpha=self.alpha,
            delta=self.delta,
            ridge=self.ridge,
        )


@inlinable
def _close_window(state: WaitLinUCBState) -> None:
    """Let the display whose age has just reached the window enter the regression."""
    n = state.rounds[0]
    closing = n - 1 - state.window
    if closing < state.closed[0]:
        return
    state.closed[0] = closing + 1
    slot = closing % state.actions.shape[0]
    ridge = state.optimist.ridge
    b = block(ridge, state.actions[slot])
    add_display(ridge, b, state.vectors, slot)
    if state.values[slot] != 0.0:
        add_reward(ridge, b, state.vectors[slot], state.values[slot])
        state.started[0] = 1


def _begin(state: WaitLinUCBState, rng: np.random.Generator) -> None:
    _close_window(state)
    if state.started[0] == 0:
        state.forced[0] = int(rng.random() * state.optimist.n_actions)
        return
    state.forced[0] = -1
    begin_round(state.optimist, state.alpha * confidence_width(state, state.rounds[0], state.optimist.squared), rng)


def _score(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    if state.forced[0] >= 0:
        return 1.0 if action == state.forced[0] else 0.0
    return upper_bound(state.optimist, vectors, action)


def _score_among(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    # All alike until a conversion has entered: the round's order among equals plays at random.
    return 0.0 if state.forced[0] >= 0 else upper_bound(state.optimist, vectors, action)


def _shown(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.values[hold_display(state, vectors, action)] = 0.0


def _told(state: WaitLinUCBState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    # Conversions reach the policy at the end of the round, when `rounds` already counts this round's display.
    state.values[(state.rounds[0] - 1 - delay) % state.actions.shape[0]] += value


implement_optimist(WaitLinUCBState, begin=_begin, score=_score, score_among=_score_among, shown=_shown, told=_told)
