"""A Dask scheduler and Dask workers on this machine that serve one command; no other process can reach them."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import distributed
import psutil  # comes with Dask

from evaluator.outputs.locks import undone_if_abandoned

_TRACKER = "multiprocessing.resource_tracker"
# Rounds of ending processes: a later round finds a process that was restarted meanwhile, or that was still writing.
_ROUNDS = 5


class _NoPages:
    """A server of Dask without its web pages: Dask serves them even without a dashboard, and to every caller."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start no web server."""


class PrivateScheduler(_NoPages, distributed.Scheduler):  # type: ignore[misc]
    """A scheduler that accepts its own workers and its own command only."""


class PrivateWorker(_NoPages, distributed.Worker):  # type: ignore[misc]
    """A worker that accepts its own scheduler only; its process imports this class by name."""


@contextmanager
def private_cluster(count: int, *, goodbye: float) -> Iterator[distributed.SpecCluster]:
    """Give a cluster of workers with one thread each and equal memory, which ends with the block.

    Its processes listen on the loopback device and refuse callers without the certificate. The certificate is made
    here, and its key stays in the memory of these processes. OpenSSL reads keys from files, so that the key lies for a
    moment in a folder that only its user can open. After `goodbye` seconds the cluster counts as closed.
    """
    shared = {"host": "127.0.0.1", "protocol": "tls://", "security": distributed.Security.temporary()}
    worker = {
        "cls": distributed.Nanny,
        "options": shared
        | {"worker_class": PrivateWorker, "nthreads": 1, "memory_limit": 1 / count, "silence_logs": logging.CRITICAL},
    }
    with _scratch_folder():
        with _starting_helpers():
            cluster = distributed.SpecCluster(
                scheduler={"cls": PrivateScheduler, "options": shared | {"port": 0, "dashboard": False}},
                workers=dict.fromkeys(range(count), worker),
                security=shared["security"],
                silence_logs=logging.CRITICAL,
            )
        try:
            with undone_if_abandoned(partial(_stop_restarts, cluster)):
                yield cluster
        finally:
            with suppress(Exception):  # the work is done: a cluster that no longer answers does no harm
                cluster.close(timeout=goodbye)


def _stop_restarts(cluster: distributed.SpecCluster) -> None:
    """Keep Dask from restarting workers that end."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()


@contextmanager
def _scratch_folder() -> Iterator[None]:
    """Give Dask's processes a folder for their files; folder and processes end with the block."""
    folder = TemporaryDirectory(prefix="evaluate-workers-", ignore_cleanup_errors=True)
    # The process may also be told to end while the folder is being removed.
    with (
        undone_if_abandoned(partial(_end_helpers, folder.name)),
        folder,
        dask.config.set({"temporary-directory": folder.name}),
    ):
        yield


def _end_helpers(folder: str) -> None:
    """End the processes that Dask started here, but not Python's resource tracker, which removes what they share."""
    for _ in range(_ROUNDS):
        helpers = [child for child in psutil.Process().children(recursive=True) if _is_running_helper(child)]
        for helper in helpers:
            with suppress(psutil.NoSuchProcess):
                helper.kill()
        psutil.wait_procs(helpers, timeout=0.2)
        shutil.rmtree(folder, ignore_errors=True)
        if not helpers and not Path(folder).exists():
            return


def _is_running_helper(child: psutil.Process) -> bool:
    try:
        return _TRACKER not in " ".join(child.cmdline())
    except psutil.NoSuchProcess:  # it has ended by itself meanwhile
        return False


@contextmanager
def _starting_helpers() -> Iterator[None]:
    """Let processes that start in the block ignore Ctrl-C, so that this process alone ends them, without messages.

    A terminal sends Ctrl-C to all processes of a command. Processes that start in the block inherit the signals that
    this thread blocks, and so do processes that are restarted later: they do not receive Ctrl-C. This process receives
    it after the block. Python's resource tracker would warn that the processes left files behind; removing these files
    is its task, so that the warning is hidden.
    """
    warns = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (warns, f"ignore::UserWarning:{_TRACKER}")))
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if blocks:
        ensure_running()  # the tracker's start unblocks the signals of the thread that starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else None
    try:
        yield
    finally:
        if warns is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = warns
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
