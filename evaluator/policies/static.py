"""Policies that learn nothing: random play, one fixed action, and the logging policy itself."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError, nearest
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement


class StaticState(NamedTuple):
    """The held choice, shape (1,), and K, or 0 when the choice never changes."""

    choice: npt.NDArray[np.int64]
    redrawn: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RandomPolicy(Policy):
    """Uniformly random play: the baseline every policy has to beat."""

    name = "random"
    among = True
    delays = "nothing to learn: the baseline"
    unit_rewards = True
    learns = False

    def start(self, setting: Setting) -> StaticState:
        """Return the state before the first round."""
        return StaticState(np.zeros(1, np.int64), np.array([setting.n_actions]))

    def shares(self, n_actions: int) -> npt.NDArray[np.float64]:
        """Return the probability of each action."""
        return np.full(n_actions, 1.0 / n_actions)


@dataclass(frozen=True, kw_only=True)
class FixedAction(Policy):
    """Always the same action, by its label or its index (`evaluate datasets show` lists the labels)."""

    name = "fixed"
    among = True
    delays = "always the same action"
    unit_rewards = True
    learns = False
    outside = "Where its action is not eligible, one of those that are is shown at random."
    action: int | str = parameter(
        0, "label of the action, or its index: a whole number is an index, and in quotes a label", at_least=0
    )

    def on_actions(self, labels: Sequence[str]) -> Self:
        """Return the policy for a log with these labels, which knows the index of its own."""
        if isinstance(self.action, int):
            return self
        if self.action not in labels:
            raise ParameterError(
                f"fixed: action={self.action}, but no action of the log has this label.",
                remedy=nearest(self.action, labels),
            )
        bound = copy.copy(self)
        object.__setattr__(bound, "_index", labels.index(self.action))
        return bound

    @property
    def index(self) -> int:
        """Index of the action; -1 for a label of which no log said where it is."""
        return self.action if isinstance(self.action, int) else getattr(self, "_index", -1)

    @property
    def spec(self) -> str:
        """The policy as the command line takes it: in quotes a label that would be read as an index."""
        if isinstance(self.action, str) and _reads_as_index(self.action):
            return f'{self.name}:action="{self.action}"'
        return super().spec

    def start(self, setting: Setting) -> StaticState:
        """Return the state before the first round."""
        if self.index < 0:
            raise ParameterError(
                f"fixed: action={self.action} is a label, and there is no log to say which action has it.",
                remedy=f"give the index, 0 to {setting.n_actions - 1}.",
            )
        if self.index >= setting.n_actions:
            raise ParameterError(
                f"fixed: action={self.action}, but the log has {setting.n_actions} actions.",
                remedy=f"take 0 to {setting.n_actions - 1}, or a label.",
            )
        return StaticState(np.array([self.index]), np.zeros(1, np.int64))

    def shares(self, n_actions: int) -> npt.NDArray[np.float64]:
        """Return the probability of each action."""
        return np.eye(n_actions)[self.index]


def _reads_as_index(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return text[:1] == text[-1:] == '"'
    return True


@dataclass(frozen=True, kw_only=True)
class LoggingPolicy(Policy):
    """The policy that wrote the log: every display is a round, and the value is the log's own mean."""

    name = "logging"
    delays = "the policy that wrote the log"
    unit_rewards = True
    learns = False

    def start(self, setting: Setting) -> StaticState:
        """Return the state before the first round; the sampler `logged` sets its choice to what was logged."""
        return StaticState(np.zeros(1, np.int64), np.zeros(1, np.int64))


def _begin(state: StaticState, rng: np.random.Generator) -> None:
    if state.redrawn[0] > 0:
        state.choice[0] = int(rng.random() * state.redrawn[0])


def _score(state: StaticState, vectors: npt.NDArray[np.floating], action: int) -> float:
    # Equal scores go by the round's random order: random play, and a fixed action's stand-in where it is not eligible.
    return 1.0 if state.redrawn[0] == 0 and action == state.choice[0] else 0.0


def _estimate(state: StaticState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write 1 for what is shown and 0 for the rest, all the same where every action is: nothing is learned."""
    values[:] = 0.0
    if state.redrawn[0] == 0:
        values[state.choice[0]] = 1.0


implement(StaticState, begin=_begin, score=_score, estimate=_estimate)
