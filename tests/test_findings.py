"""Every code of a finding is explained, and its example has it."""

from __future__ import annotations

import ast
from typing import Any

import pytest

import evaluator
from evaluator.checks.registry import CHECKS
from evaluator.errors import UnknownNameError
from evaluator.findings.catalogue import catalogue
from evaluator.findings.codes import CODES, FEW_ROUNDS, LOG_NOTE, NO_ROUNDS, NO_WEAR_OUT, ordered
from tests.cli.runs import evaluate

OF_CHECKS = [check.name.replace(" ", "-") for check in CHECKS]


def result_of(example: str) -> Any:
    """Run an example, and return what its last line gives."""
    tree = ast.parse(example)
    names: dict[str, Any] = {}
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), "an example ends with a result"
    exec(compile(tree, "<example>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<example>", "eval"), names)


def codes_of(result: Any) -> set[str]:
    """Return the codes of a result; a comparison has those of its replays, too."""
    return {found.code for one in (result, *getattr(result, "results", ())) for found in one.findings}


def test_the_catalogue_has_every_code_and_no_other_in_the_order_of_reports() -> None:
    assert set(catalogue()) == {*CODES, *OF_CHECKS}
    for command in ("replay", "check"):
        listed = [entry.code for entry in catalogue().values() if entry.command == command]
        assert listed == [code for code in (*CODES, *OF_CHECKS) if code in listed]


@pytest.mark.parametrize("code", catalogue())
def test_the_example_of_a_code_has_it_and_the_mended_one_has_not(code: str) -> None:
    entry = catalogue()[code]
    assert code in codes_of(result_of(entry.example))
    if entry.mended:
        assert code not in codes_of(result_of(entry.mended))


def test_each_entry_is_whole_sentences() -> None:
    for entry in catalogue().values():
        assert not entry.title.endswith("."), entry.code
        for said in (entry.means, entry.how, entry.effect, entry.remedy):
            assert said.strip()[:1].isupper(), (entry.code, said)
            assert said.strip().endswith("."), (entry.code, said)


def test_findings_are_ordered_by_severity_and_code_each_once() -> None:
    some = [LOG_NOTE.found("a note"), FEW_ROUNDS.found("few"), NO_WEAR_OUT.found("none"), FEW_ROUNDS.found("few")]
    given = [*some, NO_ROUNDS.found("none at all", "Take more.")]
    assert [found.code for found in ordered(given)] == ["no-rounds", "few-rounds", "no-wear-out", "log-note"]
    assert [str(found) for found in ordered(given)][:2] == ["none at all Take more.", "few"]


def test_explain_says_what_a_code_means_and_what_is_meant_by_no_code() -> None:
    said = evaluate("explain", "few-rounds")
    assert said.code == 0
    for part in ("few-rounds: Few rounds", "How it is found", "What to do", "evaluator.replay("):
        assert part in said.out
    assert evaluate("explain", "few-rounds", "--json").json["findings"] == [evaluator.explain("few-rounds").to_dict()]
    listed = evaluate("explain").out
    assert all(code in listed for code in catalogue())
    wrong = evaluate("explain", "few-round")
    assert (wrong.code, "did you mean few-rounds?" in wrong.err) == (2, True)
    with pytest.raises(UnknownNameError, match="few-rounds"):
        evaluator.explain("few-round")


@pytest.mark.parametrize(
    ("codes", "code"), [("few-rounds", 4), ("warn", 4), ("conversion-gap,few-rounds", 4), ("conversion-gap", 0)]
)
def test_a_scheduled_run_fails_on_the_codes_that_it_names(codes: str, code: int) -> None:
    run = evaluate("replay", "-p", "ucb1", "--limit", "200", "--json", "--fail-on", codes)
    assert run.code == code
    assert "few-rounds" in {found["code"] for found in run.json["findings"]}
    assert ("Not fit by --fail-on: few-rounds" in run.err) == (code == 4)


def test_a_code_to_fail_on_that_there_is_not_is_refused_before_any_work() -> None:
    run = evaluate("check", "--fail-on", "overlapp")
    assert (run.code, run.out) == (2, "")
    assert "did you mean overlap?" in run.err
