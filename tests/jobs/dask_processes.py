"""A Dask scheduler, workers, and commands whose jobs they compute: processes of this machine, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

# Seconds for a process to begin: it loads Dask, on a machine that does other things beside.
PATIENCE = 180
# Small jobs, so that there are many.
RUN = """
import sys
from evaluator.comparisons import variant_runs
from evaluator.audits import audit_jobs
from evaluator.delays.study import goodness, tail
variant_runs.WORK, variant_runs.FEWEST, audit_jobs.WORK = 20_000, 2, 9_000
goodness._OF_MIXTURES, tail._WORK = 2, 5_000
from evaluator.cli.app import main
main()
"""


class DaskProcesses:
    """A scheduler and workers; all end with the block.

    Parameters
    ----------
    folder
        Folder of their own; it is made where there is none.
    allowed_failures
        Number of workers that a job may end before it is given up.
    """

    def __init__(self, folder: Path, *, allowed_failures: int = 3) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._failures = allowed_failures
        self._all: list[subprocess.Popen[bytes]] = []
        self._port = "0"
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start a scheduler; a second one where the first one was."""
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._started(
            "scheduler", "--port", self._port, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file),
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=str(self._failures),
        )  # fmt: skip
        waited(lambda: file.exists() and b"}" in file.read_bytes())
        self.address: str = json.loads(file.read_text())["address"]
        self._port = self.address.rpartition(":")[2]

    def worker(self, *, again: bool = False, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker of one thread, which is known to the scheduler then; `again`: started anew when it dies."""
        nanny = "--nanny" if again else "--no-nanny"
        log = self._folder / f"worker{len(self._all)}.log"
        process = self._started(
            "worker", self.address, "--nthreads", "1", nanny, "--no-dashboard", "--host", "127.0.0.1",
            "--local-directory", str(self._folder), "--death-timeout", "60", **environment,
        )  # fmt: skip
        waited(lambda: b"Registered to" in log.read_bytes())
        return process

    def _started(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{words[0]}{len(self._all)}.log").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                env={**os.environ, **environment},
                cwd=self._folder,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        self._all.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._all:
            # With what it began: asked to end, a nanny would wait for a worker that waits for its scheduler.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def waited(there: object) -> None:
    """Wait until a function returns something true."""
    end = time.monotonic() + PATIENCE
    while not there():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def started(*words: str) -> subprocess.Popen[str]:
    """Start a command."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a command printed, and what it said on the way."""
    try:
        return process.communicate(timeout=4 * PATIENCE)
    finally:
        process.kill()
