"""The parts that threads write are the log in one file."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.datasets import convert, validate
from evaluator.errors import EvaluatorError, LogError, OutputError, ParameterError, SourceError
from evaluator.log import StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.reading import adapter, canonical, sorting
from evaluator.reading import frames as scan
from tests.cli.runs import evaluate
from tests.reading.sources import write_rows, write_spec


@contextmanager
def pieces_of(rows: int, group: int = 8) -> Iterator[None]:
    """Files of a spool of so many rows, chunks of fewer, and parts of two groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "FILE_ROWS", rows)
        patch.setattr(scan, "CHUNK_ROWS", 5)
        patch.setattr(canonical, "ROWS_PER_GROUP", group)
        patch.setattr(adapter, "PART_ROWS", 2 * group)
        yield


def outcome(spec: Path, out: Path, **options: Any) -> Any:
    """All there is to know of a conversion: what the log holds, and says, or its error."""
    try:
        done = convert(spec, out, overwrite=True, **options)
    except EvaluatorError as error:
        return type(error), str(error)
    assert isinstance(done.log, StoredLog)
    tables = [
        str(t.to_pydict()) for t in (done.log.displays, done.log.conversions, done.log.outcomes, done.log.actions)
    ]
    return [content_hash(done.log), *tables, done.log.meta]


def written(folder: Path, rows: list[dict[str, Any]], cuts: list[int], **sections: Any) -> Path:
    """Return the spec of rows in several Parquet files."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    schema = {"t": pl.Int64, "ad": pl.String, "sold": pl.Int64, "key": pl.String, "click": pl.Int64,
              "city": pl.String, "age": pl.Float64, "id": pl.Int64}  # fmt: skip
    edges = [0, *sorted(cuts), len(rows)]
    for i, (first, end) in enumerate(itertools.pairwise(edges)):
        pl.DataFrame(rows[first:end], schema=schema).write_parquet(folder / "logs" / f"{i}.parquet", row_group_size=4)
    return write_spec(folder, source={"files": "logs"}, **sections)


ROW = st.fixed_dictionaries(
    {
        "t": st.integers(0, 40),
        "ad": st.sampled_from("abc"),
        "sold": st.one_of(st.none(), st.integers(38, 60)),
        "key": st.sampled_from("kl"),
        "click": st.integers(0, 1),
        "city": st.sampled_from(["Rome", "Oslo", "Aix", None]),
        "age": st.sampled_from([0.25, 0.5, 1.0]),
    }
)
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "display": st.sampled_from(
            [{"propensity_kind": "uniform"}, {"id": "id"}, {"cost": "age"}, {"id": "id", "propensity": "age"}]
        ),
        "outcomes": st.just({"tap": {"indicator": "click", "immediate": True}}),
        "conversion": st.just({"key": ["key"], "deduplicate": "last_click", "click": "click"}),
        "context": st.sampled_from(
            [{"columns": {"city": "category", "age": "number"}, "dimensions": 4},
             {"columns": ["city"], "encoding": "one-hot"}]
        ),
    },
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    st.lists(ROW, min_size=12, max_size=70), st.lists(st.integers(1, 69), min_size=1, max_size=4), st.booleans(),
    SECTIONS, st.sampled_from([{}, {"keep": ["city", "age"]}, {"actions": "top:2"}]), st.integers(6, 20),
    st.sampled_from(["id", "twice"]),
)  # fmt: skip
def test_any_files_give_the_log_of_one_pass(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    cuts: list[int],
    in_order: bool,
    sections: dict[str, Any],
    options: dict[str, Any],
    stretch: int,
    ids: str,
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    rows = sorted(rows, key=lambda row: row["t"]) if in_order else rows
    rows = [{**row, "id": i if ids == "id" else i % 60} for i, row in enumerate(rows)]
    spec = written(folder, rows, [cut for cut in {*cuts} if cut < len(rows)], **sections)
    asked = {**options, **({} if in_order else {"sort": True})}
    with pieces_of(stretch):
        one = outcome(spec, folder / "one", **asked)
        assert outcome(spec, folder / "two", jobs=2, **asked) == one


def plain(n: int, *, conversion: bool = True) -> list[dict[str, Any]]:
    return [
        {"t": i // 3, "ad": "ab"[i % 2], "sold": i // 3 + 4 if conversion and i % 5 == 0 else None, "key": str(i),
         "click": 1, "city": f"c{(i * 7) % 11}", "age": float(i), "id": i}
        for i in range(n)
    ]  # fmt: skip


def test_the_log_is_in_parts_of_whole_groups(tmp_path: Path) -> None:
    spec = written(tmp_path, plain(100), [30, 60])
    with pieces_of(10):
        log = convert(spec, tmp_path / "log", jobs=2).log
        assert isinstance(log, StoredLog)
        assert [path.name for path in log.paths] == [f"displays-{i:05}.parquet" for i in range(1, 8)]
        assert validate(tmp_path / "log")["ok"]
        one = convert(spec, tmp_path / "one").log
    assert (tmp_path / "one" / "displays.parquet").is_file()
    assert content_hash(log) == content_hash(one)
    assert {path.name for path in tmp_path.iterdir()} == {"log", "one", "logs", "spec.toml"}


def test_each_part_reads_its_own_files_of_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparisons would hold, too, if every part read all rows from the first one on."""
    opened: list[str] = []
    open_stream = sorting.pa.OSFile
    monkeypatch.setattr(sorting.pa, "OSFile", lambda path: opened.append(path) or open_stream(path))
    spec = written(tmp_path, plain(160), [30, 60])
    with pieces_of(16):
        convert(spec, tmp_path / "one")
        once = len(opened)
        convert(spec, tmp_path / "parts", jobs=2)
    assert once > 5
    assert len(opened) - once <= 2 * once


