"""The workers that a command names: ``local:2``, or the address of a Dask scheduler."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from threading import Event
from typing import Any

from evaluator.errors import ParameterError, UsageError, WorkerError
from evaluator.jobs.workers import TOPIC
from evaluator.outputs.signals import undone_if_abandoned

_LOCAL = re.compile(r"local:([1-9][0-9]*)")
_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:[0-9]+/?")
# Seconds to wait for a scheduler that should be there.
_PATIENCE = 10
# Seconds to wait until all have said goodbye.
_GOODBYE = 5


@contextmanager
def workers_at(address: str, say: Callable[[str], None]) -> Iterator[Executor]:
    """Give an executor of the workers at an address; those of ``local:N`` end with the block, and serve it alone.

    Parameters
    ----------
    address
        Address of a Dask scheduler, or ``local:N``.
    say
        Function that is told in a sentence what becomes of workers.

    Raises
    ------
    UsageError, ParameterError
        Dask, or what makes its keys, is not installed; or the address is none.
    WorkerError
        No scheduler answers there.
    """
    local = _LOCAL.fullmatch(address)
    _refuse_without("distributed", "A cluster needs Dask")
    if local is not None:
        _refuse_without("cryptography", f"The keys of {address} need the package cryptography")
    elif address.startswith("local") or not _ADDRESS.fullmatch(address):
        raise _no_address(address)
    import distributed

    ends = Event()
    with _quiet(), ExitStack() as stack:
        if local is None:
            _refuse_silence(address)
        cluster = None
        try:
            if local is not None:
                from evaluator.jobs.private_cluster import private_cluster

                cluster = stack.enter_context(private_cluster(int(local[1]), goodbye=_GOODBYE))
            stack.enter_context(undone_if_abandoned(ends.set))
            client = distributed.Client(
                address if cluster is None else cluster, timeout=_PATIENCE, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise _nobody(address, type(error).__name__) from error
        try:
            _listen(client, lambda words: None if ends.is_set() else say(words))
            if not client.scheduler_info()["workers"]:
                say(f"No worker at {address} yet: waiting for the first.")
            yield client.get_executor(pure=False)
        finally:
            ends.set()
            with suppress(Exception):  # nobody is left who needs an answer
                for topic in (TOPIC, "all"):
                    client.unsubscribe_topic(topic)
            with suppress(Exception):
                client.close(timeout=_GOODBYE)


def _refuse_without(package: str, needs: str) -> None:
    """Raise `UsageError` where a package of the extra is not installed."""
    try:
        import_module(package)
    except ImportError:
        raise UsageError(f"{needs}, which is not installed.", remedy="pip install 'delayed-replay[cluster]'.") from None


def _refuse_silence(address: str) -> None:
    """Raise unless a scheduler answers: Dask itself waits without end for one who takes the call and says nothing.

    Raises
    ------
    ParameterError
        Dask knows no such protocol, or is not set up for it.
    WorkerError
        Nobody answers there in time, or nothing that is a scheduler.
    """
    import distributed
    from distributed.comm import connect

    async def who() -> str:
        security = distributed.Security().get_connection_args("client")
        comm = await connect(address.rstrip("/"), timeout=_PATIENCE, **security)
        try:
            await comm.write({"op": "identity", "reply": True})
            return str((await comm.read())["type"])
        finally:
            comm.abort()

    try:
        found = asyncio.run(asyncio.wait_for(who(), _PATIENCE))
    except ValueError as error:
        raise _no_address(address) from error
    except TypeError as error:
        raise ParameterError(
            f"{address} asks for what Dask is not set up for: {error}.",
            remedy="set DASK_DISTRIBUTED__COMM__TLS__... as its scheduler has it, or take tcp://host:8786.",
        ) from error
    except Exception as error:  # whatever an answer that is none of Dask's looks like when it is read
        raise _nobody(address, type(error).__name__) from error
    if found != "Scheduler":
        raise _nobody(address, f"that is a {found.lower()}")


def _no_address(address: str) -> ParameterError:
    return ParameterError(
        f"{address} is no address of a cluster.",
        remedy="take tcp://host:8786, as dask scheduler prints it, or local:2.",
    )


def _nobody(address: str, why: str) -> WorkerError:
    return WorkerError(
        f"No scheduler answers at {address} ({why}).",
        remedy="start one with dask scheduler, and workers with dask worker.",
    )


def _listen(client: Any, say: Callable[[str], None]) -> None:
    """Have said what workers tell of themselves, and which are lost."""

    def told(event: tuple[float, Any]) -> None:
        said = event[1]
        say(f"Worker {said['worker']} {said['said']}.")

    def changed(event: tuple[float, Any]) -> None:
        said = event[1]
        if isinstance(said, dict) and said.get("action") == "remove-worker" and not said.get("expected", False):
            jobs = len(said.get("processing-tasks", ()))
            again = f": {jobs:,} of its jobs begin anew elsewhere" if jobs else ""
            say(f"Worker {said.get('worker')} is lost{again}.")

    client.subscribe_topic(TOPIC, told)
    client.subscribe_topic("all", changed)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what Dask logs on connections and workers: what matters of it is said in a line."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
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
