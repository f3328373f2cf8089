"""Ctrl-C and SIGTERM leave the old output or none, never half of one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Writes until it is told to stop, so that the signal always meets a half-written folder.
ENDLESS = """
import sys, time
from pathlib import Path
import evaluator.datasets.converting as converting

def endless(log, folder):
    (folder / "displays.parquet").write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)

converting.write_canonical = endless
sys.argv = ["evaluate", "datasets", "convert", "synthetic", sys.argv[1], "--limit", "100", "--overwrite"]
from evaluator.cli.app import main
main()
"""


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()


def contents(folder: Path) -> dict[str, bytes] | None:
    return {p.name: p.read_bytes() for p in folder.iterdir()} if folder.exists() else None


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("before", ["nothing", "an old output"])
def test_interrupted_convert(tmp_path: Path, sent: signal.Signals, before: str) -> None:
    out = tmp_path / "out"
    if before == "an old output":
        words = [sys.executable, "-m", "evaluator", "datasets", "convert", "synthetic", out, "--limit", "50"]
        subprocess.run(words, check=True, capture_output=True)
    old = contents(out)
    writer = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline().strip() == "writing"
    assert [p for p in tmp_path.iterdir() if ".partial-" in p.name]
    writer.send_signal(sent)
    _, err = ended(writer)
    assert writer.returncode != 0
    assert "Traceback" not in err
    assert contents(out) == old
    assert [p for p in tmp_path.iterdir() if p != out] == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [("replay", "-w", "100000"), ("compare", "-w", "99999,100000", "--jobs", "2")])
def test_interrupted_replays_write_nothing(tmp_path: Path, words: tuple[str, ...], sent: signal.Signals) -> None:
    words = (*words, "-p", "otflinucb:bonus=exact", "--out", str(tmp_path / "run"))
    running = subprocess.Popen([sys.executable, "-m", "evaluator", *words], stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    running.send_signal(sent)
    _, err = ended(running)
    assert running.returncode != 0
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
