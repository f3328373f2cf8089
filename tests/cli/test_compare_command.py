"""Several policies and windows in one command give what each gives alone, and how they differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluator import compare, load
from evaluator.cli import options
from evaluator.reports.console import ReportConsole
from tests.cli.runs import evaluate, manifest_of, validator
from tests.reports.digits import as_written

SHORT = ("--limit", "4000")
BARE = ("--bootstrap", "0")  # where what is expected of other logs is not what a test is about
FOUR = ("-p", "otflinucb:alpha=0.5", "-p", "ucb1", "-w", "50,none")


def test_each_line_is_the_replay_alone(tmp_path: Path) -> None:
    words = ("compare", *FOUR, *SHORT, *BARE, "--seed", "3", "-b", "ucb1")
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
    assert json.loads((tmp_path / "run" / "result.json").read_text())["schema"] == "evaluate.compare/3"
    replays = manifest_of(tmp_path / "run")["replays"]
    assert [replay["policy"] for replay in replays] == ["otflinucb:alpha=0.5", "otflinucb:alpha=0.5", "ucb1", "ucb1"]
    assert not (tmp_path / "run.partial").exists()


@pytest.mark.parametrize(
    "words",
    [
        (*FOUR, *SHORT),
        (*FOUR, *SHORT, *BARE, "--repeats", "2", "--baseline", "ucb1"),
        (*FOUR, *SHORT, *BARE, "--reward", "observed"),
        ("-p", "odaaf", "-p", "delayed-ucb", *SHORT, *BARE, "--horizon", "100"),
        ("-p", "logging", "-p", "lints", "--limit", "3"),
        ("-p", "random", *SHORT),
        ("-p", "random", "-p", "fixed:action=7", "--limit", "40"),
    ],
)
def test_json_keeps_its_schema(words: tuple[str, ...]) -> None:
    run = evaluate("compare", *words, "--json")
    assert run.code == 0, run.err
    validator("compare").validate(run.json)
    for variant in run.json["variants"]:
        validator("replay").validate(variant)
    policies = [variant["policy"] for variant in run.json["variants"]]
    assert run.json["baseline"] == policies.index("ucb1" if "--baseline" in words else "logging")


def test_the_python_function_gives_the_same() -> None:
    run = evaluate("compare", *FOUR, "--limit", "1500", "--seed", "3", "--baseline", "ucb1", "--json")
    found = compare(
        load("synthetic", limit=1500), ["otflinucb:alpha=0.5", "ucb1"], windows=["50", None], seed=3, baseline="ucb1"
    )
    assert run.json == json.loads(json.dumps(found.to_dict()))


def test_curves_end_at_the_common_horizon(tmp_path: Path) -> None:
    run = evaluate("compare", *FOUR, *SHORT, *BARE, "--horizon", "300", "--json", "--out", str(tmp_path / "run"))
    curves = pq.read_table(tmp_path / "run" / "curves.parquet")
    assert curves.column_names == [
        "variant", "round", "value", "value_low", "value_high", "regret", "regret_low", "regret_high",
    ]  # fmt: skip
    assert run.json["horizon"] == {"rounds": 300, "fixed": True, "why": "as asked for"}
    for i, (curve, variant) in enumerate(zip(run.json["curves"], run.json["variants"], strict=True)):
        own = curves.filter(np.asarray(curves["variant"]) == i)
        assert own["round"].to_pylist() == curve["rounds"]
        assert own["regret_low"].to_pylist() == curve["regret"]["low"]
        assert (curve["rounds"][-1], len(curve["rounds"]) <= 200) == (300, True)
        if variant["policy"] == "logging":
            continue  # valued over all displays, whatever the horizon
        # All stop at the horizon, so that the whole replay's numbers are the curves' last.
        for name, total in (("value", variant["value"]), ("regret", variant["regret"])):
            last = [curve[name][part][-1] for part in ("estimate", "low", "high")]
            assert last == pytest.approx([total["estimate"], total["low"], total["high"]])


def test_the_table_has_a_line_a_variant_and_says_what_a_line_is_about() -> None:
    run = evaluate(
        "compare", "-p", "random", "-p", "delayed-ucb", "-w", "5,1000", *SHORT, *BARE, "--full", "-b", "random"
    )
    assert run.code == 0, run.err
    lines = run.out.partition("replays of synthetic")[2].splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:1] == ["policy"]) + 1
    assert [line.split()[:2] for line in lines[first : first + 4]] == [
        ["random", "5"], ["random", "1,000"], ["delayed-ucb", "5"], ["delayed-ucb", "1,000"],
    ]  # fmt: skip
    said = " ".join(run.out.split())
    assert (
        "come within the window: the policy sees few of them. (random, window 5; delayed-ucb, window 5) [short-window]"
        in said
    )
    both = "delayed-ucb, window 5; delayed-ucb, window 1,000"
    assert f"knows the delay CDF of this whole log (hindsight) ({both}) [known-delays]" in said


def test_the_report_says_what_differs_and_what_was_assumed() -> None:
    run = evaluate("compare", "-p", "odaaf", "-p", "random", "-w", "50,1000", *SHORT, "--baseline", "random", "--full")
    said = " ".join(run.out.split())
    for words in (
        "Difference per round to random, window 50",
        "fixed from the log alone",
        "Cost of the window",
        "Ranking of expected values (all pairs tested, adjusted for their number by Holm's method)",
        "Of the expected values, none of 6 differences is told from 0 at 95 %, all tests at once (bootstrap).",
        "Regret against the best fixed action",
        "Actions",
        "the policy was told the horizon: at most 306 rounds (odaaf, window 50; odaaf, window 1,000)",
        "the policy was told the delay CDF: empirical CDF",
    ):
        assert words in said
    assert max(map(len, run.out.splitlines())) <= 120


def test_a_short_replay_makes_the_horizon_depend_on_the_run() -> None:
    run = evaluate("compare", "-p", "linucb", "-p", "lints", *SHORT, *BARE, "--horizon", "3000")
    assert "short of the 3,000 rounds asked for" in " ".join(run.out.split())


def test_a_variant_without_a_round_does_not_lose_the_others() -> None:
    words = ("compare", "-p", "fixed:action=7", "-p", "fixed:action=6", "--limit", "5", "-b", "fixed:action=6")
    for shown in (True, False):
        run = evaluate(*words, *(() if shown else ("--json",)))
        assert run.code == 0, run.err
        if shown:
            said = " ".join(run.out.split())
            assert "fixed:action=7 chose an action that cannot be replayed, or lived no round" in said
            assert "it chose action 7, which was never shown" in said
        else:
            validator("compare").validate(run.json)
            assert [variant["rounds"] > 0 for variant in run.json["variants"]] == [False, True]
    alone = evaluate("compare", "-p", "fixed:action=7", "--limit", "5", "-b", "fixed:action=7")
    assert (alone.code, alone.out) == (3, "")
    assert "never shown" in alone.err


def test_a_narrow_terminal_loses_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("compare", *FOUR, *SHORT, "--bootstrap", "20", "--full")
    wide = evaluate(*words).out
    monkeypatch.setattr(options, "stdout", lambda: ReportConsole(width=60))
    narrow = evaluate(*words).out
    assert max(map(len, narrow.splitlines())) <= 60
    table = wide[wide.index("over logging") : wide.index("Each interval")]
    for word in table.split():
        assert word.strip("[],") in narrow


def test_rewards_observed_by_the_horizon_are_one_sum_with_what_both_showed() -> None:
    words = ("-p", "ucb1", "-p", "random", "-w", "50,none", *SHORT, *BARE, "-b", "ucb1")
    run = evaluate("compare", *words, "--reward", "observed", "--json")
    same, other = run.json["differences"][1], run.json["differences"][0]
    assert same["why_not"] == ""
    assert run.json["horizon"]["rounds"] <= same["realised"]["n"] <= 2 * run.json["horizon"]["rounds"]
    assert (other["realised"], other["p"]) == (None, None)
    assert "the windows differ" in other["why_not"]


def test_a_bootstrap_adds_a_column() -> None:
    run = evaluate("compare", "-p", "random", "-p", "ucb1", *SHORT, "--bootstrap", "20", "--full")
    assert run.code == 0, run.err
    assert "expected value, 95%" in " ".join(run.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "ucb1", "-p", "ucb1"), "ucb1 without a window is there twice"),
        (("-p", "ucb1", "-w", "7,x"), "x"),
        (("-p", "ucb2"), "did you mean"),
        ((), "--policy"),
        (("-p", "ucb1", "-p", "random", "--baseline", "klucb"), "did you mean ucb1?"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(words: tuple[str, ...], said: str) -> None:
    run = evaluate("compare", *words, *SHORT)
    assert run.code == 2
    assert said in run.err


def test_weighted_values_that_were_asked_for_are_shown() -> None:
    words = (
        "compare",
        "-p",
        "random,ucb1",
        "-b",
        "random",
        "--limit",
        "20000",
        "--final",
        "last:20%",
        "--doubly-robust",
        *BARE,
    )
    said, found = " ".join(evaluate(*words).out.split()), evaluate(*words, "--json").json["variants"]
    assert "Weighted values per round: other targets than the rounds above" in said
    values = [variant["final"]["dr"]["value"] for variant in found]
    robusts = [variant["doubly_robust"]["value"] for variant in found]
    for variant, kind in zip(found, ("fixed", "greedy"), strict=True):
        value, robust = variant["final"]["dr"]["value"], variant["doubly_robust"]["value"]
        assert f"{kind} {' '.join(as_written(value, values))} {as_written(robust, robusts)[0]}" in said
    assert "Weighted values" not in evaluate("compare", "-p", "random", "-p", "ucb1", *SHORT, *BARE).out


def test_a_verdict_that_takes_long_says_so_before(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("compare", "-p", "ucb1", "--limit", "1000", "--window", "50")
    said = "takes up to 200 resampled logs, 200,000 displays to draw"
    assert said not in evaluate(*words).err
    monkeypatch.setattr("evaluator.cli.compare.LONG", 100_000)
    assert said in evaluate(*words).err
    assert said not in evaluate(*words, "--bootstrap", "0").err
