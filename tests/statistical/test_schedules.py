"""Replay of a schedule on logs drawn from a world is that world played live with it: traffic, delays, policies, clocks.

And what looks as right is not: the ways of timing pushes and feedback that a thinned log suggests.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest

from evaluator.api import plan
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from tests.scheduled import DAY, HOUR, Schedule, Traffic, Way, World, displays_for, draw_log, live_regrets
from tests.statistical.runs import Floats, off, replayed_regrets

HORIZON = 2000
ARMS, LINEAR = (0.5, 0.4, 0.3, 0.2, 0.1), (0.0,) * 4
# It does something with each round that passes, as do `discarding-ucb`, `qpm-d` and `waitlinucb`.
ONLINE = "delayed-ucb:cdf=online,model=uncensored"
CONTEXTUAL = ("linucb", "otflinucb", "waitlinucb")
SHARES = {"traffic": 1.0, "half": 0.5}
LAGS = {"0": 0.0, "6h": 6 * HOUR, "24h": 24 * HOUR}
# So many that the smallest of the mistakes below is six standard errors of a cell's difference.
LIVE, REPLAYED = 500, 120


class Cell(NamedTuple):
    """A world, a deployment in it, and how it is replayed.

    Delays are `short`, `equal` or `long` beside the time between two pushes. The clock is the traffic clock at full or
    `half` share, or the wall clock, which is right for a rollout on the share that is accepted. Of `all` actions, or of
    `sets`, the policy chooses.
    """

    traffic: str
    every: str | int
    lag: str
    delays: str
    policy: str
    window: str
    clock: str
    sampler: str
    actions: str

    @property
    def hourly(self) -> bool:
        return self.every == "1h"

    @property
    def contextual(self) -> bool:
        return self.policy in CONTEXTUAL

    @property
    def per_day(self) -> float:
        return 1000.0 if self.hourly else 200.0

    @property
    def world(self) -> World:
        means = LINEAR if self.contextual else ARMS
        live_days = HORIZON / self.per_day / self.share
        traffic = {
            "even": Traffic(per_day=self.per_day),
            "rhythm .5": Traffic(per_day=self.per_day, rhythm=0.5),
            "rhythm .9": Traffic(per_day=self.per_day, rhythm=0.9),
            # As many rounds in three fifths of the days.
            "growth": Traffic(per_day=0.6 * self.per_day, growth=5.0, over=0.6 * live_days),
        }[self.traffic]
        mean_delay = {"short": 0.1, "equal": 1.0, "long": 10.0 if self.hourly else 3.0}[self.delays]
        return World(
            traffic=traffic,
            means=means,
            mean_delay=mean_delay * (HOUR if self.hourly else DAY),
            dimension=3 if self.contextual else 0,
            sets=self.actions == "sets",
        )

    @property
    def share(self) -> float:
        """Share of the traffic that the policy serves."""
        return SHARES.get(self.clock, 1.0 / len(LINEAR if self.contextual else ARMS))

    @property
    def schedule(self) -> Schedule:
        # On the wall clock a replay counts logged displays, of which the policy serves its share.
        every = round(self.every * self.share) if isinstance(self.every, int) and self.clock == "wall" else self.every
        return Schedule(every=every, lag=LAGS[self.lag])

    @property
    def window_s(self) -> float | None:
        return 1.5 * self.world.mean_delay if self.window == "duration" else None

    @property
    def options(self) -> dict[str, Any]:
        delay = max(round(self.world.mean_delay * self.per_day / DAY), 1)
        window = {"none": None, "rounds": 2 * delay, "duration": f"{1.5 * self.world.mean_delay:.0f}s"}
        return {
            "window": window[self.window],
            "delays": f"geometric:{delay}",
            "clock": "wall" if self.clock == "wall" else "traffic",
            "traffic_share": SHARES.get(self.clock, 1.0),
            "sampler": self.sampler,
            "learn_every": self.every,
            "learn_lag": self.lag,
        }

    def log(self, seed: int) -> Log:
        world = self.world
        return draw_log(world, displays_for(HORIZON, len(world.means)), seed)

    def setting(self) -> Setting:
        """Return what the policy is told; rounds of a duration are those of a middling log."""
        told = [plan(self.log(seed), self.policy, horizon=HORIZON, **self.options).setting for seed in range(5)]
        return sorted(told, key=lambda setting: setting.window)[2]


# Each policy plainly, then what has every two settings meet. Where a schedule names no time, delays count displays from
# the accepted one's own place in the log, as without a schedule: while traffic grows that is another delay.
CELLS = [Cell(*cell) for cell in (
    ("even", "1d@03:00", "0", "equal", "ucb1", "none", "traffic", "rejection", "all"),
    ("rhythm .9", "1d@03:00", "0", "equal", "thompson", "none", "traffic", "queue", "all"),
    ("growth", "1d@03:00", "0", "equal", "klucb", "none", "traffic", "keep", "all"),
    ("rhythm .5", "1d@03:00", "0", "equal", "delayed-ucb", "none", "traffic", "rejection", "all"),
    ("growth", "1h", "0", "equal", "delayed-klucb", "none", "traffic", "rejection", "all"),
    ("rhythm .9", "1h", "0", "equal", "linucb", "none", "traffic", "rejection", "all"),
    ("growth", "1h", "0", "equal", "otflinucb", "none", "traffic", "rejection", "all"),
    ("rhythm .9", "1d@03:00", "6h", "long", ONLINE, "none", "traffic", "rejection", "all"),
    ("growth", "1d@03:00", "0", "short", "discarding-ucb", "rounds", "traffic", "rejection", "all"),
    ("even", 200, "0", "equal", "ucb1", "none", "traffic", "keep", "all"),
    ("rhythm .5", "1d@03:00", "6h", "long", "ucb1", "rounds", "half", "keep", "all"),
    ("rhythm .9", "1h", "6h", "long", "ucb1", "duration", "half", "queue", "all"),
    ("growth", "1h", "24h", "short", "ucb1", "duration", "wall", "rejection", "sets"),
    ("even", "1h", "24h", "short", "thompson", "rounds", "traffic", "queue", "all"),
    ("rhythm .5", "1d@03:00", "0", "long", "thompson", "none", "traffic", "keep", "all"),
    ("rhythm .9", "1h", "24h", "equal", "thompson", "none", "half", "rejection", "sets"),
    ("growth", 200, "6h", "equal", "thompson", "duration", "wall", "rejection", "sets"),
    ("even", "1d@03:00", "6h", "equal", "klucb", "duration", "half", "queue", "all"),
    ("rhythm .5", "1d@03:00", "0", "long", "klucb", "duration", "wall", "rejection", "sets"),
    ("rhythm .9", 200, "24h", "short", "klucb", "none", "half", "keep", "all"),
    ("growth", "1h", "0", "short", "klucb", "rounds", "traffic", "keep", "all"),
    ("even", "1h", "24h", "equal", "delayed-ucb", "duration", "wall", "rejection", "sets"),
    ("rhythm .5", 200, "0", "long", "delayed-ucb", "rounds", "traffic", "rejection", "all"),
    ("rhythm .9", "1d@03:00", "6h", "short", "delayed-ucb", "duration", "traffic", "keep", "all"),
    ("growth", "1h", "6h", "equal", "delayed-ucb", "none", "half", "queue", "all"),
    ("even", 200, "24h", "equal", "delayed-klucb", "rounds", "wall", "rejection", "sets"),
    ("rhythm .5", "1h", "6h", "long", "delayed-klucb", "none", "half", "keep", "all"),
    ("rhythm .9", "1d@03:00", "0", "short", "delayed-klucb", "none", "traffic", "queue", "all"),
    ("growth", 200, "24h", "short", "delayed-klucb", "duration", "half", "rejection", "all"),
    ("even", "1h", "0", "short", "qpm-d", "rounds", "traffic", "rejection", "all"),
    ("rhythm .5", "1h", "24h", "equal", "qpm-d", "rounds", "half", "keep", "all"),
    ("rhythm .5", 200, "0", "short", "qpm-d", "duration", "traffic", "queue", "all"),
    ("rhythm .9", "1h", "0", "long", "qpm-d", "none", "wall", "rejection", "all"),
    ("growth", "1d@03:00", "6h", "equal", "qpm-d", "duration", "half", "keep", "all"),
    ("even", "1d@03:00", "24h", "long", "linucb", "none", "traffic", "rejection", "sets"),
    ("rhythm .5", "1d@03:00", "0", "equal", "linucb", "none", "half", "rejection", "sets"),
    ("rhythm .9", "1h", "0", "short", "linucb", "duration", "half", "rejection", "sets"),
    ("growth", 200, "6h", "equal", "linucb", "rounds", "wall", "rejection", "all"),
    ("even", "1d@03:00", "24h", "long", "otflinucb", "rounds", "half", "rejection", "all"),
    ("rhythm .5", "1h", "0", "long", "otflinucb", "duration", "wall", "rejection", "sets"),
    ("rhythm .9", 200, "24h", "short", "otflinucb", "duration", "traffic", "rejection", "sets"),
    ("growth", 200, "6h", "equal", "otflinucb", "none", "traffic", "rejection", "sets"),
    ("even", 200, "24h", "short", "waitlinucb", "duration", "traffic", "rejection", "sets"),
    ("rhythm .5", 200, "6h", "long", "waitlinucb", "duration", "traffic", "rejection", "sets"),
    ("rhythm .9", "1h", "0", "equal", "waitlinucb", "rounds", "half", "rejection", "sets"),
    ("growth", "1d@03:00", "0", "long", "waitlinucb", "rounds", "wall", "rejection", "all"),
)]  # fmt: skip


def live(cell: Cell, *, runs: int = LIVE, way: Way = "right") -> Floats:
    policy = resolve(cell.policy)
    return live_regrets(
        policy, cell.setting(), cell.world, cell.schedule, runs=runs, seed=1, share=cell.share, window=cell.window_s,
        way=way,
    )  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: " ".join(map(str, cell)))
def test_a_replayed_schedule_is_the_live_one(cell: Cell) -> None:
    [replayed] = replayed_regrets(cell.log, [cell.policy], runs=REPLAYED, horizon=HORIZON, **cell.options)
    z = off(replayed, live(cell))
    assert abs(z) < 4, z


def test_every_two_settings_meet() -> None:
    # But those that plans refuse.
    def refused(pair: dict[str, Any]) -> bool:
        rejection = pair.get("policy") in CONTEXTUAL or pair.get("actions") == "sets" or pair.get("clock") == "wall"
        return (
            (rejection and pair.get("sampler", "rejection") != "rejection")
            or (pair.get("policy"), pair.get("window")) == ("waitlinucb", "none")
            or (pair.get("policy"), pair.get("actions")) == ("qpm-d", "sets")
        )

    names = Cell._fields
    values = {name: {getattr(cell, name) for cell in CELLS[9:]} for name in names}
    met = {(a, getattr(c, a), b, getattr(c, b)) for c in CELLS for a, b in combinations(names, 2)}
    every = {(a, x, b, y) for a, b in combinations(names, 2) for x, y in product(values[a], values[b])}
    assert {pair for pair in every - met if not refused({pair[0]: pair[1], pair[2]: pair[3]})} == set()


# A replay that times pushes or feedback so lives another deployment.
WRONG: list[tuple[Way, str, str, str]] = [
    ("log's calendar", "even", "equal", "ucb1"),
    ("log's calendar", "growth", "short", "klucb"),
    ("mean rate", "growth", "equal", "ucb1"),
    ("display's own time", "even", "equal", "ucb1"),
    ("display's own time", "rhythm .9", "short", "klucb"),
    ("delays in displays", "growth", "equal", "thompson"),
    ("displays at once", "even", "equal", "ucb1"),
    ("draws held", "even", "equal", "thompson"),
    ("draws held", "even", "short", "ucb1"),
]


@cache
def right(cell: Cell) -> Floats:
    return live(cell)


@pytest.mark.parametrize(("way", "traffic", "delays", "policy"), WRONG)
def test_what_only_looks_right_is_far_off(way: Way, traffic: str, delays: str, policy: str) -> None:
    cell = Cell(traffic, "1d@03:00", "0", delays, policy, "none", "traffic", "rejection", "all")
    z = off(live(cell, way=way), right(cell))
    assert abs(z) > 5, z
