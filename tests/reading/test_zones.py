"""Times with and without a zone: one clock, or refused, whatever holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from evaluator import Log, load
from evaluator.datasets import convert, draft
from evaluator.errors import LogError, SpecError, UsageError
from evaluator.reading.cells import read_instants
from evaluator.reading.column_profile import Question
from tests.reading.databases import VARIABLE, Shop
from tests.reading.sources import dataset, write_spec

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
# Displays over the night in which clocks are put back: 00:30, 02:10 (summer), 02:05 (winter), 03:30.
SHOWN = [datetime(2024, 10, 26, 22, 30, tzinfo=UTC) + timedelta(minutes=m) for m in (0, 100, 155, 240)]
SOLD = [SHOWN[0] + timedelta(hours=7), None, SHOWN[2] + timedelta(hours=7), None]
ROUTES = ("csv", "jsonl", "parquet", "frame", "query")
Rows = list[dict[str, Any]]


def ticks(moments: list[datetime | None]) -> list[int | None]:
    return [None if moment is None else int(moment.timestamp()) * 10**6 for moment in moments]


def local(moment: datetime | None, zone: ZoneInfo) -> datetime | None:
    return None if moment is None else moment.astimezone(zone).replace(tzinfo=None)


def minutes(moment: datetime, zone: ZoneInfo) -> int:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) // 60


def written(cell: Any) -> Any:
    return str(cell) if isinstance(cell, datetime) else cell


def read(route: str, folder: Path, rows: Rows, time: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return the log in some rows, their times as values where the route has types, as text where it has none."""
    texts = [{name: written(cell) for name, cell in row.items()} for row in rows]
    sections: dict[str, Any] = {"time": {"unit": "datetime", **time}}
    if route == "csv":
        lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in texts]
        return load(dataset(folder, [",".join(rows[0]), *lines], **sections))
    if route == "query":
        return queried(folder, rows, monkeypatch, **sections)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if route == "frame":
        return Log.from_frames(frame, time="t", action="ad", conversion_time="sold", **time)
    file = folder / f"log.{route}"
    if route == "parquet":
        frame.write_parquet(file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in texts))
    return load(write_spec(folder, source={"files": file.name}, **sections))


def queried(folder: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch, **sections: Any) -> Log:
    """Return the log that a database answers with, whose columns of times have a zone or none."""
    pytest.importorskip("adbc_driver_duckdb", reason="pip install 'delayed-replay[sql]'")
    shop = Shop("duckdb", str(folder / "log.duckdb"))
    monkeypatch.setenv(VARIABLE, shop.uri)

    def kind(name: str) -> str:
        cell = next(row[name] for row in rows if row[name] is not None)
        if isinstance(cell, datetime):
            return "timestamp" if cell.tzinfo is None else "timestamptz"
        return "text" if isinstance(cell, str) else "bigint"

    cells = [", ".join("NULL" if cell is None else f"'{cell}'" for cell in row.values()) for row in rows]
    columns = ", ".join(f"{name} {kind(name)}" for name in rows[0])
    shop.run(f"CREATE TABLE log ({columns})", f"INSERT INTO log VALUES {', '.join(f'({row})' for row in cells)}")
    convert(write_spec(folder, source={"files": None, **shop.source("SELECT * FROM log")}, **sections), folder / "out")
    return load(str(folder / "out"))


def rows(shown: list[Any], sold: list[Any], **more: list[Any]) -> Rows:
    columns = {"t": shown, "ad": ["a", "b", "a", "b"][: len(shown)], "sold": sold, **more}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("route", ROUTES)
