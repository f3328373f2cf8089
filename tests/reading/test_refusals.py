from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from evaluator.datasets import load, read
from evaluator.errors import DataError, LogError, PropensityError, SourceError
from tests.reading.sources import ROWS, dataset, write_rows, write_spec


def refused(path: Path, kind: type[DataError] = DataError, **options: Any) -> str:
    with pytest.raises(kind) as raised:
        load(path, **options)
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_renamed_column(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, ["time,ad,sould", "1,a,"]), SourceError)
    assert "no column" in message
    assert "did you mean time?" in refused(dataset(tmp_path, ["t,ad,time", "1,a,"], conversion={"time": "tyme"}))


@pytest.mark.parametrize(
    ("cell", "word"), [("0", "propensity 0"), ("-.1", "negative"), ("1.5", "above 1"), ("nan", "nan"), ("", "missing")]
)
def test_impossible_propensity(tmp_path: Path, cell: str, word: str) -> None:
    path = dataset(tmp_path, ["t,ad,sold,p", "1,a,,.5", f"2,b,,{cell}"], display={"propensity": "p"})
    message = refused(path, PropensityError)
    assert word in message
    assert "log.csv line 3" in message


def test_conversion_before_its_display(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, [*ROWS, "8,a,7"]), LogError)
    assert "log.csv line 6: '7'" in message
    assert "earlier than its display" in message


def test_many_breaches_show_the_first_three(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, ["t,ad,sold", "1,b,", *["9,a,8"] * 5, "9,,"]))
    assert "line 3: '8'" in message
    assert "line 5: '8' and 2 more" in message
    assert "line 6" not in message
    assert "'ad': missing" in message
    assert "line 8: None" in message


def test_converted_without_time(tmp_path: Path) -> None:
    path = dataset(tmp_path, ["t,ad,sold,buy", "1,a,,1", "2,b,3,1", "3,a,,0"], conversion={"indicator": "buy"})
    assert "line 2" in refused(path)
    log = load(path, on_error="quarantine", quarantine_at_most=1)
    assert len(log) == 2


def test_indicator_is_a_flag(tmp_path: Path) -> None:
    path = dataset(tmp_path, ["t,ad,sold,buy", "1,a,2,2", "2,b,3,1"], conversion={"indicator": "buy"})
    assert "not 0 or 1" in refused(path)


def second_table(tmp_path: Path, sales: list[str], rows: list[str] | None = None) -> Path:
    write_rows(tmp_path / "sales.csv", sales)
    conversion = {"time": "when", "source": {"files": "sales.csv", "display": "shown"}}
    return dataset(tmp_path, rows or ["id,t,ad", "x,1,a", "y,2,b"], display={"id": "id"}, conversion=conversion)


def test_conversion_without_display(tmp_path: Path) -> None:
    path = second_table(tmp_path, ["shown,when", "x,4", "w,5"])
    message = refused(path)
    assert "conversion without display" in message
    assert "sales.csv line 3: 'w'" in message
    reading = read(path, on_error="quarantine", quarantine_at_most=1)
    assert reading.log.conversions.num_rows == 1
    assert reading.quarantine.to_pylist()[0]["value"] == "w"
    assert reading.log.meta.counts["quarantined"] == 1


def test_duplicate_display(tmp_path: Path) -> None:
    path = second_table(tmp_path, ["shown,when"], ["id,t,ad", "x,1,a", "y,2,b", "x,3,a"])
    message = refused(path)
    assert "duplicate display" in message
    assert re.search(r"log.csv line 4: 'x', as in \S*log.csv line 2\)", message)


def test_unsorted_times(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, [*ROWS, "4,a,"]), LogError)
    assert "line 6: time 4 is earlier than 5" in message
    assert "sort=True" in message
    assert "sort = true" in message


@pytest.mark.parametrize("rows", [["t,ad,sold"], []])
def test_empty_log(tmp_path: Path, rows: list[str]) -> None:
    assert "empty" in refused(dataset(tmp_path, rows))


def test_empty_file(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    (tmp_path / "log.csv").write_bytes(b"")
    assert "the file is empty" in refused(path, SourceError)


def test_single_action(tmp_path: Path) -> None:
    assert "single action" in refused(dataset(tmp_path, ["t,ad,sold", "1,a,", "2,a,"]))


def test_truncated_gzip(tmp_path: Path) -> None:
    path = dataset(
        tmp_path, ["t,ad,sold", *[f"{i},{i % 7 * i},{i * i}" for i in range(50_000)]], source={"files": "log.csv.gz"}
    )
    file = tmp_path / "log.csv.gz"
    file.write_bytes(file.read_bytes()[:-5000])
    message = refused(path, SourceError)
    assert "log.csv.gz" in message
    assert "truncated" in message
    file.write_bytes(file.read_bytes()[:30])
    assert "truncated" in refused(path, SourceError)


def test_not_a_gzip(tmp_path: Path) -> None:
    path = write_spec(tmp_path, source={"files": "log.csv.gz"})
    (tmp_path / "log.csv.gz").write_text("t,ad,sold\n1,a,\n")
    assert "not a gzip" in refused(path, SourceError)


def test_wrong_delimiter(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, source={"delimiter": "|"}), SourceError)
    assert "one column found where the spec needs 3" in message
    assert "delimiter" in message


