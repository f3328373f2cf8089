"""What is named by ``--cluster``: refused in one line where it cannot be had."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from evaluator.errors import DataError, WorkerError
from evaluator.jobs import addresses
from evaluator.outputs.locks import undo_all
from tests.cli.runs import evaluate
from tests.jobs.dask_processes import DaskProcesses, waited


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--limit", "2000"),
        ("audit", "--limit", "2000"),
        ("replay", "--limit", "2000", "--bootstrap", "20"),
        ("simulate", "vernade2017-low"),
    ],
)
def test_without_dask_it_says_what_to_install(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = evaluate(*command, "-p", "ucb1", "--cluster", "local:2")
    assert (done.code, done.out) == (2, "")
    line = "error: A cluster needs Dask, which is not installed. Hint: pip install 'delayed-replay[cluster]'."
    assert done.err.splitlines()[-1] == line


def told_by(address: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Return exit code and last line of a comparison on workers at an address, which is given a second to answer."""
    monkeypatch.setattr(addresses, "_PATIENCE", 1)
    done = evaluate("compare", "--limit", "2000", "-p", "ucb1", "--cluster", address)
    assert done.out == ""
    assert "Traceback" not in done.err
    return done.code, done.err.splitlines()[-1]


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n"], ids=["silence", "http"])
def test_whoever_answers_otherwise_than_a_scheduler_is_not_waited_for(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    with socket.create_server(("127.0.0.1", 0)) as server:
        callers = []

        def answered() -> None:
            with suppress(OSError):  # closed at the end
                while True:
                    callers.append(server.accept()[0])
                    callers[-1].sendall(answer)

        Thread(target=answered, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        code, line = told_by(address, monkeypatch)
        assert callers
        for caller in callers:
            caller.close()
    assert code == 1
    assert line.startswith(f"error: No scheduler answers at {address} (")


def test_a_worker_is_no_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    with DaskProcesses(tmp_path) as cluster:
        cluster.worker()
        (said,) = [file.read_text() for file in tmp_path.glob("worker*.log")]
        found = re.search(r"Start worker at: *(\S+)", said)
        assert found is not None
        _, line = told_by(found[1], monkeypatch)
    assert line.startswith(f"error: No scheduler answers at {found[1]} (that is a worker).")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "gopher://127.0.0.1:1"])
def test_protocols_that_dask_does_not_speak_are_no_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    code, line = told_by(address, monkeypatch)
    assert code == 2
    assert line.startswith(f"error: {address} is no address of a cluster.")


def test_tls_that_is_not_set_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    code, line = told_by("tls://127.0.0.1:1", monkeypatch)
    assert code == 2
    assert "Hint: set DASK_DISTRIBUTED__COMM__TLS__" in line


class Started(ThreadPoolExecutor):
    """Workers that have started once they `may`; it lists when they begin and when they have ended."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(1)
        self.error, self.may, self.happened = error, Event(), list[str]()

    @contextmanager
    def __call__(self, *asked: object) -> Iterator[Executor]:
        assert self.may.wait(60)
        if self.error is not None:
            raise self.error
        self.happened.append("begun")
        with self:
            yield self
        self.happened.append("ended")


def test_workers_start_while_the_block_runs_and_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started()
    monkeypatch.setattr(addresses, "_started", started)
    with addresses.workers_at("tcp://head:8786", print) as executor:
        assert started.happened == []
        started.may.set()
        assert executor.submit(pow, 2, 5).result() == 32
    assert started.happened == ["begun", "ended"]


@pytest.mark.parametrize("error", [DataError("The log is bad."), KeyboardInterrupt()])
def test_an_error_while_workers_start_ends_them(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started()
    monkeypatch.setattr(addresses, "_started", started)
    Timer(0.1, started.may.set).start()
    with pytest.raises(type(error)) as raised, addresses.workers_at("tcp://head:8786", print):
        raise error
    assert raised.value is error
    assert started.happened == ["begun", "ended"]


def test_the_first_job_raises_why_workers_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(WorkerError("No scheduler answers."))
    monkeypatch.setattr(addresses, "_started", started)
    started.may.set()
    with addresses.workers_at("tcp://head:8786", print) as executor, pytest.raises(WorkerError, match="No scheduler"):
        executor.submit(pow, 2, 5)


def alone(check: Callable[..., None], *arguments: str) -> None:
    """Run a check in a process of its own: it ends all that this one has begun, servers of other tests among it."""
    words = f"from {check.__module__} import {check.__name__} as check; check(*{arguments})"
    run = subprocess.run(
        [sys.executable, "-c", words], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr


def test_workers_that_are_ended_with_the_command_are_not_started_anew() -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    alone(ends_workers_for_good)


def ends_workers_for_good() -> None:
    from evaluator.jobs.private_cluster import private_cluster

    with private_cluster(1, goodbye=5) as cluster:
        (nanny,) = cluster.workers.values()
        first = nanny.pid
        undo_all()
        waited(lambda: nanny.status.name == "closed" or nanny.pid not in (first, None))
        assert nanny.status.name == "closed"


def test_keys_need_what_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    code, line = told_by("local:2", monkeypatch)
    assert code == 2
    assert line.startswith(
        "error: The keys of local:2 need the package cryptography, which is not installed. Hint: pip"
    )


def test_a_helper_that_ended_by_itself_keeps_nothing_from_being_removed(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="workers need the extra `cluster`")
    alone(ends_helpers_beside_one_that_ended, str(tmp_path / "evaluate-workers-x"))


def ends_helpers_beside_one_that_ended(folder: str) -> None:
    import psutil

    from evaluator.jobs.private_cluster import _end_helpers

    Path(folder).mkdir()
    (Path(folder) / "lock").touch()
    # Nobody has asked how the first ended: it has no command line any more.
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    running = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _end_helpers(folder)
    assert not Path(folder).exists()
    assert not psutil.pid_exists(running.pid)
