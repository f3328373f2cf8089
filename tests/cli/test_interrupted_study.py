"""A study that is interrupted or killed keeps what was finished; the same command goes on and ends the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.errors import OutputError
from evaluator.outputs.kept_folder import kept_beside
from tests.cli.runs import Run, evaluate

REST = ("--limit", "4000", "--repeats", "2", "--bootstrap", "0")
WORDS = ("compare", "-p", "ucb1,linucb", "-b", "ucb1", "-w", "50,none", *REST)
# Two variants a scan; stops after the third result is kept until a signal comes.
SLOW = """
import sys, time
from evaluator.cli import options
from evaluator.comparisons import variant_runs
from evaluator.comparisons import kept

variant_runs.LANES = 4
keep = kept.KeptResults.keep
calls = []
def counted(*arguments):
    keep(*arguments)
    calls.append(1)
    if len(calls) == 3:
        print("waiting", flush=True)
        while options.stopped_by is None:
            time.sleep(0.05)
kept.KeptResults.keep = counted
sys.argv = ["evaluate", *sys.argv[1:]]
from evaluator.cli.app import main
main()
"""


def run(*words: str) -> Run:
    done = evaluate(*words)
    assert done.code == 0, done.err
    return done


def interrupted(sent: signal.Signals, *words: str) -> str:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "waiting"
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0
    return err


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    out = tmp_path_factory.mktemp("whole") / "run"
    done = run(*WORDS, "--out", str(out))
    assert "Took up" not in done.err
    return done.out, contents(out)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_command_goes_on(
    tmp_path: Path, sent: signal.Signals, uninterrupted: tuple[str, dict[str, bytes]]
) -> None:
    out = tmp_path / "run"
    err = interrupted(sent, *WORDS, "--out", str(out))
    assert "Traceback" not in err
    assert not out.exists()
    finished = len(list((tmp_path / "run.partial").iterdir()))
    if sent == signal.SIGKILL:
        assert finished == 3
    else:  # the fourth may be done before a safe place comes, or the time for an orderly end is over
        assert finished in (3, 4)
        name = "Ctrl-C" if sent == signal.SIGINT else "SIGTERM"
        kept = f"{finished} finished variants are kept in {out}.partial; the same command goes on there."
        assert err.splitlines()[-1] == f"Stopped by {name}: {kept}"
    done = run(*WORDS, "--out", str(out))
    assert f"Took up {finished} of 4 variants, finished before, from {out}.partial." in done.err
    assert (done.out, contents(out)) == uninterrupted
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


SPEC = """
name = "shop"
title = "Shop"
licence = "none"
source = { files = "log.csv" }
time = { unit = "s" }
display = { time = "time", action = "ad", propensity_kind = "uniform" }
conversion = { delay = "delay", value = "price" }
log = { observed_until = "complete" }
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a dataset, and have every study stop before it is written."""
    rows = [f"{i},{'ab'[i % 2]},{f'1,{1 + i % 3},{i % 7}' if i % 4 < 2 else ',,'}" for i in range(400)]
    (tmp_path / "log.csv").write_text("\n".join(["time,ad,delay,price,cost", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text(SPEC)

    def stopped(*results: object, **options: object) -> None:
        raise OutputError("stopped")

    monkeypatch.setattr("evaluator.comparisons.run.compare_results", stopped)
    return tmp_path


def study(shop: Path) -> Run:
    words = ("-p", "random", "-p", "ucb1", "-b", "random", "-w", "20", "--horizon", "100", "--bootstrap", "0")
    run = evaluate("compare", "-d", f"{shop}/spec.toml", *words, "--out", f"{shop}/run")
    assert run.code != 0
    return run


def test_what_answers_another_question_or_is_damaged_is_computed_anew_and_said_so(shop: Path) -> None:
    partial = shop / "run.partial"
    assert study(shop).err == "error: stopped\n"
    first = sorted(partial.iterdir())
    assert len(first) == 2
    assert f"Took up 2 of 2 variants, finished before, from {partial}." in study(shop).err

    (shop / "spec.toml").write_text(SPEC.replace('"price"', '"cost"'))
    said = study(shop).err
    assert "Took up" not in said
    assert f"Answers to another question, so not used: 2 kept in {partial}." in said
    assert len(list(partial.iterdir())) == 4

    (shop / "spec.toml").write_text("# As it was.\n" + SPEC)
    with first[0].open("r+b") as file:
        file.seek(500)
        byte = file.read(1)[0]
        file.seek(500)
        file.write(bytes([byte ^ 4]))
    said = study(shop).err
    assert "Took up 1 of 2 variants" in said
    assert f"Damaged, so computed anew: 1 kept in {partial}." in said
    assert "not used: 2 kept" in said
    assert first == sorted(file for file in partial.iterdir() if file in first)
    assert "Took up 2 of 2 variants" in study(shop).err


def test_a_foreign_folder_and_one_in_use_stop_it_before_anything_is_read(shop: Path) -> None:
    (shop / "spec.toml").unlink()
    with kept_beside(shop / "run"):
        assert "run.partial is being written by another process" in study(shop).err
    (shop / "run.partial").mkdir()
    (shop / "run.partial" / "thesis.md").write_text("chapter 1")
    assert "thesis.md" in study(shop).err
    assert (shop / "run.partial" / "thesis.md").read_text() == "chapter 1"


def test_only_the_same_variants_of_the_same_log_are_taken_up(tmp_path: Path) -> None:
    out = tmp_path / "run"
    interrupted(signal.SIGKILL, *WORDS, "--out", str(out))
    changed = ("compare", "-p", "linucb,klucb", "-b", "klucb", "-w", "none,50", *REST)
    shorter = [word if word != "4000" else "3000" for word in changed]
    done = run(*shorter, "--seed", "1", "--out", str(tmp_path / "other"))
    assert "Took up" not in done.err
    (tmp_path / "run.partial").rename(tmp_path / "again.partial")
    done = run(*changed, "--out", str(tmp_path / "again"))
    assert "Took up 1 of 4 variants" in done.err  # linucb with window 50
    assert contents(tmp_path / "again") == contents(whole(tmp_path / "whole", changed))


def whole(out: Path, words: tuple[str, ...]) -> Path:
    run(*words, "--out", str(out))
    return out


def test_a_changed_policy_file_is_another_policy(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    text = """
class Mine:
    contextual = False
    def __init__(self, setting): self.k = setting.n_actions
    def choose(self, vectors, rng): return CHOICE
    def displayed(self, vectors, action): pass
    def converted(self, vector, action, delay, value): pass
"""
    mine.write_text(text.replace("CHOICE", "0"))
    words = ("compare", "-p", "random", "-p", f"{mine}:Mine", "-w", "50,none", "--limit", "2000", "--repeats", "2",
             "--bootstrap", "0")  # fmt: skip
    words = (*words, "-b", "random")
    interrupted(signal.SIGKILL, *words, "--out", str(tmp_path / "run"))
    mine.write_text(text.replace("CHOICE", "1"))
    done = run(*words, "--full", "--out", str(tmp_path / "run"))
    assert "Took up 2 of 4 variants" in done.err
    assert "1 100.0%" in done.out
    assert "0 100.0%" not in done.out
