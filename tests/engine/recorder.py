"""A plain Python policy that writes down all it is told, and hand-made rounds to replay it on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from evaluator.engine.log_replay import Replay, run
from evaluator.policies.base import NO_WINDOW, Setting
from evaluator.policies.user import UserPolicy
from tests.logged_rounds import LoggedRounds


class Recorder:
    """Chooses by a rule that depends on all it was told, and keeps the events in order."""

    contextual = True
    events: list[tuple[Any, ...]] = []  # noqa: RUF012  # read after the replay, whose copy of the policy is private

    def __init__(self, setting: Setting) -> None:
        self.n_actions = setting.n_actions
        self.told = 0
        type(self).events = []

    def choose(self, vectors: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
        return (self.told + int(rng.integers(2))) % self.n_actions

    def displayed(self, vectors: npt.NDArray[np.float64], action: int) -> None:
        self.told += 1
        type(self).events.append(("displayed", vectors[action % len(vectors)].tolist(), action))

    def converted(self, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
        self.told += 3
        type(self).events.append(("converted", vector.tolist(), action, delay, value))


def record(
    rounds: LoggedRounds, *, window: int = NO_WINDOW, horizon: int = NO_WINDOW, **options: Any
) -> tuple[Replay, list[tuple[Any, ...]]]:
    """Replay a recorder; return the replay and the recorder's events."""
    k, d = rounds.n_actions, rounds.vectors.shape[2]
    setting = Setting(n_actions=k, dimension=d, rows=rounds.vectors.shape[1], window=window, horizon=horizon)
    options.setdefault("sampler", "rejection")
    replay = run(UserPolicy(cls=Recorder), setting, rounds, **options)
    return replay, Recorder.events


@st.composite
def logged_rounds(draw: st.DrawFn, *, max_displays: int = 40) -> LoggedRounds:
    """Draw rounds with up to three conversions a display, short delays, and thinned displays (-1)."""
    n, k = draw(st.integers(1, max_displays)), draw(st.integers(2, 3))
    action = draw(st.lists(st.integers(-1, k - 1), min_size=n, max_size=n))
    delays = draw(st.lists(st.lists(st.integers(0, 12), max_size=3), min_size=n, max_size=n))
    rows = draw(st.sampled_from([1, k]))
    flat = [d for of_display in delays for d in of_display]
    return LoggedRounds(
        action=np.array(action, np.int32),
        # Every number names its display and row, so that a mix-up shows.
        vectors=np.arange(n * rows, dtype=np.float64).reshape(n, rows, 1),
        first_conversion=np.cumsum([0, *map(len, delays)]),
        delay=np.array(flat, np.int64),
        value=np.arange(1.0, len(flat) + 1.0),
        n_actions=k,
    )
