"""Tables of Delta and Iceberg: the log of their rows, pinned to one state, and rows that are known by their keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from evaluator import datasets, load
from evaluator.errors import DataError, LogError, OutputExistsError, SourceError
from evaluator.log import Log
from evaluator.reading import spec_tables
from evaluator.reading.resolve import read, sources
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.files import staging
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec_sections import Table
from evaluator.reading.spec_tables import SpecTable, find_parts
from tests.reading.lakes import KINDS, STATE, append, current, iceberg_table, place, rows_of
from tests.reading.sources import write_spec
from tests.reading.test_column_types import ROLES, TYPES
from tests.reading.test_column_types import source as source_of_type

N = 90
START = datetime(2026, 3, 1, tzinfo=UTC)


def displays() -> pa.Table:
    times = [START + timedelta(minutes=i // 2, microseconds=i % 2) for i in range(N)]
    return pa.table({
        "id": pa.array(range(1000, 1000 + N)),
        "t": pa.array(times, pa.timestamp("us", "UTC")),
        "ad": [("red", "grün", "b c")[i % 3] for i in range(N)],
        "p": [0.25 + (i % 3) / 8 for i in range(N)],
        "paid": pa.array([Decimal(i) / 4 for i in range(N)], pa.decimal128(12, 2)),
        "day": [f"2026-03-0{1 + i // 30}" for i in range(N)],
        "place": [None if i % 7 == 0 else f"shop {i % 5}" for i in range(N)],
        "who": [["red", "grün", "b c"][: 1 + (i % 3)] + (["b c"] if i % 3 == 0 else []) for i in range(N)],
    })  # fmt: skip


def sales() -> pa.Table:
    rows = [i for i in range(N) if i % 4 == 0]
    sold = [START + timedelta(minutes=i // 2 + i % 50, seconds=1) for i in rows]
    value = pa.array([Decimal(i) / 8 for i in rows], pa.decimal128(12, 3))
    return pa.table({
        "sale": pa.array(rows), "of": pa.array([1000 + i for i in rows]),
        "at": pa.array(sold, pa.timestamp("us", "UTC")), "gain": value,
    })  # fmt: skip


def candidates() -> pa.Table:
    rows = [(1000 + i, ad, (i + j) / 16) for i in range(N) for j, ad in enumerate(("red", "grün", "b c"))]
    return pa.table({"of": [r[0] for r in rows], "ad": [r[1] for r in rows], "x": [r[2] for r in rows]})


TABLES = {"log": displays, "sales": sales, "choices": candidates}
SECTIONS: dict[str, dict[str, Any]] = {
    "time": {"unit": "datetime"},
    "display": {"id": "id", "propensity": "p", "cost": "paid"},
    "context": {"columns": ["place", "day"], "dimensions": 32},
    "keep": {"day": "day"},
}


def spec_of(folder: Path, kind: str, *, sets: str = "lists", **state: int) -> Path:
    at = {
        name: {"files": f"{name}.parquet"}
        if kind == "parquet"
        else place(kind, name, **(state if name == "log" else {}))
        for name in TABLES
    }
    at = {name: {k: v for k, v in of.items() if v is not None} for name, of in at.items()}
    own = {"display": {"eligible": "who"}} if sets == "lists" else {}
    named = (
        {"candidates": {**at["choices"], "display": "of", "action": "ad", "features": ["x"]}} if sets != "lists" else {}
    )
    sections = {**SECTIONS, **named, "display": {**SECTIONS["display"], **own.get("display", {})}}
    return write_spec(
        folder, source={"files": None, **at["log"]},
        conversion={"time": "at", "value": "gain", "key": ["sale"], "source": {**at["sales"], "display": "of"}},
        **sections,
    )  # fmt: skip


def write_all(folder: Path, kind: str, *, commits: int = 12) -> None:
    for name, of in TABLES.items():
        if kind == "parquet":
            pq.write_table(of(), folder / f"{name}.parquet")
        else:
            append(kind, folder, name, of(), commits=commits if name == "log" else 3)


def everything(log: Log) -> list[Any]:
    meta = log.with_meta(fingerprint="", notes=()).meta
    return [log.displays.to_pydict(), log.conversions.to_pydict(), log.actions.to_pydict(), meta]


def parts(folder: Path, **at: Any) -> list[TablePart]:
    of = SpecTable(Table(**{k: v for k, v in at.items() if v is not None}), ("id",), "source")
    with staging(None) as place, Databases() as databases:
        return find_parts(of, folder, staging=place, databases=databases)


def ids(part: TablePart) -> list[int]:
    return list(part.scan(["id"]).collect(engine="streaming")["id"])


@pytest.mark.parametrize("sets", ["lists", "candidates"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_are_the_same_log_as_in_a_file(tmp_path: Path, kind: str, sets: str) -> None:
    for of in ("parquet", kind):
        write_all(tmp_path, of)
    of_files = load(spec_of(tmp_path, "parquet", sets=sets))
    found = load(spec_of(tmp_path, kind, sets=sets))
    assert len(found) == N
    assert found.conversions.num_rows == 23
    assert everything(found) == everything(of_files)
    limited = load(tmp_path / "spec.toml", limit=17)
    assert everything(limited) == everything(load(spec_of(tmp_path, "parquet", sets=sets), limit=17))
    assert len(found.meta.notes) == 2 + (sets == "candidates")
    assert found.meta.notes[0].startswith(f"{kind} table {tmp_path / place(kind, 'log')[kind]} at {STATE[kind]} ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_calendar_and_outcomes_lie_there_too(tmp_path: Path, kind: str) -> None:
    log, clicks = displays(), pa.table({"who": [1000, 1001, 1080], "at": displays()["t"].take([3, 4, 81])})
    ends = pa.array([None, None, START + timedelta(days=2)], pa.timestamp("us", "UTC"))
    flights = pa.table({"ad": ["red", "grün", "b c"], "ends": ends})
    found = []
    for of in ("parquet", kind):
        at: dict[str, dict[str, Any]] = {}
        for name, rows in (("log", log), ("clicks", clicks), ("flights", flights)):
            at[name] = {"files": f"{name}.parquet"} if of == "parquet" else place(of, name)
            at[name] = {key: said for key, said in at[name].items() if said is not None}
            if of == "parquet":
                pq.write_table(rows, tmp_path / f"{name}.parquet")
            else:
                append(of, tmp_path, name, rows, commits=2)
        found.append(load(write_spec(
            tmp_path, source={"files": None, **at["log"]}, time={"unit": "datetime"}, display={"id": "id"},
            conversion={"time": "t"}, calendar={**at["flights"], "action": "ad", "until": "ends"},
            outcomes={"click": {"time": "at", "source": {**at["clicks"], "display": "who"}}},
        )))  # fmt: skip
    assert everything(found[1]) == everything(found[0])
    assert found[1].outcomes.to_pydict() == found[0].outcomes.to_pydict()
    assert found[1].outcomes.num_rows == 3
    assert len(found[1].meta.notes) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_small_chunks_are_the_same_log(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path, kind)
    whole = load(spec_of(tmp_path, kind))
    monkeypatch.setattr("evaluator.reading.frames.CHUNK_ROWS", 7)
    assert everything(load(tmp_path / "spec.toml")) == everything(whole)


def test_columns_of_partitions_are_columns(tmp_path: Path) -> None:
    write_all(tmp_path, "parquet")
    of_files = load(spec_of(tmp_path, "parquet"))
    append("delta", tmp_path, "log", displays(), commits=30, partition_by=["day", "ad"])
    append("delta", tmp_path, "sales", sales())
    assert list((tmp_path / "log").glob("day=*/ad=*"))
    assert everything(load(spec_of(tmp_path, "delta"), sort=True)) == everything(of_files)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_as_they_were_committed(tmp_path: Path, kind: str) -> None:
    rows = pa.table({"id": range(40)})
    append(kind, tmp_path, "log", rows, commits=40)
    (part,) = parts(tmp_path, **place(kind, "log"))
    assert ids(part) == list(range(40))
    assert ids(part) == list(range(40))
    if kind == "delta":  # of which the log lists other files first
        DeltaTable(tmp_path / "log").create_checkpoint()
    (again,) = parts(tmp_path, **place(kind, "log"))
    assert ids(again) == list(range(40))
    assert [frame["id"][0] for frame in again.scan(["id"]).head(12).collect_batches(chunk_size=5)] == [0, 5, 10]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_grows_is_read_as_it_was_opened(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path, kind, commits=3)
    before = load(spec_of(tmp_path, kind))
    whole = spec_tables.read_tables

    def read_later(*given: Any, **options: Any) -> Any:
        append(kind, tmp_path, "log", displays().slice(0, 5))
        return whole(*given, **options)

    monkeypatch.setattr(spec_tables, "read_tables", read_later)
    found = load(tmp_path / "spec.toml")
    assert everything(found) == everything(before)
    assert (found.meta.fingerprint, found.meta.notes) == (before.meta.fingerprint, before.meta.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_a_fingerprint_and_reads_the_same_rows_again(tmp_path: Path, kind: str) -> None:
    append(kind, tmp_path, "sales", sales())
    append(kind, tmp_path, "log", displays().slice(0, 50))
    options: dict[str, Any] = {"on_error": "quarantine", "quarantine_at_most": 1}  # conversions without displays yet
    first, at = load(spec_of(tmp_path, kind), **options), current(kind, tmp_path, "log")
    assert load(tmp_path / "spec.toml", **options).meta == first.meta
    append(kind, tmp_path, "log", displays().slice(50))
    later = load(tmp_path / "spec.toml", **options)
    assert len(later) == N
    assert later.meta.fingerprint != first.meta.fingerprint
    pinned = load(spec_of(tmp_path, kind, **{STATE[kind]: at}), **options)
    assert pinned.displays.equals(first.displays)
    assert pinned.meta.fingerprint == first.meta.fingerprint
    assert f"at {STATE[kind]} {at}" in pinned.meta.notes[0]


def test_deleted_rows_of_iceberg_are_not_read_and_columns_keep_their_new_names(tmp_path: Path) -> None:
    append("iceberg", tmp_path, "log", pa.table({"old": range(6)}), commits=2)
    with iceberg_table(tmp_path, "log") as table:
        table.delete("old == 1")
        with table.update_schema() as update:
            update.rename_column("old", "id")
        table.append(pa.table({"id": [9]}))
    (part,) = parts(tmp_path, iceberg="ns/log")
    assert sorted(ids(part)) == [0, 2, 3, 4, 5, 9]


def test_an_iceberg_table_is_named_by_folder_file_or_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append("iceberg", tmp_path, "log", pa.table({"id": range(6)}), commits=3)
    with iceberg_table(tmp_path, "log") as table:
        location = table.metadata_location
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG.config", {
        "catalog": {"tests": {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}},
    })  # fmt: skip
    digests = []
    for name in ("ns/log", location, location.removeprefix("file://"), "tests.ns.log"):
        (part,) = parts(tmp_path, iceberg=name)
        assert ids(part) == list(range(6))
        digests.append(part.state())
    assert len(set(digests)) == 1
    (tmp_path / "ns" / "log" / "metadata" / "version-hint.text").write_text(Path(location).name)
    assert ids(parts(tmp_path, iceberg="ns/log")[0]) == list(range(6))
    for name, said in (("tests.ns.lag", "does not exist"), ("yours.ns.log", "PYICEBERG_CATALOG__YOURS__URI")):
        with pytest.raises(SourceError, match=rf"^{name}: cannot be opened: .*{said}"):
            parts(tmp_path, iceberg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_break_a_rule_are_named_by_their_keys(tmp_path: Path, kind: str) -> None:
    bad, late = displays(), sales()
    bad = bad.set_column(3, "p", [[1.5 if i == 40 else -1.0 if i == 41 else 0.5 for i in range(N)]])
    late = late.set_column(1, "of", [[7 if i == 3 else of for i, of in enumerate(late["of"].to_pylist())]])
    for name, rows in (("log", bad), ("sales", late)):
        append(kind, tmp_path, name, rows, commits=4)
    spec = spec_of(tmp_path, kind)
    where = str(tmp_path / place(kind, "log")[kind])
    with pytest.raises(DataError, match=rf"negative propensity \({where} id = 1041: '-1\.0'\).* id = 1040: '1\.5'"):
        load(spec)
    found = read(spec, on_error="quarantine", quarantine_at_most=0.5)
    named = {(row["file"], row["key"], row["value"]) for row in found.quarantine.to_pylist()}
    of = str(tmp_path / place(kind, "sales")[kind])
    assert {(where, "id = 1040", "1.5"), (where, "id = 1041", "-1.0"), (of, "of = 7, sale = 12", "7")} <= named
    assert all(row["line"] is None for row in found.quarantine.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_table_without_an_id_are_named_by_their_numbers(tmp_path: Path, kind: str) -> None:
    rows = pa.table({"t": [1, 2, 3], "ad": ["a", "b", None], "sold": pa.array([4, None, None], pa.int64())})
    append(kind, tmp_path, "log", rows, commits=3)
    with pytest.raises(LogError, match=r"log row 3: None"):
        load(write_spec(tmp_path, source=place(kind, "log")))
    (found,) = read(tmp_path / "spec.toml", on_error="quarantine", quarantine_at_most=0.5).quarantine.to_pylist()
    assert (found["line"], found["key"]) == (3, None)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_shown_checked_and_converted(tmp_path: Path, kind: str) -> None:
    write_all(tmp_path, kind)
    spec = spec_of(tmp_path, kind)
    assert f"{kind} table" in datasets.show(spec)["log"]["notes"][0]
    assert datasets.validate(spec)["ok"]
    converted = datasets.convert(spec, tmp_path / "out").log
    assert everything(load(tmp_path / "out")) == everything(load(spec))
    assert converted.meta.notes == load(spec).meta.notes
    datasets.convert(spec, tmp_path / "out", overwrite=True)
    with pytest.raises(OutputExistsError):
        datasets.convert(spec, tmp_path / place(kind, "log")[kind], overwrite=True)
    assert len(load(spec)) == N
    assert sources(spec) == [spec, *(tmp_path / place(kind, name)[kind] for name in ("log", "sales"))]


@pytest.mark.parametrize("kind", KINDS)
def test_files_can_be_read_in_place_of_a_table(tmp_path: Path, kind: str) -> None:
    write_all(tmp_path, kind)
    pq.write_table(displays().slice(0, 44), tmp_path / "some.parquet")
    found = load(spec_of(tmp_path, kind), path=tmp_path / "some.parquet", on_error="quarantine", quarantine_at_most=1)
    assert len(found) == 44


@pytest.fixture(scope="module", params=KINDS)
def typed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, dict[str, str]]:
    """Write a table for each type that a table of a kind may hold, and the rows that it gave to a file beside it."""
    kind, folder, tables = request.param, tmp_path_factory.mktemp("types"), {}
    for number, (name, column) in enumerate(TYPES.items()):
        source_of_type(folder, column)
        try:
            append(kind, folder, f"log{number}", pq.read_table(folder / "log.parquet"))
        except Exception:  # a type that such tables do not have
            continue
        tables[name] = f"log{number}"
        pq.write_table(rows_of(kind, folder, tables[name]), folder / f"{tables[name]}.parquet")
    return kind, folder, tables


# What a role makes of a type is not the lake's: one of each way to read a cell.
@pytest.mark.parametrize("role", ["id", "time", "category", "value"])
def test_every_type_is_what_it_is_in_a_file(typed: tuple[str, Path, dict[str, str]], role: str) -> None:
    kind, folder, tables = typed
    assert len(tables) >= 10
    for name, table in tables.items():
        of_file = _log_or_error(write_spec(folder, source={"files": f"{table}.parquet"}, **ROLES[role]))
        assert _log_or_error(write_spec(folder, source=place(kind, table), **ROLES[role])) == of_file, name


def _log_or_error(spec: Path) -> Any:
    try:
        return everything(load(spec))
    except DataError as error:
        return type(error)
