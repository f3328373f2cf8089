"""Types of columns that databases have and files have not, or otherwise: the text and the numbers they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.datasets import convert
from evaluator.errors import DataError, LogError, SourceError
from evaluator.log import Log
from tests.reading.databases import N, Shop

# Cells of every type of PostgreSQL and DuckDB: as columns of their own, and as ids.
COLUMNS = {
    "postgresql": {
        "plain": "17::numeric(12, 2)",
        "long": "123456789012345678901234567890.5::numeric",
        "bool": "true",
        "uuid": "'ae453daf-ee49-4975-b078-e234ca03442d'::uuid",
        "json": "'[1, 2]'::json",
        "date": "DATE '2026-01-31'",
        "char": "'ab'::char(5)",
        "enum": "'blue'::mood",
        "null": "NULL",
        "small": "7::smallint",
        "name": "'x'::name",
    },
    "duckdb": {
        "plain": "17::decimal(12, 2)",
        "long": "12345678901234567890123456789012345::hugeint",
        "bool": "true",
        "uuid": "'ae453daf-ee49-4975-b078-e234ca03442d'::uuid",
        "json": "'[1, 2]'::json",
        "date": "DATE '2026-01-31'",
        "char": "'ab'",
        "enum": "'blue'::enum('blue', 'red')",
        "null": "NULL",
        "small": "7::utinyint",
        "name": "'x'",
    },
}
AS_TEXT = {
    "plain": "17", "bool": "true", "uuid": "ae453daf-ee49-4975-b078-e234ca03442d", "json": "[1, 2]",
    "date": "2026-01-31", "char": "ab", "enum": "blue", "null": None, "small": "7", "name": "x",
}  # fmt: skip
LONG = {"postgresql": "123456789012345678901234567890.5", "duckdb": "12345678901234567890123456789012345"}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_every_type_are_the_text_that_the_database_prints(
    shop_of: Callable[[str], Shop], kind: str, tmp_path: Path
) -> None:
    shop = shop_of(kind)
    if kind == "postgresql":
        shop.run("DROP TYPE IF EXISTS mood", "CREATE TYPE mood AS ENUM ('red', 'blue')")
    cells = ", ".join(f"{cell} AS x_{name}" for name, cell in COLUMNS[kind].items())
    spec = shop.spec(tmp_path, displays=f"SELECT *, {cells} FROM displays ORDER BY shown, id",
                     keep={name: f"x_{name}" for name in COLUMNS[kind]})  # fmt: skip
    log = convert(spec, tmp_path / "out").log
    found = {name: log.displays.column(name)[0].as_py() for name in COLUMNS[kind]}
    numbers = {"plain": 17.0, "small": 7, "long": float(LONG[kind])}
    assert found == {**AS_TEXT, **numbers}


def join_on(shop: Shop, folder: Path, displays: str, sales: str, column: str) -> Log:
    """Convert the shop with another column that identifies displays."""
    spec = shop.spec(folder, displays=displays, sales=sales, display={"id": column, "time": "shown", "action": "ad"})
    text = spec.read_text()
    assert text.count('display = "id"') == 1
    spec.write_text(text.replace('display = "id"', f'display = "{column}"'))
    return convert(spec, folder / f"joined on {column}").log


def test_numbers_of_any_length_are_exact_as_ids(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    # Ids that differ in the 31st digit, with zeros at the end on one side alone.
    displays = "SELECT d.*, id / 100 + 1e30 AS long FROM displays d ORDER BY shown, id"
    sales = "SELECT s.*, (id::numeric / 100 + 1e30)::numeric(60, 2) AS long FROM sales s ORDER BY sold, id"
    usual = convert(shop.spec(tmp_path), tmp_path / "usual").log
    assert join_on(shop, tmp_path, displays, sales, "long").conversions.equals(usual.conversions)


def test_numbers_that_are_none_break_their_rule(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    for cell in ("'NaN'", "'Infinity'", "1.5", "'-Infinity'"):
        p = f"CASE id WHEN 17 THEN {cell}::numeric ELSE p::numeric END AS p"
        displays = f"SELECT id, shown, ad, country, basket, {p} FROM displays ORDER BY shown, id"
        with pytest.raises(DataError, match=r"Column 'p': .*propensity.* \(query of \[source\] id = 17: '"):
            convert(shop.spec(tmp_path, displays=displays), tmp_path / "out")


UNREADABLE = {
    ("postgresql", "INTERVAL '1 day'"): "holds an interval, which cannot be read; EXTRACT(EPOCH FROM v) can",
    ("postgresql", "12.50::money"): "holds money, which cannot be read; CAST(v AS numeric) can",
    ("postgresql", "POINT(1, 2)"): "holds point, which cannot be read; CAST(v AS text) can",
    ("postgresql", "'1.2.3.4'::inet"): "holds inet, which cannot be read; CAST(v AS text) can",
    ("postgresql", "ARRAY[1.5]"): "which cannot be read; CAST(v AS text) can",
    ("postgresql", "TIME '12:00'"): "which cannot be read; CAST(v AS text) can",
    ("postgresql", "DATE 'infinity'"): "holds dates beyond any calendar; NULLIF(v, 'infinity')",
    ("postgresql", "'a'::bytea"): "holds Binary",
    ("duckdb", "INTERVAL 1 DAY"): "holds an interval, which cannot be read; EXTRACT(EPOCH FROM v) can",
    ("duckdb", "{'a': 1}"): "which cannot be read; CAST(v AS text) can",
    ("duckdb", "map {'a': 1}"): "which cannot be read; CAST(v AS text) can",
    ("duckdb", "DATE 'infinity'"): "holds dates beyond any calendar; NULLIF(v, 'infinity')",
    ("sqlite", "x'00ff'"): "holds Binary",
}


@pytest.mark.parametrize(("kind", "cell"), UNREADABLE)
def test_a_column_that_cannot_be_read_matters_only_where_it_is_asked_for(
    shop_of: Callable[[str], Shop], kind: str, cell: str, tmp_path: Path
) -> None:
    shop = shop_of(kind)
    displays = f"SELECT d.*, {cell} AS v FROM displays d ORDER BY shown, id"
    assert len(convert(shop.spec(tmp_path, displays=displays), tmp_path / "out").log) == N
    with pytest.raises(SourceError) as error:
        convert(shop.spec(tmp_path, displays=displays, context={"columns": ["v"]}), tmp_path / "none")
    assert str(error.value).startswith("query of [source]: column 'v' holds ")
    assert UNREADABLE[kind, cell] in str(error.value)


def test_a_time_that_is_infinite_is_one_line(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    for cell in ("infinity", "-infinity"):
        shop.run(f"UPDATE displays SET shown = '{cell}' WHERE id = 17")
        with pytest.raises(SourceError, match=r"query of \[source\]: column 'shown' holds times beyond any calendar"):
            convert(shop.spec(tmp_path), tmp_path / "out")


def test_times_without_a_zone_and_dates_are_times(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    for kind in ("postgresql", "duckdb"):
        shop = shop_of(kind)
        # Sales are instants: which zone the displays are of has to be said.
        zone, said = "timezone('UTC', shown)", {"unit": "datetime", "timezone": {"shown": "UTC"}}
        usual = convert(shop.spec(tmp_path), tmp_path / f"{kind}-usual").log
        for name, cell in {"timestamp": zone, "text": f"CAST({zone} AS text)"}.items():
            displays = f"SELECT id, {cell} AS shown, ad, p, country, basket FROM displays ORDER BY 2, 1"
            log = convert(shop.spec(tmp_path, displays=displays, time=said), tmp_path / f"{kind}-{name}").log
            assert log.column("time").tolist() == usual.column("time").tolist()
        displays = f"SELECT id, CAST({zone} AS date) AS shown, ad, p, country, basket FROM displays ORDER BY 2, 1"
        log = convert(shop.spec(tmp_path, displays=displays, time=said), tmp_path / f"{kind}-date").log
        assert set((log.column("time") % 86_400_000_000).tolist()) == {0}


def test_a_column_of_sqlite_has_the_type_of_all_its_cells(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("sqlite")
    # The driver takes the first rows' types for those of all, of which there are none here for a while.
    many = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39999)"
    late = {
        "number": "CASE WHEN i > 30000 THEN i / 4.0 END",
        "mixed": "CASE WHEN i > 30000 THEN 0.5 ELSE i END",
        "text": "CASE WHEN i > 30000 THEN 'x' || i END",
        "words": "CASE WHEN i > 30000 THEN 'x' ELSE i END",
        "none": "NULL",
    }
    cells = ", ".join(f"{cell} AS {name}" for name, cell in late.items())
    displays = f"{many} SELECT i AS id, 1000000 - i AS shown, 'ad' || (i % 2) AS ad, {cells} FROM n ORDER BY shown"
    spec = shop.spec(
        tmp_path, displays=displays, sales="SELECT 1 AS id, 2000000 AS sold, 1.5 AS amount", time={"unit": "s"},
        display={"id": "id", "time": "shown", "action": "ad"}, context={"columns": []},
        keep={name: name for name in late},
    )  # fmt: skip
    log = convert(spec, tmp_path / "out").log
    kept = {name: list(reversed(log.displays.column(name).to_pylist())) for name in late}
    assert log.column("time").tolist() == list(range(960_001, 1_000_001))
    assert kept["number"] == [i / 4 if i > 30_000 else None for i in range(40_000)]
    assert kept["mixed"] == [0.5 if i > 30_000 else float(i) for i in range(40_000)]
    assert kept["text"] == [f"x{i}" if i > 30_000 else None for i in range(40_000)]
    assert kept["words"] == ["x" if i > 30_000 else str(i) for i in range(40_000)]
    assert kept["none"] == [None] * 40_000


def test_cells_that_do_not_fit_are_named(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("sqlite")
    shop.run("UPDATE sales SET amount = 'much' WHERE id = 10", "UPDATE displays SET p = 'half' WHERE id = 17")
    with pytest.raises(LogError, match=r"Column 'p': not a number \(query of \[source\] id = 17: 'half'\)"):
        convert(shop.spec(tmp_path), tmp_path / "out")


def test_eligible_actions_are_arrays_or_json(shop_of: Callable[[str], Shop], tmp_path: Path) -> None:
    shop = shop_of("postgresql")
    usual = convert(shop.spec(tmp_path, sets="listed"), tmp_path / "usual").log
    for name in ("to_json", "to_jsonb"):
        columns = f"id, shown, ad, p, country, basket, {name}(eligible) AS eligible"
        spec = shop.spec(tmp_path, sets="listed", displays=f"SELECT {columns} FROM displays ORDER BY shown, id")
        assert convert(spec, tmp_path / name).log.meta.fingerprint == usual.meta.fingerprint
