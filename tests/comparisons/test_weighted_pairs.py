"""Policies that do not learn are compared by what they would earn, weighted over all displays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evaluator import Log, compare, load
from evaluator.comparisons.result import Comparison
from evaluator.estimates.weighted import snips
from evaluator.estimates.weighted_difference import NEEDED_OF_MONEY, WeightedDifference
from evaluator.log.schema import to_numpy
from tests.cli.runs import evaluate
from tests.logs import build_log

RATES = np.array([0.02, 0.03, 0.025])


def logged(n: int = 20_000, seed: int = 0, *, value: Any = None, young: bool = False, users: int = 0) -> Log:
    """Return a log of three actions, shown unevenly by a context of two kinds, and a rule's probabilities as columns.

    The rule prefers action 0 in one kind, action 1 in the other, and shows the third now and then.
    """
    rng = np.random.default_rng(seed)
    user = np.arange(n) // users if users else np.arange(n)
    kind = rng.integers(0, 2, n)[user]
    liking = rng.gamma(1.0, 1.0, n)[user] if users else np.ones(n)
    p = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])[kind]
    action = (rng.random((n, 1))[user] > np.cumsum(p, axis=1)).sum(axis=1)
    rate = np.where(kind[:, None] == 0, RATES, RATES[::-1] * 2)
    at = np.arange(n)
    of = np.flatnonzero(rng.random(n) < rate[at, action] * liking)
    # Conversions of action 1 come late.
    late = of + rng.geometric(1.0 / np.where(action[of] == 1, 250.0, 40.0)) if young else of
    seen = (late <= n + 100) & (late - of <= 1_500)
    log = build_log(
        time=at, action=action, propensity=p[at, action], n_actions=3, context=np.column_stack([kind, 1 - kind]) * 1.0,
        conversion_display=of[seen], conversion_time=late[seen],
        conversion_value=None if value is None else value(rng, int(seen.sum())),
        **({"observed_until": n + 100, "attribution_window": 1_500} if young else {}),
    )  # fmt: skip
    target = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2]])[kind]
    columns = log.displays.append_column("target", _lists(target))
    columns = columns.append_column("user_id", [[f"u{one}" for one in user]]) if users else columns
    return replace(log, displays=columns)


def _lists(rows: np.ndarray) -> Any:
    import pyarrow as pa

    flat = pa.array(rows.astype(np.float64).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])


def truth() -> float:
    """Return what the rule earns more per display than the logger."""
    rate = np.stack([RATES, RATES[::-1] * 2])
    rule, logger = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2]]), np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    return float(((rule - logger) * rate).sum() / 2)


def weighted(found: Comparison, number: int = 0) -> WeightedDifference:
    of = found.differences[number].weighted
    assert of is not None
    return of


def test_the_baseline_is_the_logging_policy_in_a_line_of_its_own_unless_another_is_named() -> None:
    log = logged(3_000)
    for policies, baseline, lines in (
        (["fixed", "ucb1"], None, ["fixed", "ucb1", "logging"]),
        (["fixed", "logging", "ucb1"], None, ["fixed", "logging", "ucb1"]),
        (["fixed", "ucb1"], "ucb1", ["fixed", "ucb1"]),
        (["fixed", "ucb1"], "logging", ["fixed", "ucb1", "logging"]),
    ):
        found = compare(log, policies, baseline=baseline, windows=["50"])
        assert [result.policy for result in found.results] == lines
        assert found.results[found.baseline].policy == (baseline or "logging")
        assert all(one.reference == found.baseline for one in found.differences)
        assert all(one.of_values is not None for one in found.differences)
    # It waits for nothing, so it has one window.
    several = compare(log, ["fixed", "ucb1"], windows=[50, 500])
    assert [result.policy for result in several.results] == ["fixed", "fixed", "ucb1", "ucb1", "logging"]


def test_a_log_that_kept_actions_by_context_is_compared_with_the_first_policy() -> None:
    """The logging policy is known where it showed a kept action, and others are valued on the traffic."""
    found = compare(logged(3_000).with_meta(kept_share=0.9), ["random", "fixed"])
    assert [result.policy for result in found.results] == ["random", "fixed"]
    assert found.baseline == 0


def test_it_is_the_snips_value_less_the_logs_mean_whatever_the_horizon() -> None:
    log = logged(4_000)
    earned = np.bincount(to_numpy(log.conversions["display_id"]), to_numpy(log.conversions["value"]), 4_000)
    pi = np.stack(log.column("target"))[np.arange(4_000), log.column("action")]
    value = snips(earned, pi, log.column("propensity")).value.estimate
    one, short = compare(log, ["columns"]), compare(log, ["columns"], horizon=100)
    assert weighted(one).value.estimate == pytest.approx(value - earned.mean(), rel=1e-9)
    assert weighted(one).value.n == 4_000
    assert weighted(short) == weighted(one)


def test_two_rules_are_weighted_on_the_same_displays() -> None:
    found = compare(logged(), ["columns", "fixed:action=1", "random"], baseline="random")
    turned = compare(logged(), ["random", "columns"], baseline="columns")
    assert weighted(turned).value.estimate == pytest.approx(-weighted(found).value.estimate)
    assert weighted(turned).value.low == pytest.approx(-weighted(found).value.high)
    assert found.ranking.target == "weighted"


def test_a_rule_that_is_better_ships_where_its_matches_told_nothing() -> None:
    log = logged(60_000, 1)
    found = compare(log, ["columns"], ship_if="uplift > 0", reward_max=1.0)
    assert found.verdict is not None
    assert (found.verdict.decision, found.verdict.candidates[0].target) == ("ship", "weighted")
    of, runs = weighted(found).value, found.differences[0].realised
    assert of.low <= truth() <= of.high
    assert runs is not None
    assert (runs.high - runs.low) > 4 * (of.high - of.low)
    assert runs.low < 0 < of.low
    assert "would earn" in found.verdict.headline
    assert "per display beyond logging." in found.verdict.headline


def test_what_is_equal_is_called_equal() -> None:
    rng = np.random.default_rng(3)
    shown = rng.integers(0, 3, 3_000)
    of = np.flatnonzero(rng.random(3_000) < 0.2)
    log = build_log(time=np.arange(3_000), action=shown, conversion_display=of, conversion_time=of, n_actions=3)
    log = replace(log, displays=log.displays.append_column("target", _lists(np.full((3_000, 3), 1 / 3))))
    found = compare(log, ["random", "columns"])
    for i in (0, 1):
        of = weighted(found, i).value
        assert (of.estimate, of.low, of.high, of.n) == (0.0, 0.0, 0.0, 0)
    assert found.verdict is not None
    assert {one.decision for one in found.verdict.candidates} == {"don't"}
    assert "they are one policy" in found.verdict.sentence
    assert found.ranking.ahead_of == ((), (), ())


def test_few_rewards_of_the_rule_say_nothing_though_the_log_has_many() -> None:
    log = logged(3_000, 4)
    found = compare(log, ["fixed:action=2"], ship_if="uplift > 0")
    assert log.conversions.num_rows > 60
    assert "25 are needed" in weighted(found).withheld
    assert found.verdict is not None
    assert (found.verdict.decision, found.verdict.candidates[0].difference) == ("wait", None)
    assert "25 are needed" in found.verdict.sentence


def test_money_ships_by_its_lower_end_and_is_refused_by_its_upper_one_only_with_rewards_enough() -> None:
    """Of three actions the rule's has the values with the long tail, and converts thrice or half as often as others."""
    for n, few in ((30_000, True), (600_000, False)):
        for rate in (0.3, 0.05):
            rng = np.random.default_rng(5)
            shown = rng.integers(0, 3, n)
            of = np.flatnonzero(rng.random(n) < np.where(shown == 1, rate, 0.1))
            log = build_log(
                time=np.arange(n), action=shown, n_actions=3, conversion_display=of, conversion_time=of,
                conversion_value=rng.lognormal(0.0, np.where(shown[of] == 1, 1.1, 0.2)),
            )  # fmt: skip
            found = compare(log, ["fixed:action=1"])
            difference, better = weighted(found), rate > 0.1
            assert difference.skewness > 0
            assert (difference.rewards < NEEDED_OF_MONEY) is few
            assert (difference.value.low > 0, difference.value.high < 0) == (better, not better)
            assert found.verdict is not None
            condition = found.verdict.candidates[0].conditions[0]
            assert condition.met is (True if better else None if few else False)
            assert ("rewards differ in size" in condition.what) is (few and not better)


