"""Several policies and windows in one command give what each gives alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.runs import evaluate

SHORT = ("--limit", "4000")


def test_each_line_is_the_replay_alone(tmp_path: Path) -> None:
    words = ("compare", "-p", "otflinucb:alpha=0.5", "-p", "ucb1", "-w", "50,none", *SHORT, "--seed", "3")
    together = evaluate(*words, "--json", "--jobs", "2", "--out", str(tmp_path / "run"))
    assert together.code == 0, together.err
    variants = together.json["variants"]
    alone = [
        evaluate("replay", "-p", policy, *window, *SHORT, "--seed", "3", "--json").json
        for policy in ("otflinucb:alpha=0.5", "ucb1")
        for window in (("-w", "50"), ())
    ]
    for one, other in zip(variants, alone, strict=True):
        one["plan"]["options"].pop("jobs")
        other["plan"]["options"].pop("jobs")
        assert one == other
    rounds = pq.read_table(tmp_path / "run" / "trajectory.parquet").group_by("variant").aggregate([([], "count_all")])
    assert sorted(rounds["count_all"].to_pylist()) == sorted(v["rounds"] for v in variants)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["schema"] == "evaluate.compare/1"
    replays = json.loads((tmp_path / "run" / "manifest.json").read_text())["replays"]
    assert [replay["policy"] for replay in replays] == ["otflinucb:alpha=0.5", "otflinucb:alpha=0.5", "ucb1", "ucb1"]


def test_the_table_has_a_line_a_variant_and_says_what_a_line_is_about() -> None:
    run = evaluate("compare", "-p", "random", "-p", "delayed-ucb", "-w", "5,1000", *SHORT)
    assert run.code == 0, run.err
    lines = run.out.splitlines()
    assert [line.split()[:3] for line in lines[2:6]] == [
        ["1", "random", "5"], ["2", "random", "1,000"], ["3", "delayed-ucb", "5"], ["4", "delayed-ucb", "1,000"],
    ]  # fmt: skip
    assert "come within the window: the policy sees few of them. (line 1, 3)" in run.out
    assert "knows the delay CDF of this whole log (hindsight) (line 3, 4)" in run.out


def test_a_bootstrap_adds_a_column() -> None:
    run = evaluate("compare", "-p", "random", "-p", "ucb1", *SHORT, "--bootstrap", "20")
    assert run.code == 0, run.err
    assert "expected" in run.out.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "ucb1", "-p", "ucb1"), "ucb1 with window None is there twice"),
        (("-p", "ucb1", "-w", "7,x"), "x"),
        (("-p", "ucb2"), "did you mean"),
        ((), "--policy"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(words: tuple[str, ...], said: str) -> None:
    run = evaluate("compare", *words, *SHORT)
    assert run.code == 2
    assert said in run.err
