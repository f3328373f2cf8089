"""Processes of this machine that compute the jobs of one command, and end with it; only it can reach them."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context, util
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from shutil import rmtree
from threading import Lock, local
from typing import Any

from evaluator.jobs import workers

# What all processes need: they are copies of one that has loaded it, where the system can copy a process.
_LOADED = ["evaluator.api", "evaluator.cli.app", "numba", "threadpoolctl", "scipy.special"]
# Number of processes that a job may end before it is given up.
_MOST_ENDED = 4


class KilledWorker(Exception):  # noqa: N818  # as Dask calls it
    """A job ended every process that took it."""

    allowed_failures = _MOST_ENDED - 1

    def __init__(self, last_worker: str) -> None:
        super().__init__(last_worker)
        self.last_worker = last_worker


class WorkerProcesses(ThreadPoolExecutor):
    """An executor of processes, each served by a thread; a job whose process died starts again in a new one.

    `say` is called with a sentence when a process reports something or is lost.
    """

    def __init__(self, count: int, say: Callable[[str], None]) -> None:
        super().__init__(count)
        self._say, self._ended, self._starts = say, False, Lock()
        self._processes: set[BaseProcess] = set()
        self._of_thread = local()
        self._copies = "forkserver" in get_all_start_methods()
        self._context: Any = get_context("forkserver" if self._copies else "spawn")
        if self._copies:
            _start_loading(self._context)

    def __exit__(self, *raised: object) -> None:
        self.end()
        self.shutdown(cancel_futures=True)

    def end(self) -> None:
        """End the processes at once, and what they compute."""
        self._ended = True
        for process in list(self._processes):
            process.kill()
        if self._copies:
            _stop_loading()

    def abandon(self) -> None:
        """End the processes in a process that ends without removing its files."""
        self.end()
        rmtree(util.get_temp_dir(), ignore_errors=True)  # the socket at which copies are asked for

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have a process call a function, whose arguments and result can be pickled."""
        return super().submit(self._compute, pickle.dumps((work, arguments, named)))

    def _compute(self, job: bytes) -> Any:
        for _ in range(_MOST_ENDED):
            name = "that was starting"
            try:
                process, pipe = self._process()
                name = f"{socket.gethostname()}:{process.pid}"
                pipe.send_bytes(job)
                while (answer := pipe.recv())[0] == "said":
                    self._say(f"Worker {name} {answer[1]}.")
            except (EOFError, OSError) as error:
                del self._of_thread.process
                if self._ended:
                    raise CancelledError from error
                self._say(f"Worker {name} is lost: its job starts again in a new process.")
                continue
            if answer[0] == "raised":
                raise answer[1]
            return answer[1]
        raise KilledWorker(name)

    def _process(self) -> tuple[BaseProcess, Connection]:
        """Return the process of this thread, and the pipe to it."""
        if not hasattr(self._of_thread, "process"):
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
            self._of_thread.process = process, ours
            with self._starts:
                if self._ended:
                    raise CancelledError
                process.start()
                self._processes.add(process)
            if self._ended:  # meanwhile
                process.kill()
            theirs.close()
        return self._of_thread.process  # type: ignore[no-any-return]


def _start_loading(context: Any) -> None:
    """Start the process that the others will be copies of."""
    from multiprocessing import forkserver

    context.set_forkserver_preload(_LOADED)
    ensure_running()  # it unblocks the signals of the thread that starts it
    # A terminal sends Ctrl-C to all processes of a command. They inherit what is blocked, and do not hear it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop_loading() -> None:
    """End that process, which would load to the end what nobody needs any more, and then end by itself."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver
    with suppress(AttributeError, TypeError, OSError):  # Python does not promise what it calls them
        os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()


def _serve(pipe: Connection) -> None:
    """Compute what comes through a pipe until it is closed."""
    if hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    workers.report = lambda sentence: pipe.send(("said", sentence))
    while True:
        try:
            job = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            work, arguments, named = pickle.loads(job)
            answer = pickle.dumps(("returned", work(*arguments, **named)))
        except Exception as error:
            answer = pickle.dumps(("raised", _portable(error)))
        with suppress(OSError):  # the command has ended, and the pipe is closed
            pipe.send_bytes(answer)


def _portable(error: Exception) -> Exception:
    """Return an error, or where it cannot be pickled what it says."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
