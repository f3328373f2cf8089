"""One table of events of several types: ``where`` says which rows are displays, and which are events of a kind."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator import Log, load
from evaluator.errors import EvaluatorError, LogError, SourceError, SpecError, UsageError
from evaluator.reading.resolve import read
from evaluator.reading.spec_sections import conditions
from tests.reading.sources import dataset, write_rows, write_spec

N = 60
SHOWN, SOLD, CLICKED = "event = 'shown'", "event = 'sale'", "event = 'click'"


def events() -> pl.DataFrame:
    """Displays, each third with a click and each fifth with a sale, in the order of their times."""
    rows: list[tuple[int, str, str | None, str, float | None]] = []
    for i in range(N):
        rows.append((10 * i, "shown", f"d{i}", "ab"[i % 2], None))
        rows += [(10 * i + 3, "click", f"d{i}", "ab"[i % 2], None)] if i % 3 == 0 else []
        rows += [(10 * i + 25, "sale", f"d{i}", "ab"[i % 2], 1.5)] if i % 5 == 0 else []
        rows += [(10 * i + 4, "login", None, "", None)] if i % 7 == 0 else []
    schema = {"t": pl.Int64, "event": pl.String, "id": pl.String, "ad": pl.String, "gain": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("t", maintain_order=True)


def rows_of(log: Log) -> list[Any]:
    return [table.to_pylist() for table in (log.displays, log.events, log.actions)]


def write(frame: pl.DataFrame, path: Path) -> str:
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=17)
    else:
        frame.write_ipc(path)
    return path.name


def sections(displays: str, sales: str, clicks: str, *, where: bool) -> dict[str, Any]:
    said = {"shown": {"where": SHOWN}, "sold": {"where": SOLD}, "clicked": {"where": CLICKED}} if where else {}
    return {
        "source": {"files": displays, **said.get("shown", {})},
        "display": {"id": "id"},
        "conversion": {
            "time": "t",
            "value": "gain",
            "source": {"files": sales, "display": "id", **said.get("sold", {})},
        },
        "outcomes": {"click": {"time": "t", "source": {"files": clicks, "display": "id", **said.get("clicked", {})}}},
        "log": {"reward_max": 10},
    }


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_rows_that_are_meant_are_the_log_of_a_table_that_holds_no_others(tmp_path: Path, suffix: str) -> None:
    whole = events()
    name = write(whole, tmp_path / f"events{suffix}")
    apart = [write(whole.filter(event=kind), tmp_path / f"{kind}{suffix}") for kind in ("shown", "sale", "click")]
    log = load(write_spec(tmp_path, **sections(name, name, name, where=True)))
    assert rows_of(log) == rows_of(load(write_spec(tmp_path, **sections(*apart, where=False))))
    assert len(log) == N
    assert log.conversions.num_rows == N // 5
    assert log.meta.counts["lines_passed_over"] == whole.height - N
    assert log.meta.notes == (f"Passed over were {whole.height - N} lines: {whole.height - N} not where {SHOWN}.",)


def test_frames_take_the_same_conditions(tmp_path: Path) -> None:
    frame = events()
    spec = write_spec(tmp_path, **sections(*3 * [write(frame, tmp_path / "e.parquet")], where=True))
    log = Log.from_frames(
        frame, frame, time="t", action="ad", id="id", where=SHOWN, conversion_where=SOLD, conversion_time="t",
        value="gain", outcomes={"click": {"frame": frame, "where": CLICKED, "time": "t"}}, unit="s", reward_max=10,
    )  # fmt: skip
    assert rows_of(log) == rows_of(load(spec))


def test_a_table_of_which_no_row_is_meant_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.csv", ["event,t,ad,id", "display,1,a,1", "display,2,b,2", "sale,3,,1"])
    spec = write_spec(
        tmp_path, source={"where": "event = 'display'"}, display={"id": "id"},
        conversion={"time": "t", "source": {"files": "log.csv", "display": "id", "where": "event = 'Sale'"}},
    )  # fmt: skip
    said = "[conversion.source] gives no conversion: none of its 3 rows is where event = 'Sale'."
    assert said in load(spec).meta.notes


def test_limits_count_rows_that_are_meant(tmp_path: Path) -> None:
    name = write(events(), tmp_path / "events.csv")
    spec = write_spec(tmp_path, **sections(name, name, name, where=True))
    log = load(spec, limit=7)
    assert len(log) == 7
    assert log.conversions.num_rows == 2


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("k = 'a'", [1, 5]), ("k != 'a'", [2, 3]), ("k in ('a', 'B')", [1, 2, 5]), ("k is null", [4]),
        ("k is not null and t != '2'", [1, 3, 5]), ("\"k\" = ' a '", [1, 5]), ("k IN ('it''s')", [3]),
        ("t = '7.0'", []),
    ],
)  # fmt: skip
def test_conditions_compare_the_texts_that_tell_values_apart(tmp_path: Path, where: str, expected: list[int]) -> None:
    rows = ["1,x,,a", "2,x,,B", "3,x,,it's", "4,x,,", "5,x,, a"]
    both = [row.replace("x", ad) for row in rows for ad in "xy"]
    spec = dataset(tmp_path, ["t,ad,sold,k", *both], source={"where": where})
    if expected:
        assert load(spec).column("time").tolist() == [t for t in expected for _ in "xy"]
    else:
        with pytest.raises(LogError, match=r"10 not where t = '7\.0'"):
            load(spec)


def test_a_flag_can_say_which_rows_are_meant(tmp_path: Path) -> None:
    lines = [{"t": i, "ad": "xxyy"[i], "sold": i % 2 == 0, "bot": i == 2} for i in range(4)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    conversion = {"time": None, "indicator": "sold", "immediate": True}
    kept = {"source": {"files": "log.jsonl", "where": "bot = 'false'"}, "conversion": conversion}
    log = load(write_spec(tmp_path, **kept))
    assert log.column("time").tolist() == [0, 1, 3]
    assert log.conversions.num_rows == 1
    both = {"source": {"files": "log.jsonl", "where": "sold = 'true'"}, "conversion": conversion}
    assert load(write_spec(tmp_path, **both)).conversions.num_rows == 2


def test_rows_are_named_by_their_lines_and_broken_ones_are_told(tmp_path: Path) -> None:
    rows = ["t,ad,sold,k", "1,x,,no", "two,x,,yes", "3,x", "four,x,,no"]
    with pytest.raises(SourceError, match=r"log.csv line 4: 2 cells where 4") as caught:
        load(dataset(tmp_path, rows, source={"where": "k = 'yes'"}))
    assert "log.csv line 3: 'two'" in str(caught.value)
    assert "four" not in str(caught.value)
    reading = read(
        dataset(tmp_path, [*rows, *50 * ["5,x,,yes", "5,y,,yes"]], source={"where": "k = 'yes'"}),
        on_error="quarantine", quarantine_at_most="5%",
    )  # fmt: skip
    assert reading.quarantine["line"].to_pylist() == [3, 4]
    assert len(reading.log) == 100


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "at character 1: expected a column, got the end"),
        ("k == 'a'", "at character 3: expected =, !=, in or is, got '==': write one ="),
        ("k = a", "at character 5: expected a text in single quotes, got 'a': write 'a'"),
        ('k = "a"', "at character 5: expected a text in single quotes, got 'a': write 'a'"),
        ("k = 7", "at character 5: expected a text in single quotes, got '7': write '7'"),
        ("k = 'a", "at character 5: expected a text in single quotes"),
        ("k = 'a' or k = 'b'", "at character 9: expected and, or the end, got 'or': conditions are joined by and"),
        ("k = 'a';drop table x", "at character 8: expected and, or the end, got ';'"),
        ("k in ('a' 'b')", "at character 11: expected , or ), got 'b': write k in ('a', 'b')"),
        ("k in ()", "at character 7: expected a text in single quotes"),
        ("k not in ('a')", "at character 3: expected =, !=, in or is, got 'not': write k != 'a'"),
        ("k is 'a'", "at character 6: expected null, got 'a': write k is null"),
        ("k", "at character 2: expected =, !=, in or is, got the end"),
    ],
)
def test_other_texts_are_refused_at_their_character(tmp_path: Path, where: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        conditions(where)
    for found in (
        lambda: load(dataset(tmp_path, source={"where": where})),
        lambda: Log.from_frames(events(), time="t", action="ad", conversion_time="t", where=where, unit="s"),
    ):
        with pytest.raises(SpecError) as refused:
            found()
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


def test_columns_and_frames_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"log.csv: no column 'kind'"):
        load(dataset(tmp_path, source={"where": "kind = 'x'"}))
    with pytest.raises(UsageError, match="`conversion_where` is of `conversions`, which is no frame of its own"):
        Log.from_frames(events(), time="t", action="ad", conversion_time="t", conversion_where=SOLD)
    with pytest.raises(EvaluatorError, match="at `conversion_where`: 'x': at character 2"):
        Log.from_frames(
            events(), events(), time="t", action="ad", id="id", conversion_time="t", conversion_where="x", unit="s"
        )
