from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.datasets import load
from evaluator.errors import SourceError, UnknownNameError, UsageError
from evaluator.log import Log
from tests.reading.sources import ROWS, dataset, write_rows, write_spec


def columns(log: Log) -> dict[str, list[Any]]:
    return {c: log.displays[c].to_pylist() for c in ("display_id", "time", "action")}


def conversions(log: Log) -> list[tuple[Any, ...]]:
    return [tuple(r.values()) for r in log.conversions.to_pylist()]


EXPECTED = [(0, 4, 1.0), (2, 9, 1.0), (3, 5, 1.0)]


def test_csv(tmp_path: Path) -> None:
    log = load(dataset(tmp_path, log={"attribution_window": "1min", "reward_max": 1}))
    assert columns(log) == {"display_id": [0, 1, 2, 3], "time": [1, 2, 2, 5], "action": [0, 1, 0, 1]}
    assert conversions(log) == EXPECTED
    assert log.labels == ["a", "b"]
    assert (log.meta.tick, log.meta.observed_until, log.meta.attribution_window) == ("s", 9, 60)
    assert log.meta.propensity == "absent"
    assert log.displays["propensity"].null_count == 4


@pytest.mark.parametrize("files", ["log.csv", "log.csv.gz", "log.tsv", "log.tsv.gz"])
def test_text_formats(tmp_path: Path, files: str) -> None:
    rows = [r.replace(",", "\t") for r in ROWS] if "tsv" in files else ROWS
    assert conversions(load(dataset(tmp_path, rows, source={"files": files}))) == EXPECTED


@pytest.mark.parametrize("files", ["log.parquet", "log.arrow"])
def test_binary_formats(tmp_path: Path, files: str) -> None:
    frame = pl.DataFrame({"t": [1, 2, 2, 5], "ad": ["a", "b", "a", "b"], "sold": [4, None, 9, 5]})
    frame.write_parquet(tmp_path / files) if "parquet" in files else frame.write_ipc(tmp_path / files)
    assert conversions(load(write_spec(tmp_path, source={"files": files}))) == EXPECTED


@pytest.mark.parametrize("column", ["t", "ad", "sold", "price"])
def test_column_of_several_values_a_row_is_named(tmp_path: Path, column: str) -> None:
    frame = pl.DataFrame({"t": [1, 2], "ad": ["a", "b"], "sold": [4, None], "price": [1.0, None]})
    frame.with_columns(pl.struct(column).alias(column)).write_parquet(tmp_path / "log.parquet")
    spec = write_spec(tmp_path, source={"files": "log.parquet"}, conversion={"value": "price"})
    with pytest.raises(SourceError, match=rf"log\.parquet: column '{column}' holds Struct"):
        load(spec)


def test_no_header_with_sentinels_and_delimiter(tmp_path: Path) -> None:
    source = {"header": False, "columns": ["t", "ad", "sold"], "delimiter": ";", "none": {"sold": [-1, "NA"]}}
    path = dataset(tmp_path, ["1;a;4", "2;b;-1", "2;a;9", "5;b;NA"], source=source)
    assert conversions(load(path)) == EXPECTED[:2]


def test_hive_folder_in_natural_order(tmp_path: Path) -> None:
    for day, rows in {"2": ["t,ad,sold", "1,a,4"], "10": ["t,ad,sold", "7,b,"]}.items():
        write_rows(tmp_path / "logs" / f"day={day}" / "part.csv", rows)
    log = load(write_spec(tmp_path, source={"files": "logs"}), features="day:one-hot")
    assert columns(log)["time"] == [1, 7]
    assert (log.column("context")[0] != log.column("context")[1]).any()


def test_hive_parquet(tmp_path: Path) -> None:
    for day, t in {"2": 1, "10": 7}.items():
        folder = tmp_path / "logs" / f"day={day}"
        folder.mkdir(parents=True)
        pl.DataFrame({"t": [t], "sold": [t + 1]}).write_parquet(folder / "x.parquet")
    log = load(write_spec(tmp_path, source={"files": "logs"}, display={"action": "day"}))
    assert log.labels == ["2", "10"]
    assert conversions(log) == [(0, 2, 1.0), (1, 8, 1.0)]


