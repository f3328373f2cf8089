"""Differences between replays at their common horizon: by hand, where they are paired, and where there is none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator import compare
from evaluator.arguments import as_description
from evaluator.comparisons.differences import to_widest_window
from evaluator.comparisons.run import execute_comparison, plan_comparison
from evaluator.comparisons.variants import common_horizon
from evaluator.comparisons.verdict import ranked_pairs
from evaluator.policies.base import Policy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import replay_all
from tests.logs import bernoulli_log, build_log
from tests.replays.test_scan import softmax_log

LOG = softmax_log()
# Normal quantile of 0.00135 / 2.
Z_OF_TWO = 3.205


def shown(result: ReplayResult, rounds: int, repeat: int = 0) -> dict[int, float]:
    """Return the displays of a repeat's first rounds and what each earned."""
    rows = result.trajectory.filter(np.asarray(result.trajectory["repeat"]) == repeat).slice(0, rounds)
    return dict(zip(rows["display_id"].to_pylist(), rows["reward"].to_pylist(), strict=True))


def test_a_difference_by_hand() -> None:
    # Actions alternate; action 1 earns in displays 1, 5 and 9, action 0 in display 0.
    log = build_log(
        time=range(12), action=[0, 1] * 6, conversion_display=[0, 1, 5, 9], conversion_time=[0, 1, 5, 9], n_actions=2
    )
    found = compare(log, ["fixed:action=0", "fixed:action=1", "logging"], baseline="fixed:action=0", horizon=5)
    assert (found.horizon.rounds, found.horizon.fixed) == (5, True)
    # fixed 0 shows displays 0, 2, ..., 8; fixed 1 shows 1, 3, ..., 9; logging shows all.
    to_one, to_logging = (d.realised for d in found.differences)
    assert to_one is not None
    assert to_logging is not None
    assert (to_one.estimate, to_one.n) == (pytest.approx(3 / 5 - 1 / 5), 10)
    # What fixed 0 read for its five rounds are displays 0 to 8, of which 0, 1 and 5 earn.
    assert (to_logging.estimate, to_logging.n) == (pytest.approx(3 / 9 - 1 / 5), 14)


@pytest.mark.parametrize("options", [{}, {"repeats": 3}, {"immature": "correct"}, {"delays_from": "first:20%"}])
def test_the_estimate_is_the_difference_of_the_mean_rewards(options: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"windows": [40, 400], "baseline": "thompson", "bootstrap": 0, **options}
    found = compare(LOG, ["linucb", "thompson", "otflinucb"], **asked)
    t, repeats = found.horizon.rounds, options.get("repeats", 1)
    assert found.horizon.fixed
    assert [d.variant for d in found.differences] == [0, 1, 3, 4, 5]
    for d in found.differences:
        assert d.realised is not None
        assert d.reference == 2
        pairs = [[shown(found.results[i], t, r) for i in (d.variant, d.reference)] for r in range(repeats)]
        expected = np.mean([(sum(a.values()) - sum(b.values())) / t for a, b in pairs])
        assert d.realised.estimate == pytest.approx(expected, abs=1e-12)
        assert d.realised.n == len(set().union(*(a.keys() ^ b.keys() for a, b in pairs)))
        assert d.realised.level == pytest.approx(0.95)
        assert d.realised.low <= d.realised.estimate <= d.realised.high
        assert (not d.realised.low <= 0 <= d.realised.high) == (d.p < 0.05)


def test_the_same_policy_twice_does_not_differ() -> None:
    # random does not look at the window.
    found = compare(LOG, ["random"], baseline="random", windows=[40, 400], bootstrap=0)
    (of,) = (d.realised for d in found.differences)
    assert of is not None
    assert (of.estimate, of.low, of.high, of.n) == (0.0, 0.0, 0.0, 0)
    assert found.differences[0].p == 1.0


