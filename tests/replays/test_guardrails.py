"""Guardrails: their grammar, their answers, which an interval gives, and what these are adjusted for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evaluator import compare, plan, replay
from evaluator.arguments import as_description
from evaluator.comparisons.kept import KeptResults
from evaluator.comparisons.run import compare_results, plan_comparison
from evaluator.comparisons.study_file import read_study
from evaluator.errors import KeyOfFileError, ParameterError, UnknownNameError
from evaluator.estimates.confidence import ANYTIME, Interval
from evaluator.reading.canonical import write_canonical
from evaluator.replays.options import Guardrail, ReplayOptions, parse_guardrail
from evaluator.replays.run import execute_all
from evaluator.replays.values.kind_values import relative, verdict_on
from evaluator.reports.html import notebook_html
from tests.cli.runs import evaluate, manifest_of, validate
from tests.replays.test_outcomes import plain, with_complaints

THREE = ("complaint < +0.9", "complaint > +20%", "complaint<0.5")


@pytest.mark.parametrize(
    ("text", "outcome", "quantity", "below", "limit"),
    [
        ("unsubscribe < +0.001", "unsubscribe", "uplift", True, 0.001),
        ("click>-1e-3", "click", "uplift", False, -0.001),
        (" a.b-c <0.02 ", "a.b-c", "value", True, 0.02),
        ("click > -5%", "click", "relative uplift", False, -0.05),
        ("click < +.5 %", "click", "relative uplift", True, 0.005),
        ("x < +0", "x", "uplift", True, 0.0),
    ],
)
def test_a_guardrail_is_read(text: str, outcome: str, quantity: str, below: bool, limit: float) -> None:
    found = parse_guardrail(text)
    assert (found.outcome, found.quantity, found.below, found.limit) == (outcome, quantity, below, limit)


@pytest.mark.parametrize(
    "text",
    ["", "click", "click < ", "< 0.1", "click <= 0.1", "click < 0.1 < 2", "click = 3", "a b < 1", "click < +1e999"],
)
def test_what_is_none_is_one_line_that_teaches(text: str) -> None:
    with pytest.raises(
        ParameterError, match=r"Hint: (write an outcome \(or sales, refunds, revenue, cost\), < or >, and|give a value)"
    ):
        replay(plain(), "random", guardrails=[text])


def test_per_cent_needs_to_say_of_what() -> None:
    with pytest.raises(ParameterError, match=r"'click < 5%': 5% of what\? Hint: 'click < \+5%' is relative to"):
        parse_guardrail("click < 5%")


def test_an_unknown_outcome_is_refused_before_the_run() -> None:
    with pytest.raises(UnknownNameError, match=r"'complant < 1': There is no outcome 'complant' in log 'test'\."):
        plan(with_complaints(plain()), "ucb1", guardrail="complant < 1")
    with pytest.raises(UnknownNameError, match=r"Hint: known: revenue, sales\. A spec names outcomes as \[outc"):
        plan(plain(), "ucb1", guardrail="complaint < 1")


def test_twice_the_same_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'c<\+0\.10' is there twice"):
        ReplayOptions(guardrails=["c<+0.10", "c < +.1"])


def an_interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 100, 0.95, ANYTIME)


@pytest.mark.parametrize(
    ("text", "low", "high", "answer"),
    [
        ("x < +0.1", 0.0, 0.09, "holds"),
        ("x < +0.1", 0.0, 0.1, "cannot tell"),  # it is not below 0.1
        ("x < +0.1", 0.1, 0.2, "broken"),
        ("x < +0.1", 0.09, 0.2, "cannot tell"),
        ("x > -0.1", -0.09, 0.2, "holds"),
        ("x > -0.1", -0.1, 0.2, "cannot tell"),
        ("x > -0.1", -0.3, -0.1, "broken"),
        ("x > +5%", -0.3, math.inf, "cannot tell"),
        ("x > +5%", 0.06, math.inf, "holds"),
    ],
)
def test_the_answer_is_the_intervals(text: str, low: float, high: float, answer: str) -> None:
    assert verdict_on(parse_guardrail(text), an_interval(low, high)) == answer


def test_a_share_of_the_logging_policys_value_is_told_by_both_intervals() -> None:
    found = relative(an_interval(0.2, 0.4), an_interval(0.1, 0.2))
    assert (found.low, found.high, found.level) == (pytest.approx(0.0), pytest.approx(3.0), pytest.approx(0.9))
    # What it says of a limit is what the two intervals say of value < (1 + limit) logging, whatever the two are.
    rng = np.random.default_rng(0)
    inside = rng.uniform([[0.2], [0.1]], [[0.4], [0.2]], (2, 1000))
    assert ((inside[0] / inside[1] - 1 >= found.low) & (inside[0] / inside[1] - 1 <= found.high)).all()
    assert relative(an_interval(0.2, 0.4), an_interval(0.0, 0.2)).high == math.inf


def test_answers_are_adjusted_for_the_number_of_guardrails() -> None:
    log = with_complaints(plain())
    one = replay(log, "random", guardrail=THREE[0])
    three = replay(log, "random", guardrails=THREE)
    assert [a.guardrail for a in three.guardrails] == list(THREE)
    assert (one.guardrails[0].tests, one.guardrails[0].interval.level) == (1, pytest.approx(0.95))
    assert one.guardrails[0].interval == one.outcomes[0].uplift
    for answer in three.guardrails:
        assert (answer.tests, answer.interval.level) == (3, pytest.approx(1 - 0.05 / 3))
    assert three.guardrails[0].interval.high > one.guardrails[0].interval.high
    assert [a.answer for a in three.guardrails] == ["holds", "cannot tell", "holds"]
    assert replay(log, "fixed:action=1", guardrail="complaint < +0.01").guardrails[0].answer == "broken"
    assert three.guardrail_table["answer"].to_pylist() == ["holds", "cannot tell", "holds"]


def test_a_comparison_adjusts_for_its_lines_too() -> None:
    log = with_complaints(plain())
    found = compare(log, ["ucb1", "random"], baseline="ucb1", windows=[50, 200], guardrails=THREE[:2])
    for result in found.results:
        for answer in result.guardrails:
            assert (answer.tests, answer.interval.level) == (8, pytest.approx(1 - 0.05 / 8))
    shown = notebook_html(found)
    assert "Guardrails" in shown
    assert "cannot tell" in shown
    assert json.loads(json.dumps(found.to_dict()))["variants"][0]["guardrails"][0]["tests"] == 8


def test_kept_results_are_answered_as_new_ones_are(tmp_path: Path) -> None:
    log, policies = with_complaints(plain()), [as_description(p) for p in ("ucb1", "random")]
    plans = plan_comparison(log, policies, [200], ReplayOptions(guardrails=THREE, repeats=2))
    results = execute_all(plans)
    kept = KeptResults(tmp_path / "kept", policies)
    kept.find(plans, log)
    for one, result in zip(plans, results, strict=True):
        kept.keep(one, result)
    again = kept.find(plans, log).results
    assert [again[i].outcomes for i in range(2)] == [r.outcomes for r in results]
    assert [again[i].guardrails for i in range(2)] == [r.guardrails for r in results]
    new, old = (compare_results(plans, of) for of in (results, [again[0], again[1]]))
    assert new.to_dict() == old.to_dict()
    assert {a.tests for r in old.results for a in r.guardrails} == {6}


def test_the_command_states_them_answers_them_and_exits_with_0(tmp_path: Path) -> None:
    log = with_complaints(plain(), attribution_window=100, observed_until=3999)
    (tmp_path / "log").mkdir()
    write_canonical(log, tmp_path / "log")
    asked = ("-d", str(tmp_path / "log"), "--guardrail", "complaint < +0.01", "--guardrail", "complaint < 0.9")
    run = evaluate("replay", "-p", "fixed:action=1", *asked, "--full", "--out", str(tmp_path / "out"))
    assert run.code == 0, run.err
    words = " ".join(run.out.split())
    assert "adjusted for 2 guardrails, so that any wrong answer has a probability of 5 % at the most" in words
    assert "complaint < +0.01 broken" in words
    assert "complaint < 0.9 holds" in words
    manifest = manifest_of(tmp_path / "out")
    assert manifest["replays"][0]["options"]["guardrails"] == ["complaint < +0.01", "complaint < 0.9"]
    planned = evaluate("replay", "-p", "ucb1", *asked, "--dry-run")
    validate(planned.json)
    assert planned.json["options"]["guardrails"] == ["complaint < +0.01", "complaint < 0.9"]
    result = evaluate("compare", "-p", "ucb1,random", *asked, "--bootstrap", "0", "--json")
    validate(result.json)
    assert evaluate("replay", "-p", "ucb1", *asked, "--json").json["schema"] == "evaluate.replay/2"
    bad = evaluate("replay", "-p", "ucb1", *asked[:2], "--guardrail", "complaint rises")
    assert (bad.code, bad.out, len(bad.err.strip().splitlines())) == (2, "", 1)
    assert "--guardrails 'complaint rises' is no guardrail." in bad.err
    unknown = evaluate("replay", "-p", "ucb1", *asked[:2], "--guardrail", "compliant < 1")
    assert (unknown.code, unknown.out) == (2, "")
    assert "did you mean complaint?" in unknown.err


def test_a_study_file_states_them(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('policies = ["ucb1"]\nguardrails = ["a < +0.1", "b > 2"]\n', encoding="utf-8")
    assert read_study(file).options == {"guardrails": ["a < +0.1", "b > 2"]}
    file.write_text('policies = ["ucb1"]\nguardrail = "a < +0.1"\n', encoding="utf-8")
    assert read_study(file).options == {"guardrails": ["a < +0.1"]}
    file.write_text('policies = ["ucb1"]\nguardrail = "a rises"\n', encoding="utf-8")
    with pytest.raises(KeyOfFileError, match=r"study\.toml: line 2: `guardrails` 'a rises' is no guardrail\."):
        read_study(file)
    file.write_text('policies = ["ucb1"]\nguardrails = "a < +0.1"\n', encoding="utf-8")
    with pytest.raises(KeyOfFileError, match=r"`guardrails` is 'a < \+0\.1'\. Hint: write a list"):
        read_study(file)


def test_a_guardrail_is_plain_data() -> None:
    assert parse_guardrail("x < 1") == Guardrail("x < 1", "x", "value", True, 1.0)
