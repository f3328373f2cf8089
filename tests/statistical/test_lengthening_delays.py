"""Delays that change along a log: said where a log can tell, at the stated rate of false alarms, and not silently."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.product_limit import Observed
from evaluator.delays.study.changes import POWER, compare_days
from tests.delays.lengthening import LAWS, MEAN, SPAN, TRAFFIC, World, verdict

LOGS = 60


def compared(world: World, log: int, *, false_alarms: float, stretched: tuple[float, float] = (1.0, SPAN)) -> float:
    """Return the p-value on a log of the world, of whose displays those after a time have longer delays."""
    rows = world.rows(np.random.default_rng([log, 13]))
    delay, limit, periods = rows.delay, rows.limit, rows.periods
    assert limit is not None
    assert periods is not None
    ratio, since = stretched
    delay = np.where(limit < SPAN - 1 - since, delay * ratio, delay).astype(np.int64)
    seen = delay <= limit
    return compare_days(
        Observed(delay[seen], limit[seen]), periods.of[seen],
        false_alarms=false_alarms, permutations=99, rows=20_000, seed=log,
    ).p  # fmt: skip


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_come_at_the_stated_rate(traffic: str, law: str) -> None:
    rate, logs = 0.1, 150
    world = World("none", law, 500, traffic)
    alarms = np.mean([compared(world, log, false_alarms=rate) <= rate for log in range(logs)])
    assert abs(alarms - rate) <= 4 * math.sqrt(rate * (1 - rate) / logs)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("part", [0, 1], ids=["after half", "after three quarters"])
def test_what_is_said_to_be_shown_is_found(law: str, part: int) -> None:
    """Changes of the size that a log says it would show are found about as often as it says."""
    world = World("none", law, 1500)
    rows = world.rows(np.random.default_rng(3))
    assert rows.periods is not None
    shown = compare_days(
        Observed(rows.delay, rows.limit), rows.periods.of, false_alarms=0.05, permutations=399, rows=20_000, seed=0
    ).shown[part]
    assert shown.ratio is not None
    change = (shown.ratio, (shown.after + 1) * 1440)
    found = np.mean([compared(world, log, false_alarms=0.05, stretched=change) <= 0.05 for log in range(LOGS)])
    assert found >= POWER - 4 * math.sqrt(POWER * (1 - POWER) / LOGS)
    # A change of a third of the logarithm is not.
    less = (shown.ratio ** (1 / 3), change[1])
    assert np.mean([compared(world, log, false_alarms=0.05, stretched=less) <= 0.05 for log in range(LOGS)]) < 0.5


@pytest.mark.parametrize("change", ["x 2 in the last week", "x 2 from half time", "x 2 over the log"])
def test_doubled_delays_are_not_silently_wrong(change: str) -> None:
    """On 3,000 conversions, of which 370 are of the last week; on 1,200 even the law and the day known find 95 %."""
    found = np.mean([verdict((change, "exponential", 3000), log) for log in range(LOGS)], axis=0)
    _, keeps, said, silent, _ = found
    assert said >= 0.9
    assert silent <= 0.1
    if "over" not in change:  # the newest displays of a trend are slower than the mean of any part
        assert keeps >= 0.85


def test_undisturbed_delays_keep_their_promise() -> None:
    holds, keeps, said, _, days = np.mean([verdict(("none", "exponential", 3000), log) for log in range(LOGS)], axis=0)
    error = 4 * math.sqrt(0.05 * 0.95 / LOGS)
    assert holds >= 0.95 - error
    assert keeps >= 0.95 - error
    assert said <= 0.05 + error
    assert days <= 1.5 * math.log(10) * MEAN / 1440
