"""Fields within columns, and lists and maps whose elements make rows, whatever holds them: the log of flat tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator import Log, load
from evaluator.errors import SourceError, SpecError
from evaluator.reading.cells import Kind
from evaluator.reading.frames import Chunks
from evaluator.reading.json_lines import BROKEN
from evaluator.reading.row_breaches import LINE
from evaluator.reading.sources.files import find_files
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec_sections import Source
from tests.reading.sources import write_rows, write_spec
from tests.reading.test_event_tables import rows_of

N = 40
DISPLAYS: list[dict[str, Any]] = [
    {
        "id": f"d{i}",
        "t": i,
        "shown": {"ad": "abc"[i % 3], "at": {"place": None if i % 7 == 0 else f"p{i % 4}"}},
        "user": None if i % 11 == 0 else {"country": ["de", "fr", None][i % 3], "age": 20 + i, "vip": i % 2 == 0},
        "slate": [{"ad": ad, "p": 0.25 if ad != "a" else 0.5, "price": i + k / 2} for k, ad in enumerate("abc")],
        "chances": {"a": 0.5, "b": 0.25, "c": 0.25},
        "bought": [{"at": i + k, "gain": 1.5 * k + 1} for k in range(i % 3)],
    }
    for i in range(N)
]
CHANCES = pa.map_(pa.string(), pa.float64())


def table() -> pa.Table:
    chances = pa.array([list(row["chances"].items()) for row in DISPLAYS], CHANCES)
    plain = pa.Table.from_pylist([{key: of for key, of in row.items() if key != "chances"} for row in DISPLAYS])
    return plain.append_column("chances", chances)


def write(path: Path) -> str:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in DISPLAYS))
    elif path.suffix == ".parquet":
        pq.write_table(table(), path, row_group_size=9)
    else:
        pl.from_arrow(table()).write_ipc(path)  # type: ignore[union-attr]
    return path.name


NESTED: dict[str, Any] = {
    "display": {"id": "id", "action": "shown.ad"},
    "conversion": {
        "time": "bought.at",
        "value": "bought.gain",
        "source": {"display": "id", "explode": "bought"},
    },
    "context": {"columns": ["user.country", "shown.at.place"]},
    "keep": {"vip": "user.vip"},
    "log": {"observed_until": "complete", "reward_max": 10},
}


def flat(folder: Path) -> Log:
    """Return the log of the same rows in flat tables."""
    user = [row["user"] or {} for row in DISPLAYS]
    pl.DataFrame(
        {
            "id": [row["id"] for row in DISPLAYS], "t": [row["t"] for row in DISPLAYS],
            "shown.ad": [row["shown"]["ad"] for row in DISPLAYS],
            "shown.at.place": [row["shown"]["at"]["place"] for row in DISPLAYS],
            "user.country": [of.get("country") for of in user], "user.vip": [of.get("vip") for of in user],
        }
    ).write_parquet(folder / "flat.parquet")  # fmt: skip
    lists = {"bought": ["at", "gain"], "slate": ["ad", "p", "price"]}
    for name, fields in lists.items():
        rows = [{"id": row["id"], **{f"{name}.{f}": of[f] for f in fields}} for row in DISPLAYS for of in row[name]]
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    return load(write_spec(folder, **sections("flat.parquet", bought="bought.parquet", slate="slate.parquet")))


def sections(files: str, *, bought: str | None = None, slate: str | None = None) -> dict[str, Any]:
    source = {**NESTED["conversion"]["source"], "files": bought or files, "explode": None if bought else "bought"}
    candidates = {
        "files": slate or files, "explode": None if slate else "slate", "display": "id", "action": "slate.ad",
        "propensity": "slate.p", "features": ["slate.price"],
    }  # fmt: skip
    return {
        **NESTED,
        "source": {"files": files},
        "conversion": {**NESTED["conversion"], "source": {k: v for k, v in source.items() if v is not None}},
        "candidates": {k: v for k, v in candidates.items() if v is not None},
    }


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_fields_and_lists_are_the_log_of_flat_tables(tmp_path: Path, suffix: str) -> None:
    files = write(tmp_path / f"log{suffix}")
    log = load(write_spec(tmp_path, **sections(files)))
    assert log.conversions.num_rows == sum(i % 3 for i in range(N))
    assert log.meta.encoder is not None
    wanted = flat(tmp_path)
    assert rows_of(log) == rows_of(wanted)
    assert log.schema == wanted.schema


def test_frames_hold_the_same(tmp_path: Path) -> None:
    log = Log.from_frames(
        table(), table(), candidates=table(), time="t", action="shown.ad", id="id", conversion_time="bought.at",
        value="bought.gain", conversion_explode="bought", candidate_explode="slate", candidate_action="slate.ad",
        candidate_propensity="slate.p", candidate_features="slate.price", keep={"vip": "user.vip"}, unit="s",
        context={"user.country": "category", "shown.at.place": "category"}, observed_until="complete", reward_max=10,
    )  # fmt: skip
    assert rows_of(log) == rows_of(flat(tmp_path))


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_the_entries_of_a_map_are_candidates(tmp_path: Path, suffix: str) -> None:
    files = write(tmp_path / f"log{suffix}")
    given = {**sections(files), "context": {}}
    given["candidates"] = {
        "files": files, "explode": "chances", "display": "id", "action": "chances.key", "propensity": "chances.value",
    }  # fmt: skip
    log = load(write_spec(tmp_path, **given))
    assert set(log.column("propensity").tolist()) == {0.5, 0.25}
    assert log.labels == ["a", "b", "c"]


def chunks(path: Path, source: dict[str, Any], kinds: dict[str, Any]) -> pl.DataFrame:
    of = Source.model_validate({"files": str(path), **source})
    files: list[TablePart] = [*find_files(of, Path())]
    return Chunks(files, of, kinds).collect()


def test_rows_of_elements_have_the_line_of_their_list(tmp_path: Path) -> None:
    lines = [{"id": 1, "x": [1, 2]}, {"id": 2, "x": []}, {"id": 3}, {"id": 4, "x": None}, {"id": 5, "x": [3]}]
    (tmp_path / "log.jsonl").write_text(
        "\n" + "".join(json.dumps(of) + "\n" for of in [*lines[:4], {"id": 5, "x": [3]}])
    )
    rows = chunks(tmp_path / "log.jsonl", {"explode": "x"}, {"id": "int", "x": "int"})
    assert rows.select("id", "x", LINE).rows() == [(1, 1, 2), (1, 2, 2), (5, 3, 6)]
    frame = pl.DataFrame({"id": [1, 2, 3, 4, 5], "x": [[1, 2], [], None, None, [3]]})
    frame.write_parquet(tmp_path / "log.parquet")
    rows = chunks(tmp_path / "log.parquet", {"explode": "x"}, {"id": "int", "x": "int"})
    assert rows.select("id", "x", LINE).rows() == [(1, 1, 1), (1, 2, 1), (5, 3, 5)]
    write_rows(tmp_path / "log.csv", ["id,x", '1,"[1, 2]"', "2,[]", "3,", "5,[3]"])
    rows = chunks(tmp_path / "log.csv", {"explode": "x"}, {"id": "int", "x": "int"})
    assert rows.select("id", "x", LINE).rows() == [(1, 1, 2), (1, 2, 2), (5, 3, 5)]


def test_a_key_with_dots_is_read_before_one_within(tmp_path: Path) -> None:
    lines = [{"t": 0, "a.b": "x", "a": {"b": "no"}}, {"t": 1, "a": {"b": "y"}}, {"t": 2, "a": 3}, {"t": 3, "a.b": "z"}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(of) + "\n" for of in lines))
    rows = chunks(tmp_path / "log.jsonl", {}, {"a.b": "category"})
    assert rows["a.b"].to_list() == ["x", "y", None, "z"]


def touches(folder: Path, kind: str, **conversion: Any) -> Path:
    """Sales that list the displays which led to them."""
    write_rows(folder / "log.csv", ["id,t,ad", *(f"d{i},{10 * i},{'ab'[i % 2]}" for i in range(8))])
    rows: list[dict[str, Any]] = [
        {"order": "o1", "sold": 100, "gain": 6.0, "seen": ["d4", "d1", "d2"]},
        {"order": "o2", "sold": 101, "gain": 2.0, "seen": ["d7"]},
        {"order": "o3", "sold": 102, "gain": 9.0, "seen": []},
    ]
    if kind == "jsonl":
        (folder / "sales.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        pl.DataFrame(rows).write_parquet(folder / "sales.parquet")
    else:
        pl.DataFrame([{**row, "seen": json.dumps(row["seen"])} for row in rows]).write_csv(folder / "sales.csv")
    source = {"files": f"sales.{kind}", "explode": "seen", "display": "seen"}
    return write_spec(folder, display={"id": "id"}, conversion={"value": "gain", "source": source, **conversion})


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("last_click", [(4, 6.0), (7, 2.0)]),
        ("first_click", [(1, 6.0), (7, 2.0)]),
        ("share", [(1, 2.0), (2, 2.0), (4, 2.0), (7, 2.0)]),
    ],
)
def test_a_sale_that_lists_displays_goes_where_the_rule_says(
    tmp_path: Path, kind: str, rule: str, expected: list[tuple[int, float]]
) -> None:
    log = load(touches(tmp_path, kind, key=["order"], deduplicate=rule))
    assert [(row["display_id"], row["value"]) for row in log.conversions.to_pylist()] == expected


def test_a_sale_that_lists_displays_needs_a_rule(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"source.explode = 'seen' gives one conversion to each of several displays: say"
    ):
        load(touches(tmp_path, "jsonl"))


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"action": "shown.what"}, SourceError, "no column 'shown.what'. Hint: did you mean shown.a"),
        ({"action": "shown.ad.more"}, SourceError, "no column 'shown.ad.more'"),
        ({"action": "nothing.ad"}, SourceError, "no column 'nothing.ad'"),
        ({"action": "shown"}, SourceError, "column 'shown' holds"),
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_what_is_not_there_is_named(
    tmp_path: Path, change: dict[str, str], kind: type[Exception], said: str, suffix: str
) -> None:
    files = write(tmp_path / f"log{suffix}")
    given = {**sections(files), "context": {}, "keep": {}}
    given.pop("candidates")
    with pytest.raises(kind) as caught:
        load(write_spec(tmp_path, **{**given, "display": {"id": "id", **change}}))
    assert said.partition(". Hint")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write_one", [
    lambda path: path.with_suffix(".jsonl").write_text('{"id": "d0", "x": 7}\n'),
    lambda path: pl.DataFrame({"id": ["d0"], "x": [7]}).write_parquet(path.with_suffix(".parquet")),
    lambda path: path.with_suffix(".csv").write_text("id,x\nd0,7\n"),
])  # fmt: skip
def test_no_list_is_refused(tmp_path: Path, write_one: Callable[[Path], Any]) -> None:
    write_one(tmp_path / "log")
    (path,) = tmp_path.iterdir()
    with pytest.raises(SourceError, match=r"column 'x' holds \S+, which is no list"):
        chunks(path, {"explode": "x"}, {"id": "text", "x": "text"})
    with pytest.raises(SourceError, match="no column 'y'"):
        chunks(path, {"explode": "y"}, {"id": "text"})


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_text_may_be_an_array_in_any_file(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"id": ["d0", "d1", "d2", "d3"], "x": ['["a", 7, null, 1.50]', "[]", None, '["é"]']})
    path = tmp_path / f"log{suffix}"
    {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[suffix](path)
    found = chunks(path, {"explode": "x"}, {"id": "text", "x": "text"})
    assert found.select("id", "x").rows() == [("d0", "a"), ("d0", "7"), ("d0", None), ("d0", "1.50"), ("d3", "é")]


def test_broken_lines_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"t": 1, "u": {"a": "x", "a": "y"}}\n{"t": 2, "u": {"a": "x"}}\nnope\n')
    spec = write_spec(
        tmp_path, source={"files": "log.jsonl"}, display={"action": "u.a"},
        conversion={"time": None, "indicator": "t", "immediate": True},
    )  # fmt: skip
    with pytest.raises(SourceError, match=r"line 1: .*two values of 'u.a'.*line 3: 'nope'"):
        load(spec)


@pytest.mark.parametrize(("suffix", "rows"), [
    (".jsonl", ['{"id": 1, "sold": 5}', "nope"]),
    (".csv", ["id,sold,x", "1,5,", "1,5"]),
])  # fmt: skip
def test_rows_of_another_width_are_told_once_in_a_second_table(tmp_path: Path, suffix: str, rows: list[str]) -> None:
    write_rows(tmp_path / "log.csv", ["id,t,ad", "1,1,a", "2,2,b"])
    write_rows(tmp_path / f"sales{suffix}", rows)
    spec = write_spec(
        tmp_path, display={"id": "id"}, conversion={"source": {"files": f"sales{suffix}", "display": "id"}}
    )
    with pytest.raises(SourceError) as caught:
        load(spec)
    assert "without display" not in str(caught.value)


@pytest.mark.parametrize(("line", "key"), [
    ('{"u": {"a": "x"}, "u": {"a": "y"}, "l": [{"k": 1}]}', "u"),
    ('{"u": {"a": "x", "a": "y"}, "l": [{"k": 1}]}', "u.a"),
    ('{"u": {"a": "x"}, "l": [{"k": 1}], "l": []}', "l"),
    ('{"u": {"a": "x"}, "l": [{"k": 1}, {"k": 2, "k": 3}]}', "l.k"),
    ('{"u": {"a": "x"}, "l": {"p": 1, "p": 2}}', "l.p"),
])  # fmt: skip
def test_keys_on_the_way_to_a_column_stand_once(tmp_path: Path, line: str, key: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line + '\n{"u": {"a": "z", "b": 1, "b": 2}, "l": [{"k": 4, "z": 5, "z": 6}]}\n')
    kinds: dict[str, Kind] = {"u.a": "text", "l.key" if key == "l.p" else "l.k": "text"}
    frame = chunks(path, {"explode": "l"}, kinds)
    assert [str(said).endswith(f"(two values of {key!r})") for said in frame[BROKEN]] == [True, False]
    assert frame["u.a"].to_list() == [None, "z"]


def test_names_with_dots_stand_in_quotes(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r'a name with dots stands in quotes, "user\.country"'):
        load(write_spec(tmp_path, context={"columns": {"user": {"country": "category"}}}))


@pytest.mark.parametrize(
    ("suffix", "column", "said"),
    [
        (".parquet", "user", "name a field of it, such as 'user.country', or write one number or text a row"),
        (".jsonl", "user", "name a key of it, such as 'user.country', or write one number or text a row"),
        (".parquet", "slate", "explode = 'slate' makes a row of each element, such as 'slate.ad'; or write one value"),
        (".parquet", "chances", "explode = 'chances' makes a row of each element, such as 'chances.key'; or write"),
    ],
)
def test_columns_of_several_values_say_how_these_are_named(tmp_path: Path, suffix: str, column: str, said: str) -> None:
    files = write(tmp_path / f"log{suffix}")
    given = {"source": {"files": files}, "display": {"action": "id"}, "conversion": {"time": "t"}}
    with pytest.raises(SourceError, match=rf"column '{column}' holds .*Hint: {said}"):
        load(write_spec(tmp_path, **given, context={"columns": [column]}))