def test_displays_of_one_user_count_together_wherever_a_column_names_users(tmp_path: Any) -> None:
    log = logged(12_000, 6, users=12)
    alone = replace(log, displays=log.displays.drop_columns(["user_id"]))
    by_users, by_displays = (compare(one, ["columns"]) for one in (log, alone))
    assert weighted(by_users).value.estimate == weighted(by_displays).value.estimate
    assert weighted(by_users).standard_error > 1.1 * weighted(by_displays).standard_error
    assert "1,000 clusters" in weighted(by_users).value.kind
    asked = compare(log, ["columns"], cluster_by="user_id")
    assert weighted(asked) == weighted(by_users)


def test_sets_that_move_with_time_do_not_keep_a_rule_from_the_logging_policy() -> None:
    """On `promotions` eligible actions come and go: no first rounds can be compared with the log's first displays."""
    found = compare(load("promotions", limit=20_000), ["logging", "random", "fixed:action=1"])
    assert all(weighted(found, i).value.n > 10_000 for i in (0, 1))
    run = evaluate(
        "compare", "-p", "fixed:action=1,linucb", "--dataset", "promotions", "--limit", "20000", "--bootstrap", "0"
    )
    assert "none" not in run.out.partition("replays of")[2].partition("\ndifference:")[0].replace("   none ", "")


def test_an_action_never_shown_gives_no_difference() -> None:
    log = logged(20_000, 8)
    hidden = to_numpy(log.displays["action"]) == 0
    keep = np.flatnonzero(~hidden)
    place = np.full(20_000, -1)
    place[keep] = np.arange(len(keep))
    shown = to_numpy(log.conversions["display_id"])
    events = log.conversions.filter(~hidden[shown])
    events = events.set_column(0, "display_id", [place[to_numpy(events["display_id"])]])
    displays = log.displays.take(keep)
    displays = displays.set_column(0, "display_id", [np.arange(len(keep))])
    cut = replace(log, displays=displays, events=events)
    found = compare(cut, ["random", "fixed:action=0"])
    assert "the mean weight is 1.1" in weighted(found).withheld
    assert "no reward tells it" in weighted(found, 1).withheld
