"""Values, uplifts and differences in groups: all intervals hold at once, and groups that are alike are not told apart.

Truth is what the displays of a group, as they were shown, were expected to earn, by the rates of the world. Policies
learn, some groups come late, and so meet another policy than those before them; actions earn other rewards in other
groups. At a level that low, intervals fail often enough to be counted. At the default level:
``python -m tests.bench.segments``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

from evaluator import Log, compare
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import Interval
from evaluator.log.column import read_groups
from evaluator.replays.result import ReplayResult
from tests.logs import build_log
from tests.untidy.defects import rows_of
from tests.untidy.kinds import KINDS
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards
from tests.untidy.writing import as_log

LEVEL, LOGS, DISPLAYS, SOME = 0.5, 40, 6000, 10
POLICIES = ("ucb1", "thompson", "fixed:action=1")
NAMES = ("value", "uplift", "difference")
BY = "place,part,age"
UNTIDY = ("daily rhythm", "drift of the rates", "delays by action", "rates by hour", "launch and retirement",
          "rhythm and ties")  # fmt: skip

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class World(NamedTuple):
    """A log, what each action is expected to earn at each of its displays, shape (n, K), and how it is replayed."""

    log: Log
    expected: Floats
    options: dict[str, Any]


def with_groups(log: Log, seed: int) -> Log:
    """Return a log with places, of unlike size, with parts of its time, and with numbers, of which some are missing."""
    rng, n = np.random.default_rng([seed, 3]), len(log)
    share = np.linspace(1, 3, 8)
    age = pa.array([None if x < 20 else int(x) for x in rng.integers(10, 80, n)])
    columns = {
        "place": pa.array(np.array([f"p{i}" for i in range(8)])[rng.choice(8, n, p=share / share.sum())]),
        "part": pa.array(np.array([f"t{i}" for i in range(10)])[np.arange(n) * 10 // n]), "age": age,
    }  # fmt: skip
    displays = log.displays
    for name, column in columns.items():
        displays = displays.append_column(name, column)
    return log.changed(displays=displays)


def tidy(seed: int, *, effect: float = 0.3, **options: Any) -> World:
    """Return a log of two actions, of which the second helps in some places as much as it harms in the others."""
    rng = np.random.default_rng(seed)
    logger = np.array([0.5, 0.5]) if options.pop("even", True) else np.array([0.35, 0.65])
    action = rng.choice(2, DISPLAYS, p=logger)
    bare = with_groups(build_log(time=np.arange(DISPLAYS), action=action, n_actions=2, propensity=logger[action]), seed)
    helps = np.array([int(place[1:]) % 2 for place in bare.displays["place"].to_pylist()])
    expected = np.stack([np.full(DISPLAYS, 0.4), 0.4 + effect * (helps - 0.5)], axis=1)
    sold = np.flatnonzero(rng.random(DISPLAYS) < expected[np.arange(DISPLAYS), action])
    when = sold + rng.geometric(1 / 50, len(sold))
    conversions = pa.table(
        {"display_id": pa.array(sold), "time": pa.array(when), "value": pa.array(np.ones(len(sold)))}
    )
    return World(bare.with_conversions(conversions), expected, {"window": 150, **options})


def untidy(name: str) -> Callable[[int], World]:
    """Return what draws untidy logs of a kind."""
    kind = KINDS[name]

    def world(seed: int) -> World:
        traffic = draw_traffic(kind.untidy, seed)
        log, of = as_log(traffic, rows_of(traffic, seed))
        cut = None if kind.window_s is None else float(kind.window_s)
        expected = expected_rewards(traffic, window_s=cut)[of]
        return World(with_groups(log, seed), expected, {"window": kind.window, **kind.options})

    return world


class Found(NamedTuple):
    """One number of one group: its interval, what is true, and the half-width of a normal interval of it alone."""

    interval: Interval
    truth: float
    normal: float


def first_rounds(result: ReplayResult, rounds: int) -> tuple[Ints, Ints, Floats]:
    """Return displays, actions and rewards of a replay's first rounds."""
    columns = ("display_id", "action", "reward")
    display, action, reward = (result.trajectory[name].to_numpy()[:rounds] for name in columns)
    return display, action, reward


def variance(rewards: Floats) -> float:
    """Return the variance of a mean; 0 of a single reward, of which it is not known."""
    return float(rewards.var() / max(len(rewards) - 1, 1))


