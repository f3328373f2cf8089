"""A fixed stochastic policy whose action probabilities are columns of the log: it learns nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.policies.base import Policy, Setting
from evaluator.policies.dispatch import implement


class ColumnsState(NamedTuple):
    """The round's uniform draw, shape (1,)."""

    draw: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ColumnsPolicy(Policy):
    """Your own policy, as columns of the log that hold its action probabilities: `[target]` in the spec."""

    name = "columns"
    delays = "your own policy, its action probabilities being columns of the log"
    contextual = True
    unit_rewards = True
    learns = False
    reads = "target"
    note = "Its value is also estimated by IPS, SNIPS and DR with the probabilities themselves, on all displays."

    def start(self, setting: Setting) -> ColumnsState:
        """Return the state before the first round."""
        return ColumnsState(np.zeros(1))


def _prepare(state: ColumnsState, rng: np.random.Generator) -> None:
    state.draw[0] = rng.random()


def _choose(state: ColumnsState, vectors: npt.NDArray[np.floating]) -> int:
    """Return the action at which the summed probabilities pass the draw; the draw is held until a display is accepted.

    The sum may end a rounding below the draw: then the last action that has any probability.
    """
    below, last = 0.0, 0
    for k in range(vectors.shape[1]):
        p = np.float64(vectors[0, k])
        if p > 0.0:
            last = k
            below += p
            if state.draw[0] < below:
                return k
    return last


def _displayed(state: ColumnsState, vectors: npt.NDArray[np.floating], action: int) -> None:
    pass


implement(ColumnsState, prepare=_prepare, choose=_choose, displayed=_displayed)
