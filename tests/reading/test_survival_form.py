"""Durations beside a column of 0 and 1 that says whether the event came: rows with 0 are censored, no conversions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator import load
from evaluator.errors import LogError
from evaluator.reading.delay_file import read_delay_file
from evaluator.reading.options import DelayFileOptions
from tests.cli.runs import evaluate
from tests.reading.sources import dataset, write_rows

EVENTS = ["days,event", *(f"{day % 30},{int(day % 4 > 0)}" for day in range(80))]


@pytest.mark.parametrize(
    ("header", "censored"), [("days,event", "0"), ("days, Observed", "false"), ("days,censored", "1")]
)
def test_censored_rows_are_no_delays(tmp_path: Path, header: str, censored: str) -> None:
    column = header.split(",")[1]
    other = {"0": "1", "1": "0", "false": "true"}[censored]
    rows = [header, *(f"{day},{other}" for day in range(50))]
    path = write_rows(tmp_path / "d.csv", rows)
    asked = DelayFileOptions(delay_column="days", unit="d")
    assert len(read_delay_file(path, asked).rows.delay) == 50
    write_rows(path, [*rows[:2], f"30,{censored}", *rows[2:]])
    with pytest.raises(LogError) as caught:
        read_delay_file(path, asked)
    said = str(caught.value)
    assert f"Column {column!r}: a row that is censored, which is no conversion ({path} line 3:" in said
    assert f"read them as displays of a log, whose spec says indicator = {column!r}" in said
    left = read_delay_file(path, DelayFileOptions(delay_column="days", unit="d", on_error="quarantine",
                                                  quarantine_at_most="5%"))  # fmt: skip
    assert len(left.rows.delay) == 50
    assert "which is no conversion (1)" in left.rows.left_out


def test_a_study_of_delays_refuses_them(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.csv", EVENTS)
    found = evaluate("delays", "--file", str(path), "--delay-column", "days", "--unit", "d")
    assert found.code == 3
    assert re.search(r"Column 'event': a row that is censored.* and 17 more", found.err)


def test_other_columns_of_that_name_are_none_of_its_business(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.csv", ["days,event", *(f"{day},{'ab'[day % 2]}" for day in range(50))])
    assert len(read_delay_file(path, DelayFileOptions(delay_column="days", unit="d")).rows.delay) == 50
    by = DelayFileOptions(delay_column="days", unit="d", by="event")
    write_rows(path, EVENTS)
    assert set(read_delay_file(path, by).rows.group) == {"0", "1"}  # type: ignore[arg-type]


def test_in_a_log_they_are_displays_without_a_conversion(tmp_path: Path) -> None:
    rows = ["t,ad,days,event", *(f"{day},{'ab'[day % 2]},{30 - day},{day % 3 // 2}" for day in range(30))]
    log = load(
        dataset(
            tmp_path,
            rows,
            time={"unit": "d"},
            conversion={"time": None, "delay": "days", "indicator": "event"},
            log={"observed_until": 30},
        )
    )
    assert len(log) == 30
    assert log.conversions["display_id"].to_pylist() == list(range(2, 30, 3))
    assert set(log.conversions["time"].to_pylist()) == {30}