def test_glob_and_path(tmp_path: Path) -> None:
    write_rows(tmp_path / "b.csv", ["t,ad,sold", "7,b,8"])
    write_rows(tmp_path / "a.csv", ["t,ad,sold", "1,a,"])
    spec = write_spec(tmp_path, source={"files": "*.csv"})
    assert columns(load(spec))["time"] == [1, 7]
    other = write_rows(tmp_path / "other.csv", ["t,ad,sold", "3,x,", "4,y,"])
    assert load(spec, path=other).labels == ["x", "y"]


def test_iso_datetimes(tmp_path: Path) -> None:
    rows = [
        "t,ad,sold",
        "2020-01-01T00:00:00Z,a,2020-01-01 00:00:01.5+00:00",
        "2020-01-01 02:00:01+02:00,b,",
        "2020-01-02,a,2020-01-03T00:00:00",
    ]
    # Some cells say their zone: of which the others are has to be said.
    log = load(dataset(tmp_path, rows, time={"unit": "datetime", "timezone": "UTC"}))
    start = 1_577_836_800_000_000
    assert columns(log)["time"] == [start, start + 10**6, start + 86400 * 10**6]
    assert [t - start for _, t, _ in conversions(log)] == [1_500_000, 2 * 86400 * 10**6]
    assert log.meta.tick == "us"


def test_datetime_columns(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    times = [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC)]
    frame = pl.DataFrame({"t": times, "ad": ["a", "b"], "sold": [times[1], None]})
    frame.with_columns(pl.col("t", "sold").cast(pl.Datetime("ns", "UTC"))).write_parquet(tmp_path / "log.parquet")
    log = load(write_spec(tmp_path, source={"files": "log.parquet"}, time={"unit": "datetime"}))
    assert [t - log.column("time")[0] for _, t, _ in conversions(log)] == [86400 * 10**6]


def test_delay_column_value_column_and_uniform_propensity(tmp_path: Path) -> None:
    path = dataset(
        tmp_path, ["t,ad,wait,gain", "1,a,3,2.5", "2,b,,", "4,c,0,1"],
        conversion={"time": None, "delay": "wait", "value": "gain"}, display={"propensity_kind": "uniform"},
    )  # fmt: skip
    log = load(path)
    assert conversions(log) == [(0, 4, 2.5), (2, 4, 1.0)]
    assert log.displays["propensity"].to_pylist() == [1 / 3] * 3
    assert load(path, actions="a,b").displays["propensity"].to_pylist() == [1 / 2] * 2


def test_immediate_rewards_and_logged_propensity(tmp_path: Path) -> None:
    conversion = {"time": None, "immediate": True, "indicator": "hit"}
    path = dataset(tmp_path, ["t,ad,hit,p", "1,a,0,.5", "3,b,1,.25"], conversion=conversion,
                   display={"propensity": "p"}, log={"observed_until": "complete"})  # fmt: skip
    log = load(path)
    assert conversions(log) == [(1, 3, 1.0)]
    assert log.displays["propensity"].to_pylist() == [0.5, 0.25]
    assert (log.meta.propensity, log.meta.observed_until) == ("logged", None)


SECOND = {
    "display": {"id": "id"},
    "conversion": {"time": "when", "value": "gain", "source": {"files": "sales.csv", "display": "shown"}},
}


def test_second_table_with_several_conversions_per_display(tmp_path: Path) -> None:
    write_rows(tmp_path / "sales.csv", ["shown,when,gain", "y,9,2", "x,6,1", "y,7,3"])
    path = dataset(tmp_path, ["id,t,ad", "x,1,a", "y,2,b", "z,3,b"], **SECOND)
    log = load(path)
    assert conversions(log) == [(0, 6, 1.0), (1, 7, 3.0), (1, 9, 2.0)]
    short = load(path, actions=["b", "a"], limit=2)
    assert short.labels == ["b", "a"]
    assert conversions(short) == conversions(log)


