"""Forty variants on two hundred resampled logs each, with a worker that is killed in the middle: the same bits."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evaluator.datasets import convert
from tests.executors.dask_processes import DaskProcesses, waited
from tests.executors.test_dask_workers import STUDY, contents, finished, parts, said_once, started

pytest.importorskip("distributed", reason="workers need the extra `cluster`")


def test_two_hundred_resampled_logs(tmp_path: Path) -> None:
    words = (*STUDY[:-1], "200", "-d", str(tmp_path / "log"), "--out")
    convert("synthetic", tmp_path / "log", limit=3_000)
    alone = started(*words, str(tmp_path / "alone"))
    expected = finished(alone)[0]
    assert alone.returncode == 0
    out = tmp_path / "run"
    (tmp_path / "dask").mkdir()
    with DaskProcesses(tmp_path / "dask", allowed_failures=1) as cluster:
        first, _ = cluster.worker(), cluster.worker()
        process = started(*words, str(out), "--cluster", cluster.address)
        waited(lambda: len(parts(out)) > 200 or process.poll() is not None)
        assert process.poll() is None
        os.kill(first.pid, signal.SIGKILL)
        printed, said = finished(process)
    assert process.returncode == 0, said
    assert (printed, contents(out)) == (expected, contents(tmp_path / "alone"))
    assert "is lost" in said
    said_once(said, "before its first unit")
