"""Ctrl-C, SIGTERM and a closed terminal leave the old output or none, never half of one; a kill is cleared up later."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.datasets import convert, load
from evaluator.errors import OutputInUseError
from tests.crossed import crossed
from tests.reading.sources import dataset

# Seconds for a process to begin or to end, on a machine that does other things beside.
PATIENCE = 180
# Stops at a half-written folder until the signal comes: at the writing of a generated log, while a file is read, and
# while its displays are written.
HALF = """
import sys, time
from evaluator.reading import canonical, intake, resolve
from evaluator.reading import frames as scan

def wait(*arguments):
    print("waiting", flush=True)
    time.sleep(60)

def half_written(log, folder):
    (folder / "displays.parquet").write_bytes(b"half")
    wait()

def after_some(method):
    calls = []
    def counted(*arguments):
        done = method(*arguments)
        calls.append(1)
        if len(calls) == 3:
            wait()
        return done
    return counted

dataset, out, stage = sys.argv[1:]
scan.CHUNK_ROWS = 1_000
if stage == "generated":
    resolve.write_canonical = half_written
elif stage == "reading":
    intake.Intake._checked = after_some(intake.Intake._checked)
else:
    canonical.ROWS_PER_GROUP = 500
    canonical.DisplayWriter.add = after_some(canonical.DisplayWriter.add)
sys.argv = ["evaluate", "datasets", "convert", dataset, out, "--limit", "20000", "--overwrite"]
from evaluator.cli.app import main
main()
"""


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=PATIENCE)
    finally:
        process.kill()


def contents(folder: Path) -> dict[str, bytes] | None:
    return {p.name: p.read_bytes() for p in folder.iterdir()} if folder.exists() else None


def writing_half(dataset_name: str, out: Path, stage: str, *, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a conversion that waits with half an output."""
    writer = subprocess.Popen(
        [*under, sys.executable, "-c", HALF, dataset_name, str(out), stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests may have been started under nohup themselves.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL) and None,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline().strip() == "waiting"
    assert [p for p in out.parent.iterdir() if ".partial-" in p.name]
    return writer


BEFORE, STAGES = ("nothing", "an old output"), ("generated", "reading", "writing")


@crossed("sent, before, stage", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), BEFORE, STAGES)
def test_interrupted_convert(tmp_path: Path, sent: signal.Signals, before: str, stage: str) -> None:
    out = tmp_path / "made" / "out"
    rows = ["t,ad,sold", *[f"{i},{'ab'[i % 2]}," for i in range(30_000)]]
    dataset_name = "synthetic" if stage == "generated" else str(dataset(tmp_path, rows))
    if before == "an old output":
        convert("synthetic", out, limit=50)
    old = contents(out)
    writer = writing_half(dataset_name, out, stage)
    writer.send_signal(sent)
    _, err = ended(writer)
    assert writer.returncode == 128 + sent
    assert err.count("\n") == 1
    assert "Stopped by" in err
    assert contents(out) == old
    assert [p for p in out.parent.iterdir() if p != out] == []


