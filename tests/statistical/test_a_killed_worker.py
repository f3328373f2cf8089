"""Audits and studies of delays with a worker that is killed in the middle: the same bits.

Of a comparison, tests/jobs/test_dask_workers.py says so.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evaluator.datasets import convert
from tests.jobs.dask_processes import DaskProcesses, waited
from tests.jobs.test_dask_workers import contents, finished, parts, said_once, started

pytest.importorskip("distributed", reason="workers need the extra `cluster`")

# Fifty twins; sixty bootstraps of mixtures.
AUDIT = ("audit", "-p", "linucb,delayed-klucb,random", "-w", "50", "--twins", "50")
DELAYS = ("delays", "--families", "lognormal,lognormal-mixture-2", "--bootstrap", "59")


@pytest.mark.parametrize(("words", "before_its_first"), [(AUDIT, "twin"), (DELAYS, "job")])
def test_a_study_does_not_notice_that_a_worker_was_killed(
    tmp_path: Path, words: tuple[str, ...], before_its_first: str
) -> None:
    convert("synthetic", tmp_path / "log", limit=3_000)
    words = (*words, "-d", str(tmp_path / "log"), "--out")
    alone = started(*words, str(tmp_path / "alone"))
    expected = finished(alone)[0]
    assert alone.returncode == 0
    out = tmp_path / "run"
    (tmp_path / "dask").mkdir()
    with DaskProcesses(tmp_path / "dask", allowed_failures=1) as cluster:
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
