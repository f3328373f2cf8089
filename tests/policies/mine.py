"""A policy a user might bring, twice: explore each arm, then the largest rate seen; plain Python, and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluator.policies import Policy, Setting, implement, parameter


class Greedy:
    contextual = False

    def __init__(self, setting: Setting, *, prior: float = 1.0) -> None:
        self.rewards = np.full(setting.n_actions, prior)
        self.pulls = np.ones(setting.n_actions)

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        # A draw in each round, so that a difference in the streams would show.
        return int(np.argmax(self.rewards / self.pulls + 0.1 * rng.random()))

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self.pulls[action] += 1

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self.rewards[action] += value


class GreedyState(NamedTuple):
    rewards: np.ndarray
    pulls: np.ndarray
    choice: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CompiledGreedy(Policy):
    """The same, compiled."""

    name = "compiled-greedy"
    prior: float = parameter(1.0, "rewards of each arm before its first", above=0)

    def start(self, setting: Setting) -> GreedyState:
        k = setting.n_actions
        return GreedyState(np.full(k, self.prior), np.ones(k), np.zeros(1, np.int64))


def _begin(state: GreedyState, rng: np.random.Generator) -> None:
    state.choice[0] = np.argmax(state.rewards / state.pulls + 0.1 * rng.random())


def _shown(state: GreedyState, vectors: np.ndarray, action: int) -> None:
    state.pulls[action] += 1


def _told(state: GreedyState, vector: np.ndarray, action: int, delay: int, value: float) -> None:
    state.rewards[action] += value


implement(GreedyState, begin=_begin, shown=_shown, told=_told)


class CountState(NamedTuple):
    seen: np.ndarray
    limit: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Overflow(Policy):
    """Reads contexts, and after some displays chooses an arm that does not exist."""

    name = "overflow"
    contextual = True
    after: int = parameter(3, "displays until then", at_least=0)

    def start(self, setting: Setting) -> CountState:
        return CountState(np.zeros(1, np.int64), np.array([self.after, setting.n_actions]))


def _choose_overflow(state: CountState, vectors: np.ndarray, eligible: None) -> int:
    return 0 if state.seen[0] < state.limit[0] else state.limit[1]


def _count(state: CountState, vectors: np.ndarray, action: int) -> None:
    state.seen[0] += 1


def _ignore(state: CountState, vector: np.ndarray, action: int, delay: int, value: float) -> None:
    pass


implement(CountState, choose=_choose_overflow, shown=_count, told=_ignore)


class HeldState(NamedTuple):
    choice: np.ndarray


@dataclass(frozen=True, kw_only=True)
class HeldOverflow(Policy):
    """Holds a choice that does not exist."""

    name = "held-overflow"
    action: int = parameter(-1, "the choice")

    def start(self, setting: Setting) -> HeldState:
        return HeldState(np.array([self.action]))


def _ignore_display(state: HeldState, vectors: np.ndarray, action: int) -> None:
    pass


def _ignore_conversion(state: HeldState, vector: np.ndarray, action: int, delay: int, value: float) -> None:
    pass


implement(HeldState, shown=_ignore_display, told=_ignore_conversion)


class RaisingState(NamedTuple):
    choice: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CompiledRaises(Policy):
    """Raises from compiled code."""

    name = "compiled-raises"

    def start(self, setting: Setting) -> RaisingState:
        return RaisingState(np.zeros(1, np.int64))


def _raise_at_display(state: RaisingState, vectors: np.ndarray, action: int) -> None:
    raise RuntimeError("own fault")


def _ignore_raising(state: RaisingState, vector: np.ndarray, action: int, delay: int, value: float) -> None:
    pass


implement(RaisingState, shown=_raise_at_display, told=_ignore_raising)


class UncompilableState(NamedTuple):
    choice: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Uncompilable(Policy):
    """Does what compiled code cannot."""

    name = "uncompilable"

    def start(self, setting: Setting) -> UncompilableState:
        return UncompilableState(np.zeros(1, np.int64))


def _leave_at_display(state: UncompilableState, vectors: np.ndarray, action: int) -> None:
    raise SystemExit(3)


def _ignore_leaving(state: UncompilableState, vector: np.ndarray, action: int, delay: int, value: float) -> None:
    pass


implement(UncompilableState, shown=_leave_at_display, told=_ignore_leaving)


class Raises(Greedy):
    def __init__(self, setting: Setting, *, method: str) -> None:
        super().__init__(setting)
        self.method = method

    def _maybe(self, method: str) -> None:
        if self.method == method:
            raise ZeroDivisionError("own fault")

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        self._maybe("choose")
        return super().choose(vectors, rng)

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self._maybe("displayed")
        super().displayed(vectors, action)

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self._maybe("converted")
        super().converted(vector, action, delay, value)


class Impossible(Greedy):
    def __init__(self, setting: Setting, *, action: object) -> None:
        super().__init__(setting)
        self.action = action

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> object:
        return self.action


class Mute:
    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return 0

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        pass
