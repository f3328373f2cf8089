"""Tables that a database answers with: the same log as from files, to the bit, whichever database it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluator.datasets import convert, load, show, validate
from evaluator.errors import DataError, LogError, SourceError, UsageError
from evaluator.log.fingerprint import content_hash
from evaluator.reading.canonical import open_canonical
from evaluator.reading.sources.databases import Databases
from tests.reading.databases import DISPLAYS, QUERIES, SALES, SETS, VARIABLE, N, Shop, parquet


@pytest.mark.parametrize("sets", SETS)
def test_the_same_rows_give_the_same_log_to_the_bit(shop: Shop, sets: str, tmp_path: Path) -> None:
    log = convert(shop.spec(tmp_path, sets=sets), tmp_path / "asked").log
    same = convert(parquet(tmp_path / "files", sets=sets), tmp_path / "read").log
    assert (len(log), log.conversions.num_rows) == (N, len(SALES))
    for name in ("displays", "events", "actions"):
        assert (tmp_path / f"asked/{name}.parquet").read_bytes() == (tmp_path / f"read/{name}.parquet").read_bytes()
    assert log.meta == replace(same.meta, fingerprint=log.meta.fingerprint)
    # So that all databases have one.
    assert log.meta.fingerprint == content_hash(same.with_meta(fingerprint=""))


def test_the_fingerprint_is_of_the_rows_and_stands_in_the_folder(shop: Shop, tmp_path: Path) -> None:
    spec = shop.spec(tmp_path)
    known = convert(spec, tmp_path / "one").log.meta.fingerprint
    assert known == convert(spec, tmp_path / "two").log.meta.fingerprint
    assert known == open_canonical(tmp_path / "one").meta.fingerprint
    assert known == show(spec)["log"]["fingerprint"]
    assert validate(tmp_path / "one")["ok"]
    shop.run("UPDATE sales SET amount = amount + 1 WHERE id = (SELECT min(id) FROM sales)")
    assert known != convert(spec, tmp_path / "three").log.meta.fingerprint


def test_nothing_but_the_log_stays(shop: Shop, tmp_path: Path) -> None:
    convert(shop.spec(tmp_path), tmp_path / "out")
    assert {f.name for f in (tmp_path / "out").iterdir()} == {
        "displays.parquet", "events.parquet", "actions.parquet", "meta.json",
    }  # fmt: skip


def test_all_that_reads_in_memory_says_to_convert_first(shop: Shop, tmp_path: Path) -> None:
    spec = shop.spec(tmp_path)
    with pytest.raises(UsageError) as error:
        load(spec)
    assert error.value.remedy == f"convert it first: evaluate datasets convert {spec} mine-log."
    # Also where the displays lie in files, and their conversions in a database.
    mixed = shop.spec(tmp_path, source={"files": "displays.parquet", "database": None, "uri_env": None, "query": None})
    with pytest.raises(UsageError, match=r"\[conversion.source\] is a query"):
        load(mixed)
    parquet(tmp_path / "files")
    (tmp_path / "files/displays.parquet").rename(tmp_path / "displays.parquet")
    assert len(convert(mixed, tmp_path / "out").log) == N


def test_a_path_takes_no_query_s_place(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"`path` names other files than the spec, where \[source\] of mine is"):
        convert(shop.spec(tmp_path), tmp_path / "out", path="x.parquet")


def test_the_first_displays_are_those_of_the_query(shop: Shop, tmp_path: Path) -> None:
    log = convert(shop.spec(tmp_path), tmp_path / "out", limit=30).log
    assert len(log) == 30
    assert log.column("time").tolist() == sorted(int(row[1].timestamp() * 1_000_000) for row in DISPLAYS)[:30]


PLACEHOLDERS = {"postgresql": ("$1", "$2", "$3", "$4"), "duckdb": ("$1", "$2", "$3", "$4"), "sqlite": ("?",) * 4}


def test_values_are_bound_and_never_pasted(shop: Shop, tmp_path: Path) -> None:
    a, b, c, d = PLACEHOLDERS[shop.kind]
    query = f"SELECT * FROM displays WHERE ad <> {a} AND id > {b} AND p < {c} AND ({d} OR 1 = 0) ORDER BY shown, id"
    given = ["o'blue", 500, 0.75, True]
    spec = shop.spec(tmp_path, source=shop.source(query, *given), sales="SELECT * FROM sales WHERE 1 = 0")
    log = convert(spec, tmp_path / "out").log
    assert sorted(log.labels) == ["green", "red"]
    assert len(log) == sum(row[2] != "o'blue" and row[0] > 500 for row in DISPLAYS)
    attack = "x'; DROP TABLE displays; --"
    spec = shop.spec(tmp_path, source=shop.source(query.replace("<>", "="), attack, 500, 0.75, True))
    with pytest.raises(LogError, match="the log is empty, no rows"):
        convert(spec, tmp_path / "none")
    assert shop.run("SELECT count(*) FROM displays")[0][0] == N


def test_rows_that_break_a_rule_are_named_by_their_keys(shop: Shop, tmp_path: Path) -> None:
    shop.run("UPDATE displays SET p = 1.5 WHERE id = 17", "UPDATE sales SET id = 11 WHERE id = 10")
    wrong = [row[0] for row in SALES].count(10)
    shop.run("INSERT INTO sales VALUES (12, '2026-02-03 00:00:00+00', 2)")
    with pytest.raises(DataError) as error:
        convert(shop.spec(tmp_path), tmp_path / "out")
    assert "(query of [source] id = 17: '1.5')" in str(error.value)
    log = convert(shop.spec(tmp_path), tmp_path / "out", on_error="quarantine")
    found = log.quarantine.to_pylist()
    assert {(row["file"], row["key"], row["column"]) for row in found} >= {
        ("query of [source]", "id = 17", "p"),
        ("query of [conversion.source]", "id = 12", "id"),
    }
    assert sum(row["key"] == "id = 11" for row in found) == wrong
    assert pq.read_table(tmp_path / "out/quarantine.parquet").to_pylist() == found


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_all_tables_are_of_one_moment(shop_of: Callable[[str], Shop], kind: str) -> None:
    shop = shop_of(kind)
    if kind == "sqlite":
        shop.run("PRAGMA journal_mode = wal")
    with Databases() as databases:
        asked = (shop.kind, VARIABLE, QUERIES["displays"], ())
        before = sum(batch.num_rows for batch in databases.answer(*asked, name="x"))
        shop.run("INSERT INTO sales VALUES (12, '2026-02-03 00:00:00+00', 2)")
        asked = (shop.kind, VARIABLE, QUERIES["sales"], ())
        sales = sum(batch.num_rows for batch in databases.answer(*asked, name="x"))
    assert (before, sales) == (N, len(SALES))
    assert shop.run("SELECT count(*) FROM sales")[0][0] == len(SALES) + 1


MEMORY = """
import resource, sys
from pathlib import Path
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.queries import ask
from evaluator.reading.sources.files import staging
from evaluator.reading.spec_sections import Table

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def rows(n, width):
    query = "SELECT g AS id, repeat(md5(g::text), $2::int) AS text FROM generate_series(1, $1::int) AS g"
    table = Table(database="postgresql", uri_env="SHOP_DB", query=query, parameters=[n, width])
    with staging(None) as place, Databases() as databases:
        part = ask(table, "source", key=(), staging=place, databases=databases)
        return part.scan(["id"]).collect().height

assert rows(100_000, 10) == 100_000
before = peak()
assert rows(600_000, 10) == 600_000
assert rows(20_000, 500) == 20_000
print(peak() - before)
"""


def test_an_answer_is_never_in_memory_as_a_whole(shop_of: Callable[[str], Shop]) -> None:
    shop_of("postgresql")
    said = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    # The answers take 192 MB and 320 MB.
    assert int(said) < 190


def test_a_server_that_goes_away_is_one_line(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    ending = "SELECT *, pg_terminate_backend(pg_backend_pid()) FROM displays"
    with pytest.raises(SourceError, match=r"^query of \[source\]: the database says: terminating connection"):
        convert(shop.spec(tmp_path, displays=ending), tmp_path / "out")
