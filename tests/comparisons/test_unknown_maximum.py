"""Where nobody knows how much a display can earn at most, no interval is called anytime-valid; a bound makes it so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import compare, replay
from evaluator.comparisons.differences import plausible_maximum
from evaluator.comparisons.verdict import Verdict
from evaluator.errors import ParameterError
from evaluator.estimates.confidence import ANYTIME, UNKNOWN
from evaluator.log import Log
from tests.cli.runs import evaluate
from tests.logs import bernoulli_log

COUNTED = bernoulli_log(3000, (0.2, 0.4), mean_delay=5.0, seed=1).with_meta(reward_max=None)
MONEY = np.round(np.exp(np.random.default_rng(2).standard_normal(COUNTED.conversions.num_rows)), 2)


def paid(value: Any) -> Log:
    return replace(COUNTED, events=COUNTED.conversions.set_column(2, "value", pa.array(value)))


PAID = paid(MONEY)


def kinds(log: Log, **options: Any) -> set[str]:
    result = replay(log, "ucb1", window=50, **options)
    of = (result.value, result.regret, result.uplift, result.logging_value, result.best_fixed_action.value)
    return {interval.kind for interval in of}


def test_an_unknown_maximum_takes_the_claim_away_in_every_row() -> None:
    assert kinds(PAID) == {UNKNOWN}
    assert "anytime" not in UNKNOWN
    result = replay(PAID, "ucb1", window=50)
    assert any("nobody knows" in line and "`cap`" in line for line in result.warnings)
    assert result.plan["reward_bound"] == {
        "smallest": 0.0,
        "largest": float(MONEY.max()),
        "known": False,
        "seen": ["largest"],
    }


@pytest.mark.parametrize(
    ("log", "options"),
    [
        (PAID, {"reward_max": 100.0}),
        (PAID, {"cap": 3.0}),
        (PAID.with_meta(reward_max=100.0), {}),
        (COUNTED, {}),
        (paid(np.full(len(MONEY), 7.0)), {}),
    ],
    ids=["named", "capped", "known", "conversions counted", "all worth seven"],
)
def test_a_bound_gives_it_back(log: Log, options: dict[str, float]) -> None:
    assert kinds(log, **options) == {ANYTIME}


def test_few_conversions_of_one_value_do_not_say_that_all_are() -> None:
    few = replace(COUNTED, events=COUNTED.conversions.slice(0, 40))
    assert kinds(few) == {UNKNOWN}


def test_a_known_bound_is_as_wide_as_it_says() -> None:
    widths = {most: replay(PAID, "random", window=50, reward_max=most).value for most in (50.0, 500.0)}
    assert widths[500.0].high - widths[500.0].low > 2 * (widths[50.0].high - widths[50.0].low)
    assert widths[500.0].estimate == widths[50.0].estimate


def test_capped_rewards_are_those_of_a_log_whose_values_are_capped() -> None:
    capped = paid(np.minimum(MONEY, 3.0)).with_meta(reward_max=3.0)
    there, asked = replay(capped, "thompson", window=50), replay(PAID, "thompson", window=50, cap=3.0)
    assert asked.value == there.value
    assert asked.regret == there.regret
    assert asked.trajectory.equals(there.trajectory)
    assert np.isnan(asked.true_regret)
    said = next(line for line in asked.assumptions if "capped rewards" in line)
    assert f"{(MONEY > 3.0).sum():,} displays" in said
    assert "at least the lower end" in said


def test_a_comparison_calls_no_difference_real_without_a_bound() -> None:
    found = compare(PAID, ["thompson", "fixed:action=1"], baseline="thompson", windows=[50], bootstrap=0)
    assert {d.realised.kind for d in found.differences} == {UNKNOWN}
    assert "would be told from 0 at 95 %, all tests at once, if no display could earn more" in found.ranking.conclusion
    known: dict[str, Any] = {"windows": [50], "reward_max": 100.0, "bootstrap": 0}
    bounded = compare(PAID, ["thompson", "fixed:action=1"], baseline="thompson", **known)
    assert all(d.realised.kind.startswith("paired") for d in bounded.differences)
    assert "would" not in bounded.ranking.conclusion


def test_reports_say_so_in_the_row(tmp_path: Any) -> None:
    from evaluator.reading.canonical import write_canonical

    write_canonical(PAID, tmp_path)
    words = ("-d", str(tmp_path), "-p", "ucb1")
    for command in (("replay", *words), ("compare", *words, "-p", "random")):
        short = " ".join(evaluate(*command).out.split())
        assert "The largest reward seen, " in short
        assert "[largest-reward-seen]" in short
    assert "not anytime-valid n realised value" in " ".join(evaluate("replay", *words).out.split())
    plain = " ".join(evaluate("replay", *words, "--full").out.split())
    assert "realised value (reward per round), not anytime-valid" in plain
    assert "vs best fixed action, not anytime-valid" in plain
    capped = " ".join(evaluate("replay", *words, "--cap", "3", "--full").out.split())
    assert "not anytime-valid" not in capped
    assert "at most 3 a display, which leaves out" in capped
    both = " ".join(evaluate("compare", *words, "-p", "random", "--bootstrap", "0", "--full").out.split())
    for said in (
        "only if no display can earn more than the largest reward seen, which nobody knows",
        "approximate 95% bands",
        "ahead in these runs of, if so",
    ):
        assert said in both, said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward_max": 0.0}, "`reward_max=0` is out of range"),
        ({"cap": float("inf")}, "`cap=inf` is out of range"),
        ({"reward_max": 5.0, "cap": 5.0}, "exclude each other"),
        ({"reward_max": 1.0}, "earn more"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        replay(PAID, "ucb1", **options)


def test_where_refunds_have_no_bound_the_smallest_reward_is_what_nobody_knows(tmp_path: Any) -> None:
    """Both ends are named where both are open, and the option that closes each is named by the command line."""
    from evaluator.reading.canonical import write_canonical

    refunded = paid(np.where(np.arange(len(MONEY)) % 7 == 0, -MONEY, MONEY))
    write_canonical(refunded, tmp_path)
    words = ("compare", "-d", str(tmp_path), "-p", "ucb1", "-p", "random", "--window", "50", "--bootstrap", "0")
    most, least = ("--reward-max", "100"), ("--reward-min", "-100")
    for given, open_end in (
        ((), "more than the largest reward seen or less than the smallest reward seen"),
        (most, "less than the smallest reward seen"),
        (least, "more than the largest reward seen"),
        ((*most, *least), None),
    ):
        said = " ".join(evaluate(*words, *given, "--full").out.split())
        assert ("only if no display can earn" in said) is (open_end is not None)
        assert open_end is None or f"if no display can earn {open_end}, which nobody knows" in said
        assert ("Name it (--reward-min, or reward_min in the spec)" in said) is ("--reward-min" not in given)
        assert "with_meta" not in said
    asked: dict[str, Any] = {"windows": [50], "reward_max": 100.0, "bootstrap": 0}
    found = compare(refunded, ["ucb1", "random"], baseline="ucb1", **asked)
    assert "could earn less than the smallest reward seen: name it (`reward_min`) to know" in found.ranking.conclusion


STEADY = ["fixed:action=0", "fixed:action=1"]


def realised(log: Log, baseline: str, rule: str = "uplift > 0", **options: Any) -> Verdict:
    """Return the verdict by what these runs earned, of rewards as they are seen by the horizon."""
    verdict = compare(log, STEADY, baseline=baseline, ship_if=rule, reward="observed", **options).verdict
    assert verdict is not None
    return verdict


def test_a_verdict_waits_only_where_a_plausible_maximum_would_change_it() -> None:
    log = bernoulli_log(6_000, (0.2, 0.6), mean_delay=5.0, seed=1).with_meta(reward_max=None)
    money = np.exp(np.random.default_rng(2).standard_normal(log.conversions.num_rows))
    log = replace(log, events=log.conversions.set_column(2, "value", pa.array(money)))
    found = {}
    for baseline, decision in zip(STEADY, ("ship", "don't"), strict=True):
        verdict = realised(log, baseline)
        assert verdict.decision == decision
        assert re.search(
            r"also if a display can earn \d[\d.]* \(by a tail fitted to rewards\)", verdict.conditions[0].what
        )
        found[decision] = verdict.candidates[0].difference
    # Just told with the largest reward seen as the largest possible, and not with the plausible one.
    rule = f"uplift > {found['ship'].low - 0.01}"
    waits = realised(log, STEADY[0], rule)
    assert (waits.decision, waits.settle) == ("wait", ("`reward_max`, or a cap of the rewards (`cap`)",))
    assert "only if no display can earn more than the" in waits.conditions[0].what
    assert waits.candidates[0].difference.kind == UNKNOWN
    named = realised(log, STEADY[0], rule, reward_max=float(money.max()))
    assert named.decision == "ship"


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.exponential(size=2_000),
        lambda rng: np.exp(rng.standard_normal(2_000)),
        lambda rng: rng.random(2_000) ** (-1 / 1.5),
    ],
    ids=["exponential", "lognormal", "Pareto"],
)
def test_few_logs_have_a_reward_larger_than_is_plausible(draw: Any) -> None:
    """One in a hundred by the tail fitted; with its own error one in ten at most, of rewards light and heavy."""
    rng, beyond = np.random.default_rng(3), 0
    for _ in range(300):
        seen = draw(rng)
        plausible = plausible_maximum(seen, seen.max())
        assert seen.max() <= plausible <= 10 * seen.max()
        beyond += draw(rng).max() > plausible
    assert beyond <= 300 * 0.1 + 4 * (300 * 0.1 * 0.9) ** 0.5


def test_a_refund_larger_than_any_seen_is_plausible_too() -> None:
    log = bernoulli_log(6_000, (0.2, 0.6), mean_delay=5.0, seed=1).with_meta(reward_max=20.0)
    money = np.exp(np.random.default_rng(2).standard_normal(log.conversions.num_rows)).clip(max=20.0)
    refunded = np.where(np.arange(len(money)) % 7 == 0, -money, money)
    log = replace(log, events=log.conversions.set_column(2, "value", pa.array(refunded)))
    verdict = realised(log, STEADY[0])
    assert re.search(r"only if no display can earn less than the -17\.2127 seen: -\d+ \(", verdict.conditions[0].what)
    assert verdict.settle == ("`reward_min`",)
