"""The databases that the queries of a spec ask, each opened once: its tables are of one moment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from evaluator.datasets.sources.engines import ENGINES, Engine, RefusedQueryError
from evaluator.errors import ParameterError, SourceError
from evaluator.escape import shortened
from evaluator.units import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa

# Variable of the environment that says how long a query may take, and how long it may where none says so.
TIMEOUT, _USUAL = "EVALUATE_QUERY_TIMEOUT", "1h"
# Seconds between two words to a database that a query is over.
_AGAIN = 0.2
INSTALL = "pip install 'delayed-replay[sql]'"
# What drivers say before the sentence of the database itself.
_BEFORE = re.compile(r"^[A-Z_]+: (?:\[\w+\] )?(?:(?:Failed to|could not) [^:]*: )*", re.DOTALL)
_SERVER = re.compile(r"(?:ERROR|FATAL): +")
_CODE = re.compile(r"\s*\. SQLSTATE: \w+$")
_PASSWORDS = re.compile(r"://[^/?#]*?:([^/?#]*)@|[?&\s]password=([^&\s]+)|^password=([^&\s]+)")


class Databases:
    """Connections to databases, closed with the block; each in one transaction that cannot write."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._open: dict[tuple[str, str], tuple[Engine, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stack.close()

    def answer(
        self, database: str, variable: str, query: str, values: Sequence[object], *, name: str
    ) -> Generator[pa.RecordBatch]:
        """Yield the rows of a query, some at a time, and one batch at least.

        Parameters
        ----------
        database, variable, query, values
            Kind of the database, environment variable that holds its URI, query, and values bound to it.
        name
            What messages call the query.

        Raises
        ------
        SourceError
            The database cannot be reached, refuses the query, or breaks off; the message holds nothing of the URI.
        """
        if (database, variable) not in self._open:
            self._open[database, variable] = self._connected(database, variable, name)
        engine, connection = self._open[database, variable]
        with closing(engine.stream(connection, query, values)) as batches, _limited(engine, connection) as refuse_late:
            while True:
                with _told(name, variable), refuse_late():
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch

    def _connected(self, database: str, variable: str, name: str) -> tuple[Engine, Any]:
        engine = ENGINES[database]
        uri = os.environ.get(variable, "")
        if not uri:
            example = "postgresql://me@host/shop" if database == "postgresql" else f"shop.{database}"
            raise SourceError(
                f"{name}: the environment variable {variable} is not set.", remedy=f"export {variable}={example}"
            )
        try:
            from adbc_driver_manager import dbapi

            driver = engine.driver(uri)
        except ImportError:
            raise SourceError(
                f"{name}: {database} is read by {engine.package}, which is not installed.", remedy=INSTALL
            ) from None
        except RefusedQueryError as error:
            raise SourceError(f"{name}: {variable}: {error}.", remedy="check the variable.") from None
        try:
            connection = self._stack.enter_context(closing(dbapi.connect(**driver, autocommit=True)))
        except (dbapi.Error, OSError) as error:
            why = engine.why_closed(str(error))
            raise SourceError(f"{name}: {variable}: {why}.", remedy="check the variable.") from None
        with _told(name, variable):
            engine.prepare(connection)
            for statement in engine.begin:
                with closing(connection.cursor()) as cursor:
                    cursor.execute(statement)
        return engine, connection


def _seconds() -> float:
    """Return how long a query may take, as the environment says."""
    said = os.environ.get(TIMEOUT) or _USUAL
    try:
        return parse_duration(said)
    except ParameterError:
        raise SourceError(
            f"The variable {TIMEOUT} of the environment is no duration: {shortened(said)!r}.",
            remedy="write 10min, or 4h.",
        ) from None


@contextmanager
def _limited(engine: Engine, connection: Any) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Cancel what runs longer than a query may, where it can be cancelled; give what names the cause of its error."""
    late, ended = Event(), Event()

    def watch(seconds: float) -> None:
        if ended.wait(seconds):
            return
        late.set()
        # What comes between two statements is heard by none: it is said until one has heard it.
        while not ended.is_set():
            with suppress(Exception):  # the query has just ended, or the connection
                connection.adbc_cancel()
            ended.wait(_AGAIN)

    @contextmanager
    def named() -> Iterator[None]:
        try:
            yield
        except Exception:
            if late.is_set():
                limit = os.environ.get(TIMEOUT) or _USUAL
                raise RefusedQueryError(f"it took longer than {limit}, the limit; {TIMEOUT}=4h allows more") from None
            raise

    watchdog = Thread(target=watch, args=(_seconds(),), daemon=True)
    if engine.cancels:
        watchdog.start()
    try:
        yield named
    finally:
        ended.set()
        if engine.cancels:  # nor is the next query told
            watchdog.join(_AGAIN)


@contextmanager
def _told(name: str, variable: str) -> Iterator[None]:
    """Turn what a database or its driver refuses into one line."""
    import pyarrow as pa
    from adbc_driver_manager import dbapi

    hint = "check its query, which is one statement that only reads."
    try:
        yield
    except RefusedQueryError as error:
        raise SourceError(f"{name}: {_said(error, variable)}.", remedy=hint) from None
    except (dbapi.Error, OSError, pa.ArrowException, KeyError) as error:
        raise SourceError(f"{name}: the database says: {_said(error, variable)}.", remedy=hint) from None


def _said(error: Exception, variable: str) -> str:
    """Return the sentence of a database, without what its driver says before, and nothing of the URI."""
    text = str(error).strip()
    text = _SERVER.split(text, maxsplit=1)[1] if _SERVER.search(text) else _BEFORE.sub("", text)
    text = _CODE.sub("", text.split("\n")[0]).rstrip(". ")
    return without_secrets(text or type(error).__name__, os.environ.get(variable, ""))


def without_secrets(text: str, uri: str) -> str:
    """Return a message without a URI and its password, as they are written and as they are meant.

    >>> without_secrets("no such user:a b", "postgresql://me:a%20b@host/shop")
    'no such user:***'
    """
    found = [group for match in _PASSWORDS.finditer(uri) for group in match.groups() if group]
    for secret in sorted({uri, *found, *map(unquote, found)} - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
