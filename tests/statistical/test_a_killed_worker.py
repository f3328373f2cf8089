"""Workers that are killed in the middle, and a scheduler: the same bits, or one line."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import evaluator
from evaluator.datasets import convert
from tests.jobs.dask_processes import DaskProcesses, finished, started, waited

pytest.importorskip("distributed", reason="workers need the extra `cluster`")

# Sixteen variants of four policies, and their replays on resampled logs.
POLICIES = [f"{name}:alpha={alpha}" for name in ("otflinucb", "linucb") for alpha in range(1, 4)] + ["ucb1", "random"]
STUDY = ("compare", *(word for policy in POLICIES for word in ("-p", policy)), "-w", "50,none", "--bootstrap", "30")
# Thirty twins; forty bootstraps of mixtures.
AUDIT = ("audit", "-p", "linucb,delayed-klucb,random", "-w", "50", "--twins", "30")
DELAYS = ("delays", "--families", "lognormal,lognormal-mixture-2", "--bootstrap", "39")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs") / "log"
    convert("synthetic", folder, limit=3_000)
    return folder


@pytest.fixture(scope="module")
def alone(log: Path) -> tuple[str, dict[str, bytes]]:
    process = started(*STUDY, "-d", str(log), "--out", str(log.parent / "alone"))
    printed, said = finished(process)
    assert process.returncode == 0, said
    return printed, contents(log.parent / "alone")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskProcesses]:
    with DaskProcesses(tmp_path / "dask", allowed_failures=1) as processes:
        yield processes


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def said_once(said: str, words: str) -> None:
    """Whoever computed said so once; the worker that is killed may not have come to it."""
    lines = [line.split()[1] for line in said.splitlines() if words in line]
    assert lines
    assert len(lines) == len(set(lines))


def parts(out: Path) -> list[str]:
    folder = out.with_name(f"{out.name}.partial")
    return [file.name for file in folder.glob("[!.]*.part")] if folder.is_dir() else []


def test_a_worker_is_killed_in_the_middle_and_nothing_changes(
    cluster: DaskProcesses, tmp_path: Path, log: Path, alone: tuple[str, dict[str, bytes]]
) -> None:
    out = tmp_path / "run"
    first, _ = cluster.worker(), cluster.worker()
    process = started(*STUDY, "-d", str(log), "--out", str(out), "--cluster", cluster.address)
    waited(lambda: len(parts(out)) > 30 or process.poll() is not None)
    assert process.poll() is None
    os.kill(first.pid, signal.SIGKILL)
    printed, said = finished(process)
    assert process.returncode == 0, said
    assert (printed, contents(out)) == alone
    assert "is lost" in said
    said_once(said, "before its first job")


def test_a_dead_scheduler_is_one_line_and_the_same_command_goes_on(
    cluster: DaskProcesses, tmp_path: Path, log: Path, alone: tuple[str, dict[str, bytes]]
) -> None:
    out = tmp_path / "run"
    cluster.worker()
    words = (*STUDY, "-d", str(log), "--out", str(out))
    process = started(*words, "--cluster", cluster.address)
    waited(lambda: len(parts(out)) > 30 or process.poll() is not None)
    assert process.poll() is None
    os.kill(cluster.scheduler.pid, signal.SIGKILL)
    _, said = finished(process)
    assert process.returncode == 1
    last = said.splitlines()[-1]
    assert last.startswith("error: The workers are gone: their scheduler ended or cannot be reached")
    assert last.endswith("it keeps its finished jobs and goes on from there.")
    assert "Traceback" not in said
    before = parts(out)
    assert len(before) > 30
    process = started(*words)  # without a cluster, or with another
    printed, said = finished(process)
    assert process.returncode == 0, said
    assert re.search(r"Took up (parts of )?[1-9]", said)
    assert (printed, contents(out)) == alone


@pytest.mark.parametrize(("words", "before_its_first"), [(AUDIT, "twin"), (DELAYS, "job")])
def test_a_study_does_not_notice_that_a_worker_was_killed(
    cluster: DaskProcesses, tmp_path: Path, log: Path, words: tuple[str, ...], before_its_first: str
) -> None:
    words = (*words, "-d", str(log), "--out")
    alone = started(*words, str(tmp_path / "alone"))
    expected = finished(alone)[0]
    assert alone.returncode == 0
    out = tmp_path / "run"
    first, _ = cluster.worker(), cluster.worker()
    process = started(*words, str(out), "--cluster", cluster.address)
    waited(lambda: len(parts(out)) > 10 or process.poll() is not None)
    assert process.poll() is None
    os.kill(first.pid, signal.SIGKILL)
    printed, said = finished(process)
    assert process.returncode == 0, said
    assert (printed, contents(out)) == (expected, contents(tmp_path / "alone"))
    assert "is lost" in said
    said_once(said, f"before its first {before_its_first}")


MINE = """
import os, sys
class Mine:
    contextual = False
    def __init__(self, setting): pass
    def choose(self, vectors, rng):
        if "IS_WORKER" in os.environ:
            os.kill(os.getpid(), 9)
        return 0
    def displayed(self, vectors, action): pass
    def converted(self, vector, action, delay, value): pass
"""


def test_a_job_that_ends_every_worker_is_named_in_one_line(cluster: DaskProcesses, tmp_path: Path, log: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    for _ in range(2):
        cluster.worker(again=True, IS_WORKER="yes")
    words = (
        "compare",
        "-p",
        f"{tmp_path}/mine.py:Mine",
        "-b",
        f"{tmp_path}/mine.py:Mine",
        "-w",
        "50",
        "--bootstrap",
        "0",
        "-d",
        str(log),
        "--cluster",
        cluster.address,
    )
    process = started(*words)
    _, said = finished(process)
    assert process.returncode == 1
    line = said.splitlines()[-1]
    assert line.startswith("error: The replay of Mine with window 50 rounds ended every worker that took it, 2 of them")
    assert "Traceback" not in said


def test_a_log_that_changed_meanwhile_is_bad_data_in_one_line(
    cluster: DaskProcesses, tmp_path: Path, log: Path
) -> None:
    changing = tmp_path / "changing"
    shutil.copytree(log, changing)
    process = started(*STUDY, "-d", str(changing), "--out", str(tmp_path / "run"), "--cluster", cluster.address)
    cluster.worker()
    waited(lambda: parts(tmp_path / "run") or process.poll() is not None)
    file = changing / "displays.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    cluster.worker()  # which opens what is there now
    _, said = finished(process)
    assert process.returncode == 3, said
    assert re.fullmatch(r"error: .*changing/displays\.parquet: .*", said.splitlines()[-1])
    assert "this may be a bug" not in said


def test_a_worker_with_other_code_is_refused(cluster: DaskProcesses, tmp_path: Path, log: Path) -> None:
    package = Path(evaluator.__file__).parent
    shutil.copytree(package, tmp_path / "other" / "evaluator", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "other" / "evaluator" / "units.py").open("a") as file:
        file.write("# One line more.\n")
    cluster.worker(PYTHONPATH=str(tmp_path / "other"))
    process = started("compare", "-p", "ucb1", "-d", str(log), "--bootstrap", "0", "--cluster", cluster.address)
    _, said = finished(process)
    assert process.returncode == 1
    assert "is refused: it has delayed-replay" in said.splitlines()[-1]
    assert "the command runs with other code of that version" in said.splitlines()[-1]