@pytest.mark.parametrize(
    ("sections", "more"),
    [
        ({"display": {"eligible": "city", "eligible_separator": "|"}}, ""),
        ({}, '[[action]]\nlabel = "a"\n[[action]]\nlabel = "b"\nfrom = 3\n'),
        ({"calendar": {"files": "calendar.csv", "action": "ad", "from": "since", "until": "until"}}, ""),
    ],
    ids=["in a column", "in the spec", "in a calendar"],
)
def test_eligible_actions_are_written_in_parts(tmp_path: Path, sections: dict[str, Any], more: str) -> None:
    write_rows(tmp_path / "calendar.csv", ["ad,since,until", "a,0,100", "b,0,100"])
    rows = [{**row, "city": "b|a", "ad": "a" if row["t"] < 3 else row["ad"]} for row in plain(100)]
    spec = written(tmp_path, rows, [30, 60], **sections)
    spec.write_text(spec.read_text() + more)
    with pieces_of(10):
        one = outcome(spec, tmp_path / "one")
        assert "'eligible': " in one[1]
        assert outcome(spec, tmp_path / "two", jobs=2) == one
    assert (tmp_path / "two" / "displays-00002.parquet").is_file()


def test_events_of_a_second_table_are_joined_whatever_the_parts(tmp_path: Path) -> None:
    rows = plain(100, conversion=False)
    write_rows(tmp_path / "sales.csv", ["display,when,value", *[f"{i},{i // 3 + 9},{i}" for i in range(99, 0, -7)]])
    spec = written(
        tmp_path, rows, [30, 60], display={"id": "id"},
        conversion={"time": "when", "value": "value", "source": {"files": "sales.csv", "display": "display"}},
    )  # fmt: skip
    with pieces_of(10):
        one = outcome(spec, tmp_path / "one")
        assert outcome(spec, tmp_path / "two", jobs=2) == one


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ad": None}, "column 'ad': missing|Column 'ad': missing"),
        ({"sold": 3}, "conversion earlier than its display"),
        ({"id": 11}, "duplicate display"),
        ({"t": 1}, "is earlier than"),
    ],
    ids=["a cell", "an event", "an id", "a time"],
)
def test_what_is_wrong_is_told_as_one_pass_tells_it(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    rows = plain(100)
    rows[70] |= change
    spec = written(tmp_path, rows, [30, 60], display={"id": "id"})
    with pieces_of(10):
        with pytest.raises(LogError, match=said) as raised:
            convert(spec, tmp_path / "log", jobs=2)
        assert outcome(spec, tmp_path / "one") == (LogError, str(raised.value))
    assert str(tmp_path / "logs" / "2.parquet") in str(raised.value)
    assert not (tmp_path / "log").exists()


def test_times_of_no_zone_that_is_known_are_one_line(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "logs").mkdir()
    for i in range(2):
        times = pa.array([1 + i, 2 + i], pa.timestamp("us", tz="+05:30"))
        pq.write_table(pa.table({"t": times, "ad": ["a", "b"]}), tmp_path / "logs" / f"{i}.parquet")
    spec = write_spec(tmp_path, source={"files": "logs"}, time={"unit": "datetime"},
                      conversion={"time": None, "indicator": "ad", "immediate": True})  # fmt: skip
    one = outcome(spec, tmp_path / "one")
    assert one == outcome(spec, tmp_path / "two", jobs=2)
    assert one[0] is SourceError


def test_text_is_written_in_parts_and_jobs_are_checked(tmp_path: Path) -> None:
    for i in range(2):
        write_rows(tmp_path / "logs" / f"{i}.csv", ["t,ad,sold", *[f"{50 * i + j},{'ab'[j % 2]}," for j in range(50)]])
    spec = write_spec(tmp_path, source={"files": "logs"})
    with pieces_of(10):
        log = convert(spec, tmp_path / "log", jobs=2).log
    assert isinstance(log, StoredLog)
    assert len(log.paths) == 7
    with pytest.raises(ParameterError, match="jobs=0"):
        convert(spec, tmp_path / "none", jobs=0)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_what_stops_a_thread_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    spec = written(tmp_path, plain(100), [30, 60])
    names: list[str] = []
    on_disk = adapter.on_disk

    def stopped(*args: Any, name: str, **options: Any) -> None:
        names.append(name)
        if name == "displays-00003.parquet":
            raise error
        on_disk(*args, name=name, **options)

    monkeypatch.setattr(adapter, "on_disk", stopped)
    with pieces_of(10), pytest.raises((OutputError, KeyboardInterrupt)):
        convert(spec, tmp_path / "log", jobs=2)
    assert "displays-00003.parquet" in names
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "spec.toml"}


