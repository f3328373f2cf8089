"""Databases that tests fill: a PostgreSQL server that is started for them, files of SQLite and of DuckDB."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.reading.sources import write_spec

KINDS = ("postgresql", "sqlite", "duckdb")
# Part of every URI, and of nothing else: what prints it has printed a secret.
SECRET = "s3ntinel"
PASSWORD, QUOTED = f"{SECRET}!pw", f"{SECRET}%21pw"
VARIABLE = "SHOP_DB"
_PROGRAMS = Path("/usr/lib/postgresql")
MISSING = "PostgreSQL's server is not installed: Debian's package postgresql"

_SQLITE = """
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
for statement in sys.argv[2:]:
    rows = database.execute(statement).fetchall()
database.commit()
print(json.dumps(rows))
"""
# Runs a server, whose folder is $0, until nobody holds its standard input: it ends with the tests, however these end.
_WHILE_ASKED = '"$@" & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$0"'


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs: Debian's, of the newest version, or that of the search path."""
    found = sorted(_PROGRAMS.glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    other = shutil.which("pg_isready") if shutil.which("postgres") and shutil.which("initdb") else None
    return found[-1].parent if found else Path(other).parent if other else None


def as_admin(uri: str) -> str:
    """Return the URI of the same server for its superuser."""
    return uri.replace("shop:", "admin:", 1)


@contextmanager
def server() -> Iterator[str]:
    """Start a server in a temporary folder, which answers through a socket in it; give its URI."""
    of = programs()
    assert of is not None
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket has 107 characters
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # as whom the server refuses to run
        who = pwd.getpwnam("nobody")
        user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        os.chown(folder, who.pw_uid, who.pw_gid)
    log, password = folder / "log", folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    process = None
    try:
        subprocess.run(
            [of / "initdb", "-D", folder / "data", "-U", "admin", "-A", "scram-sha-256", f"--pwfile={password}",
             "--no-sync", "-E", "UTF8", "--locale=C"], check=True, capture_output=True, cwd=folder, **user,
        )  # fmt: skip
        settings = [
            "--listen_addresses=",
            f"--unix_socket_directories={folder}",
            "--fsync=off",
            "--shared_buffers=16MB",
        ]
        with log.open("wb") as said:
            process = subprocess.Popen(
                ["sh", "-c", _WHILE_ASKED, folder, of / "postgres", "-D", folder / "data", *settings],
                stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True, cwd=folder, **user,
            )  # fmt: skip
        patience = time.monotonic() + 60
        while subprocess.run([of / "pg_isready", "-q", "-h", folder], check=False).returncode:
            if process.poll() is not None or time.monotonic() > patience:
                raise RuntimeError(f"PostgreSQL does not start: {log.read_text()}")
            time.sleep(0.05)
        uri = f"postgresql://shop:{QUOTED}@/postgres?host={folder}"
        # Tests ask as the owner of the tables, who is no superuser.
        Shop("postgresql", as_admin(uri)).run(
            f"CREATE ROLE shop LOGIN PASSWORD '{PASSWORD}'", "GRANT ALL ON SCHEMA public TO shop"
        )
        yield uri
    finally:
        if process is not None:
            process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


# Displays and sales of a shop, as rows.
N = 400
_RANDOM = np.random.default_rng(1)
ADS = ("red", "green", "o'blue")
START = datetime(2026, 1, 31, 22, tzinfo=UTC)
DISPLAYS: list[tuple[Any, ...]] = []
SALES: list[tuple[Any, ...]] = []
for _i in range(N):
    _ad = int(_RANDOM.integers(3))
    _at = START + timedelta(minutes=_i // 3, microseconds=_i % 3)
    _set = sorted({ADS[_ad], *(ad for ad in ADS if _RANDOM.random() < 0.6)})
    _country = (None, "de", "fr")[int(_RANDOM.integers(3))]
    _cents = Decimal(int(_RANDOM.integers(0, 9_000)))
    DISPLAYS.append((7 * _i + 10, _at, ADS[_ad], 0.5 if _ad else 0.25, _country, _cents / 100, _set))
    for _ in range(int(_RANDOM.integers(4)) // 2):
        _sold = _at + timedelta(seconds=int(_RANDOM.integers(90_000)))
        SALES.append((7 * _i + 10, _sold, Decimal(int(_RANDOM.integers(1, 900))) / 100))
CANDIDATES = [(row[0], ad, round(1 / len(row[6]), 12)) for row in DISPLAYS for ad in row[6]]
# Types of the columns of each table, by database, in this order.
_TYPES = {
    "postgresql": {
        "displays": "numeric(12, 2), timestamptz, text, double precision, varchar(5), numeric, text[]",
        "sales": "bigint, timestamptz, numeric(10, 2)",
        "candidates": "numeric, varchar(20), double precision",
    },
    "sqlite": {
        "displays": "integer, text, text, real, text, real, text",
        "sales": ", text, real",
        "candidates": "int, text, real",
    },
    "duckdb": {
        "displays": "hugeint, timestamptz, enum('red', 'green', 'o''blue'), double, varchar, decimal(12, 3), varchar[]",
        "sales": "decimal(12, 1), timestamptz, decimal(10, 2)",
        "candidates": "bigint, varchar, double",
    },
}
NAMES = {
    "displays": ("id", "shown", "ad", "p", "country", "basket", "eligible"),
    "sales": ("id", "sold", "amount"),
    "candidates": ("id", "ad", "p"),
}
ROWS = {"displays": DISPLAYS, "sales": SALES, "candidates": CANDIDATES}
QUERIES = {
    "displays": "SELECT * FROM displays ORDER BY shown, id",
    "sales": "SELECT * FROM sales ORDER BY sold, id",
    "candidates": "SELECT * FROM candidates ORDER BY id, ad",
}
SPEC: dict[str, Any] = {
    "time": {"unit": "datetime"},
    "display": {"id": "id", "time": "shown", "action": "ad", "propensity": "p"},
    "conversion": {"time": "sold", "value": "amount"},
    "context": {"columns": ["country"]},
    "keep": {"basket": "basket"},
}
# Which of the tables say what was eligible, by what a test calls that.
SETS: dict[str, dict[str, Any]] = {
    "all": {},
    "listed": {"display": {**SPEC["display"], "eligible": "eligible"}},
    "candidates": {
        "display": {**SPEC["display"], "propensity": None},
        "candidates": {"display": "id", "action": "ad", "propensity": "p"},
    },
}


@dataclass(frozen=True)
class Shop:
    """A database with the tables of the shop.

    Parameters
    ----------
    kind, uri
        Which database, and where.
    """

    kind: str
    uri: str = field(repr=False)

    def source(self, query: str, *parameters: object) -> dict[str, Any]:
        """Return the keys of a table of a spec."""
        given: dict[str, Any] = {"database": self.kind, "uri_env": VARIABLE, "query": query}
        return given | ({"parameters": list(parameters)} if parameters else {})

    def spec(
        self, folder: Path, *, sets: str = "all", displays: str | None = None, sales: str | None = None, **more: Any
    ) -> Path:
        """Write a spec of the shop into a folder, with other queries than the usual ones where they are given."""
        sections: dict[str, Any] = {**SPEC, **SETS[sets], **more}
        found = {"source": {"files": None, **self.source(displays or QUERIES["displays"]), **more.get("source", {})}}
        bought = {"source": {**self.source(sales or QUERIES["sales"]), "display": "id"}}
        found["conversion"] = {**sections["conversion"], **bought}
        if "candidates" in sections:
            found["candidates"] = {**sections["candidates"], **self.source(QUERIES["candidates"])}
        return write_spec(folder, **{**sections, **found})

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run some statements, and return the rows of the last one."""
        if self.kind == "postgresql":
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(self.uri, autocommit=True) as connection:
                for statement in statements:
                    with connection.cursor() as cursor:
                        cursor.execute(statement)
                        rows = [] if cursor.description is None else cursor.fetchall()
            return list(rows)
        if self.kind == "sqlite":
            # Locks are a process's: two libraries of SQLite in one would not see each other's.
            done = subprocess.run(
                [sys.executable, "-c", _SQLITE, self.uri, *statements], capture_output=True, text=True, check=True
            )
            return [tuple(row) for row in json.loads(done.stdout)]
        import duckdb

        with duckdb.connect(self.uri) as database:
            for statement in statements:
                rows = database.execute(statement).fetchall()
        return list(rows)

    def fill(self) -> Shop:
        """Make the tables."""
        if self.kind == "postgresql":
            self.run(*_statements(self.kind))
        else:
            Path(self.uri).write_bytes(_file(self.kind))
        return self


@cache
def _file(kind: str) -> bytes:
    """Return a database in a file that holds the tables."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(kind, f"{folder}/shop.{kind}")
        shop.run(*_statements(kind))
        assert os.listdir(folder) == [f"shop.{kind}"]
        return Path(shop.uri).read_bytes()


@cache
def _statements(kind: str) -> list[str]:
    """Return what makes the tables."""
    statements = []
    for table, names in NAMES.items():
        parts = [part.strip() for part in _split(_TYPES[kind][table])]
        columns = ", ".join(f"{name} {of}" for name, of in zip(names, parts, strict=True))
        rows = ", ".join(f"({', '.join(_literal(kind, value) for value in row)})" for row in ROWS[table])
        statements += [f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} ({columns})"]
        statements.append(f"INSERT INTO {table} VALUES {rows}")
    return statements


def _literal(kind: str, value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        items = json.dumps(value)
        return (
            _literal(kind, items) if kind == "sqlite" else f"ARRAY[{', '.join(_literal(kind, item) for item in value)}]"
        )
    if isinstance(value, int | float | Decimal):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _split(types: str) -> list[str]:
    """Return the types of a list of them, whose own commas stand in parentheses."""
    found, depth = [""], 0
    for char in types:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            found.append("")
        else:
            found[-1] += char
    return found


def parquet(folder: Path, *, sets: str = "all") -> Path:
    """Write the shop as Parquet files and a spec of these."""
    us = pa.timestamp("us", "UTC")
    types: dict[str, list[pa.DataType]] = {
        "displays": [
            pa.int64(),
            us,
            pa.string(),
            pa.float64(),
            pa.string(),
            pa.decimal128(12, 2),
            pa.list_(pa.string()),
        ],
        "sales": [pa.int64(), us, pa.decimal128(10, 2)],
        "candidates": [pa.int64(), pa.string(), pa.float64()],
    }
    folder.mkdir()
    for table, names in NAMES.items():
        rows = sorted(ROWS[table], key=lambda row: (row[1], row[0]) if table != "candidates" else row[:2])
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types[table], strict=True)]
        pq.write_table(pa.table(arrays, names=list(names)), folder / f"{table}.parquet")
    sections: dict[str, Any] = {**SPEC, **SETS[sets], "source": {"files": "displays.parquet"}}
    sold = {"source": {"files": "sales.parquet", "display": "id"}}
    sections["conversion"] = {**sections["conversion"], **sold}
    if "candidates" in sections:
        sections["candidates"] = {**sections["candidates"], "files": "candidates.parquet"}
    return write_spec(folder, **sections)
