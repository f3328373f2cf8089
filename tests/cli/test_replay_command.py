"""``evaluate replay`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluator import load, load_policy, replay
from tests.cli.runs import evaluate, manifest_of, validator
from tests.reading.sources import dataset
from tests.reports.digits import as_written

SMALL = ("--limit", "5000", "--window", "200")


def test_json_keeps_its_schema_and_equals_the_python_result() -> None:
    run = evaluate("replay", "-p", "otflinucb:alpha=0.5", *SMALL, "--seed", "3", "--json")
    assert run.code == 0, run.err
    validator("replay").validate(run.json)
    expected = replay(load("synthetic", limit=5000), "otflinucb:alpha=0.5", window="200", seed=3).to_dict()
    assert run.json == json.loads(json.dumps(expected))


def test_json_of_the_weighted_estimates_keeps_its_schema_and_equals_python() -> None:
    asked = ("--seed", "3", "--final", "last:30%", "--doubly-robust")
    run = evaluate("replay", "-p", "otflinucb:alpha=0.5", *SMALL, *asked, "--json")
    assert run.code == 0, run.err
    validator("replay").validate(run.json)
    options = {"window": "200", "seed": 3, "final": "last:30%", "doubly_robust": True}
    expected = replay(load("synthetic", limit=5000), "otflinucb:alpha=0.5", **options).to_dict()
    assert run.json == json.loads(json.dumps(expected))
    assert run.json["final"]["displays"] == 1500


def test_the_short_form_names_the_whole_window() -> None:
    assert ", window: 2,000 rounds\n" in evaluate("replay", "-p", "random", "--limit", "5000", "--window", "2000").out


def test_the_report_tells_the_final_policy_from_the_value() -> None:
    run = evaluate("replay", "-p", "otflinucb:alpha=0.5", *SMALL, "--final", "last:30%", "--doubly-robust", "--full")
    assert run.code == 0, run.err
    said = " ".join(run.out.split())
    assert "Final policy, greedy" in said
    assert "another target than the value above" in said
    assert "doubly robust (DR)" in said
    assert "value over all displays read, doubly robust" in said
    assert "effective sample size" in said


def test_columns_are_replayed_from_a_spec(tmp_path: Path) -> None:
    rows = [f"{t},{'ab'[t % 2]},0.5,{t + 1 if t % 3 else ''},0.25,0.75" for t in range(300)]
    spec = dataset(
        tmp_path, ["t,ad,p,sold,pi_a,pi_b", *rows], display={"propensity": "p"}, target={"columns": "pi_{action}"}
    )
    run = evaluate("replay", "-d", str(spec), "-p", "columns", "--window", "20", "--json")
    assert run.code == 0, run.err
    validator("replay").validate(run.json)
    assert run.json["final"]["action_share"] == {"a": 0.25, "b": 0.75}
    assert (run.json["final"]["displays"], run.json["final"]["learned"]) == (run.json["plan"]["displays_judged"], False)


def test_a_bootstrap_adds_the_expected_value() -> None:
    words = ("replay", "-p", "ucb1", "--limit", "2000", "--window", "200", "--bootstrap", "20")
    run = evaluate(*words, "--json")
    assert run.code == 0, run.err
    validator("replay").validate(run.json)
    assert run.json["expected_value"]["estimate"] == run.json["value"]["estimate"]
    assert "bootstrap" in run.json["expected_value"]["kind"]
    assert f"expected value at {run.json['rounds']:,} rounds (bootstrap)" in evaluate(*words, "--full").out


def test_a_replay_without_a_round_fails_in_one_line() -> None:
    run = evaluate("replay", "-p", "linucb", "--limit", "3", "--json", "--seed", "1")
    assert (run.code, run.out) == (3, "")
    assert "linucb lived no round of the 3 displays (sampler: rejection), of which about 0.3" in run.err
    # The log's first five displays do not show action 7; what the hint advises is tried.
    run = evaluate("replay", "-p", "fixed:action=7", "--limit", "5")
    assert (run.code, run.out) == (3, "")
    assert "it chose action 7, which was never shown" in run.err
    assert evaluate("replay", "-p", run.err.split()[-1].rstrip("."), "--limit", "5").code == 0


def test_says_which_log_it_used_on_stderr_only() -> None:
    run = evaluate("replay", "-p", "random", *SMALL)
    assert "bundled synthetic log" in run.err
    assert "bundled" not in run.out
    named = evaluate("replay", "-p", "random", "-d", "synthetic", *SMALL)
    assert named.err == ""
    assert named.out == run.out


def test_report_shows_numbers_warnings_and_assumptions() -> None:
    run = evaluate("replay", "-p", "delayed-klucb", "--limit", "300", "--window", "20", "--full")
    for words in (
        "realised value (reward per round)",
        "regret over",
        "uplift",
        "delivered",
        "Read before trusting",
        "Assumptions",
    ):
        assert words in run.out
    assert max(map(len, run.out.splitlines())) <= 120


def test_narrow_terminal_loses_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.cli import options
    from evaluator.reports.console import ReportConsole

    with open("/dev/null", "w") as sink:
        narrow = ReportConsole(width=60, record=True, file=sink)
        monkeypatch.setattr(options, "stdout", lambda: narrow)
        assert evaluate("replay", "-p", "random", *SMALL).code == 0
        words = narrow.export_text()
    value = evaluate("replay", "-p", "random", *SMALL, "--json").json["value"]
    assert as_written(value)[0] in words
    assert max(map(len, words.splitlines())) <= 60


def test_out_holds_everything_and_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("replay", "-p", "ucb1", *SMALL, "--repeats", "2", "--full", "--out", str(out))
    run = evaluate(*words)
    assert run.code == 0, run.err
    assert sorted(p.name for p in out.iterdir()) == [
        "chapter.json", "manifest.json", "report.html", "report.txt", "result.json", "trajectory.parquet",
    ]  # fmt: skip
    result = json.loads((out / "result.json").read_text())
    validator("replay").validate(result)
    trajectory = pq.read_table(out / "trajectory.parquet")
    assert sorted(set(trajectory["repeat"].to_pylist())) == [0, 1]
    report = (out / "report.txt").read_text()
    assert " a display with ucb1: " in report.splitlines()[0]
    assert max(map(len, report.splitlines())) <= 100
    assert report.replace("\n", " ").split() == run.out.replace("\n", " ").split()
    manifest = manifest_of(out)
    assert [replay["options"]["window"] for replay in manifest["replays"]] == ["200"]
    assert manifest["versions"]["numpy"]
    again = evaluate(*words)
    assert again.code == 2
    assert "exists" in again.err
    assert list(tmp_path.iterdir()) == [out]


def test_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyarrow.parquet.write_table", interrupted)
    run = evaluate("replay", "-p", "random", *SMALL, "--out", str(tmp_path / "run"))
    assert run.code != 0
    assert list(tmp_path.iterdir()) == []


def test_dry_run_shows_every_choice_and_replays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.replays.run.execute", None)
    run = evaluate("replay", "-p", "otflinucb", *SMALL, "--dry-run")
    assert run.code == 0, run.err
    assert run.json["sampler"] == "rejection"
    assert run.json["window_rounds"] == 200
    assert run.json["schema_displays"]["time"] == "int64"


def test_jobs_and_repeats_do_not_change_the_first_repeat() -> None:
    one = evaluate("replay", "-p", "thompson", *SMALL, "--json").json
    many = evaluate("replay", "-p", "thompson", *SMALL, "--repeats", "4", "--jobs", "2", "--json").json
    same = evaluate("replay", "-p", "thompson", *SMALL, "--repeats", "4", "--json").json
    many["plan"]["options"]["jobs"] = 1
    assert many == same
    assert many["value"]["estimate"] != one["value"]["estimate"]


def test_what_was_learned_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "learned.npz"
    words = ("replay", "-p", "delayed-klucb", "--limit", "2000", "-w", "50", "--save-policy", str(file))
    run = evaluate(*words, "--json")
    assert run.code == 0
    assert "learned.npz: evaluator.load_policy reads it." in run.err
    learned = load_policy(file)
    assert learned.rounds == run.json["rounds"]
    assert learned.choose() in range(10)
    again = evaluate(*words)
    assert (again.code, again.out) == (2, "")
    assert "exists" in again.err


@pytest.mark.parametrize("policy", ["logging", "tests/policies/mine.py:Greedy"])
def test_what_cannot_be_saved_is_refused_before_the_replay(policy: str, tmp_path: Path) -> None:
    run = evaluate("replay", "-p", policy, "--limit", "2000", "--save-policy", str(tmp_path / "learned.npz"))
    assert (run.code, run.out) == (2, "")
    assert "save" in run.err


def test_a_warm_start_is_in_report_and_manifest(tmp_path: Path) -> None:
    file, out = tmp_path / "learned.npz", tmp_path / "out"
    words = ("-p", "delayed-klucb", "--limit", "4000", "--propensity", "uniform")
    learned = evaluate("replay", *words, "-w", "50", "--final", "last:50%", "--save-policy", str(file), "--json").json
    later = ("--warm-start", str(file), "--delays-from", "first:50%")
    run = evaluate("replay", *words, *later, "--full", "--out", str(out))
    assert run.code == 0, run.err
    said = " ".join(run.out.split())
    assert f"warm start: the policy began with what it had learned in {learned['rounds']:,} rounds on log" in said
    (replayed,) = manifest_of(out)["replays"]
    assert (replayed["warm_start"]["file"], replayed["warm_start"]["rounds"]) == ("learned.npz", learned["rounds"])
    assert len(replayed["warm_start"]["sha256"]) == 64
    compared = evaluate("compare", *words, "-p", "random", *later, "--bootstrap", "0", "--json").json
    alone = json.loads((out / "result.json").read_text())
    assert compared["variants"][0]["value"] == alone["value"]
    same = evaluate("replay", *words, "--warm-start", str(file))
    assert (same.code, same.out) == (2, "")
    assert "learned from displays of this log" in same.err