def test_the_command_takes_jobs(tmp_path: Path) -> None:
    spec = written(tmp_path, plain(100), [30, 60])
    with pieces_of(10):
        done = evaluate("datasets", "convert", str(spec), str(tmp_path / "log"), "--jobs", "2")
    assert done.code == 0
    assert (tmp_path / "log" / "displays-00007.parquet").is_file()
    assert "100 displays" in done.out


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_what_times_say_of_their_zone_is_seen_of_all_files(tmp_path: Path, zone: str | None) -> None:
    """Displays are of moments, and the sales of the last file alone say no zone, which a spec may say."""
    (tmp_path / "logs").mkdir()
    shown = pl.Series("t", [1_700_000_000_000_000 + i * 60_000_000 for i in range(48)]).cast(pl.Datetime("us", "UTC"))
    sold = (shown.dt.offset_by("2h").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).alias("sold")
    sold[47] = "2023-11-15 02:00:00"
    frame = pl.DataFrame([shown, pl.Series("ad", ["a", "b"] * 24), sold])
    for i in range(4):
        frame.slice(12 * i, 12).write_parquet(tmp_path / "logs" / f"{i}.parquet", row_group_size=4)
    time = {"unit": "datetime", **({} if zone is None else {"timezone": {"sold": zone}})}
    spec = write_spec(tmp_path, source={"files": "logs"}, time=time)
    with pieces_of(10):
        found = [outcome(spec, tmp_path / name, jobs=jobs) for name, jobs in (("one", 1), ("two", 2))]
    assert found[0] == found[1]
    if zone is None:
        kind, said = found[0]
        assert kind is LogError
        assert "3.parquet row 12: '2023-11-15 02:00:00'), and times that say theirs (" in said


def test_local_times_are_moments_whatever_the_parts(tmp_path: Path) -> None:
    """Where clocks are put back, the least local time of a file need not be its first moment."""
    (tmp_path / "logs").mkdir()
    moments = pl.Series("t", [1_729_980_000 + i * 900 for i in range(48)], dtype=pl.Int64) * 1_000_000
    berlin = moments.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone("Europe/Berlin")
    ahead = (berlin.dt.base_utc_offset() + berlin.dt.dst_offset()).dt.total_minutes().alias("ahead")
    frame = pl.DataFrame([berlin.dt.replace_time_zone(None), ahead, pl.Series("ad", ["a", "b"] * 24)])
    frame = frame.with_columns(sold=pl.lit(None, pl.Datetime("us")))
    for i in range(4):
        frame.slice(12 * i, 12).write_parquet(tmp_path / "logs" / f"{i}.parquet", row_group_size=4)
    spec = write_spec(tmp_path, source={"files": "logs"}, time={"unit": "datetime", "offset": "ahead"})
    with pieces_of(10):
        assert outcome(spec, tmp_path / "one") == outcome(spec, tmp_path / "two", jobs=2)
    assert pl.read_parquet(tmp_path / "one" / "displays.parquet")["time"].to_list() == moments.to_list()
