"""WaitLinUCB, and LinUCB on the displays whose reward has arrived (Vernade et al. 2018, Section 3).

*WaitLinUCB* (Section 3.2): a display enters V, and its conversions B, once its age reaches the window m: from then on
nothing about it is unknown. Uniformly random play until the first conversion has entered.

*Non-ambiguous* (Section 3.1): that learner is told for every display whether its reward has arrived, zeros too, and
whether it never will; a display enters V and B when its reward arrives, and a censored one is discarded. A log tells
conversions only, so what arrives of the others is a reading of it, the parameter `unconverted`:

zero
    no conversion by age m is a reward of zero that arrives then. V holds the converted displays and those whose window
    has closed. A conversion beyond the window is not told from a zero, so theta^ tends to tau_m theta, and since
    conversions arrive before zeros it is too large meanwhile.
censored
    no conversion by age m is a censored display. V holds the converted displays alone. Right where every display
    converts with a value (the paper's case of continuous rewards, of which an exact zero can only be a censored one).
    Where all conversions have one value it fits that value, not a rate, and favours what resembles the displays that
    converted: in the scenario of the 2020 figures, theta along the mean vector, that happens to be the best action.

There a display enters V once, at its first conversion; each of its conversions enters B. The widths of that paper are
lost in its text; f_t of the 2020 paper takes their place (theorem), or the squared norms behind the 2020 figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import LEAST_RIDGE, add_display, add_reward, block, row
from evaluator.policies.base import Need, Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    Optimist,
    begin_round,
    confidence_width,
    implement_optimist,
    predicted_reward,
    start_optimist,
    upper_bound,
)
from evaluator.units import NO_WINDOW


class WaitLinUCBState(NamedTuple):
    """Regression and scores, and the displays whose window is open.

    Rings of the last m + 1 displays hold their `vectors`, shape (m + 1, d), their `actions`, and the summed `values` of
    their conversions, shape (m + 1,). Of shape (1,): displays so far (`rounds`), those of them whose window has closed,
    the random action that is held before the first conversion has entered, else -1 (`forced`), and 1 once it has
    (`started`). `dimension` is the number of coefficients of all blocks together.
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


class NonambiguousState(NamedTuple):
    """Regression and scores, and the displays whose window is open: fields as those of `WaitLinUCBState`.

    `arrived` is 1 for the displays of the ring that are in V, shape (m + 1,); `zeros` says whether a display whose
    window closes without a conversion enters V as a zero.
    """

    optimist: Optimist
    vectors: npt.NDArray[np.float64]
    actions: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    dimension: int
    alpha: float
    delta: float
    ridge: float
    zeros: bool


@dataclass(frozen=True, kw_only=True)
class _WindowLinUCB(LinearPolicy):
    needs = (Need.WINDOW,)
    alpha: float = parameter(1.0, "factor of the bonus", at_least=0)
    delta: float = parameter(0.1, "confidence level of the width", above=0, below=1)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    width: Literal["figures", "theorem"] = parameter("figures", "squared norms as in the 2020 figures, or f_t ||a||")

    def _shared(self, setting: Setting, ties: str) -> dict[str, Any]:
        """Return what both states hold."""
        held = min(setting.window, setting.horizon) + 1
        return {
            "optimist": start_optimist(
                setting, ridge=self.ridge, diagonal=self.diagonal, squared=self.width == "figures", ties=ties
            ),
            "vectors": np.zeros((held, setting.dimension)),
            "actions": np.zeros(held, np.int64),
            "rounds": np.zeros(1, np.int64),
            "dimension": setting.coefficients,
            "alpha": self.alpha,
            "delta": self.delta,
            "ridge": self.ridge,
        }


