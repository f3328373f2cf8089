"""A source of many files whose log other processes write: that of one pass, whatever happens to who writes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import assembly, convert
from evaluator.datasets.stretches import joined_intake, part_jobs
from evaluator.errors import WorkerError
from evaluator.jobs import run_jobs
from evaluator.jobs.software import software
from evaluator.log import StoredLog
from evaluator.log.fingerprint import content_hash
from tests.cli.runs import evaluate
from tests.datasets.sources import write_spec
from tests.jobs.dask_processes import PATIENCE, DaskProcesses, waited

ROWS, FILES = 300_000, 6
# Stretches and parts so small that there are some.
STRETCH, PART = 40_000, 65_536
RUN = f"""
import sys
from evaluator.datasets import assembly
from evaluator.datasets.stretches import joined_intake, part_jobs
joined_intake.STRETCH_ROWS, assembly.PART_ROWS = {STRETCH}, {PART}
from evaluator.cli.app import main
main()
"""


def sold(folder: Path, *, overlapping: bool) -> Path:
    """Return the spec of displays in some files, with contexts, and of sales in a table of their own."""
    rng = np.random.default_rng(3)
    time = np.sort(rng.integers(0, 500_000, ROWS))
    file = rng.integers(0, FILES, ROWS) if overlapping else np.arange(ROWS) * FILES // ROWS
    rows = pl.DataFrame(
        {
            "id": [f"d{i}" for i in range(ROWS)],
            "t": time,
            "ad": rng.choice(["a", "b", "c", "d"], ROWS),
            "city": rng.choice(["Rome", "Oslo", "Aix"], ROWS),
            "age": rng.random(ROWS),
        }
    )
    (folder / "logs").mkdir(parents=True)
    for number in range(FILES):
        rows.filter(pl.Series(file == number)).write_parquet(folder / "logs" / f"{number}.parquet")
    of = rng.choice(ROWS, 9_000, replace=False)
    sales = pl.DataFrame({"of": [f"d{i}" for i in of], "when": time[of] + rng.integers(0, 3_000, len(of))})
    sales.write_parquet(folder / "sales.parquet")
    return write_spec(
        folder,
        source={"files": "logs", "sort": True},
        display={"id": "id"},
        conversion={"time": "when", "source": {"files": "sales.parquet", "display": "of"}},
        context={"columns": {"city": "category", "age": "number"}, "encoding": "one-hot"},
    )


@pytest.fixture(scope="module", params=[False, True], ids=["in order", "overlapping"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The spec of a source, and the hash of its log."""
    folder = tmp_path_factory.mktemp("source")
    spec = sold(folder, overlapping=request.param)
    return spec, content_hash(convert(spec, folder / "one").log)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_intake, "STRETCH_ROWS", STRETCH)
    monkeypatch.setattr(assembly, "PART_ROWS", PART)


