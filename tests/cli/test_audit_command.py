"""``evaluate audit`` as a user meets it."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluator import audit, load
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from evaluator.reports.numbers import column_digits, significant_text
from tests.cli.runs import evaluate, manifest_of, validator

SMALL = ("--limit", "2000", "--window", "100", "--twins", "10")
TWO = ("-p", "linucb", "-p", "random")


@pytest.mark.parametrize("policies", [TWO, ("-p", "logging")])
def test_json_keeps_its_schema_and_equals_the_python_result(policies: tuple[str, ...]) -> None:
    run = evaluate("audit", *policies, *SMALL, "--seed", "3", "--json")
    assert run.code == 0, run.err
    validator("audit").validate(run.json)
    found = audit(load("synthetic", limit=2000), list(policies[1::2]), window="100", twins=10, seed=3)
    assert run.json == json.loads(json.dumps(found.to_dict()))


@pytest.mark.parametrize("columns", [60, 120])
def test_report_fits_and_begins_with_the_verdict(columns: int) -> None:
    found = audit(load("synthetic", limit=2000), ["linucb:alpha=0.5", "random"], window=100, twins=10)
    with io.StringIO() as sink:
        console = ReportConsole(width=columns, file=sink)
        show(console, found)
        out = sink.getvalue()
    assert max(map(len, out.splitlines())) <= columns
    words = " ".join(out.split())
    assert words.startswith("No bias seen, one below ")
    assert words.index(" ".join(found.verdict.split())) < words.index("random")
    digits = column_digits(policy.live_standard_error for policy in found.policies)
    for policy in found.policies:
        assert policy.policy in words
        numbers = [
            f"{policy.value:,.{digits}f}",
            significant_text(policy.spread, 2),
            significant_text(policy.regret_coverage.mean_width, 3),
        ]
        for number in numbers:
            assert number in words.split() or f"{number}," in words.split()


def test_a_policy_without_rounds_is_reported() -> None:
    found = audit(load("synthetic", limit=2000), ["linucb", "random"], window=100, twins=10)
    unknown = {name: float("nan") for name in ("value", "bias", "bias_standard_error", "spread")}
    found = dataclasses.replace(found, policies=(dataclasses.replace(found.policies[0], **unknown), found.policies[1]))
    for full in (False, True):
        with io.StringIO() as sink:
            show(ReportConsole(width=120, file=sink), found, full=full)
            assert "nan" in sink.getvalue()


def test_out_is_a_whole_folder(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    run = evaluate("audit", *TWO, *SMALL, "--out", str(out))
    assert run.code == 0, run.err
    assert {p.name for p in out.iterdir()} == {
        "twins.parquet", "differences.parquet", "live.parquet", "chapter.json", "report.html", "report.txt",
        "result.json", "manifest.json",
    }  # fmt: skip
    twins = pq.read_table(out / "twins.parquet")
    assert twins.num_rows == 20
    assert pq.read_table(out / "differences.parquet").num_rows == 10
    assert pq.read_table(out / "live.parquet").num_rows == 40
    manifest = manifest_of(out)
    assert manifest["policies"] == ["linucb", "random"]
    assert manifest["options"]["twins"] == 10
    result = json.loads((out / "result.json").read_text())
    validator("audit").validate(result)
    assert result["policies"][0]["value"] == pytest.approx(sum(twins["value"].to_pylist()[::2]) / 10)
    again = evaluate("audit", *TWO, *SMALL, "--out", str(out))
    assert (again.code, again.out) == (2, "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-p", "linucb", "-d", "vernade2017-low", "--limit", "1000"), 2, "linucb needs contexts"),
        (("-p", "random", "--limit", "100"), 3, "too few"),
        (("-p", "random", "--twins", "1"), 2, "--twins 1"),
        (("-p", "ucb2"), 2, "ucb1"),
    ],
)
def test_one_line_that_teaches(words: tuple[str, ...], code: int, said: str) -> None:
    run = evaluate("audit", *words)
    assert run.code == code, run.err
    assert said in run.err
    assert "Hint:" in run.err
    assert run.out == ""
