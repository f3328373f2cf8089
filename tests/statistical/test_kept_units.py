"""Replay of units that keep their action is the live run in which they keep it; ways that look right are not."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from evaluator.api import plan
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from tests.kept_units import PACE, Way, World, displays_for, draw_log, live_regrets
from tests.replays import test_keep_for
from tests.statistical.runs import Floats, off, regrets, replays

HORIZON = 1500
LIVE, REPLAYED = 500, 120
FEW = World(means=(0.8, 0.5, 0.4), mean_delay=50.0, again=0.7, gap=100.0)
LINEAR = World(means=(0.0,) * 3, mean_delay=50.0, again=0.7, gap=100.0, dimension=3)
LAPSING = World(means=(0.8, 0.5, 0.4), mean_delay=50.0, again=0.8, gap=150.0, lapse=200.0)


class Cell(NamedTuple):
    """A world, a policy, and how it is replayed."""

    world: World
    policy: str
    push_every: int | str = 1
    logger: tuple[float, ...] | None = None
    clock: str = "traffic"

    @property
    def options(self) -> dict[str, Any]:
        lapse = self.world.lapse
        return {
            "horizon": HORIZON,
            "delays": f"geometric:{self.world.mean_delay:.0f}",
            "sampler": "rejection",
            "clock": self.clock,
            "keep_for": "user" if lapse is None else f"user@{lapse * PACE:.0f}s",
            **({"learn_every": self.push_every} if self.push_every != 1 else {}),
        }

    def log(self, seed: int) -> Log:
        return draw_log(self.world, displays_for(self.world, HORIZON), seed, self.logger)

    @property
    def setting(self) -> Setting:
        return plan(self.log(0), self.policy, **self.options).setting


CELLS = [
    Cell(FEW, "ucb1"),
    Cell(FEW, "thompson", logger=(0.25, 0.35, 0.4)),
    Cell(FEW, "klucb", push_every=200),
    Cell(FEW, "delayed-ucb"),
    Cell(LAPSING, "thompson"),
    Cell(LAPSING, "ucb1", push_every=300),
    Cell(LINEAR, "linucb"),
    Cell(LINEAR, "otflinucb", push_every=100),
    Cell(FEW, "ucb1", push_every="8h"),
    Cell(LAPSING, "klucb", push_every="8h", logger=(0.25, 0.35, 0.4)),
    Cell(FEW, "thompson", clock="wall"),
    Cell(FEW, "ucb1", push_every="8h", clock="wall"),
]


@cache
def live(cell: Cell, way: Way = "right") -> Floats:
    runs = LIVE // 3 if way == "first displays alone" else LIVE  # of that way each run needs a log five times as long
    return live_regrets(
        resolve(cell.policy), cell.setting, cell.world, runs=runs, seed=1, push_every=cell.push_every, way=way
    )


@pytest.mark.parametrize(
    "cell", CELLS, ids=lambda cell: f"{cell.policy} {cell.push_every} {cell.world.lapse} {cell.clock}"
)
def test_a_replay_of_kept_units_is_the_live_run(cell: Cell) -> None:
    [replayed] = replays(cell.log, [cell.policy], runs=REPLAYED, **cell.options)
    z = off(regrets(replayed, HORIZON), live(cell, "right" if cell.clock == "traffic" else "share of the units"))
    assert abs(z) < 4, z


def test_first_displays_have_a_value_of_their_own() -> None:
    cell = Cell(FEW, "thompson")
    [replayed] = replays(cell.log, [cell.policy], runs=REPLAYED, **cell.options)
    groups = [result.segments[0].groups for result in replayed]
    assert {of[0].label for of in groups} == {"first display"}
    asked = live_regrets(resolve("thompson"), cell.setting, FEW, runs=LIVE, seed=1, first_alone=True)
    z = off(np.array([of[0].value.estimate for of in groups]), asked)
    assert abs(z) < 4, z


@pytest.mark.parametrize("policy", ["ucb1", "thompson"])
@pytest.mark.parametrize("way", ["order of the log", "asked at each display", "first displays alone"])
def test_what_only_looks_right_is_far_off(way: Way, policy: str) -> None:
    cell = Cell(FEW, policy)
    z = off(live(cell, way), live(cell))
    assert abs(z) > 5, z


@pytest.mark.parametrize(("policy", "keep_for", "days", "options"), test_keep_for.LATER)
def test_a_replay_is_the_slow_loop(policy: str, keep_for: str, days: float | None, options: dict[str, Any]) -> None:
    test_keep_for.test_a_replay_is_the_slow_loop(policy, keep_for, days, options)