@dataclass(frozen=True, kw_only=True)
class WaitLinUCB(_WindowLinUCB):
    """Linear UCB that waits for each display's window to close before learning from it."""

    name = "waitlinucb"
    delays = "learns from a display once its window has closed"
    paper = "Vernade et al. 2018, Section 3.2"
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> WaitLinUCBState:
        """Return the state before the first round."""
        if setting.window == NO_WINDOW:
            raise Need.WINDOW.missing(self.name, because="without one it would wait for ever")
        shared = self._shared(setting, self.ties)
        closed, started = np.zeros((2, 1), np.int64)
        return WaitLinUCBState(
            **shared, values=np.zeros(len(shared["actions"])), closed=closed, forced=np.full(1, -1), started=started,
            window=min(setting.window, setting.horizon),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NonambiguousLinUCB(_WindowLinUCB):
    """Linear UCB on the displays whose reward has arrived, conversions at once and zeros when their window closes."""

    name = "nonambiguous-linucb"
    delays = "learns from a conversion when it comes, from a zero once its window has closed"
    takes_costs = takes_refunds = False
    why_not_negative = "it learns from displays that convert, each once, and takes an event for a conversion"
    paper = "Vernade et al. 2018, Section 3.1"
    note = "Without a window no zero ever arrives: it learns from the converted displays alone."
    unconverted: Literal["zero", "censored"] = parameter(
        "zero", "what a display without a conversion is once its window has closed"
    )
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> NonambiguousState:
        """Return the state before the first round."""
        shared = self._shared(setting, self.ties)
        arrived = np.zeros(len(shared["actions"]), np.int64)
        return NonambiguousState(**shared, arrived=arrived, zeros=self.unconverted == "zero")


@inlinable
def _hold_display(state: Any, vectors: npt.NDArray[np.floating], action: int) -> int:
    """Put a display into the rings `vectors` and `actions`; return its slot."""
    slot = state.rounds[0] % state.actions.shape[0]
    r = row(vectors, action)
    for i in range(vectors.shape[1]):
        state.vectors[slot, i] = vectors[r, i]
    state.actions[slot] = action
    state.rounds[0] += 1
    return slot


@inlinable
def _slot_of(state: Any, delay: int) -> int:
    """Return the slot of the display of `delay` rounds ago, at the end of a round, whose display `rounds` counts."""
    return (state.rounds[0] - 1 - delay) % state.actions.shape[0]


@inlinable
def _begin_round(state: Any, rng: np.random.Generator) -> None:
    begin_round(state.optimist, state.alpha * confidence_width(state, state.rounds[0], state.optimist.squared), rng)


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


def _begin_waiting(state: WaitLinUCBState, rng: np.random.Generator) -> None:
    _close_window(state)
    if state.started[0] == 0:
        state.forced[0] = int(rng.random() * state.optimist.n_actions)
        return
    state.forced[0] = -1
    _begin_round(state, rng)


def _score_waiting(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    if state.forced[0] >= 0:
        return 1.0 if action == state.forced[0] else 0.0
    return upper_bound(state.optimist, vectors, action)


def _score_waiting_among(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    # All alike until a conversion has entered: the round's order among equals plays at random.
    return 0.0 if state.forced[0] >= 0 else upper_bound(state.optimist, vectors, action)


def _least_score_waiting(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return 0.0 if state.forced[0] >= 0 else predicted_reward(state.optimist, vectors, action)


def _shown_waiting(state: WaitLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.values[_hold_display(state, vectors, action)] = 0.0


def _told_waiting(
    state: WaitLinUCBState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float
) -> None:
    state.values[_slot_of(state, delay)] += value


@inlinable
def _enter(state: NonambiguousState, slot: int) -> None:
    """Add a display to V, unless it is there."""
    if state.arrived[slot] == 0:
        add_display(state.optimist.ridge, block(state.optimist.ridge, state.actions[slot]), state.vectors, slot)
        state.arrived[slot] = 1


def _begin_arriving(state: NonambiguousState, rng: np.random.Generator) -> None:
    rounds, held = state.rounds[0], state.arrived.shape[0]
    if state.zeros and rounds >= held:
        # The display whose age has just reached the window m = held - 1.
        _enter(state, rounds % held)
    _begin_round(state, rng)


def _shown_arriving(state: NonambiguousState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.arrived[_hold_display(state, vectors, action)] = 0


def _told_arriving(
    state: NonambiguousState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float
) -> None:
    _enter(state, _slot_of(state, delay))
    add_reward(state.optimist.ridge, block(state.optimist.ridge, action), vector, value)


implement_optimist(
    WaitLinUCBState, begin=_begin_waiting, score=_score_waiting, score_among=_score_waiting_among,
    least_score=_least_score_waiting,
    shown=_shown_waiting, told=_told_waiting, ages=True,
)  # fmt: skip
implement_optimist(NonambiguousState, begin=_begin_arriving, shown=_shown_arriving, told=_told_arriving, ages=True)
