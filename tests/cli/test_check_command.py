"""``evaluate check`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator import check, load
from evaluator.datasets import convert
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from tests.checks.defects import DEFECTS
from tests.cli.runs import evaluate, validator


def test_json_keeps_its_schema_and_equals_the_python_result() -> None:
    run = evaluate("check", "synthetic", "--limit", "20000", "--seed", "3", "--json")
    assert run.code == 0, run.err
    validator("check").validate(run.json)
    assert run.json == json.loads(json.dumps(check(load("synthetic", limit=20_000), seed=3).to_dict()))


@pytest.mark.parametrize("defect", list(DEFECTS)[::4])
def test_json_of_a_log_with_a_defect_keeps_its_schema(defect: str) -> None:
    validator("check").validate(check(DEFECTS[defect][0](1)).to_dict())


def test_a_failed_check_exits_4_with_the_report_on_stdout() -> None:
    # 300 displays leave 30 rounds: a warning. 50 leave 5: no replay.
    assert evaluate("check", "--limit", "300").code == 0
    run = evaluate("check", "--limit", "50")
    assert run.code == 4
    assert "Not fit for replay: 1 failed" in run.out
    assert "What to do:" in run.out
    assert "bundled synthetic" in run.err


def test_what_is_redirected_is_as_wide_as_columns_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, widest in (("70", 70), ("", 120), ("0", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        shown = evaluate("check", "--limit", "300").out
        assert 0.8 * widest < max(map(len, shown.splitlines())) <= widest


def test_plain_output_fits_its_width() -> None:
    report = check(DEFECTS["action depends on the context, propensities constant"][0](1))
    for width in (60, 120):
        console = ReportConsole(width=width)
        with console.capture() as captured:
            show(console, report)
        shown = captured.get()
        assert max(map(len, shown.splitlines())) <= width
        for finding in report.checks:
            assert finding.name in shown
        assert "…" not in shown
        assert "context[1]" in shown


def test_a_converted_log_is_checked_from_disk_with_the_same_result(tmp_path: Path) -> None:
    convert("synthetic", tmp_path / "log", limit=5000)
    stored, made = (evaluate("check", name, "--json").json for name in (str(tmp_path / "log"), "synthetic"))
    again = check(load("synthetic", limit=5000)).to_dict()
    assert stored["checks"] == json.loads(json.dumps(again))["checks"]
    assert made["displays"] == 100_000


def test_usage_errors_are_one_line() -> None:
    for words in (
        ("synthetic", "-d", "synthetic"),
        ("--false-alarms", "2"),
        ("--propensity", "guess"),
        ("--seed", "-1"),
    ):
        run = evaluate("check", *words)
        assert run.code == 2, words
        assert run.out == ""
        assert run.err.splitlines()[-1].startswith("error: ")
