"""LinUCB on the displays whose reward has arrived: the non-ambiguous case (Vernade et al. 2018, Section 3.1).

That learner is told for every display whether its reward has arrived, zeros too, and whether it never will; a display
enters V and B when its reward arrives, and a censored one is discarded. A log tells conversions only, so what arrives
of the others is a reading of it, the parameter `unconverted`:

zero
    no conversion by age m is a reward of zero that arrives then. V holds the converted displays and those whose window
    has closed. A conversion beyond the window is not told from a zero, so theta^ tends to tau_m theta, and since
    conversions arrive before zeros it is too large meanwhile.
censored
    no conversion by age m is a censored display. V holds the converted displays alone. Right where every display
    converts with a value (the paper's case of continuous rewards, of which an exact zero can only be a censored one).
    Where all conversions have one value it fits that value, not a rate, and favours what resembles the displays that
    converted: in the scenario of the 2020 figures, theta along the mean vector, that happens to be the best action.

A display enters V once, at its first conversion; each of its conversions enters B. The width of that paper is lost in
its text; f_t of the 2020 paper takes its place (theorem), or the squared norms behind the 2020 figures.
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
)


class NonambiguousState(NamedTuple):
    """Regression and scores, and the displays whose window is open.

    Parameters
    ----------
    optimist
        State of the regression, and what a round's scores depend on.
    vectors, actions, arrived
        Vectors of the last m + 1 displays, shape (m + 1, d), their actions, and 1 for those that are in V, shape (m +
        1,), as rings.
    rounds
        Number of displays so far, shape (1,).
    dimension
        Length d of the coefficients, those of all blocks together.
    alpha, delta, ridge
        Factor of the bonus, level of its width, and regularisation, from the policy.
    zeros
        Whether a display whose window closes without a conversion enters V as a zero.
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
class NonambiguousLinUCB(LinearPolicy):
    """Linear UCB on the displays whose reward has arrived, conversions at once and zeros when their window closes."""

    name = "nonambiguous-linucb"
    delays = "learns from a conversion when it comes, from a zero once its window has closed"
    takes_costs = takes_refunds = False
    why_not_negative = "it learns from displays that convert, each once, and takes an event for a conversion"
    paper = "Vernade et al. 2018, Section 3.1"
    needs = (Need.WINDOW,)
    note = "Without a window no zero ever arrives: it learns from the converted displays alone."
    alpha: float = parameter(1.0, "factor of the bonus", at_least=0)
    delta: float = parameter(0.1, "confidence level of the width", above=0, below=1)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    width: Literal["figures", "theorem"] = parameter("figures", "squared norms as in the 2020 figures, or f_t ||a||")
    unconverted: Literal["zero", "censored"] = parameter(
        "zero", "what a display without a conversion is once its window has closed"
    )
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> NonambiguousState:
        """Return the state before the first round."""
        held = min(setting.window, setting.horizon) + 1
        return NonambiguousState(
            optimist=start_optimist(setting, ridge=self.ridge, squared=self.width == "figures", ties=self.ties),
            vectors=np.zeros((held, setting.dimension)),
            actions=np.zeros(held, np.int64),
            arrived=np.zeros(held, np.int64),
            rounds=np.zeros(1, np.int64),
            dimension=setting.coefficients,
            alpha=self.alpha,
            delta=self.delta,
            ridge=self.ridge,
            zeros=self.unconverted == "zero",
        )


@inlinable
def _enter(state: NonambiguousState, slot: int) -> None:
    """Add a display to V, unless it is there."""
    if state.arrived[slot] == 0:
        add_display(state.optimist.ridge, block(state.optimist.ridge, state.actions[slot]), state.vectors, slot)
        state.arrived[slot] = 1


def _begin(state: NonambiguousState, rng: np.random.Generator) -> None:
    rounds, held = state.rounds[0], state.arrived.shape[0]
    if state.zeros and rounds >= held:
        # The display whose age has just reached the window m = held - 1.
        _enter(state, rounds % held)
    begin_round(state.optimist, state.alpha * confidence_width(state, rounds, state.optimist.squared), rng)


def _shown(state: NonambiguousState, vectors: npt.NDArray[np.floating], action: int) -> None:
    state.arrived[hold_display(state, vectors, action)] = 0


def _told(state: NonambiguousState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    _enter(state, (state.rounds[0] - 1 - delay) % state.arrived.shape[0])
    add_reward(state.optimist.ridge, block(state.optimist.ridge, action), vector, value)


implement_optimist(NonambiguousState, begin=_begin, shown=_shown, told=_told)
