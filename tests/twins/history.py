"""What every twin remembers: all displays and all conversions it was told of, from which it starts anew each round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.policies.base import Setting

Floats = npt.NDArray[np.float64]

# A dense solve sums equal arms' scores in different orders; scores of distinct arms never come as close.
_EQUAL = 1e-12


class Twin(ABC):
    """A policy by its formula: `begin` once a round, `scores` at each display, the lowest index among equals."""

    contextual = False

    def __init__(self, setting: Setting, **parameters: Any) -> None:
        self.setting = setting
        self.parameters = parameters
        self.actions: list[int] = []
        self.conversions: list[tuple[int, float]] = []
        self.delays: list[int] = []
        self.begun = False

    @abstractmethod
    def scores(self, vectors: Floats) -> Floats:
        """Return each arm's score, shape (K,)."""

    def estimates(self, vectors: Floats) -> Floats:
        """Return what each action is estimated to earn, shape (K,)."""
        return rates(self.successes(), self.pulls())

    def begin(self, rng: np.random.Generator) -> None:  # noqa: B027  (most policies need nothing)
        """Draw the round's randomness."""

    def choose(self, vectors: Floats, rng: np.random.Generator) -> int:
        # One draw a round, held until a display is accepted.
        if not self.begun:
            self.begin(rng)
            self.begun = True
        return lowest_best(self.scores(vectors))

    def displayed(self, vectors: Floats, action: int) -> None:
        self.actions.append(action)
        self.begun = False

    def converted(self, vector: Floats, action: int, delay: int, value: float) -> None:
        shown = len(self.actions) - 1 - delay
        assert self.actions[shown] == action, "the delay must lead back to the display that converted"
        assert delay <= self.setting.window
        self.conversions.append((shown, value))
        self.delays.append(delay)

    @property
    def ages(self) -> npt.NDArray[np.int64]:
        """Age t - 1 - s of each pull s at the decision of round t."""
        return np.arange(len(self.actions))[::-1]

    def pulls(self) -> Floats:
        return np.bincount(self.actions, minlength=self.setting.n_actions).astype(np.float64)

    def successes(self) -> Floats:
        """Return the summed value of the conversions seen of each arm."""
        arms = [self.actions[shown] for shown, _ in self.conversions]
        values = [value for _, value in self.conversions]
        return np.bincount(arms, weights=values, minlength=self.setting.n_actions)


def rates(successes: Floats, trials: Floats) -> Floats:
    """Return successes / trials, -inf without trials."""
    return np.array([s / n if n else -np.inf for s, n in zip(successes, trials, strict=True)])


def lowest_best(scores: Floats) -> int:
    """Return the lowest index among the largest scores."""
    top = scores.max()
    if np.isinf(top):
        return int(np.argmax(scores))
    return int(np.flatnonzero(scores >= top - _EQUAL * max(1.0, abs(top)))[0])
