"""A study in a file is the same as its words on the command line, which win; what is wrong in it is named."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path

import pytest

from evaluator import compare, datasets
from evaluator.comparisons.study_file import READING, REPLAYING, read_study
from evaluator.replays.options import ReplayOptions
from tests.cli.runs import evaluate

STUDY = """
dataset = "synthetic"
limit = 3000
policies = ["random"]
windows = [50, "none"]
baseline = "otflinucb:alpha=0.5"
seed = 4
level = 0.9

[[policy]]
name = "otflinucb"
alpha = [0.5, 2]
bonus = ["buffered", "exact"]

[[policy]]
name = "ucb1"
"""
SPECS = (
    "random", "otflinucb:alpha=0.5,bonus=buffered", "otflinucb:alpha=0.5,bonus=exact",
    "otflinucb:alpha=2,bonus=buffered", "otflinucb:alpha=2,bonus=exact", "ucb1",
)  # fmt: skip


FEW = ("--bootstrap", "20")  # resampled logs: as few as are enough to be the same


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_every_option_of_reading_and_replaying_is_a_key() -> None:
    assert READING.keys() == set(inspect.signature(datasets.load).parameters) - {"dataset", "seed", "keep"}
    assert REPLAYING.keys() == {f.name for f in dataclasses.fields(ReplayOptions)} - {"window", "learn_every"}


def test_parameters_are_crossed(study: Path) -> None:
    found = read_study(study)
    assert found.policies == SPECS
    assert (found.windows, found.dataset, found.reading) == ((50, None), "synthetic", {"limit": 3000})
    assert found.options == {"seed": 4, "level": 0.9}


def test_it_is_its_words_on_the_command_line(study: Path) -> None:
    run = evaluate("compare", "--study", str(study), *FEW, "--json")
    assert run.code == 0, run.err
    words = [word for spec in SPECS for word in ("-p", spec)]
    other = evaluate(
        "compare", *words, "-w", "50,none", "-b", "otflinucb:alpha=0.5", "-d", "synthetic", "--limit", "3000", "--seed",
        "4", "--level", "0.9", *FEW, "--json",
    )  # fmt: skip
    said, expected = run.json, other.json
    for one in (said, expected):
        for variant in one["variants"]:
            variant["plan"]["options"]["window"] = str(variant["plan"]["options"]["window"])
    assert said == expected


def test_the_python_function_takes_it(study: Path) -> None:
    run = evaluate("compare", "--study", str(study), *FEW, "--json", "--seed", "5")
    assert run.json == json.loads(json.dumps(compare(study=study, seed=5, bootstrap=20).to_dict()))


def test_one_policy_and_one_window_are_named_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text('policy = "ucb1"\nwindow = "7d"\n')
    found = read_study(path)
    assert (found.policies, found.windows) == (("ucb1",), ("7d",))


def test_what_stands_beside_it_wins(study: Path) -> None:
    words = ("-p", "ucb1", "-p", "klucb", "-w", "20", "-b", "klucb", "--limit", "2000", "--seed", "0")
    run = evaluate("compare", "--study", str(study), *words, "--bootstrap", "0", "--json")
    assert run.code == 0, run.err
    plans = [variant["plan"] for variant in run.json["variants"]]
    assert [(plan["policy"], plan["window_rounds"]) for plan in plans] == [("ucb1", 20), ("klucb", 20)]
    # Also where it is the default: --seed 0.
    assert {(p["displays"], p["options"]["seed"], p["options"]["level"]) for p in plans} == {(2000, 0, 0.9)}
    assert run.json["baseline"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("polices = []", ("unknown key `polices`", "did you mean policies?")),
        ("traffic-share = 0.5", ("unknown key `traffic-share`", "did you mean traffic_share?")),
        ("seed = 1.5", ("`seed` is 1.5", "whole number")),
        ("seed = true", ("`seed` is True", "whole number")),
        ("# a study\n\nlevel = '0.9'", ("bad.toml: line 3: `level` is '0.9'", "a number")),
        ("sort = 1", ("`sort` is 1", "true or false")),
        ("level = 2", ("line 1: `level=2` is out of range", "0.95")),
        ("clock = 'sun'", ("line 1: `clock", "traffic")),
        ("policies = ['ucb2']", ("`policies[0]`: Unknown policy 'ucb2'", "did you mean ucb1?")),
        ("policies = ['mine.py:Mine']", ("`policies[0]`: 'mine.py:Mine' is Python code", "with -p")),
        ("baseline = 'mine.py:Mine'", ("`baseline`: 'mine.py:Mine' is Python code",)),
        ("[[policy]]\nname = 'mine.py:Mine'", ("`policy[0]`: 'mine.py:Mine' is Python code",)),
        ("policies = [1]", ("`policies[0]` is 1", "write a spec")),
        ("policies = 'ucb1'", ("`policies` is 'ucb1'", "a list")),
        ("window = [1.5]", ("line 1: `windows[0]` is 1.5", '"7d"')),
        ("[[policy]]\nalpha = 1", ("`policy[0]` has no name",)),
        ("[[policy]]\nname = 'linucb'\nalpa = 1", ("`policy[0]`: linucb: unknown parameter 'alpa'", "did you mean")),
        ("[[policy]]\nname = 'ucb1'\n[[policy]]\nname = 'linucb'\nalpha = -1", ("line 3: ",)),
        ("[[policy]]\nname = 'linucb'\nalpha = -1", ("`policy[0]`: linucb", "alpha")),
        ("[[policy]]\nname = 'linucb'\nalpha = []", ("`policy[0]`.alpha is []", "a list of values")),
        ("[policy]\nname = 'linucb'", ("`policy` is {'name': 'linucb'}", "[[policy]]")),
        ("seed = = 1", ("not valid TOML",)),
        ("window = 5\nwindows = [6]", ("`window` and `windows` exclude each other",)),
        ("seed = 1", ("Nothing to compare",)),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(tmp_path: Path, text: str, said: tuple[str, ...]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    run = evaluate("compare", "--study", str(path), "--limit", "500")
    assert run.code == 2
    error = run.err.splitlines()[-1]
    assert "Nothing" in error or str(path) in error
    for words in said:
        assert words in error, error