def test_threads_do_not_matter() -> None:
    one, two = (compare(LOG, ["linucb", "ucb1", "klucb"], baseline="linucb", jobs=jobs) for jobs in (1, 2))
    # As text: a number that is not there (nan) differs from itself.
    assert repr((one.differences, one.ranking)) == repr((two.differences, two.ranking))


def test_window_costs_are_to_the_widest() -> None:
    found = compare(LOG, ["linucb", "ucb1"], baseline="linucb", windows=[400, None, 40])
    assert [(d.variant, d.reference) for d in found.window_costs] == [(0, 1), (2, 1), (3, 4), (5, 4)]
    other = compare(LOG, ["linucb", "ucb1"], windows=[400, None, 40], baseline="ucb1")
    turned = next(d for d in other.differences if d.variant == 4)
    of, back = turned.realised, found.ranking.tests
    pair = next(t.difference for t in back if (t.difference.variant, t.difference.reference) == (3, 4))
    assert of is not None
    assert pair.realised is not None
    assert (of.estimate, of.low, of.high) == (-pair.realised.estimate, -pair.realised.high, -pair.realised.low)


def test_rewards_that_end_with_different_windows_are_not_compared() -> None:
    log = LOG.with_meta(attribution_window=None)
    found = compare(log, ["linucb", "ucb1"], baseline="linucb", windows=[40, 400])
    reasons = {(d.variant, d.why_not) for d in found.differences}
    why = "rewards end with the window (the log names no attribution window), and the windows differ"
    assert reasons == {(1, why), (2, ""), (3, why)}
    assert [test.difference.why_not for test in found.ranking.tests] == ["", ""]
    assert all(d.realised is None and math.isnan(d.p) for d in found.window_costs)


def test_observed_rewards_are_those_of_the_common_horizon() -> None:
    found = compare(LOG, ["linucb", "lints"], baseline="linucb", reward="observed", windows=[40])
    t = found.horizon.rounds
    (d,) = found.differences
    assert d.realised is not None
    assert t <= d.realised.n <= 2 * t  # one that both showed in different rounds may earn differently
    again = compare(LOG, ["linucb", "lints"], baseline="linucb", reward="observed", windows=[40], horizon=t)
    assert again.horizon.fixed
    expected = again.results[1].value.estimate - again.results[0].value.estimate
    assert d.realised.estimate == pytest.approx(expected)
    # The regret's reference depends on the horizon, so that it is known only where all stop there.
    assert np.isnan(found.curves[0].regret.estimate).all()
    assert again.curves[0].regret.estimate[-1] == pytest.approx(again.results[0].regret.estimate)


@pytest.mark.parametrize(
    ("policies", "options", "rounds"),
    [
        (["linucb", "otflinucb"], {}, lambda n, c: math.floor(c * n - Z_OF_TWO * math.sqrt(c * n * (1 - c)))),
        (["linucb", "logging"], {"horizon": 100}, lambda n, c: 100),
        (["logging"], {}, lambda n, c: n),
    ],
)
def test_the_horizon_is_fixed_from_the_log_alone(policies: list[str], options: dict[str, Any], rounds: Any) -> None:
    plans = plan_comparison(LOG, [as_description(p) for p in policies], [40], ReplayOptions(**options))
    found = execute_comparison(plans)
    assert (found.horizon.rounds, found.horizon.fixed) == (
        rounds(len(plans[0].rounds), float(plans[0].matched.c.min())), True
    )  # fmt: skip


def test_queues_end_at_the_rarest_action() -> None:
    log = bernoulli_log(3000, [0.3, 0.5, 0.4], mean_delay=20, seed=0, logger=[0.5, 0.3, 0.2])
    plans = plan_comparison(
        log, [as_description(p) for p in ("ucb1", "thompson")], [None], ReplayOptions(sampler="queue")
    )
    (lane, _) = replay_all(plans)
    found = execute_comparison(plans)
    assert lane.replay is not None
    assert (found.horizon.rounds, found.horizon.fixed) == (len(lane.replay.displays), True)


