"""What a database or a spec of one refuses: in one line, without a secret, and with nothing written."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from evaluator.datasets import convert, validate
from evaluator.errors import DataError, SourceError, SpecError
from evaluator.reading.sources.databases import ENGINES, RefusedQueryError, _limited, without_secrets
from evaluator.reading.spec import read_spec
from tests.cli.runs import evaluate
from tests.reading.databases import PASSWORD, QUOTED, SECRET, VARIABLE, N, Shop, as_admin
from tests.reading.sources import write_spec

ASKED = {"files": None, "database": "sqlite", "uri_env": "SHOP_DB", "query": "SELECT * FROM displays"}
URI = f"postgresql://shop:{QUOTED}@host/shop"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"uri_env": URI}, "uri_env is the name of an environment variable"),
        ({"uri_env": SECRET + " "}, "uri_env is the name of an environment variable"),
        ({"database": URI}, "database is one of postgresql, sqlite and duckdb"),
        ({"database": "mysql"}, "expected 'postgresql', 'sqlite' or 'duckdb', got 'mysql'"),
        ({"uri": URI}, "unknown key `$.source.uri`"),
        ({"password": SECRET}, "unknown key `$.source.password`"),
        ({"uri_env": None}, "database = 'sqlite' needs uri_env"),
        ({"query": None}, "database = 'sqlite' needs query"),
        ({"database": None}, "give exactly one of files, delta, iceberg and database"),
        ({"files": "log.csv"}, "give exactly one of files, delta, iceberg and database"),
        ({"files": "log.csv", "database": None}, "uri_env goes with database"),
        ({"format": "csv"}, "format goes with files"),
        ({"header": False, "columns": ["a"]}, "header goes with files"),
        ({"parameters": "x"}, "`$.source.parameters`"),
        ({"parameters": [[1]]}, "`$.source.parameters[0]"),
        ({"parameters": [2**63]}, "`$.source.parameters[0]"),
        ({"query": ""}, "query is empty"),
        ({"query": " -- nothing\n"}, "query is empty"),
        ({"query": "DROP TABLE displays"}, "query begins with DROP: it may only read"),
        ({"query": "/* a\n*/ (insert into x values (1))"}, "query begins with INSERT"),
        ({"query": "VACUUM INTO 'other.db'"}, "query begins with VACUUM"),
        ({"query": "ATTACH 'other.db' AS o"}, "query begins with ATTACH"),
        ({"query": "SELECT '\0'"}, "query holds a character that is none"),
    ],
)
def test_a_spec_says_whole_queries_that_only_read(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        read_spec(write_spec(tmp_path, source={**ASKED, **keys}))
    assert said in str(error.value)
    assert SECRET not in str(error.value)


def test_other_tables_are_checked_alike(tmp_path: Path) -> None:
    source = {"display": "id", "database": "duckdb", "uri_env": "SHOP_DB", "query": "DELETE FROM sales"}
    with pytest.raises(SpecError, match=r"at `\$\.conversion\.source\.query`: query begins with DELETE"):
        read_spec(write_spec(tmp_path, display={"id": "id"}, conversion={"source": source}))


def fails(spec: Path, out: Path, said: str) -> None:
    """Convert as a user does: it says one thing, and never a secret."""
    done = evaluate("datasets", "convert", str(spec), str(out))
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1), done
    assert said in done.err
    with pytest.raises(DataError) as error:
        validate(spec)
    assert SECRET not in done.err + "".join(traceback.format_exception(error.value))
    assert not out.exists()


WRONG = {
    "SELECT * FROM nowhere": "nowhere",
    "SELECT FROM FROM": "syntax error",
    "SELECT 1 AS a, 2 AS a": "two columns are called 'a'",
    "SELECT * FROM displays WHERE 1 = 0": "the log is empty, no rows.",
    "SELECT id FROM displays": "no column ",
    "SELECT 'x": "unterminated",
}


@pytest.mark.parametrize("query", WRONG)
def test_a_wrong_query_is_one_line(shop: Shop, query: str, tmp_path: Path) -> None:
    said = 'unrecognized token: "\'x"' if (shop.kind, query) == ("sqlite", "SELECT 'x") else WRONG[query]
    fails(shop.spec(tmp_path, displays=query), tmp_path / "out", said)


ATTACKS = [
    "SELECT * FROM displays; DROP TABLE displays",
    "SELECT * FROM displays; -- and\n DROP TABLE displays;",
    "SELECT ';' AS id; DROP TABLE displays",
    "WITH x AS (SELECT 1) DELETE FROM displays RETURNING *",
    "WITH x AS (DELETE FROM displays RETURNING *) SELECT * FROM x",
    "SELECT 1) , x AS (SELECT 2",
    "SELECT * FROM displays; COPY displays TO 'stolen.csv'",
    "SELECT * FROM displays; VACUUM INTO 'stolen.csv'",
    "SELECT * FROM displays; ATTACH 'stolen.csv' AS s",
]


@pytest.mark.parametrize("query", ATTACKS)
def test_nothing_can_be_written(shop: Shop, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fails(shop.spec(tmp_path, displays=query), tmp_path / "out", "query of [source]")
    assert shop.run("SELECT count(*) FROM displays")[0][0] == N
    assert not list(tmp_path.rglob("stolen*"))


@pytest.mark.parametrize(
    "statement", ["DROP TABLE displays", "INSERT INTO candidates SELECT * FROM candidates", "UPDATE displays SET p = 1"]
)
def test_the_transaction_itself_writes_nothing(shop: Shop, statement: str) -> None:
    from adbc_driver_manager import dbapi

    engine = ENGINES[shop.kind]
    with dbapi.connect(**engine.driver(shop.uri), autocommit=True) as connection:
        for begin in engine.begin:
            with connection.cursor() as cursor:
                cursor.execute(begin)
        with connection.cursor() as cursor, pytest.raises(dbapi.Error, match=r"(?i)read-?only"):
            cursor.execute(statement)
    assert shop.run("SELECT count(*), sum(p) > 100 FROM displays")[0][:1] == (N,)


def test_a_function_that_writes_is_stopped(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    for body in ("DROP TABLE displays", "SET transaction_read_only = off; DROP TABLE displays"):
        shop.run(f"CREATE OR REPLACE FUNCTION wipe() RETURNS int LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN 1; END $$")
        with pytest.raises(SourceError, match=r"read-only|read-write mode must be set before any query"):
            convert(shop.spec(tmp_path, displays="SELECT *, wipe() FROM displays"), tmp_path / "out")
        assert shop.run("SELECT count(*) FROM displays")[0][0] == N


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM enable_profiling(save_location='mine.txt', output_format='query_tree')",
        "SELECT * FROM enable_logging(storage='file', storage_path='mine.txt')",
        "SELECT * FROM enable_logging(storage='file', storage_config={'path': 'mine.txt'})",
        "SELECT * FROM read_text('mine.txt')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "SELECT * FROM sniff_csv('mine.txt')",
        "SELECT * FROM glob('*')",
        "FROM 'mine.txt'",
    ],
)
def test_a_select_of_duckdb_touches_no_other_file(
    shop_of: Callable[[str], Shop], query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("mine")
    spec = shop_of("duckdb").spec(tmp_path, displays=query)
    before = sorted(tmp_path.rglob("*"))
    fails(spec, tmp_path / "out", "query of [source]: the database says: ")
    assert Path("mine.txt").read_text() == "mine"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "role", ["superuser", "pg_write_server_files", "pg_execute_server_program", "pg_signal_backend"]
)
def test_roles_that_no_transaction_holds_back_ask_only_by_the_word_of_the_environment(
    shop_of: Callable[[str], Shop], role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of("postgresql")
    admin = Shop("postgresql", as_admin(shop.uri))
    if role == "superuser":
        monkeypatch.setenv(VARIABLE, admin.uri)
    else:
        admin.run(f"GRANT {role} TO shop")
    try:
        said = "its user is superuser" if role == "superuser" else f"its user is in the role {role}"
        fails(shop.spec(tmp_path), tmp_path / "out", said)
        monkeypatch.setenv("EVALUATE_ALLOW_ROLES", "pg_monitor")
        fails(shop.spec(tmp_path), tmp_path / "out", f"allow this one by EVALUATE_ALLOW_ROLES={role}")
        monkeypatch.setenv("EVALUATE_ALLOW_ROLES", f"pg_monitor, {role}")
        assert len(convert(shop.spec(tmp_path), tmp_path / "out").log) == N
    finally:
        if role != "superuser":
            admin.run(f"REVOKE {role} FROM shop")


SLOW = {
    "postgresql": "SELECT d.* FROM displays d, generate_series(1, 1000000000) x WHERE x = -1",
    "duckdb": "SELECT d.* FROM displays d, range(100000) x, range(100000) y WHERE x.range * y.range = -1",
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_query_is_cancelled_after_its_time(
    shop_of: Callable[[str], Shop], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(kind)
    monkeypatch.setenv("EVALUATE_QUERY_TIMEOUT", "300ms")
    fails(shop.spec(tmp_path, displays=SLOW[kind]), tmp_path / "out", "it took longer than 300ms, the limit")
    monkeypatch.setenv("EVALUATE_QUERY_TIMEOUT", "soon")
    fails(shop.spec(tmp_path), tmp_path / "out", "EVALUATE_QUERY_TIMEOUT")


def test_a_query_is_told_to_end_until_it_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes between two statements of a query is heard by neither."""
    told, heard = [], Event()

    class Connection:
        def adbc_cancel(self) -> None:
            told.append(1)
            if len(told) == 3:
                heard.set()

    monkeypatch.setenv("EVALUATE_QUERY_TIMEOUT", "10ms")

    def ask() -> None:
        with _limited(ENGINES["postgresql"], Connection()) as refuse_late, refuse_late():
            assert heard.wait(60)
            raise RuntimeError("canceled")

    with pytest.raises(RefusedQueryError, match="it took longer than 10ms, the limit"):
        ask()
    before = len(told)
    time.sleep(0.3)
    assert len(told) == before  # the next query is told nothing


