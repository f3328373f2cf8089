"""Files are read chunk by chunk, and nothing depends on where one chunk ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.datasets import convert, load, read, validate
from evaluator.errors import DataError, EvaluatorError, LogError, SpecError
from evaluator.log import StoredLog
from evaluator.reading import frames as scan
from evaluator.reading import join_by_id, sorting
from tests.reading.sources import dataset, write_rows, write_spec


@contextmanager
def chunks_of(rows: int, sorted_in_memory: int = sorting.RANGE_ROWS) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK_ROWS", rows)
        patch.setattr(sorting, "RANGE_ROWS", sorted_in_memory)
        yield


HEADER = "t,ad,sold,p,key,click,city,age,id"
CELLS = st.tuples(
    st.sampled_from([*map(str, range(8)), " 3", "x", ""]),
    st.sampled_from(["a", "b", "10", "9", ""]),
    st.sampled_from(["", "", "", "4", "9", "30", "soon", "-1", "-1.0"]),
    st.sampled_from(["0.5", "0.25", "1", "0", "nan"]),
    st.sampled_from(["k", "l"]),
    st.sampled_from("01"),
    st.sampled_from(["Rome", "Oslo", "", '"Aix, 2"']),
    st.sampled_from(["0.5", "1", "1e39"]),
    st.sampled_from(["i", "j", "k", "l", "m", "n", "o", ""]),
)
LEAVE_OUT = {"on_error": "quarantine", "quarantine_at_most": 1.0}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "sort": st.just(True),
        "limit": st.integers(1, 20),
        "actions": st.sampled_from(["top:2", "10,a"]),
        "features": st.sampled_from(["city,age", "city:one-hot", "none"]),
        "keep": st.sampled_from([["city"], ["age", "city"], ["ad"]]),
        "attribution_window": st.sampled_from([3, 25]),
    },
).flatmap(lambda options: st.sampled_from([options, options | LEAVE_OUT, options | LEAVE_OUT]))
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "display": st.sampled_from([{"propensity": "p"}, {"propensity_kind": "uniform"}, {"id": "id"}]),
        "conversion": st.sampled_from(
            [
                {"key": ["key"], "deduplicate": "last_click", "click": "click"},
                {"min_delay": 3, "value": "p"},
            ]
        ),
        "log": st.sampled_from(
            [
                {"observed_until": "complete", "reward_max": 0.5},
                {"observed_until": 20},
                {"attribution_window": 5},
            ]
        ),
        "outcomes": st.just({"click": {"indicator": "click", "immediate": True, "value": "p", "value_max": 0.5}}),
        "context": st.just({"columns": {"city": "category", "age": "number"}, "dimensions": 4}),
    },
)


def outcome(how: Any) -> Any:
    """All there is to see of a reading: its tables and metadata, or its error."""
    try:
        done = how()
    except EvaluatorError as error:
        return type(error), str(error)
    tables = [t.to_pydict() for t in (done.log.displays, done.log.conversions, done.log.actions, done.quarantine)]
    return [str(tables), done.log.meta]


@settings(max_examples=30, deadline=None)
@given(st.lists(CELLS, max_size=25), st.booleans(), SECTIONS, OPTIONS, st.integers(1, 9), st.integers(1, 9))
def test_any_chunk_size_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, ...]],
    in_order: bool,
    sections: dict[str, Any],
    options: dict[str, Any],
    size: int,
    sorted_in_memory: int,
) -> None:
    folder = tmp_path_factory.mktemp("chunks")
    lines = [",".join(row) for row in (sorted(rows) if in_order else rows)]
    for i, part in enumerate((lines[:7], lines[7:])):
        write_rows(folder / "logs" / f"{i}.csv", [HEADER, *part])
    spec = write_spec(folder, source={"files": "logs", "none": {"sold": [-1]}}, **sections)
    expected = outcome(lambda: read(spec, **options))
    with chunks_of(size, sorted_in_memory):
        assert outcome(lambda: read(spec, **options)) == expected
        assert outcome(lambda: convert(spec, folder / "out", **options)) == expected
    assert {p.name for p in folder.iterdir()} <= {"logs", "spec.toml", "out"}


def test_cell_that_is_no_number_is_named_in_whatever_chunk_it_is(tmp_path: Path) -> None:
    rows = ["t,ad,sold", *[f"{i},{'ab'[i % 2]},{i + 3}" for i in range(30_000)]]
    rows[23_456] = "23455,b,soon"
    spec = dataset(tmp_path, rows, source={"files": "log.csv.gz"})
    with chunks_of(1_000), pytest.raises(LogError) as raised:
        convert(spec, tmp_path / "out")
    assert f"{tmp_path}/log.csv.gz line 23457: 'soon'" in str(raised.value)
    assert "Column 'sold': not a whole number" in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_only_the_first_breaches_are_kept_where_they_stop_the_run(tmp_path: Path) -> None:
    spec = dataset(tmp_path, ["t,ad,sold", "0,b,", *[f"{i},a,x{i}" for i in range(500)]])
    with chunks_of(7), pytest.raises(LogError, match=r"line 3: 'x0'.*line 4: 'x1'.*line 5: 'x2' and 497 more"):
        load(spec)


def test_rows_out_of_order_are_counted_across_chunks(tmp_path: Path) -> None:
    times = [1, 2, 5, 4, 6, 6, 3, 9]
    spec = dataset(tmp_path, ["t,ad,sold", *[f"{t},{'ab'[i % 2]}," for i, t in enumerate(times)]])
    for size in (1, 3, 100):
        with chunks_of(size), pytest.raises(LogError, match=r"line 5: time 4 is earlier than 5 before it \(2 such"):
            load(spec)


def test_displays_of_a_converted_log_stay_on_disk(tmp_path: Path) -> None:
    n = 150_000
    spec = dataset(tmp_path, ["t,ad,sold", *[f"{i},{'ab'[i % 2]},{i + 1 if i % 9 == 0 else ''}" for i in range(n)]])
    heard: list[int] = []
    log = convert(spec, tmp_path / "out", advance=heard.append).log
    assert isinstance(log, StoredLog)
    assert log.paths == (tmp_path / "out" / "displays.parquet",)
    assert len(log) == sum(heard) == n
    groups = pq.ParquetFile(log.paths[0]).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [65_536, 65_536, n - 131_072]


def test_a_missing_mark_is_compared_as_a_number(tmp_path: Path) -> None:
    rows = ["t,ad,sold,gain", "1,a,-1.0,2", "2,b,-1,-1.0", "3,b,5,x", "4,a,6,-1", "5,a,7,3"]
    spec = dataset(tmp_path, rows, source={"none": [-1]}, conversion={"value": "gain"})
    left_out = read(spec, on_error="quarantine", quarantine_at_most=1).quarantine.to_pylist()
    # -1.0 is -1: missing, also in a file that holds cells that are no numbers.
    assert [(b["line"], b["value"], b["problem"]) for b in left_out] == [
        (4, "x", "not a number"),
        (5, None, "value not finite"),
    ]


def test_a_value_whose_square_is_infinite_is_refused(tmp_path: Path) -> None:
    rows = ["t,ad,sold,gain", "1,a,2,1e100", "2,b,5,-1e308", "3,b,,1e308"]
    spec = dataset(tmp_path, rows, conversion={"value": "gain"})
    with pytest.raises(DataError, match=r"beyond 1e\+100.*line 3: '-1e\+308'"):
        load(spec)
    assert read(spec, on_error="quarantine", quarantine_at_most=1).log.conversions["value"].to_pylist() == [1e100]
    with pytest.raises(SpecError, match="value"):
        load(dataset(tmp_path, rows, conversion={"value": 1e308}))


def test_quoted_nothing_is_missing(tmp_path: Path) -> None:
    log = load(dataset(tmp_path, ["t,ad,sold", '1,a,""', "2,b,3"]))
    assert log.conversions["display_id"].to_pylist() == [1]


IDS = ["id,t,ad,sold", *[f"d{i},{i},{'ab'[i % 2]}," for i in range(20)]]


def test_equal_hashes_do_not_make_equal_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_by_id, "_hashes", lambda ids: pl.zeros(len(ids), pl.UInt64, eager=True))
    with chunks_of(3):
        assert len(load(dataset(tmp_path, IDS, display={"id": "id"}))) == 20
        doubled = [*IDS, "d3,30,a,", ",31,b,", "d3,32,a,", ",33,b,"]
        left_out = read(
            dataset(tmp_path, doubled, display={"id": "id"}), on_error="quarantine", quarantine_at_most=1
        ).quarantine
    assert [(r["line"], r["problem"]) for r in left_out.to_pylist()] == [
        (22, "duplicate display"), (23, "missing"), (24, "duplicate display"), (25, "missing"),
    ]  # fmt: skip


def test_the_first_of_two_displays_is_the_earlier_one_once_sorted(tmp_path: Path) -> None:
    rows = [*IDS, "d5,0,b,"]
    with chunks_of(4, 5):
        done = read(
            dataset(tmp_path, rows, display={"id": "id"}), sort=True, on_error="quarantine", quarantine_at_most=1
        )
    assert [(r["line"], r["value"]) for r in done.quarantine.to_pylist()] == [(7, "d5")]


def test_second_table_is_joined_across_chunks(tmp_path: Path) -> None:
    sales = ["shown,when", "d17,40", "d2,9", "d17,39"]
    write_rows(tmp_path / "sales.csv", sales)
    conversion = {"time": "when", "source": {"files": "sales.csv", "display": "shown"}}
    spec = dataset(tmp_path, IDS, display={"id": "id"}, conversion=conversion)
    with chunks_of(5):
        log = convert(spec, tmp_path / "out", actions="b,a").log
    assert [tuple(c.values()) for c in log.conversions.to_pylist()] == [(2, 9, 1.0), (17, 39, 1.0), (17, 40, 1.0)]


def test_columns_of_parquet_are_read_in_the_order_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In another one Polars holds twice as many row groups.
    asked: list[list[str]] = []
    batches = pl.LazyFrame.collect_batches

    def noted(self: pl.LazyFrame, **options: Any) -> Iterator[pl.DataFrame]:
        asked.append(self.collect_schema().names())
        return batches(self, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", noted)
    rows = {"city": ["Rome", "Oslo"], "sold": [4, None], "id": [7, 8], "ad": ["a", "b"], "t": [1, 2]}
    pl.DataFrame(rows).write_parquet(tmp_path / "l.parquet")
    columns = {"columns": ["city"]}
    load(write_spec(tmp_path, source={"files": "l.parquet"}, display={"id": "id"}, context=columns))
    assert asked == [["city", "sold", "id", "ad", "t"]]


def test_validate_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["t,ad,sold,city", "1,a,4,Rome", "2,b,,Oslo"]
    spec = dataset(tmp_path, rows, context={"columns": ["city"]})
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert validate(spec)["ok"]
    assert list(scratch.iterdir()) == []
