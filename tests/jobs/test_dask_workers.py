"""Real workers: of another version, without a scheduler, cut off.

That those that are killed change no bit of a study is among the proofs: starting them takes a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.datasets import convert
from evaluator.jobs import addresses
from evaluator.jobs.addresses import workers_at
from tests.cli.runs import evaluate
from tests.jobs.dask_processes import PATIENCE, DaskProcesses

pytest.importorskip("distributed", reason="workers need the extra `cluster`")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs") / "log"
    convert("synthetic", folder, limit=3_000)
    return folder


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskProcesses]:
    with DaskProcesses(tmp_path / "dask", allowed_failures=1) as processes:
        yield processes


def test_an_answer_cut_off_by_the_end_of_its_scheduler_prints_no_traceback(
    cluster: DaskProcesses, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.worker()
    with workers_at(cluster.address, print) as executor:
        loop = executor._client.loop  # type: ignore[attr-defined]
        ran = threading.Event()

        async def cut_off() -> None:
            ran.set()
            raise OSError("Stream is closed")

        loop.add_callback(cut_off)
        assert ran.wait(PATIENCE)
        executor.submit(int).result(PATIENCE)  # the loop has come past it
    assert not caplog.records


def test_no_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_PATIENCE", 1)
    done = evaluate("compare", "-p", "ucb1", "--limit", "2000", "--cluster", "tcp://127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith("error: No scheduler answers at tcp://127.0.0.1:1")
    for address in ("local:0", "local:two", "somewhere"):
        done = evaluate("compare", "-p", "ucb1", "--limit", "2000", "--cluster", address)
        assert done.code == 2
        assert f"error: {address} is no address of a cluster." in done.err
