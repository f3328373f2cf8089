"""Delays shorter than a time stamp: drawn within it, and said first where the value depends on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import audit, compare, replay
from evaluator.log import Log
from evaluator.log.reward_kinds import cost_events, with_rewards
from evaluator.log.times import delays_within_stamps
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.rounds.survey import survey
from evaluator.replays.run import execute
from tests.stamped_world import DAY, StampedWorld, drawn

FIRST = "Time stamps decide this value"


def world(seed: int = 1, **of: Any) -> StampedWorld:
    return drawn(seed, displays=8_000, days=8.0, **of)


@pytest.mark.parametrize("mean", [0.02, 0.3, 3.0])
def test_delays_drawn_within_stamps_are_those_of_their_law(mean: float) -> None:
    rng, n = np.random.default_rng(5), 100_000
    true = rng.exponential(mean, n)
    found = delays_within_stamps((rng.random(n) + true).astype(np.int64), rng.random(n))
    # The mean of the stamps between, from which the law is known, has the larger error where delays are short.
    error = np.sqrt(mean * (1.0 + mean) / n)
    assert abs(found.mean() - mean) < 4 * error
    for q in (0.25, 0.5, 0.75, 0.95):
        share = float((found <= -mean * np.log1p(-q)).mean())
        assert abs(share - q) < 4 * (np.sqrt(q * (1 - q) / n) + error / mean * -np.log1p(-q) * (1 - q))


def test_delays_that_cross_no_stamp_are_short() -> None:
    assert delays_within_stamps(np.zeros(1_000, np.int64), np.random.default_rng(0).random(1_000)).max() < 0.02
    assert len(delays_within_stamps(np.zeros(0, np.int64), np.zeros(0))) == 0


def test_fine_stamps_are_counted_as_they_are() -> None:
    """Delays of ten stamps and more, stamps of few displays, and times that are rounds."""
    of = world()
    for log in (of.log(1), of.log(60), world(mean_delay=20 * DAY).log(DAY), of.log(DAY).with_meta(tick="round")):
        assert survey(log).ends is None
    assert not any("multiples" in said or "stamp" in said for said in replay(of.log(1), "klucb").warnings)


def test_drawn_delays_are_on_average_those_of_the_fine_log_between_the_ends() -> None:
    of = world(mean_delay=DAY / 2)
    fine, found = survey(of.log(1)), survey(of.log(DAY))
    assert found.ends is not None
    begun, ended = found.ends
    assert (begun <= ended).all()
    # A delay of m stamps has k between them of variance no more than m (1 + m).
    error = found.rate * DAY * np.sqrt(0.5 * 1.5 / len(found.delay))
    assert abs(found.delay.mean() - fine.delay.mean()) < 4 * error
    assert begun.mean() < found.delay.mean() < ended.mean()


def test_costs_are_told_at_once() -> None:
    log = world().log(DAY)
    paying = log.displays.append_column("cost", pa.array(np.full(len(log), 0.01)))
    found = survey(with_rewards(Log(paying, log.conversions, log.actions, log.meta), costs=True))
    costs = cost_events(found.log.conversions)
    assert costs is not None
    assert found.ends is not None
    assert not any(delay[costs].any() for delay in (found.delay, *found.ends))
    assert found.delay[~costs].mean() > 10


def test_displays_that_are_a_part_of_the_traffic_are_counted_in_it() -> None:
    log = world().log(DAY)
    found, alike = survey(log), survey(world().log(DAY, position=True))
    assert np.array_equal(found.delay, alike.delay)


def test_a_value_that_rests_on_coarse_stamps_says_so_first() -> None:
    of = world()
    fine, coarse, days = (replay(log, "klucb") for log in (of.log(1), of.log(DAY), of.log(DAY, tick="d")))
    assert coarse.warnings[0].startswith(FIRST)
    assert coarse.value == days.value
    assert coarse.warnings == days.warnings
    assert any("within a stamp they are drawn" in said for said in coarse.assumptions)
    # What it advises: finer times.
    assert not any("stamp" in said for said in (*fine.warnings, *fine.assumptions))
    # Each line of a comparison too; a policy that learns nothing rests on no delay.
    told = compare(of.log(DAY), ["klucb", "random"], baseline="klucb")
    assert told.results[0].warnings[0].startswith(FIRST)
    assert not any("stamp" in said for said in (*told.results[1].warnings, *told.results[1].assumptions))


def test_coarse_stamps_give_the_same_result_in_any_batches_and_threads() -> None:
    log = world().log(DAY)
    found = [
        execute(plan_replay(log, resolve("ucb1"), ReplayOptions(repeats=2, jobs=jobs)), batch_size=size)
        for size, jobs in ((100_000, 1), (1_500, 2))
    ]
    assert found[0].value == found[1].value
    assert found[0].warnings == found[1].warnings
    assert found[0].trajectory.equals(found[1].trajectory)


def test_the_ends_are_replays_told_at_the_beginning_and_at_the_end() -> None:
    log = world().log(DAY)
    plan = plan_replay(log, resolve("ucb1"), ReplayOptions())
    known = survey(log)
    assert known.ends is not None
    for end, delay in zip(plan.told_at_ends(), known.ends, strict=True):
        assert np.array_equal(end.rounds.delay, delay)
        told = replace(plan, survey=replace(known, delay=delay, ends=None), rounds=replace(plan.rounds, delay=delay))
        assert execute(end).value == execute(told).value


def test_an_audit_of_coarse_stamps_is_not_that_of_bursts() -> None:
    found = audit(world().log(DAY), ["klucb"], twins=10, window="3d")
    assert not found.policies[0].biased
    assert found.warnings[0].startswith("Times are multiples of 1 d")
    assert not audit(world().log(1), ["klucb"], twins=10).warnings