def converted(spec: Path, out: Path, workers: Executor, **options: Any) -> str:
    said: list[str] = []
    log = convert(spec, out, executor=workers, say=said.append, **options).log
    assert isinstance(log, StoredLog)
    assert len(log.paths) == -(-ROWS // PART)
    assert said == []
    assert {path.name for path in out.iterdir()} == {
        *(path.name for path in log.paths), "actions.parquet", "events.parquet", "meta.json",
    }  # fmt: skip
    return content_hash(log)


@pytest.mark.usefixtures("_small")
def test_processes_write_the_log_of_one_pass(source: tuple[Path, str], tmp_path: Path) -> None:
    spec, known = source
    heard: list[int] = []
    with ProcessPoolExecutor(2, get_context("spawn")) as workers:
        assert converted(spec, tmp_path / "log", workers, advance=heard.append) == known
    assert sum(heard) == ROWS


@pytest.mark.usefixtures("_small")
def test_what_a_worker_keeps_of_a_conversion_is_nothing_to_the_next(tmp_path: Path) -> None:
    spec = sold(tmp_path, overlapping=False)
    with ThreadPoolExecutor(2) as workers:
        before = converted(spec, tmp_path / "log", workers)
        sales = pl.DataFrame({"of": [f"d{i}" for i in range(1, 9_000, 7)], "when": [500_000] * 1_286})
        sales.write_parquet(tmp_path / "sales.parquet")
        after = converted(spec, tmp_path / "log", workers, overwrite=True)
    assert after != before
    assert after == content_hash(convert(spec, tmp_path / "one").log)


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_worker_of_a_cluster_is_killed_and_the_log_is_the_same(source: tuple[Path, str], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    spec, known = source
    (tmp_path / "dask").mkdir()
    with DaskProcesses(tmp_path / "dask") as cluster:
        first = cluster.worker()
        out = tmp_path / "out" / "log"
        process = started("datasets", "convert", str(spec), str(out), "--cluster", cluster.address)
        try:
            # It has begun to write a part.
            waited(lambda: any((tmp_path / "out").rglob("spool/*/displays-*")) or process.poll() is not None)
            os.kill(first.pid, signal.SIGKILL)
            cluster.worker()
            printed, said = process.communicate(timeout=4 * PATIENCE)
        finally:
            process.kill()
        assert process.returncode == 0, said
    assert f"{ROWS:,} displays" in printed
    assert "is lost" in said
    assert content_hash(evaluate_load(out)) == known
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"log"}


def evaluate_load(folder: Path) -> Any:
    import evaluator

    return evaluator.load(folder)


@pytest.mark.usefixtures("_small")
def test_workers_that_do_not_see_the_folder_are_told_by_name(
    source: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden() -> tuple[str, ...]:
        next(tmp_path.rglob("conversion")).unlink()
        return software()

    monkeypatch.setattr(run_jobs, "loaded", hidden)
    with ThreadPoolExecutor(1) as workers, pytest.raises(WorkerError, match=r"does not see .*into which the log"):
        convert(source[0], tmp_path / "log", executor=workers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_small")
def test_workers_of_another_version_are_refused(
    source: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "loaded", lambda: ("another", *software()[1:]))
    with ThreadPoolExecutor(1) as workers, pytest.raises(WorkerError, match="is refused"):
        convert(source[0], tmp_path / "log", executor=workers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_small")
def test_workers_need_no_file_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read lies in the folder of the log, beside which they see nothing."""
    spec = sold(tmp_path, overlapping=True)
    known = content_hash(convert(spec, tmp_path / "one").log)
    write = part_jobs.PartsOnWorkers.write

    def moved(self: Any, *given: Any) -> None:
        (tmp_path / "logs").rename(tmp_path / "elsewhere")
        try:
            write(self, *given)
        finally:
            (tmp_path / "elsewhere").rename(tmp_path / "logs")

    monkeypatch.setattr(part_jobs.PartsOnWorkers, "write", moved)
    with ThreadPoolExecutor(2) as workers:
        assert converted(spec, tmp_path / "log", workers, jobs=2) == known


def test_what_workers_cannot_read_one_pass_reads_and_says_so(tmp_path: Path) -> None:
    frame = pl.DataFrame({"t": [1, 2], "ad": ["a", "b"], "sold": [None, 4]})
    (tmp_path / "logs").mkdir()
    frame.write_parquet(tmp_path / "logs" / "1.parquet")
    spec = write_spec(tmp_path, source={"files": "logs"})
    with ThreadPoolExecutor(1) as workers:
        for name, dataset, options, why in (
            ("one file", spec, {}, "one file"),
            ("scenario", "synthetic", {"limit": 100}, "read files of others"),
            ("two", spec, {}, "no several stretches"),
        ):
            if name == "two":
                frame.with_columns(pl.col("t") + 5, pl.col("sold") + 5).write_parquet(tmp_path / "logs" / "2.parquet")
            said: list[str] = []
            convert(dataset, tmp_path / name, executor=workers, say=said.append, **options)  # type: ignore[arg-type]
            assert len(said) == 1
            assert said[0].startswith("One pass here reads all, without the workers: ")
            assert why in said[0]


def test_an_interrupted_conversion_leaves_nothing(source: tuple[Path, str], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    process = started("datasets", "convert", str(source[0]), str(tmp_path / "log"), "--cluster", "local:1")
    try:
        waited(lambda: any(tmp_path.rglob("spool/*/displays-*")) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    end = time.monotonic() + PATIENCE
    while list(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_a_cluster_is_for(tmp_path: Path) -> None:
    assert "--cluster" in evaluate("datasets", "convert", "--help-all").out
