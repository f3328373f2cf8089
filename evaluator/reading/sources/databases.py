"""The databases that the queries of a spec ask: each is opened once, so that its tables are of one moment.

Each is opened so that nothing can be written, and its rows are streamed. Whether a query is one statement that reads is
told by the database's own parser, each in its way.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import quote, unquote

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
# Variable of the environment that names roles of PostgreSQL which may ask although they could change something.
ALLOWED_ROLES = "EVALUATE_ALLOW_ROLES"
# Rows that a database hands over at a time: PostgreSQL first few, and then as many as take some bytes.
_FIRST, _MOST, _BYTES = 1_000, 50_000, 16 * 1024 * 1024
_SQLITE_ROWS = 4_096
_LITERALS = {"integer": "0", "real": "0.0", "text": "''", "blob": "x''"}
_ENDS = re.compile(r"(?:[;\s]|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


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

        `variable` is the environment's that holds its URI. Raises SourceError, which holds nothing of the URI, if the
        database cannot be reached, refuses the query, or breaks off.
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


class RefusedQueryError(Exception):
    """A database is not asked, or not opened, and its user is told why."""


class Engine(ABC):
    """One kind of database.

    `package` has its driver; `begin` are statements that begin a transaction which cannot write, and sees the database
    as it is at one moment; `cancels` says whether a query can be cancelled while it runs.
    """

    package: ClassVar[str]
    begin: ClassVar[tuple[str, ...]]
    cancels: ClassVar[bool] = True

    @abstractmethod
    def driver(self, uri: str) -> dict[str, Any]:
        """Return what `adbc_driver_manager.dbapi.connect` takes for a database, opened to be read alone."""

    def prepare(self, connection: Any) -> None:
        """Refuse who may do what no transaction holds back, and have the server end what nobody waits for.

        Raises RefusedQueryError if who asks could change something all the same.
        """
        return

    @abstractmethod
    def stream(self, connection: Any, query: str, values: Sequence[object]) -> Generator[pa.RecordBatch]:
        """Yield the rows of a query, some at a time, and one batch at least."""

    @abstractmethod
    def why_closed(self, said: str) -> str:
        """Return why a database cannot be opened, in words that hold nothing of its URI, from what its driver said."""


class PostgreSQL(Engine):
    """PostgreSQL: a cursor of a transaction that is read-only and repeatable, so that all tables are of one moment."""

    package = "adbc-driver-postgresql"
    begin = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL cursor_tuple_fraction = 1",  # all rows will be fetched
        "SET LOCAL synchronize_seqscans = off",  # the same order each time, as far as there is one
    )
    # Functions of these write files, run programs and end sessions from within a transaction that cannot write.
    _roles: ClassVar[str] = """
        SELECT CASE WHEN rolsuper THEN 'superuser' ELSE rolname END FROM pg_roles
        WHERE pg_has_role(session_user, oid, 'member') AND (rolsuper OR rolname IN
            ('pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend'))
        ORDER BY NOT rolsuper, rolname
    """
    # Else a query runs on when its client was killed. Servers before 14 have no such setting.
    _ends_with_client: ClassVar[str] = (
        "SELECT set_config(name, '5s', false) FROM pg_settings WHERE name = 'client_connection_check_interval'"
    )
    _closed: ClassVar[dict[str, str]] = {
        r"password|authentication|pg_hba|role \"": "the server refuses its user or password",
        r"FATAL: +database \"": "the server has no such database",
        r"could not translate|refused|timeout|timed out|No route|unreachable|No such file|starting up|too many":
            "no server answers there",
    }  # fmt: skip

    def driver(self, uri: str) -> dict[str, Any]:
        """Return what connects to the server."""
        module = import_module("adbc_driver_postgresql")
        return {"driver": module._driver_path(), "db_kwargs": {"uri": uri}}

    def prepare(self, connection: Any) -> None:
        """Refuse roles that no read-only transaction holds back, and end a query with its client.

        Raises RefusedQueryError if the role is a superuser, or may write files of the server, run its programs or end
        other sessions.
        """
        with closing(connection.cursor()) as cursor:
            cursor.execute(self._roles)
            roles = [role for (role,) in cursor.fetchall()]
        allowed = {role.strip() for role in os.environ.get(ALLOWED_ROLES, "").split(",")}
        held = [role for role in ("superuser",) if role in roles] or roles
        if refused := [role for role in held if role not in allowed]:
            raise RefusedQueryError(
                f"its user is {refused[0] if refused[0] == 'superuser' else f'in the role {refused[0]}'}, who can "
                "change files, programs or sessions of the server in a transaction that only reads: take a role that "
                f"may only read, or allow this one by {ALLOWED_ROLES}={','.join(refused)}"
            )
        with closing(connection.cursor()) as cursor:
            cursor.execute(self._ends_with_client)

    def stream(self, connection: Any, query: str, values: Sequence[object]) -> Generator[pa.RecordBatch]:
        """Yield the rows of a cursor, which takes nothing but one statement that reads."""
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"DECLARE answer NO SCROLL CURSOR FOR\n{query}", list(values) or None)
        wanted, first = _FIRST, True
        while True:
            with closing(connection.cursor()) as cursor:
                cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
                cursor.execute(f"FETCH {wanted} FROM answer")
                rows = size = 0
                with closing(cursor.fetch_record_batch()) as reader:
                    for batch in _batches(reader, empty=first):
                        rows, size, first = rows + batch.num_rows, size + batch.nbytes, False
                        yield batch
            if rows < wanted:
                break
            wanted = min(max(wanted * _BYTES // max(size, 1), 1), _MOST)
        with closing(connection.cursor()) as cursor:
            cursor.execute("CLOSE answer")

    def why_closed(self, said: str) -> str:
        """Return why, by what the library of the server says; it may quote a URI that it cannot read."""
        asked = "failed:" in said or "could not translate" in said
        known = (why for pattern, why in self._closed.items() if asked and re.search(pattern, said))
        return next(known, "it holds no URI that PostgreSQL takes")


class SQLite(Engine):
    """SQLite: its file opened to be read, and no statement that would write another one."""

    package = "adbc-driver-sqlite"
    begin = ("PRAGMA query_only = 1", "BEGIN")
    cancels = False

    def driver(self, uri: str) -> dict[str, Any]:
        """Return what opens the file."""
        module = import_module("adbc_driver_sqlite")
        path = existing_file(uri, "sqlite")
        return {"driver": module._driver_path(), "db_kwargs": {"uri": f"file:{quote(str(path))}?mode=ro"}}

    def stream(self, connection: Any, query: str, values: Sequence[object]) -> Generator[pa.RecordBatch]:
        """Yield the rows of a query in the types that its cells have, all of them looked at first.

        The driver takes the types of the first rows for those of all. Here a row of known types comes first.
        """
        query = _one_statement(query)
        given = list(values) or None
        with closing(connection.cursor()) as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "1"})
            cursor.execute(query, given)
            with closing(cursor.fetch_record_batch()) as reader:
                names = reader.schema.names
        columns = [f"c{i}" for i in range(len(names))]
        rows = f"WITH answer({', '.join(columns)}) AS (\n{query}\n) SELECT "
        counts = [f"sum(typeof({column}) = '{kind}')" for column in columns for kind in _LITERALS]
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"{rows}{', '.join(counts)} FROM answer", given)
            counted = iter(cursor.fetchone())
        kinds = [_sqlite_type([kind for kind in _LITERALS if next(counted)]) for _ in columns]
        cells = [f"CAST({column} AS {kind.upper()})" for column, kind in zip(columns, kinds, strict=True)]
        literals = ", ".join(_LITERALS[kind] for kind in kinds)
        with closing(connection.cursor()) as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_SQLITE_ROWS)})
            cursor.execute(f"{rows}{literals} UNION ALL SELECT {', '.join(cells)} FROM answer", given)
            with closing(cursor.fetch_record_batch()) as reader:
                first = True
                for batch in reader:
                    yield batch.slice(int(first)).rename_columns(names)
                    first = False

    def why_closed(self, said: str) -> str:
        """Return why a file that is there cannot be opened."""
        return "its file cannot be opened"


class DuckDB(Engine):
    """DuckDB: its file opened to be read, one statement that its own parser takes for a SELECT."""

    package = "duckdb"
    # Table functions of a SELECT would write where they are told to, read any file and fetch addresses. Said once the
    # file is open: DuckDB, told before, refuses one with a ? in its name.
    begin = ("SET enable_external_access = false", "SET lock_configuration = true", "BEGIN TRANSACTION READ ONLY")

    def driver(self, uri: str) -> dict[str, Any]:
        """Return what opens the file."""
        module = import_module("adbc_driver_duckdb")
        path = existing_file(uri, "duckdb")
        names = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions")
        options = {"path": str(path), "access_mode": "READ_ONLY", **dict.fromkeys(names, "false")}
        return {"driver": module.driver_path(), "entrypoint": "duckdb_adbc_init", "db_kwargs": options}

    def stream(self, connection: Any, query: str, values: Sequence[object]) -> Generator[pa.RecordBatch]:
        """Yield the rows of a query; read-only or not, COPY would write a file, and is refused."""
        import duckdb

        try:
            statements = duckdb.extract_statements(query)
        except duckdb.Error as error:
            raise RefusedQueryError(str(error)) from None
        if len(statements) != 1:
            raise RefusedQueryError("several statements, where one reads the rows")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise RefusedQueryError("a statement that does not only read")
        with closing(connection.cursor()) as cursor:
            cursor.execute(query, list(values) or None)
            with closing(cursor.fetch_record_batch()) as reader:
                yield from _batches(reader, empty=True)

    def why_closed(self, said: str) -> str:
        """Return why a file that is there cannot be opened."""
        return "another program has it open to write" if "lock" in said.lower() else "its file is no database of DuckDB"


ENGINES: dict[str, Engine] = {"postgresql": PostgreSQL(), "sqlite": SQLite(), "duckdb": DuckDB()}


def existing_file(uri: str, scheme: str) -> Path:
    """Return the file of a database that is one: named by its path, ``file:`` or ``sqlite:///`` before it.

    Raises RefusedQueryError if there is none.
    """
    path = uri.removeprefix(f"{scheme}:///")
    if path.startswith("file:"):
        path = unquote(path.removeprefix("file:").removeprefix("//").split("?")[0])
    if not path or not Path(path).is_file():
        raise RefusedQueryError("there is no such file")
    return Path(path).absolute()


def _batches(reader: Any, *, empty: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; where it has none and `empty` says so, one without rows."""
    for batch in reader:
        empty = False
        yield batch
    if empty:
        import pyarrow as pa

        yield pa.record_batch([pa.nulls(0, field.type) for field in reader.schema], schema=reader.schema)


def _one_statement(query: str) -> str:
    """Return a query without what ends it; SQLite would run the first of several, and be silent on the rest."""
    import sqlite3

    for end in (place for place, char in enumerate(query) if char == ";"):
        if sqlite3.complete_statement(query[: end + 1]):
            rest = _ENDS.match(query, end)
            if rest is None or rest.end() != len(query):
                raise RefusedQueryError("several statements, where one reads the rows")
            return query[:end]
    return query


def _sqlite_type(found: Sequence[str]) -> str:
    """Return the type that holds all cells of a column, whose cells have some."""
    if "blob" in found:
        return "blob"
    if "text" in found or not found:
        return "text"
    return "real" if "real" in found else "integer"