def test_a_zone_or_an_offset_places_the_times_that_say_none(
    route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, sold = [SHOWN[i] for i in (0, 1, 3)], [SOLD[i] for i in (0, 1, 3)]
    aware, naive = (
        rows([of(m) for m in shown], [of(m) for m in sold]) for of in (lambda m: m, lambda m: local(m, NEW_YORK))
    )
    mixed = rows(list(shown), [local(moment, NEW_YORK) for moment in sold])
    offsets = rows([local(moment, BERLIN) for moment in SHOWN], list(SOLD), ahead=[minutes(m, BERLIN) for m in SHOWN])
    for number, (table, time) in enumerate(
        (
            (aware, {}),
            (naive, {"timezone": "America/New_York"}),
            (mixed, {"timezone": {"sold": "America/New_York"}}),
            (mixed, {"timezone": "America/New_York"}),
            (offsets, {"offset": {"t": "ahead"}}),
            (offsets, {"offset": "ahead"}),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        log = read(route, folder, table, time, monkeypatch)
        want, until = (SHOWN, SOLD) if "offset" in time else (shown, sold)
        assert log.column("time").tolist() == ticks(list(want)), (route, time)
        assert log.conversions["time"].to_pylist() == [t for t in ticks(list(until)) if t is not None], (route, time)


@pytest.mark.parametrize("route", ROUTES)
def test_times_of_two_kinds_are_refused_with_both_columns(
    route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = rows(list(SHOWN), [local(moment, BERLIN) for moment in SOLD])
    with pytest.raises(LogError) as refused:
        read(route, tmp_path, mixed, {}, monkeypatch)
    said = str(refused.value)
    place = {"csv": r"log.csv line 2", "jsonl": "log.jsonl line 1", "parquet": "row 1", "frame": "displays row 1"}
    assert said.startswith("Column 'sold' holds times without a zone (")
    assert place.get(route, "") + ": '2024-10-27 06:30:00" in said
    assert "and column 't' times that say theirs (" in said
    assert (
        'timezone={"sold": "Europe/Berlin"}' if route == "frame" else 'timezone = { sold = "Europe/Berlin" }'
    ) in said
    assert "earlier than its display" not in said, "a cause that follows from the mixture is not told in its place"


def test_one_column_of_two_kinds_and_a_second_table_are_refused_too(tmp_path: Path) -> None:
    spec = dataset(
        tmp_path, ["t,ad,sold", "2024-01-01 00:00:00,a,", "2024-01-01T00:00:01Z,b,"], time={"unit": "datetime"}
    )
    both = r"holds times without a zone \(\S* line 2: '2024-01-01 00:00:00'\), and times that say theirs \(\S* line 3"
    with pytest.raises(LogError, match=f"^Column 't' {both}: '2024-01-01T00:00:01Z'"):
        load(spec)
    write_spec(tmp_path, time={"unit": "datetime", "timezone": "Europe/Berlin"})
    assert load(spec).column("time").tolist()[0] == 1_704_063_600_000_000
    (tmp_path / "s.csv").write_text("id,when\n1,2024-01-01T00:00:30+01:00\n")
    sections = {
        "display": {"id": "id"},
        "conversion": {"time": "when", "source": {"files": "s.csv", "display": "id"}},
    }
    spec = dataset(
        tmp_path,
        ["id,t,ad", "1,2024-01-01 00:00:00,a", "2,2024-01-01 00:00:01,b"],
        time={"unit": "datetime"},
        **sections,
    )
    with pytest.raises(
        LogError, match=r"Column 't' holds .* and column 'when' times that say theirs \(\S*s.csv line 2"
    ):
        load(spec)
    write_spec(tmp_path, time={"unit": "datetime", "timezone": "Europe/Berlin"}, **sections)
    assert load(spec).conversions["time"].to_pylist() == [1_704_063_630_000_000]


def test_times_that_all_say_no_zone_are_read_as_utc(tmp_path: Path) -> None:
    found = load(
        dataset(
            tmp_path, ["t,ad,sold", "2024-01-01 00:00,a,2024-01-02", "2024-01-01 00:01,b,"], time={"unit": "datetime"}
        )
    )
    assert found.column("time").tolist() == [1_704_067_200_000_000, 1_704_067_260_000_000]
    assert found.conversions["time"].to_pylist() == [1_704_153_600_000_000]


@pytest.mark.parametrize("route", ROUTES)
def test_an_hour_that_comes_twice_is_told_as_such(route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = rows([local(moment, BERLIN) for moment in SHOWN], [None] * 4)
    # Typed columns without a value have no type of times.
    twice[3]["sold"] = datetime(2024, 10, 27, 9)
    row = {"csv": 3, "frame": 2, "parquet": 2, "jsonl": 2, "query": 2}[route]
    with pytest.raises(LogError) as refused:
        read(route, tmp_path, twice, {"timezone": "Europe/Berlin"}, monkeypatch)
    said = str(refused.value)
    assert "Column 't': a time that comes twice in Europe/Berlin, where clocks were put back (" in said
    assert f"{row}: '2024-10-27 02:10:00" in said or route == "query"
    assert "sorting does not tell" in said
    (folder := tmp_path / "utc").mkdir()
    with pytest.raises(LogError) as refused:
        read(route, folder, twice, {}, monkeypatch)
    said = str(refused.value)
    assert "column 't' goes back from 2024-10-27 02:10:00 to 2024-10-27 02:05:00" in said
    assert "comes twice in zones such as Europe/Berlin" in said
    assert "sort the source" not in said


def test_other_disorder_is_no_hour_that_comes_twice(tmp_path: Path) -> None:
    for first, then in (("2024-10-26 02:10", "2024-10-26 02:05"), ("2024-10-27 02:10", "2024-10-26 23:05"),
                        ("2024-10-27 02:10Z", "2024-10-27 02:05Z")):  # fmt: skip
        with pytest.raises(LogError, match="sort the source"):
            load(dataset(tmp_path, ["t,ad,sold", f"{first},a,", f"{then},b,"], time={"unit": "datetime"}))


def test_an_hour_that_was_skipped_is_told_as_such(tmp_path: Path) -> None:
    spec = dataset(
        tmp_path, ["t,ad,sold", "2024-03-31 01:30,a,", "2024-03-31 02:30,b,", "soon,a,"],
        time={"unit": "datetime", "timezone": "Europe/Berlin"},
    )  # fmt: skip
    with pytest.raises(LogError) as refused:
        load(spec)
    said = str(refused.value)
    assert "a time that Europe/Berlin skipped, where clocks were put forward (" in said
    assert "line 3: '2024-03-31 02:30'" in said
    assert "not an ISO date and time" in said
    assert said.count("line 3") == said.count("line 4") == 1


def test_a_typed_column_beside_formats_of_others_is_told_alike(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"t": [datetime(2024, 10, 27, 2, 30)] * 2, "ad": ["a", "b"], "sold": ["27.10.2024 09:30", None]}
    )
    with pytest.raises(
        LogError, match=r"^Column 't': a time that comes twice in Europe/Berlin.*displays row 1: '2024-10-27 02"
    ):
        Log.from_frames(
            frame, time="t", action="ad", conversion_time="sold", format="%d.%m.%Y %H:%M", timezone="Europe/Berlin"
        )


def test_what_is_no_offset_is_told(tmp_path: Path) -> None:
    time = {"unit": "datetime", "offset": "ahead"}
    spec = dataset(tmp_path, ["t,ad,sold,ahead", "2024-01-01 01:00,a,,2", "2024-01-01 02:00,b,,+05:30"], time=time)
    with pytest.raises(
        LogError, match=r"Column 'ahead': not an offset from UTC \(\S* line 2: '2'\); write the minutes"
    ):
        load(spec)
    spec = dataset(tmp_path, ["t,ad,sold,ahead", "2024-01-01 01:00,a,2024-01-01 02:00,"], time=time)
    with pytest.raises(
        LogError, match=r"Column 't': a time whose 'ahead' is no offset from UTC.*Column 'sold': a time whose"
    ):
        load(spec)


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (
            {"timezone": "Europe/Berlun"},
            "'Europe/Berlun' is none of the time zone database: did you mean Europe/Berlin",
        ),
        ({"timezone": {"when": "UTC"}}, "time.timezone holds 'when', which is no column of times"),
        ({"timezone": "UTC", "unit": "s"}, "timezone is of dates: it goes with unit = 'datetime'"),
        ({"timezone": "UTC", "offset": "x"}, "timezone and offset both place all dates"),
        ({"timezone": {"t": "UTC"}, "offset": {"t": "x"}}, "timezone and offset both place the dates of 't'"),
    ],
)
def test_zones_that_say_nothing_are_refused(tmp_path: Path, time: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(dataset(tmp_path, time={"unit": "datetime", **time}))


@pytest.mark.parametrize(
    ("cells", "form", "aware"),
    [
        (["2024-01-01 00:00:00", None], None, False),
        (["2024-01-01T00:00:00Z", None, "2024-01-01 00:00 UTC"], None, True),
        (["2024-01-01T00:00:00+01:00"], None, True),
        (["2024-01-01", "2024-01-01Z", None, "2024-01-01 00:00:00.5"], None, [False, True, False, False]),
        (["1704067200.5"], "epoch", True),
        (["01.01.2024 00:00 +0100"], "%d.%m.%Y %H:%M %z", True),
        (["01.01.2024"], "%d.%m.%Y", False),
    ],
)
def test_whether_times_say_their_zone(cells: list[str | None], form: str | None, aware: Any) -> None:
    found = read_instants(pl.Series(cells, dtype=pl.String), form)
    assert (found.aware if isinstance(found.aware, bool) else found.aware.to_list()) == aware
    assert found.ticks.is_null().to_list() == [cell is None for cell in cells]


def test_a_draft_asks_for_the_zone_where_only_some_times_say_theirs(tmp_path: Path) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    shown = [start + timedelta(hours=i) for i in range(200)]
    sold = ["" if i % 5 else str(local(m + timedelta(hours=2), NEW_YORK)) for i, m in enumerate(shown)]
    lines = [
        f"{m.isoformat()},{'red' if i % 2 else 'blue'},{s}" for i, (m, s) in enumerate(zip(shown, sold, strict=True))
    ]
    (tmp_path / "log.csv").write_text("\n".join(["shown_at,banner,sold_at", *lines]) + "\n")

    def answering(zone: str) -> Callable[[Question], str]:
        return lambda question: zone if question.key == "time.timezone" else question.guess

    asked = draft(tmp_path / "log.csv", ask=answering("America/New_York"))
    assert 'timezone = { sold_at = "America/New_York" }' in asked.toml()
    left = draft(tmp_path / "log.csv")
    assert '# timezone = { sold_at = "Europe/Berlin" }' in left.toml()
    assert "time.timezone" in left.missing
    with pytest.raises(UsageError, match=r"time.timezone: 'CST6' is none of the time zone database"):
        draft(tmp_path / "log.csv", ask=answering("CST6"))
    text = (tmp_path / "log.csv").read_text().replace("+00:00", "")
    (tmp_path / "log.csv").write_text(text)
    assert "timezone" not in draft(tmp_path / "log.csv").toml()


@pytest.mark.parametrize("zone", ["PST", "CEST", "IST", "Z", "UTC+1", "GMT+10", ""])
def test_no_other_zone_is_proposed_for_an_abbreviation(tmp_path: Path, zone: str) -> None:
    with pytest.raises(SpecError, match="name a place of that zone, such as Europe/Berlin"):
        load(dataset(tmp_path, time={"unit": "datetime", "timezone": zone}))


@pytest.mark.parametrize(
    ("shown", "start", "time", "said"),
    [
        (
            "2024-07-01T0{}:00+02:00",
            "2024-07-01",
            {},
            "holds times without a zone ([[action]] from: '2024-07-01'), and ",
        ),
        ("2024-07-01T0{}:00", "2024-07-01T00:00Z", {}, "that say theirs ([[action]] from: '2024-07-01T00:00Z')"),
        ("2024-07-01T0{}:00+02:00", "2024-07-01", {"timezone": {"t": "Europe/Berlin"}}, ""),
        ("2024-07-01T0{}:00", "2024-07-01", {}, ""),
        ("2024-07-01T0{}:00Z", "2024-07-01T00:00+02:00", {}, ""),
    ],
)
def test_flights_in_the_spec_are_of_the_clock_of_the_displays(
    tmp_path: Path, shown: str, start: str, time: dict[str, Any], said: str
) -> None:
    rows = ["t,ad,sold", f"{shown.format(0)},a,", f"{shown.format(1)},b,"]
    spec = dataset(tmp_path, rows, time={"unit": "datetime", **time})
    entries = f'\n[[action]]\nlabel = "a"\n[[action]]\nlabel = "b"\nfrom = "{start}"\n'
    spec.write_text(spec.read_text() + entries)
    if said:
        with pytest.raises(LogError, match=re.escape(said)):
            load(spec)
    else:
        assert len(load(spec)) == 2
