"""Differences in the words of who decides: rules in per cent, money a month, the chance of a loss, a live test."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, compare
from evaluator.arguments import as_descriptions
from evaluator.comparisons.expected import Uplift, expected_difference, expected_share, find_uplift, share_of_baseline
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.run import plan_comparison
from evaluator.comparisons.verdict import ANY_UPLIFT, Condition, decide
from evaluator.estimates.confidence import ANYTIME, Interval
from evaluator.replays.options import ReplayOptions
from evaluator.replays.values.resampled import expected_differences
from evaluator.reports.terminal import stakes
from tests.comparisons.test_verdict import BASELINE, by_name, candidate, shown
from tests.logs import build_log

STEADY = ["fixed:action=0", "fixed:action=1"]


@pytest.fixture(scope="module")
def learned() -> Comparison:
    return compare(
        shown((0.3, 0.8)), ["random", "ucb1"], baseline="random", bootstrap=40, horizon=1_000, ship_if="uplift > 5%"
    )


def test_a_rule_in_per_cent_asks_for_a_share_of_what_the_baseline_earns() -> None:
    """.6 is 200 % more than .2, and the ends of the difference alone, over .2, are 180 and 220 %."""
    log = shown((0.2, 0.6), n=20_000)
    decisions = {
        rule: compare(log, STEADY, baseline=STEADY[0], ship_if=f"uplift > {rule}").verdict
        for rule in ("100%", "0.1", "200%", "300%", "-5%")
    }
    found = {rule: verdict.decision for rule, verdict in decisions.items() if verdict is not None}
    assert found == {"100%": "ship", "0.1": "ship", "200%": "wait", "300%": "don't", "-5%": "ship"}
    of = compare(log, STEADY, baseline=STEADY[0], ship_if="uplift > 200%")
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
    found = compare(shown((0.0, 0.5), n=2_000), STEADY, baseline=STEADY[0], ship_if="uplift > 1%", reward="observed")
    assert found.verdict is not None
    assert found.verdict.decision == "wait"
    assert "not told to lie above 0" in by_name(found)["difference"].what


def timed(rates: tuple[float, ...], *, n: int = 6_000) -> Log:
    """Return a log of a display every ten minutes."""
    log = shown(rates, n=n, tick="s")
    seconds = pa.array(600 * np.arange(n))
    of = log.conversions["display_id"].to_numpy()
    return replace(
        log, displays=log.displays.set_column(log.displays.schema.names.index("time"), "time", seconds),
        events=log.conversions.set_column(1, "time", pa.array(600 * of)),
    )  # fmt: skip


def uplift_of(log: Log, difference: Interval, *, limit: float = 0.0, **options: Any) -> Uplift:
    """Return a difference between two fixed actions in the words of who decides."""
    found = compare(log, STEADY, baseline=STEADY[0], **options)
    plans = plan_comparison(log, as_descriptions(STEADY), [None], ReplayOptions(**options))
    return find_uplift(plans[1], found.results[1], found.results[0], difference, None, limit=limit)


KNOWN = Interval(0.1, 0.05, 0.15, 1_000, 0.95, "known")


def test_a_month_has_the_displays_that_the_log_s_traffic_brings() -> None:
    """144 displays a day; the policy is to serve half of the traffic, of which a tenth was logged."""
    log = timed((0.2, 0.3))
    month = uplift_of(log, KNOWN)
    assert (month.unit, month.displays) == ("month", pytest.approx(144 * 365.25 / 12, rel=1e-3))
    assert month.amount.estimate == pytest.approx(0.1 * month.displays)
    assert month.amount.low == pytest.approx(month.amount.estimate / 2)
    assert month.cost_of_waiting == month.amount.estimate
    part = uplift_of(log.with_meta(sampling_rate=0.1), KNOWN, traffic_share=0.5)
    assert part.displays == pytest.approx(month.displays * 10 / 2)
    loss = uplift_of(log, replace(KNOWN, estimate=-0.1, low=-0.15, high=-0.05))
    assert loss.cost_of_waiting == 0.0
    assert loss.live_test is None
    rounds = uplift_of(shown((0.2, 0.3)), KNOWN)
    assert (rounds.unit, rounds.displays, rounds.cost_of_waiting) == ("thousand displays", 1_000, None)
    assert rounds.live_test is not None
    assert (rounds.live_test.days, rounds.live_test.days_after) == (None, None)


def test_the_chance_of_a_loss_is_what_a_normal_law_leaves_below_0() -> None:
    log, z = shown((0.2, 0.3), n=2_000), 1.959964
    for low, chance in ((0.0, 0.025), (0.1 - 0.1 * z / 1.644854, 0.05), (0.1 - 0.1 * z / 4, 0.0000317)):
        assert uplift_of(log, replace(KNOWN, low=low)).chance_of_loss == pytest.approx(chance, rel=1e-3)
    # Where the interval is not symmetrical the side of losses counts.
    assert uplift_of(log, replace(KNOWN, low=0.0, high=9.0)).chance_of_loss == pytest.approx(0.025, rel=1e-3)


@pytest.mark.parametrize("limit", [0.0, 0.03])
def test_a_live_test_shows_the_difference_with_the_power_it_promises(limit: float) -> None:
    """4,000 live tests of rates .2 and .3, by the normal interval; the log's own variances are known to 1 %."""
    rates = (0.2, 0.3)
    plan = uplift_of(timed(rates, n=40_000), replace(KNOWN, low=0.07), limit=limit).live_test
    assert plan is not None
    arms = np.round([plan.displays * (1 - plan.share), plan.displays * plan.share]).astype(int)
    rng = np.random.default_rng(4)
    means = np.array([rng.binomial(n, rate, 4_000) / n for n, rate in zip(arms, rates, strict=True)])
    error = np.sqrt((means * (1 - means) / arms[:, None]).sum(axis=0))
    power = float((means[1] - means[0] - 1.959964 * error > limit).mean())
    assert abs(power - 0.8) < 4 * (0.8 * 0.2 / 4_000) ** 0.5 + 0.01
    assert plan.days == pytest.approx(plan.displays / 144, rel=1e-3)
    assert plan.days <= 14 or plan.share == 0.5
    if limit:
        assert plan.displays_at_low == pytest.approx(plan.displays * (0.07 / 0.04) ** 2, rel=0.01)