def numbers(world: World, found: Comparison, level: float) -> Iterator[tuple[str, Found]]:
    """Yield every number of every group with rounds: values and uplifts of one line, and all differences."""
    z = float(stats.norm.ppf(1 - (1 - level) / 2))
    line, logged = found.results[0], world.log.column("action")
    display, action, reward = first_rounds(line, line.rounds)
    for split in line.segments:
        code = read_groups(world.log, split.column)[0].code
        for g, group in enumerate(split.groups):
            mine, members = code[display] == g, np.flatnonzero(code[: line.plan["displays_used"]] == g)
            assert (group.value.n, group.displays) == (mine.sum(), len(members))
            if not mine.any():
                continue
            value = world.expected[display[mine], action[mine]].mean()
            uplift = value - world.expected[members, logged[members]].mean()
            yield "value", Found(group.value, value, z * variance(reward[mine]) ** 0.5)
            yield "uplift", Found(group.uplift, uplift, z * (variance(reward[mine]) * 1.5) ** 0.5)
    for of in found.segments:
        code = read_groups(world.log, of.column)[0].code
        for g, difference in enumerate(of.groups):
            sides = []
            for i in (of.variant, of.reference):
                display, action, reward = first_rounds(found.results[i], found.horizon.rounds)
                mine = code[display] == g
                if mine.any():
                    sides.append((world.expected[display[mine], action[mine]].mean(), variance(reward[mine])))
            if len(sides) < 2:
                continue
            (a, of_a), (b, of_b) = sides
            yield "difference", Found(difference.realised, a - b, z * (of_a + of_b) ** 0.5)


class Missed(NamedTuple):
    """Of one log, whether any interval of each of `NAMES` failed: as given, and normal ones that stand alone."""

    given: dict[str, bool]
    alone: dict[str, bool]


def missed(world: World, seed: int, level: float = LEVEL) -> Missed:
    """Compare on one log."""
    found = compare(
        world.log, POLICIES, baseline=POLICIES[0], by=BY, level=level, seed=seed, **{"bootstrap": 0, **world.options}
    )
    given, alone, tiny = dict.fromkeys(NAMES, False), dict.fromkeys(NAMES, False), 1e-9
    for name, one in numbers(world, found, level):
        of = one.interval
        given[name] |= not of.low - tiny <= one.truth <= of.high + tiny
        alone[name] |= abs(of.estimate - one.truth) > one.normal + tiny
    return Missed(given, alone)


def most(logs: int, alpha: float = 1 - LEVEL) -> float:
    """Logs with a failure that are not beyond 4 standard errors of chance."""
    return alpha * logs + 4 * float(np.sqrt(alpha * (1 - alpha) * logs))


TIDY: dict[str, dict[str, Any]] = {"keep": {}, "rejection": {"even": False}, "queue": {"sampler": "queue"}}


@cache
def runs(name: str) -> tuple[Missed, ...]:
    if name in TIDY:
        return tuple(missed(tidy(seed, **TIDY[name]), seed) for seed in range(LOGS))
    draw = untidy(name)
    return tuple(missed(draw(seed), seed) for seed in range(SOME))


@pytest.mark.parametrize("name", TIDY)
def test_intervals_of_all_groups_hold_at_once(name: str) -> None:
    found = runs(name)
    for number in NAMES:
        assert sum(one.given[number] for one in found) <= most(len(found)), number


@pytest.mark.parametrize("name", UNTIDY)
def test_intervals_of_all_groups_hold_at_once_on_untidy_logs(name: str) -> None:
    found = runs(name)
    for number in NAMES:
        assert sum(one.given[number] for one in found) <= most(len(found)), number


def test_intervals_that_each_stand_alone_would_not_hold_at_once() -> None:
    """The tempting way: one normal interval a group, at the run's level."""
    for name in TIDY:
        found = runs(name)
        for number in NAMES:
            assert sum(one.alone[number] for one in found) > most(len(found)), (name, number)


def told_apart(world: World, policies: tuple[str, ...], level: float, seed: int) -> list[bool]:
    """Return whether any column's groups are told apart: by the uplift of the first line, and by the differences."""
    found = compare(
        world.log, policies, baseline=policies[0], by=BY, level=level, seed=seed, **{"bootstrap": 0, **world.options}
    )
    return [any(of.test.differ for of in found.results[0].segments), any(of.test.differ for of in found.segments)]


@pytest.mark.parametrize("policies", [("random", "fixed:action=1"), ("fixed:action=1", "ucb1"), ("thompson", "ucb1")])
def test_groups_that_are_alike_are_not_told_apart(policies: tuple[str, ...]) -> None:
    """Where no action earns more than another, no uplift nor difference is other than 0, in whatever group."""
    told = np.array([told_apart(tidy(seed, effect=0.0), policies, LEVEL, seed) for seed in range(LOGS)])
    assert (told.sum(axis=0) <= most(LOGS)).all()


def test_groups_that_a_policy_treats_differently_are_told_apart() -> None:
    """At 95 %: a policy that helps by .2 in half of the places, and harms as much in the others."""
    told = np.array(
        [told_apart(tidy(seed, effect=0.8), ("fixed:action=1", "ucb1"), 0.95, seed) for seed in range(SOME)]
    )
    assert told.all()
    log = tidy(0, effect=0.8)
    found = compare(log.log, ["fixed:action=1", "fixed:action=0"], baseline="fixed:action=1", by="place", window=150)
    (split,), (of,) = found.results[0].segments, found.segments
    helped = {f"p{i}" for i in range(8) if i % 2}
    assert {"p5", "p7"} <= {group.label for group in split.groups if group.uplift.low > 0} <= helped
    assert {group.label for group in of.groups if group.realised.high < 0} == helped
