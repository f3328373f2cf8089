"""A ranking says what it is of: these runs, or expected values; what is not comparable, or not known, is not ranked."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.comparisons.differences import SAME
from evaluator.comparisons.result import Comparison
from evaluator.errors import ParameterError
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from tests.logs import bernoulli_log, build_log
from tests.replays.test_scan import softmax_log


def said(found: Comparison, *, full: bool = False) -> str:
    with io.StringIO() as sink:
        show(ReportConsole(width=120, file=sink), found, full=full)
        return " ".join(sink.getvalue().split())


def test_a_difference_is_found_and_ranked() -> None:
    log = bernoulli_log(6000, [0.1, 0.6], mean_delay=5, seed=3)
    found = compare(log, ["fixed:action=0", "random", "fixed:action=1"], baseline="fixed:action=0")
    assert (found.ranking.target, found.ranking.groups) == ("weighted", ((2, 1, 0),))
    assert found.ranking.ahead_of == ((), (0,), (0, 1))
    assert found.ranking.conclusion.startswith("Of the values weighted over all displays, 3 of 3 differences are told")
    for test in found.ranking.tests:
        assert test.difference.weighted is not None
        assert test.adjusted >= test.difference.weighted.p
        assert test.apart == (test.adjusted <= 0.05)
    # One that learns has no weights: then all are ranked by what these runs earned.
    learns = ["fixed:action=0", "ucb1", "fixed:action=1"]
    runs = compare(log, learns, baseline="fixed:action=0", bootstrap=0).ranking
    assert (runs.target, runs.ahead_of[2]) == ("realised", (0, 1))
    assert runs.conclusion.startswith("In these runs, ")
    for test in runs.tests:
        assert test.adjusted >= test.difference.p
        assert test.apart == (test.adjusted <= 0.05)


def test_a_bootstrap_ranks_expected_values() -> None:
    log = bernoulli_log(6000, [0.1, 0.6], mean_delay=5, seed=3)
    policies = ["fixed:action=0", "ucb1", "fixed:action=1"]
    found = compare(log, policies, baseline=policies[0], horizon=1500, bootstrap=20)
    assert found.ranking.target == "expected"
    assert found.ranking.ahead_of == ((), (0,), (0, 1))
    assert found.ranking.conclusion.startswith("Of the expected values, 3 of 3 differences are told from 0")
    assert "Ranking of expected values" in said(found, full=True)
    for test in found.ranking.tests:
        interval = test.difference.expected
        assert interval is not None
        assert (not interval.low <= 0 <= interval.high) == (test.difference.expected_p < 0.05)


def test_different_numbers_of_rounds_are_compared_after_as_many_as_both_reach() -> None:
    """Replays that end later tell the same of the first rounds as those that were to end there."""
    log = bernoulli_log(3000, [0.4, 0.6], mean_delay=5, seed=4)
    found = compare(log, ["ucb1", "klucb"], baseline="ucb1", bootstrap=20, repeats=2)
    rounds = [result.rounds for result in found.results]
    assert rounds[0] != rounds[1]
    assert found.horizon.rounds < min(rounds)
    asked = compare(log, ["ucb1", "klucb"], baseline="ucb1", bootstrap=20, repeats=2, horizon=found.horizon.rounds)
    (one,), (other,) = found.differences, asked.differences
    assert one.expected is not None
    assert other.expected is not None
    assert (one.expected.kind, one.expected.n, one.why_not_expected) == (other.expected.kind, other.expected.n, "")
    for end in ("estimate", "low", "high"):
        assert np.isclose(getattr(one.expected, end), getattr(other.expected, end), rtol=0, atol=1e-14)
    assert found.ranking.target == "expected"
    # Each result still is what a replay gives for it alone.
    assert found.results[0].resampled == replay(log, "ucb1", bootstrap=20, repeats=2).resampled
    assert found.results[0].resampled != asked.results[0].resampled


def test_the_same_displays_are_not_an_interval() -> None:
    # Where conversions come at once, a window hides none; two policies choose alike until the horizon, here, and not on
    # every resampled log.
    at = np.arange(0, 900, 3)
    at_once = build_log(
        time=np.arange(900), action=[0, 1, 1] * 300, n_actions=2, conversion_display=at, conversion_time=at
    )
    same = compare(at_once, ["ucb1"], baseline="ucb1", windows=[40, 400], horizon=60, bootstrap=20)
    log = bernoulli_log(900, [0.4, 0.6], mean_delay=2000.0, seed=5)
    alike = compare(
        log, ["ucb1:exploration=0.3", "ucb1:exploration=0.5"], baseline="ucb1:exploration=0.3", horizon=60, bootstrap=20
    )
    for found in (same, alike):
        (d,) = found.differences
        assert d.realised is not None
        assert (d.realised.estimate, d.realised.n, d.p, d.why_not) == (0.0, 0, 1.0, SAME)
        assert d.expected is None
        assert " of 20 resampled logs only" in d.why_not_expected
        words = said(found, full=True)
        assert "[0, 0]" not in words[words.index("Difference per round") : words.index("Ranking")]
        assert "same displays" in words
        assert SAME in words
        assert found.ranking.ahead_of == ((), ())
        assert json.loads(json.dumps(found.to_dict()))["differences"][0]["expected"] is None
    assert "on 0 of 20" in same.differences[0].why_not_expected
    assert "on 0 of 20" not in alike.differences[0].why_not_expected


def test_one_policy_spelt_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="there twice"):
        compare(softmax_log(), ["fixed", "fixed:action=0"], baseline="fixed")


def test_values_cut_by_different_windows_are_not_ranked_together() -> None:
    log = build_log(
        time=range(400), action=[0, 1] * 200, conversion_display=range(0, 400, 3),
        conversion_time=[d + 30 for d in range(0, 400, 3)], n_actions=2, observed_until=440,
    )  # fmt: skip
    found = compare(log, ["random", "fixed:action=1"], baseline="random", windows=[5, 40], horizon=50)
    assert {frozenset(group) for group in found.ranking.groups} == {frozenset({0, 2}), frozenset({1, 3})}
    assert "whose rewards are cut by different windows stand apart" in said(found, full=True)
    whole = compare(
        log.with_meta(attribution_window=40),
        ["random", "fixed:action=1"],
        baseline="random",
        windows=[5, 40],
        horizon=50,
    )
    assert len(whole.ranking.groups) == 1
    assert "stand apart" not in said(whole, full=True)


def test_resampled_replays_that_all_earn_the_same_give_no_interval_of_width_zero() -> None:
    log = build_log(time=range(300), action=[0, 1] * 150, n_actions=2, conversion_display=[0], conversion_time=[299])
    found = compare(log, ["fixed:action=1", "random"], baseline="fixed:action=1", horizon=100, bootstrap=20)
    never = found.results[0]
    assert never.expected_value is None
    assert len(never.resampled) == 20
    assert any("all 20 resampled replays earned the same" in line for line in never.warnings)
    assert found.results[1].expected_value is not None
    assert "none" in said(found)
