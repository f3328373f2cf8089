"""Logs without a column of times: the order of the rows is the time, and rounds count them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator import Log, datasets, load, replay
from evaluator.errors import SpecError, UsageError
from evaluator.reading.resolve import read
from tests.reading.sources import dataset, write_rows, write_spec
from tests.reading.test_event_tables import rows_of, write

N = 60
NOTE = "The displays have no times: they are in the order of the file, and rounds count them."
SECTIONS: dict[str, Any] = {
    "time": {"unit": "round"},
    "display": {"time": None, "action": "item"},
    "conversion": {"time": None, "indicator": "response", "immediate": True},
}


def frame() -> pl.DataFrame:
    columns = {"user": range(N), "item": [i % 5 for i in range(N)], "response": [int(i % 7 == 0) for i in range(N)]}
    return pl.DataFrame(columns)


def timed(folder: Path) -> Log:
    """Return the log of the same rows with their numbers in a column."""
    write(frame().with_row_index("t"), folder / "timed.parquet")
    return load(write_spec(folder, **{**SECTIONS, "source": {"files": "timed.parquet"}, "display": {"action": "item"}}))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("parts", [1, 3])
def test_rows_are_rounds(tmp_path: Path, suffix: str, parts: int) -> None:
    (tmp_path / "log").mkdir()
    for i in range(parts):
        cut = N // parts
        write(frame()[i * cut : (i + 1) * cut], tmp_path / "log" / f"{i}{suffix}")
    spec = write_spec(tmp_path, **SECTIONS, source={"files": "log"})
    log = load(spec)
    assert log.column("time").tolist() == list(range(N))
    assert log.meta.tick == "round"
    assert log.meta.notes == (NOTE,)
    assert rows_of(log) == rows_of(load(spec)) == rows_of(timed(tmp_path))
    first = load(write_spec(tmp_path, **SECTIONS, source={"files": "log"}), limit=11)
    assert first.column("time").tolist() == list(range(11))
    datasets.convert(tmp_path / "spec.toml", tmp_path / "converted")
    assert rows_of(load(tmp_path / "converted")) == rows_of(log)


def test_frames_without_times(tmp_path: Path) -> None:
    log = Log.from_frames(frame(), action="item", indicator="response", immediate=True, unit="round")
    assert rows_of(log) == rows_of(timed(tmp_path))
    assert log.meta.notes == (NOTE,)
    with pytest.raises(SpecError, match=r'time is missing: name its column, or.* write unit="round"'):
        Log.from_frames(frame(), action="item", indicator="response", immediate=True)


def test_delays_count_rows_and_a_replay_runs(tmp_path: Path) -> None:
    rows = ["item,later", *(f"{'ab'[i % 2]},{3 if i % 5 == 0 else ''}" for i in range(N))]
    given = {**SECTIONS, "conversion": {"time": None, "delay": "later"}}
    log = load(dataset(tmp_path, rows, **given))
    assert log.conversions["time"].to_pylist() == [i + 3 for i in range(0, N, 5)]
    assert replay(log, "random").rounds > 0


def test_rows_that_are_left_out_were_rows_all_the_same(tmp_path: Path) -> None:
    rows = ["item,response", "a,1", "b,5", "a,0", *60 * ["b,0"]]
    reading = read(dataset(tmp_path, rows, **SECTIONS), on_error="quarantine", quarantine_at_most="5%")
    assert reading.log.column("time").tolist() == [0, *range(2, 63)]


def test_rows_that_are_not_meant_are_no_rounds(tmp_path: Path) -> None:
    rows = ["item,response,kind", "a,1,x", "b,0,y", "b,0,x", "a,0,x"]
    log = load(dataset(tmp_path, rows, **SECTIONS, source={"where": "kind = 'x'"}))
    assert log.column("time").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"time": {"unit": "s"}}, 'display.time is missing: name its column, or.*write unit = "round" under .time.'),
        ({"source": {"sort": True}}, "sort = true needs times"),
    ],
)
def test_what_needs_times_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(write_spec(tmp_path, **{**SECTIONS, **change}))


def test_sorting_needs_times(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.csv", ["item,response", "a,1", "b,0"])
    with pytest.raises(UsageError, match="`sort`, but the displays have no times"):
        load(write_spec(tmp_path, **SECTIONS), sort=True)
