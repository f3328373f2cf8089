"""Planned looks at a growing log: what each may spend of a verdict's error, and what follows the level of a look."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from evaluator import compare
from evaluator.comparisons.rule import ANY_UPLIFT, Look, parse_look
from evaluator.comparisons.study_file import read_study
from evaluator.comparisons.variants import Line
from evaluator.comparisons.verdict import Target, Verdict, decide, level_text
from evaluator.errors import KeyOfFileError, ParameterError
from evaluator.estimates.standard_errors import error_of_spread, widened_by
from evaluator.reports.decision_words import planned_looks, rule_text, sentences
from tests.cli.runs import evaluate
from tests.comparisons.test_verdict import BASELINE, candidate, shown

LOGS = 4_000


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_planned_looks_spend_the_error_once_and_later_ones_more_of_it(level: float) -> None:
    for planned in (2, 3, 5, 20, 365):
        levels = [Look(k, planned).level(level) for k in range(1, planned + 1)]
        assert sum(1.0 - each for each in levels) == pytest.approx(1.0 - level, rel=1e-9)
        # No look is more careless than a single one, no later look more careful than an earlier one.
        assert levels == sorted(levels, reverse=True)
        assert level < levels[-1] < levels[0] < 1.0
        # Whoever plans more looks pays for it at the last one.
        assert Look(planned + 1, planned + 1).level(level) > levels[-1]


def test_any_of_several_looks_between_equals_ships_as_seldom_as_one_may() -> None:
    # Of a log that grows by equal parts, the estimates are sums of independent ones over their standard errors.
    rng = np.random.default_rng(0)
    for planned in (5, 20):
        parts = rng.standard_normal((LOGS, planned)).cumsum(axis=1)
        z = parts / np.sqrt(np.arange(1, planned + 1))
        at = [Look(k, planned).level(0.95) for k in range(1, planned + 1)]
        spent = ndtri(0.5 + np.array(at) / 2)
        error = 4 * math.sqrt(0.025 * 0.975 / LOGS)
        assert np.mean((z > spent).any(axis=1)) < 0.025 + error
        # Each for one look, they do not; and the last look still finds what is 5 standard errors away.
        assert np.mean((z > ndtri(0.975)).any(axis=1)) > 0.025 + 2 * error
        assert np.mean((z + 5.0 * np.sqrt(np.arange(1, planned + 1) / planned) > spent).any(axis=1)) > 0.95


@pytest.mark.parametrize("text", ["3 of 5", "3/5", " 3 of  5 ", "03/5"])
def test_a_look_is_written_in_words_or_as_a_fraction(text: str) -> None:
    assert parse_look(text) == Look(3, 5)
    assert parse_look("1 of 1") is None


@pytest.mark.parametrize(
    "text", ["6 of 5", "0 of 5", "x", "3", "3 of", "-1 of 5", "1 of 1001", "1.5 of 2", "3 of 5 of 7"]
)
def test_what_is_no_look_is_refused_in_a_line_that_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ParameterError, match="the third of five looks"):
        compare(policies=["random"], look=text)


def test_the_command_line_refuses_a_look_in_one_line_too() -> None:
    run = evaluate("compare", "-p", "random", "--look", "6 of 5")
    assert (run.code, run.out) == (2, "")
    assert run.err.count("\n") == 1
    assert "--look '6 of 5'" in run.err


def test_a_study_file_says_which_look_it_is(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('policies = ["random"]\nlook = "2 of 3"\n')
    assert read_study(file).look == Look(2, 3)
    file.write_text('policies = ["random"]\nlook = "4 of 3"\n')
    with pytest.raises(KeyOfFileError, match="line 2: `look` '4 of 3'"):
        read_study(file)


LOG = shown((0.3, 0.36, 0.33), n=3_000, seed=1)
FIXED = ["fixed:action=0", "fixed:action=1", "fixed:action=2"]


def test_the_only_look_is_no_option_to_the_bit() -> None:
    assert compare(LOG, FIXED, look="1 of 1").to_dict() == compare(LOG, FIXED).to_dict()


@pytest.mark.parametrize("policies", [FIXED, ["fixed:action=0", "ucb1"]])
def test_everything_that_the_verdict_says_has_the_level_of_the_look(policies: list[str]) -> None:
    asked = {"horizon": 400, "bootstrap": 40} if "ucb1" in policies else {}
    look, level = Look(2, 5), Look(2, 5).level(0.95)
    found = compare(LOG, policies, baseline=FIXED[0], look="2 of 5", **asked).verdict
    same = compare(LOG, policies, baseline=FIXED[0], level=level, **asked).verdict
    once = compare(LOG, policies, baseline=FIXED[0], **asked).verdict
    assert found is not None
    assert same is not None
    assert once is not None
    assert (found.look, found.level, found.interval_level) == (look, 0.95, level)
    for one, other, narrow in zip(found.candidates, same.candidates, once.candidates, strict=True):
        assert (one.difference, one.not_told_from, one.decision) == (
            other.difference, other.not_told_from, other.decision
        )  # fmt: skip
        assert one.uplift is not None
        assert other.uplift is not None
        assert one.uplift.amount == other.uplift.amount
        assert one.uplift.share is not None
        assert other.uplift.share is not None
        # The baseline's own value is known at 95 % and widened from there.
        assert one.uplift.share.low <= other.uplift.share.low
        assert other.uplift.share.high <= one.uplift.share.high
        assert one.difference is not None
        assert narrow.difference is not None
        assert one.difference.low < narrow.difference.low < narrow.difference.high < one.difference.high
    # From the other side it is the same interval.
    if policies is FIXED:
        back = compare(LOG, FIXED[:2], baseline=FIXED[1], look="2 of 5").verdict
        forth = compare(LOG, FIXED[:2], baseline=FIXED[0], look="2 of 5").verdict
        assert back is not None
        assert forth is not None
        assert back.candidate.difference is not None
        assert forth.candidate.difference is not None
        assert (-back.candidate.difference.high, -back.candidate.difference.low) == (
            forth.candidate.difference.low, forth.candidate.difference.high
        )  # fmt: skip


def verdict(look: Look | None, target: Target = "expected") -> Verdict:
    one = candidate(1, 2.0)
    known = [type(one)(Line(1, "linucb", "500"), "wait", one.difference, target, one.conditions)]
    return decide(known, rule=ANY_UPLIFT, level=0.95, baseline=BASELINE, look=look)


def test_the_level_of_a_look_stands_with_its_interval() -> None:
    third = verdict(Look(3, 5))
    assert "+2 [+1, +3] (99.24 %, look 3 of 5) per round" in third.headline
    assert rule_text(third) == "Rule: uplift > 0 at 99.24 %, look 3 of 5: 95 % over all 5 looks."
    assert "(99.24 % interval 1.0 to 3.0, look 3 of 5: 95 % over all looks)" in "".join(sentences(third))
    # With a condition more it is still that look.
    assert third.with_condition([None]).look == Look(3, 5)
    assert "good for one look" in "".join(sentences(verdict(None)))
    # What two runs earned holds at any number of looks, and takes no level of them.
    realised = verdict(Look(3, 5), "realised")
    assert realised.interval_level == 0.95
    assert "look" not in realised.headline
    assert rule_text(realised).endswith("at 95 %.")
    assert "good for any number of looks" in "".join(sentences(realised))


def test_several_verdicts_on_one_question_say_how_often_it_was_asked() -> None:
    alone, third = verdict(None), verdict(Look(3, 5))
    assert planned_looks([alone]) == planned_looks([verdict(None, "realised")] * 9) == ""
    assert planned_looks([alone] * 3).startswith(
        "These are 3 looks at one question. Each verdict is good for one look: "
    )
    assert "One of the verdicts is good for one look" in planned_looks([alone, third])
    assert planned_looks([verdict(Look(2, 5)), third]).startswith("These are look 2 of 5, look 3 of 5: all planned")


def test_a_level_is_written_in_as_many_digits_as_tell_its_error() -> None:
    assert [level_text(Look(k, 1000).level(0.95)) for k in (1, 1000)] == ["99.999999995 %", "99.985 %"]


@pytest.mark.parametrize(("law", "ends"), [("standard_normal", (0.1, 0.16)), ("standard_t", (0.25, 0.45))])
def test_ends_move_by_more_than_the_spread_where_they_follow_the_tails(law: str, ends: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal(100) if law == "standard_normal" else rng.standard_t(5, 100) for _ in range(500)]
    spread = np.array([values.std(ddof=1) for values in drawn])
    half = spread * [widened_by(values, level=0.95) for values in drawn]
    told = np.median([error_of_spread(values) for values in drawn])
    # Of heavy tails no 100 values tell how far their spread may be off.
    assert told == pytest.approx(spread.std() / spread.mean(), rel=0.1 if law == "standard_normal" else 0.4)
    assert ends[0] < half.std() / half.mean() < ends[1]