def test_limit_leaves_later_conversions_of_second_table(tmp_path: Path) -> None:
    write_rows(tmp_path / "sales.csv", ["shown,when,gain", "z,9,2", "x,6,1"])
    log = load(dataset(tmp_path, ["id,t,ad", "x,1,a", "y,2,b", "z,3,b"], **SECOND), limit=2)
    assert conversions(log) == [(0, 6, 1.0)]
    assert log.meta.counts["conversion_rows_beyond_limit"] == 1


def test_sort_keeps_ties_in_file_order(tmp_path: Path) -> None:
    rows = ["t,ad,sold", "5,a,6", "2,b,3", "2,c,4", "1,d,"]
    log = load(dataset(tmp_path, rows), sort=True)
    assert [log.labels[a] for a in log.column("action")] == ["d", "b", "c", "a"]
    assert conversions(log) == [(1, 3, 1.0), (2, 4, 1.0), (3, 6, 1.0)]
    assert load(dataset(tmp_path, rows, source={"sort": True}), limit=2).labels == ["b", "d"]


def test_top_actions_and_counts(tmp_path: Path) -> None:
    rows = ["t,ad,sold", "1,10,", "1,9,5", "1,2,", "2,9,", "3,10,4", "3,9,"]
    path = dataset(tmp_path, rows, time={"ties": "file"})
    assert load(path).labels == ["2", "9", "10"]
    log = load(path, actions="top:2")
    assert log.labels == ["9", "10"]
    assert columns(log)["action"] == [1, 0, 0, 1, 0]
    assert conversions(log) == [(1, 5, 1.0), (3, 4, 1.0)]
    assert log.meta.counts["displays_dropped_by_actions"] == 1
    # Of the displays: what became of the conversions is said by itself.
    assert log.meta.counts["share_of_displays_kept"] == 5 / 6
    assert log.meta.counts["conversions_dropped_by_actions"] == 0
    counts = load(path, actions=["2", "9"]).meta.counts
    assert (counts["share_of_displays_kept"], counts["conversions_dropped_by_actions"]) == (4 / 6, 1)
    assert log.meta.counts["rows_read"] == 6


def test_unknown_action(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"No action 'banana'.*did you mean banane"):
        load(dataset(tmp_path, ["t,ad,sold", "1,banane,", "2,kiwi,"]), actions=["kiwi", "banana"])


@pytest.mark.parametrize(
    "options",
    [
        {"actions": "top:1"}, {"actions": "top"}, {"limit": 0}, {"deduplicate": "last_click"}, {"deduplicate": "x"},
        {"attributed_only": True}, {"on_error": "ignore"}, {"seed": 1}, {"features": "a:b:c"},
        {"features": "ad:one-hot=3"},
    ],
)  # fmt: skip
def test_unfit_arguments(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        load(dataset(tmp_path), **options)
    assert raised.value.exit_code == 2


def test_fingerprint_follows_content_not_time(tmp_path: Path) -> None:
    import os

    path = dataset(tmp_path)
    before = load(path).meta.fingerprint
    os.utime(tmp_path / "log.csv", (1, 1))
    assert load(path).meta.fingerprint == before
    write_rows(tmp_path / "log.csv", [*ROWS[:-1], "5,b,6"])
    assert load(path).meta.fingerprint != before


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from("abc"), st.none() | st.integers(0, 20)), min_size=2, max_size=40
    ).filter(lambda rows: len({a for _, a, _ in rows}) > 1)
)
def test_csv_to_log_keeps_counts_and_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, int | None]]
) -> None:
    rows = sorted(rows, key=lambda r: r[0])
    lines = [f"{t},{a},{'' if d is None else t + d}" for t, a, d in rows]
    log = load(dataset(tmp_path_factory.mktemp("property"), ["t,ad,sold", *lines], time={"ties": "file"}))
    assert columns(log)["time"] == [t for t, _, _ in rows]
    assert [log.labels[a] for a in log.column("action")] == [a for _, a, _ in rows]
    assert conversions(log) == [(i, t + d, 1.0) for i, (t, _, d) in enumerate(rows) if d is not None]