def test_a_query_of_a_client_that_is_gone_is_ended(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    spec = shop.spec(tmp_path, displays=SLOW["postgresql"])
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'FETCH%'"
    with subprocess.Popen([sys.executable, "-m", "evaluator", "datasets", "validate", str(spec)]) as client:
        wait_until(lambda: shop.run(running)[0][0] == 1)
        client.kill()
    wait_until(lambda: shop.run(running)[0][0] == 0)


def wait_until(holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until something holds, a minute at most."""
    patience = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.2)


def test_postgresql_that_cannot_be_reached_is_one_line_without_its_uri(
    shop_of: Callable[[str], Shop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of("postgresql")
    host = shop.uri.partition("host=")[2]
    no_uri = "it holds no URI that PostgreSQL takes"
    for uri, said in {
        shop.uri.replace(QUOTED, f"{SECRET}-wrong"): "the server refuses its user or password",
        shop.uri.replace(f":{QUOTED}", ""): "the server refuses its user or password",
        shop.uri.replace("shop:", f"{SECRET}:"): "the server refuses its user or password",
        shop.uri.replace("/postgres?", f"/{SECRET}?"): "the server has no such database",
        shop.uri.replace(host, f"/tmp/{SECRET}"): "no server answers there",
        f"postgresql://shop:{SECRET}@127.0.0.1:1/shop": "no server answers there",
        f"postgresql://shop:{SECRET}@{SECRET}.invalid/shop": "no server answers there",
        f"postgresql+psycopg2://shop:{SECRET}@host/shop": no_uri,
        f"mysql://shop:{SECRET}@host/shop": no_uri,
        f"postgresql://shop:{SECRET}%zz@host/shop": no_uri,
        f"postgresql://shop@host:{SECRET}/shop": no_uri,
        f"postgresql://shop@host/shop?{SECRET}=1": no_uri,
        SECRET: no_uri,
    }.items():
        monkeypatch.setenv(VARIABLE, uri)
        fails(shop.spec(tmp_path), tmp_path / "out", f"query of [source]: SHOP_DB: {said}.")


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_that_is_none_is_one_line(
    shop_of: Callable[[str], Shop], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(kind)
    text = tmp_path / SECRET / "text"
    text.write_text("no database" * 1000)
    no_database = {"sqlite": "file is not a database", "duckdb": "SHOP_DB: its file is no database of DuckDB"}
    for uri, said in {
        str(tmp_path / SECRET / "nowhere"): "SHOP_DB: there is no such file",
        str(tmp_path / SECRET): "SHOP_DB: there is no such file",
        ":memory:": "SHOP_DB: there is no such file",
        str(text): no_database[kind],
    }.items():
        monkeypatch.setenv(VARIABLE, uri)
        fails(shop.spec(tmp_path), tmp_path / "out", said)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_is_named_by_its_path_or_by_a_uri(
    shop_of: Callable[[str], Shop], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(kind)
    strange = Path(shop.uri).rename(tmp_path / f"a b?c%20#{kind}.db")
    for number, uri in enumerate([str(strange), strange.name, f"{kind}:///{strange}", f"{kind}:///{strange.name}"]):
        monkeypatch.setenv(VARIABLE, uri)
        monkeypatch.chdir(tmp_path)
        assert len(convert(shop.spec(tmp_path), tmp_path / f"out-{number}").log) == N
    plain = strange.rename(tmp_path / "plain.db")
    monkeypatch.setenv(VARIABLE, f"file:{plain}?mode=rwc")
    assert len(convert(shop.spec(tmp_path), tmp_path / "out").log) == N


def test_a_duckdb_that_is_open_to_write_is_one_line(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("duckdb")
    holds = f"import duckdb; d = duckdb.connect({shop.uri!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        fails(shop.spec(tmp_path), tmp_path / "out", "SHOP_DB: another program has it open to write")
        other.communicate("\n")


def test_a_variable_that_is_not_set_is_one_line(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    fails(shop.spec(tmp_path), tmp_path / "out", "the environment variable SHOP_DB is not set. Hint: export SHOP_DB=")


@pytest.mark.parametrize("module", ["adbc_driver_manager", "adbc_driver_{}"])
def test_a_driver_that_is_not_installed_is_one_line(
    shop: Shop, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module.format(shop.kind), None)
    spec = shop.spec(tmp_path)
    with pytest.raises(SourceError) as error:
        convert(spec, tmp_path / "out")
    assert str(error.value) == (
        f"query of [source]: {shop.kind} is read by {ENGINES[shop.kind].package}, which is not installed. "
        "Hint: pip install 'delayed-replay[sql]'"
    )


def test_a_query_that_is_cancelled_is_one_line(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    slow = "SELECT *, set_config('statement_timeout', '50', true), pg_sleep(0) FROM displays"
    shop.run("ALTER ROLE shop SET statement_timeout = 100")
    try:
        fails(shop.spec(tmp_path, displays=slow.replace("pg_sleep(0)", "pg_sleep(1)")), tmp_path / "out",
              "the database says: canceling statement due to statement timeout")  # fmt: skip
    finally:
        shop.run("ALTER ROLE shop RESET statement_timeout")


@pytest.mark.parametrize(
    "uri", [URI, f"host=h password={PASSWORD} user=x", f"password={PASSWORD}", f"postgresql://h/d?password={QUOTED}"]
)
def test_secrets_are_cut_out_of_what_a_database_says(uri: str) -> None:
    for said in (uri, PASSWORD):
        assert without_secrets(f"cannot read {said} there", uri) == "cannot read *** there"
    assert without_secrets("no such table", uri) == "no such table"
