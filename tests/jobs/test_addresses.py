"""What is named by ``--cluster``: refused in one line where it cannot be had."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from evaluator.errors import DataError, WorkerError
from evaluator.jobs import addresses
from evaluator.jobs.run_jobs import Job, run_jobs
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
    done = evaluate(*command, "-p", "ucb1", "--cluster", "tcp://head:8786")
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


def end_this_process(once: Path) -> str:
    """End the process that computes this, unless a file is there that says that one was ended before."""
    if not once.exists():
        if once.parent.exists():
            once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def is_running(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def raise_error(error: type[Exception]) -> None:
    raise error("The log is bad.")


def raise_lambda() -> None:
    raise ValueError(lambda: "no text")


def test_processes_compute_and_raise_as_this_one_does() -> None:
    with addresses.workers_at("local:2", print) as executor:
        assert list(executor.map(pow, [2, 3], [5, 2])) == [32, 9]
        for error in (DataError, KeyError):
            with pytest.raises(error, match="The log is bad"):
                executor.submit(raise_error, error).result()
        with pytest.raises(RuntimeError, match="ValueError: <function"):
            executor.submit(raise_lambda).result()


def test_a_process_that_is_killed_is_one_line_and_its_job_starts_again(tmp_path: Path) -> None:
    said: list[str] = []
    with addresses.workers_at("local:1", said.append) as executor:
        assert executor.submit(end_this_process, tmp_path / "ended").result() == "done"
    (line,) = said
    assert re.fullmatch(r"Worker \S+:\d+ is lost: its job starts again in a new process\.", line)


@dataclass(frozen=True)
class EndsAll(Job):
    """A job that ends every process."""

    name = "variant ucb1"
    items = (0,)

    def open(self) -> None:
        """Open nothing."""

    def compute(self, opened: None, item: int) -> str:
        return end_this_process(Path("/no folder/file"))


def test_a_job_that_ends_every_process_is_named() -> None:
    with addresses.workers_at("local:1", lambda sentence: None) as executor:
        names = r"variant ucb1 ended every worker that took it, 4 of them, the last at \S+:\d+\."
        with pytest.raises(WorkerError, match=names):
            list(run_jobs([EndsAll()], executor=executor))
        assert executor.submit(abs, -1).result() == 1


def test_the_end_of_the_block_ends_the_processes_in_the_middle() -> None:
    with addresses.workers_at("local:1", print) as executor:
        coming = executor.submit(os.getpid)
        process = coming.result()
        executor.submit(time.sleep, 600)
    waited(lambda: not is_running(process))
