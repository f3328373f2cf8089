"""The workers that a command names: ``local:2``, or the address of a Dask scheduler."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any

from evaluator.errors import ParameterError, UsageError, WorkerError
from evaluator.jobs.workers import TOPIC
from evaluator.outputs.locks import undone_if_abandoned

_LOCAL = re.compile(r"local:([1-9][0-9]*)")
_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:[0-9]+/?")
# Seconds to wait for the answer of a scheduler.
_PATIENCE = 10
# Seconds to wait until the connections are closed.
_GOODBYE = 5


@contextmanager
def workers_at(address: str, say: Callable[[str], None]) -> Iterator[Executor]:
    """Give an executor of the workers at an address.

    The address is that of a Dask scheduler, or ``local:N``: N processes of this machine, which end with the block. They
    start while it runs, and the first job waits for them. `say` is called with a sentence when a worker reports
    something or is lost. Raises ParameterError where the text is no address, UsageError where Dask is not installed,
    and WorkerError where no scheduler answers.
    """
    if local := _LOCAL.fullmatch(address):
        from evaluator.jobs.processes import WorkerProcesses

        with WorkerProcesses(int(local[1]), say) as executor, undone_if_abandoned(executor.abandon):
            yield executor
        return
    if address.startswith("local") or not _ADDRESS.fullmatch(address):
        raise _bad_address(address)
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "A cluster needs Dask, which is not installed.", remedy="pip install 'delayed-replay[cluster]'."
        ) from None
    ends = Event()
    with _silence_dask(), undone_if_abandoned(ends.set):
        _refuse_unanswered(address)
        try:
            client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise _no_answer(address, type(error).__name__) from error
        try:
            _report_events(client, lambda sentence: None if ends.is_set() else say(sentence))
            if not client.scheduler_info()["workers"]:
                say(f"No worker at {address} yet: waiting for the first.")
            yield client.get_executor(pure=False)
        finally:
            ends.set()
            with suppress(Exception):  # the work is done: a scheduler that no longer answers does no harm
                for topic in (TOPIC, "all"):
                    client.unsubscribe_topic(topic)
            with suppress(Exception):
                client.close(timeout=_GOODBYE)


def _refuse_unanswered(address: str) -> None:
    """Raise unless a scheduler answers; Dask itself waits for ever for a server that accepts and does not answer.

    ParameterError if Dask does not know the protocol, or is not set up for it; WorkerError if nothing answers in time,
    or it is not a scheduler.
    """
    import distributed
    from distributed.comm import connect

    async def ask_type() -> str:
        security = distributed.Security().get_connection_args("client")
        comm = await connect(address.rstrip("/"), timeout=_PATIENCE, **security)
        try:
            await comm.write({"op": "identity", "reply": True})
            return str((await comm.read())["type"])
        finally:
            comm.abort()

    try:
        server = asyncio.run(asyncio.wait_for(ask_type(), _PATIENCE))
    except ValueError as error:
        raise _bad_address(address) from error
    except TypeError as error:
        raise ParameterError(
            f"Dask is not set up for the protocol of {address}: {error}.",
            remedy="set DASK_DISTRIBUTED__COMM__TLS__... as its scheduler has it, or take tcp://host:8786.",
        ) from error
    except Exception as error:  # the answer of another program fails in any way when Dask reads it
        raise _no_answer(address, type(error).__name__) from error
    if server != "Scheduler":
        raise _no_answer(address, f"that is a {server.lower()}")


def _bad_address(address: str) -> ParameterError:
    return ParameterError(
        f"{address} is no address of a cluster.",
        remedy="take tcp://host:8786, as dask scheduler prints it, or local:2.",
    )


def _no_answer(address: str, why: str) -> WorkerError:
    return WorkerError(
        f"No scheduler answers at {address} ({why}).",
        remedy="start one with dask scheduler, and workers with dask worker.",
    )


def _report_events(client: Any, say: Callable[[str], None]) -> None:
    """Pass on what workers report about themselves, and say which workers are lost."""

    def report_message(event: tuple[float, Any]) -> None:
        message = event[1]
        say(f"Worker {message['worker']} {message['said']}.")

    def report_loss(event: tuple[float, Any]) -> None:
        change = event[1]
        if isinstance(change, dict) and change.get("action") == "remove-worker" and not change.get("expected", False):
            jobs = len(change.get("processing-tasks", ()))
            again = f": {jobs:,} of its jobs start again on other workers" if jobs else ""
            say(f"Worker {change.get('worker')} is lost{again}.")

    client.subscribe_topic(TOPIC, report_message)
    client.subscribe_topic("all", report_loss)


@contextmanager
def _silence_dask() -> Iterator[None]:
    """Hide what Dask and its loop log of connections and workers: errors and notes of this package say what matters."""
    loggers = [
        logging.getLogger(name)
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in ("distributed", "tornado")
    ]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
