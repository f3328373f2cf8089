"""Verdicts on logs of known truth: what is no better than was asked hardly ever ships, what is better by far does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from evaluator import compare
from evaluator.checks.options import CheckOptions
from evaluator.checks.run import CheckReport, check_log
from evaluator.log import Log
from tests.bench.verdicts import apart, earned_more, learning, steady
from tests.comparisons.test_verdict import shown
from tests.untidy.kinds import KINDS

# Those whose numbers a defect moves, and those that move intervals.
DEFECTS = ("swapped propensities", "stale propensities", "copied displays", "outage", "heavy tails, no window", "gap")
TRAFFIC = ("tidy", "daily rhythm", "drift of the rates", "rates by hour", "heavy revenue", "sample of the traffic")
# Half of 1 - level, which all lines together share.
ERROR = 0.025


@pytest.fixture(scope="module", autouse=True)
def _each_log_is_checked_once() -> Iterator[None]:
    """Check a log once for all that is compared on it, by whatever rule: its check knows neither policies nor rules."""
    done: dict[int, tuple[Log, CheckOptions, CheckReport]] = {}

    def check_once(log: Log, how: CheckOptions, *advance: Any) -> CheckReport:
        if id(log) not in done or done[id(log)][1] != how:
            done[id(log)] = log, how, check_log(log, how, *advance)
        return done[id(log)][2]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluator.comparisons.run.check_log", check_once)
        yield


@pytest.mark.parametrize("kinds", [DEFECTS, TRAFFIC])
def test_what_earns_just_what_was_asked_does_not_ship(kinds: tuple[str, ...]) -> None:
    found = [one for name in kinds for seed in range(4) for one in steady(KINDS[name], seed)]
    assert found.count("ship") <= binom.ppf(0.999, len(found), ERROR)


def test_a_rule_in_per_cent_ships_as_rarely_and_what_is_far_better_all_the_same() -> None:
    found = [one for name in TRAFFIC for seed in range(4) for one in steady(KINDS[name], seed, per_cent=True)]
    assert found.count("ship") <= binom.ppf(0.999, len(found), ERROR)
    far = [one for seed in range(3) for one in steady(KINDS["tidy"], seed, beyond=0.12, per_cent=True)]
    assert set(far) == {"ship"}


def test_policies_that_learn_do_not_ship_where_all_earn_alike() -> None:
    found = [learning(KINDS[name], seed) for name in ("tidy", "growth", "revenue") for seed in range(8)]
    assert not any(one.startswith("refused") for one in found)
    assert found.count("ship") <= binom.ppf(0.999, len(found), ERROR)


def test_a_policy_that_learns_ships_six_standard_errors_above_the_rule_and_hardly_ever_on_it() -> None:
    found = [earned_more("tidy", seed) for seed in range(100, 300)]
    truth, error = np.mean(found), np.std(found, ddof=1)
    far = [one for seed in range(20) for one in apart("tidy", truth - 6.0 * error, 0.0, seed)]
    assert set(far) == {"ship"}
    on_it = [one for seed in range(40) for one in apart("tidy", truth, 0.0, seed)]
    assert on_it.count("ship") <= binom.ppf(0.999, len(on_it), ERROR)


def test_what_earns_far_more_than_was_asked_ships() -> None:
    found = [
        one for name in ("tidy", "daily rhythm") for seed in range(3) for one in steady(KINDS[name], seed, beyond=0.1)
    ]
    assert set(found) == {"ship"}


def test_waiting_says_how_many_more_displays_would_tell() -> None:
    """Of a log whose estimate is the truth: the range holds the number that tells it on 80 % of logs."""
    rates, policies = (0.40, 0.426), ["fixed:action=0", "fixed:action=1"]
    for seed in range(100):
        found = compare(shown(rates, n=4_000, seed=seed), policies, baseline=policies[0]).verdict
        assert found is not None
        difference = found.candidates[0].difference
        assert difference is not None
        if abs(difference.estimate - 0.026) < 0.001:
            break
    more = re.fullmatch(
        r"about ([\d,]+) to ([\d,]+) more displays like the 4,000 replayed, .*", found.conditions[0].remedy
    )
    assert more is not None
    told = []
    for number in more.groups():
        n = 4_000 + int(number.replace(",", ""))
        longer = [
            compare(shown(rates, n=n, seed=seed), policies, baseline=policies[0]).verdict
            for seed in range(1_000, 1_020)
        ]
        told.append(sum(of is not None and of.conditions[0].met is True for of in longer) / 20)
    assert told[0] < 0.8 < told[1]
    # A difference of the size of its standard error leaves open how much would tell it.
    near = compare(shown((0.40, 0.41), n=4_000, seed=3), policies, baseline=policies[0]).verdict
    assert near is not None
    assert near.conditions[0].remedy == "a longer log: how much longer, this one does not tell"
