"""Sets that follow outcomes are found at a known level, which calendars, contexts, users and untidy logs keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evaluator
from evaluator.checks.eligibility import what_follows
from evaluator.log import Log
from evaluator.log.eligible import unpack
from tests.checks.test_eligibility_after_displays import stock_log
from tests.logs import build_log
from tests.logs_with_sets import make_log
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic

LOGS, LEVEL = 60, 0.05


def users_log(seed: int) -> Log:
    """Return a log of users who come back at once: what they may see and what they buy are both their own."""
    rng = np.random.default_rng(seed)
    users, visits, k = 150, 30, 5
    sets = np.repeat(rng.random((users, k)) < 0.5, visits, axis=0)
    sets[:, 0] |= ~sets.any(axis=1)
    # Who may see an action buys it.
    n = users * visits
    action = np.array([rng.choice(np.flatnonzero(own)) for own in sets])
    sold = np.flatnonzero(rng.random(n) < sets.mean(axis=1))
    return build_log(
        time=np.arange(n), action=action, propensity=1.0 / sets.sum(axis=1), eligible=sets, n_actions=k,
        conversion_display=sold, conversion_time=sold, reward_max=1.0,
    )  # fmt: skip


def untidy_log(seed: int) -> Log:
    """Return a log with nights, growth, launches, drift, users, and times of a minute, sorted by action within them."""
    traffic = draw_traffic(
        Untidy(
            displays=5_000, days=4.0, means=(0.1, 0.2, 0.3, 0.15), rhythm=0.9, growth=2.0, drift=0.3, rate_by_hour=0.5,
            launches=(0.0, 0.0, 0.3, 0.5), retirements=(1.0, 0.6, 1.0, 1.0), logger=(0.4, 0.3, 0.2, 0.1),
            logger_by_hour=0.5, users=200,
        ),
        seed,
    )  # fmt: skip
    minute = (traffic.time // 60).astype(np.int64)
    order = np.lexsort((traffic.action, minute))
    at = np.arange(len(order)), traffic.action
    return build_log(
        time=minute[order], action=traffic.action[order], propensity=traffic.logger[at][order],
        eligible=traffic.available[order], n_actions=4,
    )  # fmt: skip


def smallest(log: Log) -> float:
    """Return the p-value of the test, adjusted for its reaches."""
    truths = unpack(log.displays["eligible"], log.n_actions)
    of = np.arange(len(log))
    found = what_follows(log.column("time"), of, log.column("action"), log.column("propensity"), truths)
    return float(min(len(found) * np.exp(min(one.log_p for one in found)), 1.0))


NULLS: dict[str, Callable[[int], Log]] = {
    "calendar": lambda seed: make_log(4_000, "calendar", "popularity", seed),
    "context": lambda seed: make_log(4_000, "context", "softmax", seed),
    "random": lambda seed: make_log(4_000, "random", "uniform", seed),
    "constant": lambda seed: make_log(4_000, "constant", "popularity", seed),
    "users": users_log,
    "untidy": untidy_log,
    "stock by the calendar": lambda seed: stock_log(seed, kept=True, n=4_000),
}


@pytest.mark.parametrize("name", NULLS)
def test_false_alarms_are_as_rare_as_stated(name: str) -> None:
    alarms = sum(smallest(NULLS[name](seed)) < LEVEL for seed in range(LOGS))
    # P(Binomial(60, .05) > 9) is 7e-4.
    assert alarms <= 9


@pytest.mark.parametrize(
    "options", [{}, {"away": 100}, {"sells": 0.1, "away": 600}], ids=["as asked", "back soon", "seldom"]
)
def test_stock_that_runs_out_is_found(options: dict[str, Any]) -> None:
    found = sum(smallest(stock_log(seed, n=8_000, **options)) < LEVEL for seed in range(20))
    assert found >= 18, found


@pytest.mark.parametrize("name", ["calendar", "context", "random"])
def test_right_propensities_over_sets_raise_no_more_alarms_than_stated(name: str) -> None:
    alarms = 0
    for seed in range(30):
        p = evaluator.check(NULLS[name](seed))["eligible actions"].p_value
        assert p is not None
        alarms += p < LEVEL
    # P(Binomial(30, .05) > 6) is 6e-4.
    assert alarms <= 6