def test_a_horizon_that_a_replay_misses_is_said_to_depend_on_the_run() -> None:
    plans = plan_comparison(LOG, [as_description(p) for p in ("linucb", "lints")], [40], ReplayOptions(horizon=3000))
    found = execute_comparison(plans)
    shortest = min(result.rounds for result in found.results)
    assert (found.horizon.rounds, found.horizon.fixed) == (shortest, False)
    assert "short of the 3,000 rounds" in common_horizon(plans, found.results).why


def test_many_variants_are_tested_against_the_baseline_only() -> None:
    assert len(ranked_pairs(20, 0)) == 190
    assert ranked_pairs(41, 2)[:3] == [(0, 2), (1, 2), (2, 3)]
    assert len(ranked_pairs(41, 2)) == 40


@pytest.mark.parametrize("moving", [True, False])
def test_the_logging_policy_is_not_compared_over_the_first_part_of_a_calendar(moving: bool) -> None:
    n = 3000
    at = np.arange(n)
    eligible = np.ones((n, 3), np.bool_)
    eligible[(at < n // 2) if moving else at % 2 == 0, 2] = False
    action = np.where(eligible, np.random.default_rng(0).random((n, 3)), -1.0).argmax(axis=1)
    log = build_log(
        time=at, action=action, propensity=1.0 / eligible.sum(axis=1), eligible=eligible, n_actions=3,
        conversion_display=at[::7], conversion_time=at[::7] + 3,
    ).with_meta(propensity="uniform")  # fmt: skip
    found = compare(log, ["ucb1", "logging", "thompson"], baseline="ucb1", window=50, bootstrap=0)
    to_logging, to_other = found.differences[:2]
    assert to_logging.realised is not None
    assert to_other.realised is not None
    # Of the logging policy count the displays that the other read, and not the first part of the calendar.
    read = max(found.results[0].trajectory["display_id"].to_pylist()[: found.horizon.rounds])
    earned = np.isin(at[: read + 1], at[::7]).mean()
    mean = np.mean(list(shown(found.results[0], found.horizon.rounds).values()))
    assert to_logging.realised.estimate == pytest.approx(earned - mean)
    assert "of all displays that the other read" in to_logging.why_not
    part, whole = (compare(log, ["ucb1"], window=50, horizon=h, bootstrap=20).differences[0] for h in (300, 990))
    assert part.realised is not None
    assert ("what is eligible changes with time" in part.why_not_expected) is moving
    assert (part.expected is None) is moving
    assert whole.expected is not None


def test_the_logging_policy_is_the_same_length_of_a_drift_as_what_is_compared_with_it() -> None:
    """All actions earn the same, ever more: the log's first displays are worse than all that a replay reads."""
    n = 8_000
    rng, at = np.random.default_rng(0), np.arange(8_000)
    of = np.flatnonzero(rng.random(n) < 0.1 + 0.3 * at / n)
    log = build_log(time=at, action=rng.integers(0, 3, n), conversion_display=of, conversion_time=of, n_actions=3)
    found = compare(log, ["ucb1"], horizon=2_500, bootstrap=20)
    (difference,) = found.differences
    assert found.results[1].rounds == n
    for interval in (difference.realised, difference.expected):
        assert interval is not None
        assert interval.low < 0 < interval.high
        assert abs(interval.estimate) < 0.03
    assert found.horizon.rounds == 2_500


def test_a_study_of_many_variants_names_each_policy_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = [as_description(f"ucb1:exploration={0.1 + 0.01 * i:.2f}") for i in range(60)]
    plans = plan_comparison(LOG, policies, [20, 50, None], ReplayOptions())
    asked = []
    spec = Policy.spec.fget
    assert spec is not None
    monkeypatch.setattr(Policy, "spec", property(lambda policy: (asked.append(policy), spec(policy))[1]))
    pairs = to_widest_window(plans)
    assert len(asked) == len(plans)
    assert pairs == [pair for i in range(60) for pair in ((3 * i, 3 * i + 2), (3 * i + 1, 3 * i + 2))]