def test_a_killed_convert_is_in_nobodys_way(tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert("synthetic", out, limit=50)
    old = contents(out)
    writer = writing_half("synthetic", out, "generated", under=("nohup",))
    try:
        # It was started to outlive its terminal. While it lives, another conversion is refused.
        writer.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(0.5)
        with pytest.raises(OutputInUseError, match="being written by another process"):
            convert("synthetic", out, limit=60, overwrite=True)
    finally:
        writer.send_signal(signal.SIGKILL)
        ended(writer)
    assert contents(out) == old
    assert len(list(tmp_path.iterdir())) == 3
    convert("synthetic", out, limit=60, overwrite=True)
    assert len(load(out)) == 60
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("replay", "-w", "100000"), signal.SIGINT),
        (("compare", "-w", "99999,100000", "--jobs", "2"), signal.SIGINT),
        (("compare", "-w", "99999,100000", "--jobs", "2"), signal.SIGTERM),
        (("audit", "-w", "100000", "--jobs", "2"), signal.SIGTERM),
    ],
)
def test_interrupted_replays_keep_only_finished_jobs(
    tmp_path: Path, words: tuple[str, ...], sent: signal.Signals
) -> None:
    kept = tmp_path / "run.partial"
    words = (*words, "-p", "otflinucb:bonus=exact", "--out", str(tmp_path / "run"))
    running = subprocess.Popen([sys.executable, "-m", "evaluator", *words], stderr=subprocess.PIPE, text=True)
    # Libraries that swallow an interrupt while they are imported are not what is tested: the log is read after that.
    assert running.stderr is not None
    assert "synthetic log" in running.stderr.readline()
    time.sleep(0.2)
    running.send_signal(sent)
    _, err = ended(running)
    assert running.returncode == 128 + sent, err
    name = "Ctrl-C" if sent == signal.SIGINT else "SIGTERM"
    # How far it came within the moment depends on the machine: it may have finished its first job.
    parts = [*kept.glob("[!.]*.part"), *kept.glob("[!.]*.kept")]
    if parts:
        assert re.fullmatch(rf"Stopped by {name}: .* (is|are) kept in .*\n", err)
        assert sum(map(int, re.findall(r"(\d+) (?:part|finished variant)", err))) == len(parts)
        assert err.endswith(f" kept in {kept}; the same command goes on there.\n")
    else:
        assert err == f"Stopped by {name}: outputs are as they were; the same command starts anew.\n"
    assert list(tmp_path.iterdir()) == [kept] * bool(parts)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_study_of_delays_goes_on(tmp_path: Path, sent: signal.Signals) -> None:
    out, kept = tmp_path / "run", tmp_path / "run.partial"
    words = ["delays", "--limit", "3000", "--families", "lognormal-mixture-2", "--bootstrap", "3000", "--out", str(out)]
    running = subprocess.Popen([sys.executable, "-m", "evaluator", *words], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE
    while len([*kept.glob("[!.]*.part")]) < 3:
        assert running.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    running.send_signal(sent)
    _, err = ended(running)
    assert running.returncode == 128 + sent, err
    name, parts = "Ctrl-C" if sent == signal.SIGINT else "SIGTERM", [*kept.glob("[!.]*.part")]
    line = f"Stopped by {name}: {len(parts)} parts of results are kept in {kept}; the same command goes on there."
    assert err.splitlines()[-1] == line
    assert not out.exists()
    running = subprocess.Popen([sys.executable, "-m", "evaluator", *words], stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        assert "synthetic log" in running.stderr.readline()
        assert running.stderr.readline() == f"Took up what was finished before, from {kept}.\n"
    finally:
        running.kill()
        running.communicate()
    assert {*parts} <= {*kept.glob("[!.]*.part")}


NEVER = """
import os, sys, time
from evaluator.checks import run

def deaf(*arguments, **options):
    words = [b"waiting\\n"]
    while True:
        try:
            while words:
                os.write(2, words.pop())
            time.sleep(60)
        except BaseException:  # as a compiler's callback does
            pass

run.check_log = deaf
sys.argv = ["evaluate", "check", "--limit", "500"]
from evaluator.cli.app import main
main()
"""


def test_a_process_that_does_not_hear_is_ended_from_beside() -> None:
    running = subprocess.Popen([sys.executable, "-c", NEVER], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    while running.stderr.readline().strip() != "waiting":
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, err = ended(running)
    assert running.returncode == 130
    assert err == "Stopped by Ctrl-C: outputs are as they were; the same command starts anew.\n"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a terminal's Ctrl-C, to a group of processes")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_what_a_terminal_sends_to_all_is_one_line_and_leaves_nothing(tmp_path: Path, sent: signal.Signals) -> None:
    words = ("delays", "--families", "lognormal-mixture-4", "--bootstraps", "99999", "--cluster", "local:2")
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluator", *words],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    begun = process.stderr.readline()
    while "before its first job" not in begun and process.poll() is None:
        begun = process.stderr.readline()
    os.killpg(process.pid, sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + sent, "")
    said = [line for line in err.splitlines() if "before its first job" not in line]
    if sent == signal.SIGINT:
        assert said == ["Stopped by Ctrl-C: outputs are as they were; the same command starts anew."]
    assert "Traceback" not in err
    assert "Warning" not in err
    assert list(tmp_path.iterdir()) == []
