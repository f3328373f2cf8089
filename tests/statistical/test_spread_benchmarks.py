"""Benchmarks of coverage print the same whoever computes them, and go on where they were interrupted."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import compute_jobs
from evaluator.jobs.workers import loaded
from evaluator.outputs.kept_folder import KeptJobs
from tests.bench import spread
from tests.bench.spread import Calls, Spread
from tests.bench.unknown_maximum import LAWS, held_by
from tests.jobs.dask_processes import DaskProcesses, waited

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ("unknown_maximum", "--displays", "1000", "--logs")


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{words[0]}", *words[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed(*words: str) -> tuple[str, str]:
    with started(*words) as process:
        out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return out, said


def test_it_prints_the_same_with_one_job_with_two_and_on_workers() -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    alone, _ = printed(*BENCHMARK, "150", "--jobs", "1")
    assert alone.count("±") == 3 * len(LAWS)
    assert printed(*BENCHMARK, "150", "--jobs", "2")[0] == alone
    assert printed(*BENCHMARK, "150", "--cluster", "local:2")[0] == alone


def test_a_killed_one_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil", reason="comes with the extra `cluster`")
    keep, words = tmp_path / "kept", (*BENCHMARK, "2000", "--keep", str(tmp_path / "kept"))

    def kept() -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in keep.glob("[!.]*")}

    with started(*words, "--jobs", "2") as process:
        waited(lambda: len(kept()) >= 3 or process.poll() is not None)
        assert process.poll() is None
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.kill()
    waited(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
    before = kept()
    out, said = printed(*words, "--jobs", "1")
    assert out == printed(*BENCHMARK, "2000", "--jobs", "1")[0]
    assert said == f"Took up what was finished before, from {keep}.\n"
    assert {name: kept()[name] for name in before} == before  # none of them was computed anew
    assert len(kept()) == 20 * len(LAWS)


ASKED = ("Pareto 2.5, a tenth", 1000)


def test_kept_ones_are_of_just_what_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, computed, compute = KeptJobs(tmp_path), [], Calls.compute
    monkeypatch.setattr(Calls, "compute", lambda job, on, item: computed.append(item) or compute(job, on, item))
    first = Spread(kept=kept).over(held_by, range(25), *ASKED)
    assert computed == [*range(25)]
    assert len([*tmp_path.iterdir()]) == 3
    computed.clear()
    # Two of the three, in whatever row; then what was computed by other tests, which is another job.
    rows = [(ASKED, range(20)), (ASKED, range(10, 30)), (ASKED, range(20))]
    found = list(Spread(kept=kept).rows(held_by, rows))
    assert computed == [*range(20, 30)]
    assert found[0] == found[2] == first[:20]
    assert found[1][:15] == first[10:]
    assert found == list(Spread().rows(held_by, rows))
    monkeypatch.setattr(spread, "_code", lambda: ("package", "tests of yesterday"))
    computed.clear()
    with pytest.raises(WorkerError):
        Spread(kept=kept).over(held_by, range(20), *ASKED)
    assert computed == []


def test_a_worker_with_other_tests_is_refused() -> None:
    job = Calls("tests.bench.unknown_maximum:held_by", ASKED, (0, 1), spread._code())
    assert compute_jobs([job], loaded())[0].startswith("[[[")
    other = replace(job, code=(*job.code[:-1], "tests of yesterday"))
    with pytest.raises(WorkerError, match=r"is refused: its tests are not those of the command.*the same checkout"):
        compute_jobs([other], loaded())


def test_what_is_wrong_with_workers_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")

    def refused(address: str) -> str:
        with started(*BENCHMARK, "10", "--cluster", address) as process:
            out, said = process.communicate(timeout=300)
        assert process.returncode == 1, out
        return said.splitlines()[-1]

    assert refused("nowhere").startswith("error: nowhere is no address of a cluster.")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    with DaskProcesses(tmp_path) as cluster:
        cluster.worker(PYTHONPATH=str(tmp_path))
        assert refused(cluster.address).endswith("start the scheduler and its workers in the checkout.")
