"""Rules in per cent of what the baseline earns, and the interval of that share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator import compare
from evaluator.comparisons.expected import expected_difference
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.uplift import expected_share, share_of_baseline
from evaluator.estimates.confidence import ANYTIME, Interval
from evaluator.replays.values.expected_values import expected_differences
from tests.comparisons.test_verdict import by_name, shown

STEADY = ["fixed:action=0", "fixed:action=1"]


@pytest.fixture(scope="module")
def learned() -> Comparison:
    return compare(shown((0.3, 0.8)), ["random", "ucb1"], bootstrap=40, horizon=1_000, ship_if="uplift > 5%")


def test_a_rule_in_per_cent_asks_for_a_share_of_what_the_baseline_earns() -> None:
    """.6 is 200 % more than .2, and the ends of the difference alone, over .2, are 180 and 220 %."""
    log = shown((0.2, 0.6), n=20_000)
    decisions = {
        rule: compare(log, STEADY, ship_if=f"uplift > {rule}").verdict
        for rule in ("100%", "0.1", "200%", "300%", "-5%")
    }
    found = {rule: verdict.decision for rule, verdict in decisions.items() if verdict is not None}
    assert found == {"100%": "ship", "0.1": "ship", "200%": "wait", "300%": "don't", "-5%": "ship"}
    of = compare(log, STEADY, ship_if="uplift > 200%")
    assert by_name(of)["difference"].what == "its interval does not lie above the 200 % asked for"
    assert of.verdict is not None
    assert of.verdict.rule.relative


def test_a_policy_that_learns_is_judged_by_pairs(learned: Comparison) -> None:
    """The share's interval ends where that of the variant less so many times the baseline, from pairs, ends at 0."""
    assert learned.verdict is not None
    assert learned.verdict.decision == "ship"
    base, variant = learned.results
    share = expected_share(variant, base, level=0.95)
    difference = expected_difference(variant, base, level=0.95).interval
    assert share is not None
    assert difference is not None
    for end, at in ((share.low, "low"), (share.high, "high")):
        (_, of) = expected_differences([base, variant], level=0.95, times=1.0 + end)
        assert abs(getattr(of, at)) < 1e-6
    assert share.estimate == pytest.approx(difference.estimate / base.value.estimate)


def test_the_interval_of_the_share_holds_as_often_as_it_says(learned: Comparison) -> None:
    """Of pairs that are known, drawn 300 times: of correlated normal values, D = .1 and B = .5 +- .05."""
    rng, true, level = np.random.default_rng(5), 0.2, 0.9
    base, variant = learned.results
    held = 0
    for _ in range(300):
        noise = rng.multivariate_normal([0, 0], [[0.0025, 0.0022], [0.0022, 0.0025]], 41)
        values = np.array([0.6, 0.5]) + noise
        of_variant, of_base = (
            replace(one, value=replace(one.value, estimate=values[0, k]), resampled=tuple(noise[1:, k]))
            for k, one in enumerate((variant, base))
        )
        share = expected_share(of_variant, of_base, level=level)
        assert share is not None
        held += share.low <= true <= share.high
    # The widening for tails makes it hold a little more often.
    assert 300 * level - 4 * (300 * level * (1 - level)) ** 0.5 <= held


def test_without_pairs_the_baseline_lies_anywhere_in_its_interval() -> None:
    """The error of both is shared: what the baseline's interval leaves open makes that of the share longer."""
    asked: list[float] = []

    def difference(level: float) -> Interval:
        asked.append(level)
        return Interval(0.1, 0.05, 0.15, 100, level, ANYTIME)

    narrow, wide = (
        share_of_baseline(difference, Interval(0.5, 0.5 - h, 0.5 + h, 100, 0.95, ANYTIME), level=0.95)
        for h in (0.001, 0.1)
    )
    assert asked == [pytest.approx(0.955)] * 2
    assert narrow is not None
    assert wide is not None
    assert 0.09 < narrow.low < 0.1 < 0.3 < narrow.high < 0.31
    assert wide.low < 0.05 / 0.6
    assert wide.high > 0.15 / 0.4
    # From 95 % to 99.5 % an interval grows at most by log(2 / .005) / log(2 / .05).
    grown = np.log(2 / 0.005) / np.log(2 / 0.05)
    assert wide.high == pytest.approx(0.15 / (0.5 - 0.1 * grown))
    assert share_of_baseline(difference, Interval(0.1, -0.1, 0.3, 100, 0.95, ANYTIME), level=0.95) is None


def test_per_cent_of_next_to_nothing_decide_nothing() -> None:
    found = compare(shown((0.0, 0.5), n=2_000), STEADY, ship_if="uplift > 1%")
    assert found.verdict is not None
    assert found.verdict.decision == "wait"
    assert "not told to lie above 0" in by_name(found)["difference"].what
