"""Columns of every type that a Parquet or IPC file may hold, in every role: a log, or one line."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from evaluator import Log
from evaluator.datasets import load
from evaluator.errors import DataError
from tests.reading.sources import write_spec

N = 6
TYPES: dict[str, pa.Array] = {
    "decimal128": pa.array([Decimal(i) for i in range(N)], pa.decimal128(38, 10)),
    "time64": pa.array(range(N), pa.time64("ns")),
    "duration": pa.array(range(N), pa.duration("ns")),
    "dictionary": pa.array(list("ababab")).dictionary_encode(),
    "struct": pa.array([{"a": i} for i in range(N)]),
    "list of struct": pa.array([[{"a": i}] for i in range(N)]),
    "list": pa.array([[i] for i in range(N)]),
    "binary": pa.array([b"\xff\x00"] * N),
    "float16": pa.array(range(N), pa.float16()),
    "uint64": pa.array([2**63 + i for i in range(N)], pa.uint64()),
    "last ns": pa.array([2**63 - N + i for i in range(N)], pa.timestamp("ns", "Europe/Berlin")),
    "first ns": pa.array([-(2**63) + 1 + i for i in range(N)], pa.timestamp("ns")),
    "far ms": pa.array([2**61 + i for i in range(N)], pa.timestamp("ms")),
    "far us": pa.array([-(2**63) + 1 + i for i in range(N)], pa.timestamp("us")),
    "date": pa.array([date(2020, 1, 1)] * N),
    "null": pa.nulls(N),
    "bool": pa.array([True, False] * 3),
    "float": pa.array([0.0, 1.0, float("nan"), float("inf"), 1e300, -1e300]),
    "last": pa.array([2**63 - 1] * N),
    "first": pa.array([-(2**63)] * N),
    "text": pa.array(["²", "x", "1_0", "1e5", "0x1", ""]),
}
ROLES: dict[str, dict[str, Any]] = {
    "time": {"display": {"time": "v"}},
    "action": {"display": {"action": "v"}},
    "id": {"display": {"id": "v"}},
    "propensity": {"display": {"propensity": "v"}},
    "sold": {"conversion": {"time": "v"}},
    "delay": {"conversion": {"time": None, "delay": "v"}},
    "value": {"conversion": {"value": "v"}},
    "category": {"context": {"columns": ["v"]}},
    "number": {"context": {"columns": {"v": "number"}}},
}


def source(folder: Path, column: pa.Array, *, unit: str = "s", **sections: Any) -> Path:
    own = {"t": pa.array(range(N)), "ad": pa.array(list("ababab")), "sold": pa.array([None, 3, None, None, 9, None])}
    pq.write_table(pa.table({**own, "v": column}), folder / "log.parquet")
    return write_spec(folder, source={"files": "log.parquet"}, time={"unit": unit}, **sections)


@pytest.mark.parametrize(("role", "unit"), [*((role, "s") for role in ROLES), ("time", "datetime")])
def test_every_type_in_every_role(tmp_path: Path, role: str, unit: str) -> None:
    for name, column in TYPES.items():
        try:
            log = load(source(tmp_path, column, unit=unit, **ROLES[role]))
        except DataError as error:
            lines = str(error).count("\n") + 1
        else:
            lines = 1
            assert len(log) == N, name
            delays = log.conversions["time"].to_numpy() - log.column("time")[log.conversions["display_id"].to_numpy()]
            assert (delays >= 0).all(), name
        assert lines == 1, name


@pytest.mark.parametrize(
    ("role", "name", "said"),
    [
        ("value", "date", "column 'v' holds Date, not numbers"),
        ("category", "struct", "column 'v' holds Struct"),
        ("category", "binary", "column 'v' holds Binary"),
        ("category", "far ms", "column 'v' holds times beyond any calendar"),
        ("time", "first", r"'v': a time beyond 2\^62 ticks .*log\.parquet row 1: '-9223372036854775808'"),
        ("delay", "last", r"'v': a time beyond 2\^62 ticks"),
        ("time", "uint64", "not a whole number"),
    ],
)
def test_what_is_said(tmp_path: Path, role: str, name: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        load(source(tmp_path, TYPES[name], **ROLES[role]))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(10, 2)])
def test_a_fraction_of_a_tick_is_not_cut_off(tmp_path: Path, kind: pa.DataType) -> None:
    column = pa.array([Decimal(i) + (Decimal("0.5") if i == 3 else 0) for i in range(N)])
    with pytest.raises(DataError, match=r"not a whole number \(.*row 4: '3\.50?'\)"):
        load(source(tmp_path, column.cast(kind), display={"time": "v"}))


@pytest.mark.parametrize("zone", ["+05:30", "Nowhere/Land"])
def test_an_unknown_zone_of_times_is_one_line(tmp_path: Path, zone: str, capfd: pytest.CaptureFixture[str]) -> None:
    spec = source(tmp_path, pa.array(range(N), pa.timestamp("us", zone)), unit="datetime", display={"time": "v"})
    with pytest.raises(DataError, match=re.escape(f"log.parquet: holds times of the zone {zone!r}, which")):
        load(spec)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 40 + b"PAR1", bytes(range(256)) * 9])
@pytest.mark.parametrize("name", ["log.parquet", "log.arrow", "log.csv", "log.csv.gz"])
def test_files_that_are_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name) as raised:
        load(write_spec(tmp_path, source={"files": name}))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_a_truncated_parquet_file(tmp_path: Path, cut: float) -> None:
    spec = source(tmp_path, TYPES["float16"])
    file = tmp_path / "log.parquet"
    file.write_bytes(file.read_bytes()[: int(cut * file.stat().st_size)])
    with pytest.raises(DataError, match="not a readable parquet file"):
        load(spec)


def test_decimal_numbers_are_one_number_however_many_zeros_they_end_with(tmp_path: Path) -> None:
    cells = [Decimal(x) for x in ("17", "0.5", "100", "-2.25", "0", "1.10")]
    log = load(source(tmp_path, pa.array(cells, pa.decimal128(12, 4)), display={"action": "v", "id": "v"}))
    assert sorted(log.labels) == sorted(["17", "0.5", "100", "-2.25", "0", "1.1"])


def test_a_kept_column_of_decimal_numbers_holds_numbers(tmp_path: Path) -> None:
    log = load(source(tmp_path, pa.array([Decimal("1.50")] * N, pa.decimal128(12, 2)), keep={"v": "v"}))
    assert log.column("v").tolist() == [1.5] * N


ODD: dict[str, tuple[pa.Array, pa.Array]] = {
    "uuid": (pa.array([bytes([i] * 16) for i in range(N)], pa.uuid()),
             pa.array([str(UUID(bytes=bytes([i] * 16))) for i in range(N)])),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0] * 3, pa.int8())), pa.array([True, False] * 3)),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[1]", "2"] * 3)), pa.array(["[1]", "2"] * 3)),
    "runs": (pa.RunEndEncodedArray.from_arrays(pa.array([2, N], pa.int32()), pa.array([7, 8])),
             pa.array([7, 7, *[8] * (N - 2)])),
    "decimal256": (pa.array([Decimal(i) for i in range(N)], pa.decimal256(50, 10)),
                   pa.array([Decimal(i) for i in range(N)], pa.decimal128(38, 10))),
    "decimal256 of few digits": (pa.array([Decimal(i) for i in range(N)], pa.decimal256(12, 2)),
                                 pa.array([Decimal(i) for i in range(N)], pa.decimal128(12, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_types_that_polars_has_not_are_read_alike_from_files_and_frames(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    odd, plain = ODD[name]
    own = {"t": range(N), "sold": pa.array([None, 3, None, None, 9, None])}
    spec = write_spec(tmp_path, source={"files": "log"}, display={"action": "v"})

    def everything(log: Log) -> list[Any]:
        return [log.displays.to_pydict(), log.conversions.to_pydict(), log.labels]

    def of_frame(column: pa.Array) -> list[Any]:
        return everything(Log.from_frames(pa.table({**own, "v": column}), time="t", action="v", conversion_time="sold",
                                          unit="s"))  # fmt: skip

    wanted = of_frame(plain)
    assert of_frame(odd) == wanted
    for write in [pq.write_table] * (name != "runs") + [feather.write_feather]:
        write(pa.table({**own, "v": odd}), tmp_path / ("log.parquet" if write is pq.write_table else "log.arrow"))
        assert everything(load(spec, path=str(next(tmp_path.glob("log.*"))))) == wanted
        next(tmp_path.glob("log.*")).unlink()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("role", ["action", "delay", "value", "category"])
def test_durations_are_refused_alike_in_every_role(tmp_path: Path, role: str) -> None:
    with pytest.raises(DataError, match="'v' holds Duration"):
        load(source(tmp_path, TYPES["duration"], **ROLES[role]))


def test_numbers_of_too_many_digits_are_one_line_that_names_the_column(tmp_path: Path) -> None:
    column = pa.array([Decimal(10) ** 45] * N, pa.decimal256(60, 10))
    with pytest.raises(DataError, match=r"log.parquet: column 'v' holds decimal256\(60, 10\), which cannot be read"):
        load(source(tmp_path, column, display={"action": "v"}))


def test_a_name_of_a_column_that_is_no_utf8_is_one_line(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1], "ad": ["a"], "sold": [2], "caf\u00e9": [1]}), tmp_path / "log.parquet",
                   store_schema=False)  # fmt: skip
    file = tmp_path / "log.parquet"
    file.write_bytes(file.read_bytes().replace("caf\u00e9".encode(), b"caf\xe9\xe9"))
    with pytest.raises(DataError, match=r"log.parquet: the name of a column is no UTF-8 text \(b'caf") as raised:
        load(write_spec(tmp_path, source={"files": "log.parquet"}))
    assert "\n" not in str(raised.value)
