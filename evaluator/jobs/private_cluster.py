"""Dask's scheduler and workers on this machine, for one command: nobody else can reach them."""

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

from evaluator.outputs.signals import undone_if_abandoned

_TRACKER = "multiprocessing.resource_tracker"
# Times that helpers are looked for: one that is started anew meanwhile, or that still writes, is found by the next.
_ROUNDS = 5


class _NoPages:
    """What of Dask serves pages, without them: their server asks for no certificate, and runs without dashboards."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start none."""


class PrivateScheduler(_NoPages, distributed.Scheduler):  # type: ignore[misc]
    """A scheduler that listens to its workers and its command alone."""


class PrivateWorker(_NoPages, distributed.Worker):  # type: ignore[misc]
    """A worker that does so; it is found by its name in a process of its own."""


@contextmanager
def private_cluster(count: int, *, goodbye: float) -> Iterator[distributed.SpecCluster]:
    """Give a cluster of workers with one thread each, which ends with the block.

    All of it listens on the loopback device, and to nobody without the certificate. It is made here, and its key is in
    the memory of these processes alone: OpenSSL, which reads keys from files, finds it for a moment in a folder that
    only its user can open.

    Parameters
    ----------
    count
        Number of workers; each may take its part of the memory of this machine.
    goodbye
        Seconds to wait until all have said goodbye.
    """
    shared = {"host": "127.0.0.1", "protocol": "tls://", "security": distributed.Security.temporary()}
    worker = {
        "cls": distributed.Nanny,
        "options": shared
        | {
            "worker_class": PrivateWorker,
            "nthreads": 1,
            "memory_limit": 1 / count,
            "silence_logs": logging.CRITICAL,
        },
    }
    with _scratch():
        with _as_helpers():
            cluster = distributed.SpecCluster(
                scheduler={"cls": PrivateScheduler, "options": shared | {"port": 0, "dashboard": False}},
                workers=dict.fromkeys(range(count), worker),
                security=shared["security"],
                silence_logs=logging.CRITICAL,
            )
        try:
            with undone_if_abandoned(partial(_let_go, cluster)):
                yield cluster
        finally:
            with suppress(Exception):  # nobody is left who needs an answer
                cluster.close(timeout=goodbye)


def _let_go(cluster: distributed.SpecCluster) -> None:
    """Have nobody start workers anew that end."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()


@contextmanager
def _scratch() -> Iterator[None]:
    """Have what Dask's processes here put down lie in a folder that goes with the block, and they with it."""
    folder = TemporaryDirectory(prefix="evaluate-workers-", ignore_cleanup_errors=True)
    # The process may also be told to end while the folder is being removed.
    with (
        undone_if_abandoned(partial(_end_helpers, folder.name)),
        folder,
        dask.config.set({"temporary-directory": folder.name}),
    ):
        yield


def _end_helpers(folder: str) -> None:
    """End the processes that Dask started here, but for the one of Python that removes what they share."""
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
    except psutil.NoSuchProcess:  # it has ended by itself since
        return False


@contextmanager
def _as_helpers() -> Iterator[None]:
    """Start processes in the block that are ended by this one, and by it alone, without a word.

    A terminal sends Ctrl-C to all processes of a command: those that inherit what this thread blocks, also from the
    threads that start them anew, do not hear it; this one does after the block. What Python's own helper would warn of,
    that they left something to remove, is its task.
    """
    warns = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (warns, f"ignore::UserWarning:{_TRACKER}")))
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if blocks:
        ensure_running()  # which lets through what is blocked in the thread that first needs it
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