def test_a_test_of_a_policy_that_learns_lasts_as_long_as_it_learned(learned: Comparison) -> None:
    """Its difference is that of 1,000 rounds; random rewards of clusters make tests longer."""
    assert learned.verdict is not None
    uplift = learned.verdict.candidate.uplift
    assert uplift is not None
    assert uplift.live_test is not None
    assert uplift.live_test.displays * uplift.live_test.share >= 1_000


def test_what_decides_is_said_in_per_cent_money_and_time_and_nothing_of_numbers_that_are_unsound() -> None:
    log = timed((0.2, 0.3))
    verdict = compare(log, STEADY, baseline=STEADY[0], ship_if="uplift > 0").verdict
    assert verdict is not None
    share, chance, test = stakes(verdict)
    assert re.fullmatch(
        r"Beyond fixed:action=a0: \+\d+% \[.*\] of what it earns; "
        r"\+\d+ \[.*\] a month of 4,38\d displays\.",
        share,
    )
    assert re.fullmatch(r"Chance that it earns less: under 0\.1%\. Waiting another month costs about \d+\.", chance)
    assert test.startswith("Live test: ")
    assert "shows the difference with a power of 80 %" in test
    failed = replace(verdict.candidate, conditions=(*verdict.conditions, Condition("audit", False, "biased")))
    assert stakes(decide([failed], rule=ANY_UPLIFT, level=0.95, baseline=BASELINE)) == []
    assert stakes(decide([candidate(1, 2.0)], rule=ANY_UPLIFT, level=0.95, baseline=BASELINE)) == []
    worse = compare(log, STEADY, baseline=STEADY[1], ship_if="uplift > 0").verdict
    assert worse is not None
    assert [line.split(":")[0] for line in stakes(worse)] == ["Beyond fixed", "Chance that it earns less"]
    # One run of a policy that learns says nothing of what to expect.
    run = compare(log, ["random", "ucb1"], baseline="random", bootstrap=0).verdict
    assert run is not None
    assert run.candidate.uplift is None


def test_users_make_a_live_test_longer() -> None:
    """Each user earns all or nothing: ten displays are as one."""
    rng, n = np.random.default_rng(2), 8_000
    user = np.arange(n) // 10
    log = shown((0.2, 0.3), n=n)
    earns = np.flatnonzero(rng.random(n // 10)[user] < 0.25)
    log = build_log(
        time=np.arange(n), action=log.displays["action"].to_numpy(), conversion_display=earns, conversion_time=earns,
        n_actions=2, propensity=np.full(n, 0.5),
    )  # fmt: skip
    log = replace(log, displays=log.displays.append_column("user", [user]))
    alone, together = uplift_of(log, KNOWN).live_test, uplift_of(log, KNOWN, cluster_by="user").live_test
    assert alone is not None
    assert together is not None
    # Half of a user's displays are shown each action.
    assert 3 < together.displays / alone.displays < 7
