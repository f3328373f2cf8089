"""What a terminal shows of work: from the first moment, what is done, never more than all, and how long it took."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from evaluator import datasets
from evaluator.arguments import as_description
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.run import execute
from tests.cli.runs import evaluate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals")
EARLY = """
import sys
from evaluator.cli import options
from evaluator.cli.app import main

def began(*_):
    print("loaded", *sorted({"numba", "polars", "pyarrow", "scipy"} & set(sys.modules)))
    raise SystemExit

options._Work = began
sys.argv = ["evaluate", *sys.argv[1:]]
main()
"""


def on_a_terminal(*words: str) -> tuple[str, str]:
    """Return what a command prints to stdout, and what it shows on stderr, a terminal, without its colours."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "evaluator", *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:
            pass  # how Linux says that the other side of a terminal is closed
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(ours)
    return out, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_says_what_is_done_and_at_the_end_how_long_it_took() -> None:
    out, shown = on_a_terminal(
        "replay", "-p", "random", "--limit", "5000", "--final", "last:20%", "--bootstrap", "20", "--json"
    )
    assert out.startswith("{")
    assert "Took" not in out
    stages = ("Starting", "Reading the log", "Replaying", "Resampling", "Finishing")
    places = [shown.find(stage) for stage in stages]
    assert places == sorted(places)
    assert places[0] >= 0
    assert re.search(r"Took \d+\.\d s\.\s*$", shown)
    counts = [(int(a.replace(",", "")), int(b.replace(",", ""))) for a, b in re.findall(r"([\d,]+) of ([\d,]+)", shown)]
    assert counts
    assert all(done <= whole for done, whole in counts)


@pytest.mark.parametrize("words", ["replay -p ucb1 --bootstrap 20", "compare -p ucb1,klucb"])
def test_a_terminal_shows_the_first_numbers_before_logs_are_resampled(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result in the pipe is as without a terminal: what is shown first stands beside the bar, and goes with it."""
    monkeypatch.setenv("COLUMNS", "100")
    asked = [*words.split(), "--limit", "20000"]
    out, shown = on_a_terminal(*asked)
    assert out == evaluate(*asked).out
    assert "First numbers" not in out
    row = re.search(r"ucb1 +(0\.\d+) +\[0\.\d+, 0\.\d+\] +[+-]0\.\d+ +[\d,]+\s", shown)
    assert row
    assert row[1] in out
    assert shown.find("Replaying") < shown.find("First numbers") < shown.rfind("Resampling") < shown.rfind("Finishing")
    assert "First numbers" not in shown[shown.rfind("Took") :]
    without = on_a_terminal(*asked, "--bootstrap", "0")[1] if "compare" in words else ""
    assert "First numbers" not in without


def test_what_fails_took_no_time() -> None:
    out, shown = on_a_terminal("check", "absent/spec.toml")
    assert (out, "Took" in shown) == ("", False)
    assert "error: absent/spec.toml: no such spec file." in shown


@pytest.mark.parametrize("words", ["replay -p ucb1", "compare -p ucb1", "check", "simulate -p ucb1 vernade2017-low"])
def test_work_is_shown_before_anything_heavy_is_imported(words: str) -> None:
    command = [sys.executable, "-c", EARLY, *words.split()]
    done = subprocess.run(command, env=os.environ | {"FORCE_COLOR": "1"}, capture_output=True, text=True)
    assert done.stdout == "loaded\n", done.stderr


@pytest.mark.parametrize("asked", [{}, {"final": "last:20%"}, {"horizon": 200}])
def test_what_is_told_adds_up_to_no_more_than_was_said(asked: dict[str, object]) -> None:
    log = datasets.load("synthetic", limit=5_000)
    plan = plan_replay(log, as_description("random"), ReplayOptions(bootstrap=20, **asked))  # type: ignore[arg-type]
    told: list[int] = []
    execute(plan, advance=told.append)
    assert sum(told) <= 21 * len(plan.rounds)
    assert asked.get("horizon") or sum(told) == 21 * len(plan.rounds)