def test_wrong_width_without_header(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, ROWS[1:], source={"header": False, "columns": ["t", "ad"]}))
    assert "line 1 has 3 columns, the spec names 2" in message


def test_ragged_line(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, [*ROWS, "6,a,7,8"]), SourceError)
    assert "line 6: 4 cells where 3" in message


def test_column_named_twice(tmp_path: Path) -> None:
    assert "'t' twice" in refused(dataset(tmp_path, ["t,t,ad,sold", "1,1,a,"]))


@pytest.mark.parametrize("files", ["log.csv", "log.csv.gz"])
def test_cell_that_is_no_number_deep_in_a_file(tmp_path: Path, files: str) -> None:
    rows = ["t,ad,sold", *[f"{i},{'ab'[i % 2]},{i + 3}" for i in range(30_000)]]
    rows[20_000] = "19999,b,soon"
    path = dataset(tmp_path, rows, source={"files": files})
    message = refused(path, LogError)
    assert f"{tmp_path / files} line 20001: 'soon'" in message
    assert "Column 'sold': not a whole number" in message
    reading = read(path, on_error="quarantine", quarantine_at_most=1)
    assert len(reading.log) == 29_999
    assert reading.log.meta.counts["quarantined"] == 1
    assert any("left out" in n for n in reading.log.meta.notes)
    assert reading.quarantine.to_pylist() == [
        {
            "file": str(tmp_path / files),
            "line": 20001,
            "key": None,
            "column": "sold",
            "value": "soon",
            "problem": "not a whole number",
        }
    ]


def test_cell_in_a_second_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "1.csv", ROWS)
    write_rows(tmp_path / "2.csv", ["t,ad,sold", "7,a,", "x,b,"])
    assert "2.csv line 3: 'x'" in refused(write_spec(tmp_path, source={"files": "*.csv"}))


def test_quarantine_survives_sorting(tmp_path: Path) -> None:
    path = dataset(tmp_path, ["t,ad,sold", "9,a,10", "x,b,4", "3,b,2", "2,b,5"])
    reading = read(path, sort=True, on_error="quarantine", quarantine_at_most=1)
    assert reading.log.displays["time"].to_pylist() == [2, 9]
    assert [(r["line"], r["column"]) for r in reading.quarantine.to_pylist()] == [(3, "t"), (4, "sold")]


def test_not_a_date(tmp_path: Path) -> None:
    path = dataset(tmp_path, ["t,ad,sold", "2020-01-01,a,", "2020-13-01,b,"], time={"unit": "datetime"})
    assert "line 3: '2020-13-01'" in refused(path)


def test_no_file(tmp_path: Path) -> None:
    assert "No file matches" in refused(write_spec(tmp_path), SourceError)


def test_unknown_suffix(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.dat", ROWS)
    assert "unknown suffix" in refused(write_spec(tmp_path, source={"files": "log.dat"}))


def test_damaged_parquet(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.parquet", ROWS)
    assert "not a readable parquet" in refused(write_spec(tmp_path, source={"files": "log.parquet"}))


def test_not_text(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    (tmp_path / "log.csv").write_bytes(b"\xff\xfe\x00t,ad\n")
    assert "log.csv line 1: byte 0xff at offset 0 is not utf-8 text" in refused(path)


def test_header_of_a_gzip_holds(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    # Gzipped without the suffix: still read.
    (tmp_path / "log.csv").write_bytes(gzip.compress(("\n".join(ROWS) + "\n").encode()))
    assert len(load(path)) == 4


def test_the_truncated_file_among_several_is_named(tmp_path: Path) -> None:
    lines = [f"{i},{i % 7 * i},{i * i}" for i in range(50_000)]
    write_rows(tmp_path / "1.csv.gz", ["t,ad,sold", *lines])
    broken = write_rows(tmp_path / "2.csv.gz", ["t,ad,sold", *lines])
    broken.write_bytes(broken.read_bytes()[:-5000])
    message = refused(write_spec(tmp_path, source={"files": "*.csv.gz"}), SourceError)
    assert "2.csv.gz: truncated" in message
    assert "1.csv.gz" not in message


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("observed_until", 2**64, "observed_until"),
        ("attribution_window", 2**63, "`$.log.attribution_window` is a number beyond 64 bits"),
        ("attribution_window", -1, "is no delay"),
        ("attribution_window", "-1h", "is no duration"),
    ],
)
def test_bounds_of_a_log_that_no_log_has(tmp_path: Path, key: str, value: object, word: str) -> None:
    assert word in refused(dataset(tmp_path, ROWS, log={key: value}))


def test_a_bound_of_rewards_is_finite(tmp_path: Path) -> None:
    path = dataset(tmp_path, ROWS, log={"reward_max": 3.5})
    path.write_text(path.read_text(encoding="utf-8").replace("3.5", "inf"), encoding="utf-8")
    assert "reward_max" in refused(path)
