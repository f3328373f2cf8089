"""Wrong input: one line that says what, where and how to repair it, and the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runs import evaluate

USAGE, BAD_DATA, THE_REST = 2, 3, 1
RAISING = """
class Raises:
    def __init__(self, setting): ...
    def choose(self, vectors, rng): return 1 // 0
    def displayed(self, vectors, action): ...
    def converted(self, vector, action, delay, value): ...

class Impossible(Raises):
    def choose(self, vectors, rng): return 99
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-p", "otflinucp"), USAGE, "did you mean otflinucb?"),
        (("-p", "otflinucb:alhpa=1"), USAGE, "did you mean alpha?"),
        (("-p", "otflinucb:alpha=-1"), USAGE, "take a number >= 0"),
        (("-p", "otflinucb:width=wide"), USAGE, "is not a choice"),
        (("-p", "fixed:action=10"), USAGE, "take 0 to 9"),
        (("-p", "random", "--window", "0"), USAGE, "take at least one round"),
        (("-p", "random", "--window", "-5"), USAGE, "take at least one round"),
        (("-p", "random", "--window", "7d"), USAGE, "counts rounds, not time"),
        (("-p", "random", "--window", "soon"), USAGE, "Expected a duration"),
        (("-p", "random", "--clock", "wal"), USAGE, "did you mean wall?"),
        (("-p", "random", "--traffic-share", "0"), USAGE, "take a share above 0"),
        (("-p", "random", "--horizon", "0"), USAGE, "--horizon 0"),
        (("-p", "random", "--level", "1"), USAGE, "--level 1"),
        (("-p", "random", "--delays", "geometrc:5"), USAGE, "geometric"),
        (("-p", "delayed-ucb", "--delays", "geometric:-5"), USAGE, "geometric"),
        (("-p", "random", "--accept-quantile", "1"), USAGE, "--accept-quantile 1"),
        (("-p", "otflinucb", "--sampler", "queue"), USAGE, "use --sampler rejection"),
        (("-p", "waitlinucb"), USAGE, "give --window"),
        (("-p", "random", "--dataset", "syntetic"), USAGE, "did you mean synthetic?"),
        (("-p", "random", "--dataset", "absent/spec.toml"), BAD_DATA, "absent/spec.toml"),
        (("-p", "absent.py:Mine"), USAGE, "No policy file"),
        (("-p", "random", "--no-such-option"), USAGE, "No such option"),
        (("-p", "random", "--limit", "0"), USAGE, "or equal to 1"),
    ],
)
def test_one_line_that_teaches(words: tuple[str, ...], code: int, said: str) -> None:
    limit = () if "--limit" in words or "--dataset" in words else ("--limit", "2000")
    run = evaluate("replay", *words, *limit)
    assert run.code == code, run.err
    assert said in " ".join(run.err.split())
    assert run.out == ""
    assert "Traceback" not in run.err


@pytest.mark.parametrize(("name", "said"), [("Raises", "ZeroDivisionError"), ("Impossible", "returned 99")])
def test_user_policy_that_fails(tmp_path: Path, name: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RAISING)
    run = evaluate("replay", "-p", f"{file}:{name}", "--limit", "2000")
    assert run.code == THE_REST
    assert said in run.err
    assert len([line for line in run.err.splitlines() if line.startswith("error:")]) == 1


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    import subprocess
    import sys

    words = [sys.executable, "-m", "evaluator", "replay", "-p", "otflinucp", "--debug"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        f"{sys.executable} -m evaluator policies list | head -1", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
