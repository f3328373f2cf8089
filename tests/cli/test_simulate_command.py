"""``evaluate simulate``: the twin of `evaluator.simulate`, its table, its files, its errors."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import evaluator
from evaluator.reports.numbers import column_digits, error_text
from evaluator.simulations import BernoulliProblem
from evaluator.simulations.options import SimulateOptions
from tests.cli.runs import evaluate, manifest_of
from tests.cli.test_commands import command

USAGE, BAD_DATA, THE_REST = 2, 3, 1
SHORT = ("--runs", "4", "--horizon", "300")
LOW = ("simulate", "-s", "vernade2017-low")
SPEC = """
name = "mine"
title = "Mine"
licence = "none"
[scenario]
kind = "bernoulli"
means = [0.2, 0.4]
"""


def test_options_and_defaults_are_those_of_the_python_function() -> None:
    fields = {f.name: f.default for f in dataclasses.fields(SimulateOptions)}
    given = {p.name: p.default for p in command("simulate").params}
    assert set(given) - set(fields) == {
            "name", "scenario", "policies", "full", "as_json", "out", "cluster", "debug",
        }  # fmt: skip
    assert {name: given[name] for name in fields} == fields


def test_the_command_prints_what_the_function_returns(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("-p", "delayed-klucb", "-p", "thompson", "--window", "50", "--seed", "3", "--jobs", "2", *SHORT)
    run = evaluate(*LOW, *words, "--json", "--out", str(out))
    assert run.code == 0, run.err
    found = evaluator.simulate("vernade2017-low", ["delayed-klucb", "thompson"], runs=4, horizon=300, window=50, seed=3)
    assert run.json == found.to_dict()
    assert run.json["schema"] == "evaluate.simulate/1"
    assert pq.read_table(out / "curves.parquet").equals(found.curve_table)
    assert json.loads((out / "result.json").read_text()) == run.json
    manifest = manifest_of(out)
    assert manifest["options"]["seed"] == 3
    assert manifest["policies"] == ["delayed-klucb", "thompson"]
    assert evaluate(*LOW, *words, "--out", str(out)).code == USAGE


def test_a_scenario_is_named_by_its_place_or_by_its_option() -> None:
    words = ("-p", "random", "--json", *SHORT)
    assert evaluate("simulate", "vernade2017-low", *words) == evaluate(*LOW, *words)
    run = evaluate("simulate", "vernade2017-low", "-s", "vernade2017-low", *words)
    assert (run.code, run.err) == (USAGE, "error: NAME and --scenario name two scenarios. Hint: leave one out.\n")


def test_table_has_a_line_a_policy_and_one_for_the_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    run = evaluate(*LOW, "-p", "ucb1", "-p", "random", *SHORT)
    assert run.code == 0, run.err
    assert run.err == ""  # the progress bar is for terminals
    lines = run.out.splitlines()
    assert "4 runs of 300 rounds, 3 actions, window 1,000" in lines[0]
    assert lines[1].split() == ["regret", "after", "30", "75", "150", "300", "observed", "to", "the", "first"]
    assert [line.split()[0] for line in lines[2:5]] == ["ucb1", "random", "lower"]
    curves = evaluator.simulate("vernade2017-low", ["ucb1", "random"], runs=4, horizon=300).curves
    digits = column_digits(of.regret_se[-1] for of in curves)
    for of, line in zip(curves, lines[2:4], strict=True):
        assert error_text(of.regret[-1], of.regret_se[-1], digits, "±") in line
    for line in lines[2:5]:
        assert len(line.split()[-1]) == 20
        assert set(line.split()[-1]) <= set("▁▂▃▄▅▆▇█")
    assert "86.5% of the conversions within the window" in run.out


def test_a_terminal_without_unicode_gets_the_same_in_ascii() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evaluator", *LOW, "-p", "random", *SHORT],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True,
    )  # fmt: skip
    line = done.stdout.decode("ascii").splitlines()[2]
    assert "+-" in line
    assert set(line.split()[-1]) <= set("_.-:=+*#")


def test_one_policy_has_no_difference_and_one_run_no_error() -> None:
    run = evaluate(*LOW, "-p", "random", "--runs", "1", "--horizon", "100")
    assert "to the first" not in run.out
    assert "±" not in run.out.splitlines()[2]


def test_delays_by_action_are_each_described() -> None:
    run = evaluate("simulate", "-s", "manegueu2020-figure5", "-p", "delayed-ucb", "--delays", "pareto:0.7", *SHORT)
    assert run.code == 0, run.err
    words = " ".join(run.out.split())
    assert "action 0: Pareto delays with tail index 1" in words
    assert "action 1: Pareto delays with tail index 0.3" in words
    assert "policies are told: Pareto delays with tail index 0.7" in words
    assert "lower bound" not in words


def test_every_scenario_is_listed() -> None:
    rows = {row["name"]: row["kind"] for row in evaluate("datasets", "list", "--json").json["datasets"]}
    for name in ("vernade2017-low", "pikeburke2018-uniform", "manegueu2020-figure2", "vernade2020-criteo"):
        assert rows[name] == "synthetic"


def test_a_users_scenario_and_a_users_policy(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "mine.py").write_text(
        "class First:\n    contextual = False\n    def __init__(self, setting): ...\n"
        "    def choose(self, vectors, rng): return 0\n    def displayed(self, vectors, action): ...\n"
        "    def converted(self, vector, action, delay, value): ...\n"
    )
    run = evaluate("simulate", "-s", str(tmp_path / "spec.toml"), "-p", f"{tmp_path}/mine.py:First", *SHORT, "--json")
    assert run.code == 0, run.err
    assert run.json["policies"][0]["regret"][-1]["regret"] == pytest.approx(0.2 * 300)
    assert run.json["window_rounds"] is None


def test_a_problem_made_in_python() -> None:
    from evaluator.delays.laws import uniform

    problem = BernoulliProblem(name="mine", means=(0.2, 0.4), laws=(uniform(0, 20),), horizon=300)
    found = evaluator.simulate(problem, "fixed:action=0", runs=2)
    assert found.curves[0].regret[-1] == pytest.approx(0.2 * 300)
    assert "regret 60" in repr(found)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-s", "vernade2017-lo", "-p", "ucb1"), USAGE, "did you mean vernade2017-low?"),
        (("-s", "criteo_attribution", "-p", "ucb1"), USAGE, "its truth is not known"),
        (("-s", "absent/spec.toml", "-p", "ucb1"), BAD_DATA, "absent/spec.toml"),
        (("-s", "vernade2017-low"), USAGE, "simulate needs --policies"),
        (("-p", "ucb1"), USAGE, "simulate needs a scenario. Hint: name it by its place"),
        (("-s", "vernade2017-low", "-p", "ucb2"), USAGE, "did you mean"),
        (("-s", "vernade2017-low", "-p", "ucb1", "-p", "ucb1"), USAGE, "twice"),
        (("-s", "vernade2017-low", "-p", "linucb"), USAGE, "needs contexts"),
        (("-s", "vernade2017-low", "-p", "logging"), USAGE, "a live run has none"),
        (("-s", "vernade2020-100-100", "-p", "waitlinucb", "-w", "none"), USAGE, "--window"),
        (("-s", "manegueu2020-figure2", "-p", "delayed-ucb"), USAGE, "--delays pareto:0.7"),
        (("-s", "vernade2017-low", "-p", "ucb1", "--delays", "gamma:2"), USAGE, "Expected a delay distribution"),
        (("-s", "vernade2017-low", "-p", "delayed-ucb", "--delays", "none.json"), BAD_DATA, "cannot be read"),
        (("-s", "vernade2017-low", "-p", "ucb1", "--runs", "0"), USAGE, "--runs 0"),
        (("-s", "vernade2017-low", "-p", "ucb1", "--horizon", "0"), USAGE, "--horizon 0"),
        (("-s", "vernade2017-low", "-p", "ucb1", "--window", "7d"), USAGE, "take 1 round or more, or none"),
        (("-s", "vernade2017-low", "-p", "ucb1", "--jobs", "0"), USAGE, "--jobs 0"),
        (("-s", "vernade2017-low", "-p", "absent.py:Mine"), BAD_DATA, "No policy file"),
    ],
)
def test_one_line_that_teaches(words: tuple[str, ...], code: int, said: str) -> None:
    run = evaluate("simulate", *words)
    assert run.code == code, run.err
    assert said in " ".join(run.err.split())
    assert run.out == ""
    assert "Traceback" not in run.err


def test_a_policy_that_raises_exits_1(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Raises:\n    contextual = False\n    def __init__(self, setting): ...\n"
        "    def choose(self, vectors, rng): return 1 // 0\n    def displayed(self, vectors, action): ...\n"
        "    def converted(self, vector, action, delay, value): ...\n"
    )
    run = evaluate(*LOW, "-p", f"{tmp_path}/mine.py:Raises", *SHORT)
    assert run.code == THE_REST
    assert "ZeroDivisionError" in run.err
