"""``evaluate datasets init``: what it writes, prints, asks, and leaves alone."""

from __future__ import annotations

import os
import select
import sys
import time
import tomllib
from pathlib import Path

import pytest
import typer

from evaluator.cli import datasets
from tests.cli.runs import evaluate

LINES = [
    "time,banner,sold_at,country",
    *(f"{k},{'ab'[k % 2]},{k + 5 if k % 4 == 0 else ''},d{k % 3}" for k in range(60)),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "my log.csv").write_text("\n".join(LINES))
    return tmp_path / "data" / "my log.csv"


def test_a_spec_is_written_and_reads_its_log(log: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    run = evaluate("datasets", "init", str(log), "-o", str(spec))
    assert run.code == 0, run.err
    assert run.out.startswith(f"{spec}: sound, 60 displays, 15 conversions.\n")
    assert tomllib.loads(spec.read_text())["source"]["files"] == "data/my log.csv"
    assert "check log.attribution_window: longest delay" in run.err
    # The commands that it says come next do run.
    for line in run.out.splitlines()[2:]:
        words = line.split()
        assert words[0] == "evaluate"
        assert evaluate(*words[1:]).code in (0, 4), line


def test_without_a_place_the_spec_alone_goes_to_stdout(log: Path, tmp_path: Path) -> None:
    run = evaluate("datasets", "init", str(log))
    assert run.code == 0, run.err
    assert tomllib.loads(run.out)["display"] == {"time": "time", "action": "banner"}
    assert "spec.toml: sound, 60 displays, 15 conversions." in run.err
    assert sorted(tmp_path.iterdir()) == [log.parent]


def test_no_spec_is_overwritten(log: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text("mine")
    run = evaluate("datasets", "init", str(log), "-o", str(spec))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: Output {spec} exists.")
    assert spec.read_text() == "mine"


def test_rows_that_do_not_fit_are_told_and_the_draft_stays(log: Path, tmp_path: Path) -> None:
    log.write_text("\n".join([*LINES, "soon,a,,d1"]))
    spec = tmp_path / "spec.toml"
    # Looked at are all rows here: the column is no longer one of times.
    run = evaluate("datasets", "init", str(log), "-o", str(spec))
    assert run.code == 3
    assert "display.time could not be told" in run.err
    tomllib.loads(spec.read_text())
    log.write_text("\n".join([*LINES * 200, "soon,a,,d1"]).replace("\ntime,banner,sold_at,country", ""))
    spec.unlink()
    run = evaluate("datasets", "init", str(log), "-o", str(spec))
    assert run.code == 3
    assert "line 12002: 'soon'" in run.err
    assert spec.exists()


def test_a_missing_file_leaves_nothing(tmp_path: Path) -> None:
    run = evaluate("datasets", "init", str(tmp_path / "no.csv"), "-o", str(tmp_path / "spec.toml"))
    assert run.code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_asked(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def prompt(words: str, *, default: str, value_proc: object, err: bool) -> str:
        asked.append(words)
        assert err
        wanted = "30min" if words.startswith("How long after") else default
        assert callable(value_proc)
        if words.startswith("Which column says what was shown"):
            with pytest.raises(typer.BadParameter, match="banner"):
                value_proc("no such column")
        answer = value_proc(f" {wanted} ")
        assert isinstance(answer, str)
        return answer

    monkeypatch.setattr(datasets, "_has_terminal", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    run = evaluate("datasets", "init", str(log))
    assert run.code == 0, run.err
    spec = tomllib.loads(run.out)
    assert spec["log"] == {"attribution_window": "30min", "observed_until": "end"}
    assert any("What unit" in words for words in asked)
    assert "attribution_window" not in run.err.partition("sound")[0].replace("log.attribution_window: longest", "")


def on_terminal(log: Path, out: Path, answers: list[str]) -> tuple[int, str]:
    """Run the command on a terminal, answering what it asks; return its exit code and what the terminal shows."""
    pty = pytest.importorskip("pty", reason="terminals of this kind are of Unix")
    words = [sys.executable, "-m", "evaluator", "datasets", "init", str(log), "-o", str(out)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, os.environ | {"COLUMNS": "200", "NO_COLOR": "1"})
    shown, left, until = b"", [answer.encode() for answer in answers], time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 65_536)
            except OSError:  # its end
                break
        elif left and shown.rstrip().endswith(b"]:"):
            os.write(terminal, left.pop(0))
    else:
        os.kill(pid, 9)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode().replace("\r\n", "\n")


def test_enter_takes_the_guess_and_wrong_answers_are_asked_again(log: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    code, shown = on_terminal(log, spec, ["nothing\n", *["\n"] * 20])
    assert code == 0, shown
    assert shown.count("Which column says when it was shown? [time]:") == 2
    assert "one of time, banner, sold_at, country, none" in shown
    assert "What unit are the times of 'time' in? [s]:" in shown
    assert tomllib.loads(spec.read_text())["display"] == {"time": "time", "action": "banner"}


@pytest.mark.parametrize(
    ("key", "code", "said"), [("\x03", 130, "Stopped by Ctrl-C"), ("\x04", 2, "the answers ended here")]
)
def test_who_stops_answering_leaves_nothing_behind(log: Path, tmp_path: Path, key: str, code: int, said: str) -> None:
    found, shown = on_terminal(log, tmp_path / "spec.toml", ["\n", key])
    assert (found, list(tmp_path.iterdir())) == (code, [log.parent]), shown
    assert said in shown
    assert "Traceback" not in shown
