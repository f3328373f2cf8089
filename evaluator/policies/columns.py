"""Policies that columns of the log hold, as probabilities of the actions or as the action taken: they learn nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement


class ColumnsState(NamedTuple):
    """The round's uniform draw, shape (1,), and the number of actions, shape (1,)."""

    draw: npt.NDArray[np.float64]
    actions: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ColumnsPolicy(Policy):
    """Your own policy, as columns of the log that hold its action probabilities: `[target]` in the spec."""

    name = "columns"
    among = True
    delays = "your own policy, its action probabilities being columns of the log"
    contextual = True
    unit_rewards = True
    learns = False
    reads = "target"
    outside = (
        "The probabilities that the columns give to actions which are not eligible at a display are shared among the "
        "eligible ones, in proportion to theirs."
    )
    note = "Its value is also estimated by IPS, SNIPS and DR with the probabilities themselves, on all displays."

    def start(self, setting: Setting) -> ColumnsState:
        """Return the state before the first round."""
        return ColumnsState(np.zeros(1), np.array([setting.n_actions]))


@dataclass(frozen=True, kw_only=True)
class TargetPolicy(ColumnsPolicy):
    """Your own policy, as a column of the log: `[target.NAME]` in the spec, and `target:NAME` here."""

    name = "target"
    delays = "your own policy, its action (or action probabilities) being a column of the log"
    first = "of"
    outside = (
        "Where the action that it takes is not eligible, one of those that are is shown at random; probabilities of "
        "such actions are shared among the eligible ones, in proportion to theirs."
    )
    note = (
        "Its value is also estimated by IPS, SNIPS and DR on all displays. Where the action that it takes is never "
        "shown in the log, an action at random stands in for it."
    )
    of: str | None = parameter(None, "name of the target in the log")

    @property
    def reads(self) -> str:  # type: ignore[override]
        """Column of the displays that holds the policy."""
        return f"target:{self.of or ''}"

    @property
    def spec(self) -> str:
        """The policy as the command line takes it."""
        return f"{self.name}:{self.of}" if self.of else self.name


def _begin(state: ColumnsState, rng: np.random.Generator) -> None:
    state.draw[0] = rng.random()


def _choose(state: ColumnsState, vectors: npt.NDArray[np.floating], eligible: npt.NDArray[np.int32] | None) -> Any:
    """Return the action at which the summed probabilities pass the draw; the draw is held until a display is accepted.

    One number is the action itself, -1 for one of all at random. The sum may end a rounding below the draw: then the
    last action that has any probability.
    """
    return _choose_any(state, vectors) if eligible is None else _choose_among(state, vectors, eligible)


@inlinable
def _choose_any(state: ColumnsState, vectors: npt.NDArray[np.floating]) -> Any:
    if vectors.shape[1] == 1:
        action = np.int64(vectors[0, 0])
        return action if 0 <= action < state.actions[0] else np.int64(state.draw[0] * state.actions[0])
    below, last = 0.0, np.int64(0)
    for k in range(vectors.shape[1]):
        p = np.float64(vectors[0, k])
        if p > 0.0:
            last = np.int64(k)
            below += p
            if state.draw[0] < below:
                return last
    return last


@inlinable
def _choose_among(state: ColumnsState, vectors: npt.NDArray[np.floating], eligible: npt.NDArray[np.int32]) -> Any:
    """Return the action at which the summed probabilities of the eligible pass the draw, as a share of their sum."""
    if vectors.shape[1] == 1:
        for k in eligible:
            if k == vectors[0, 0]:
                return np.int64(k)
        return np.int64(eligible[np.int64(state.draw[0] * len(eligible))])
    total = 0.0
    for k in eligible:
        total += np.float64(vectors[0, k])
    if not total > 0.0:
        raise ValueError("no eligible action has a probability")
    below, last = 0.0, np.int64(-1)
    for k in eligible:
        p = np.float64(vectors[0, k])
        if p > 0.0:
            last = np.int64(k)
            below += p
            if state.draw[0] * total < below:
                break
    return last


implement(ColumnsState, begin=_begin, choose=_choose)
