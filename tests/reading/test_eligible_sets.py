"""Eligible actions as a source gives them: a column of lists, times of the actions, or a table of candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator import datasets, load
from evaluator.errors import DataError, LogError, SourceError, SpecError, UsageError
from evaluator.log import Log
from evaluator.log.eligible import unpack
from tests.reading.sources import spec_data
from tests.reading.test_formats_agree import everything

# Campaigns, when they start, and when they are over.
FLIGHTS: dict[str, tuple[int | None, int | None]] = {
    "10": (None, None), "2": (None, 40), "spring": (20, None), "summer": (30, 60), "never": (900, None),
}  # fmt: skip
FILES = ("log.csv", "log.tsv", "log.jsonl", "log.parquet", "log.arrow")
N = 70


def eligible(time: int) -> list[str]:
    return [a for a, (start, end) in FLIGHTS.items() if (start or 0) <= time < (999 if end is None else end)]


def displays() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    # The last campaign in the list is hardly shown: eligible and never logged for a while.
    rows = []
    for i, time in enumerate(np.sort(rng.integers(0, 70, N)).tolist()):
        offered = eligible(time)
        shown = offered[int(rng.integers(len(offered)))]
        sold = time + 1 if i % 3 == 0 else None
        rows.append({"id": f"d{i:02}", "t": time, "ad": shown, "sold": sold, "who": offered[:: 1 if i % 2 else -1]})
    return rows


def candidates(*, p: bool = False) -> list[dict[str, Any]]:
    rows = []
    for row in displays():
        for i, label in enumerate(row["who"]):
            more = {"p": 1 / len(row["who"])} if p else {"x": float(i), "y": row["t"] / 8}
            rows.append({"of": row["id"], "ad": label, **more})
    return rows


def write(path: Path, rows: list[dict[str, Any]], *, separator: str | None = None) -> None:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    lists = [c for c, kind in frame.schema.items() if kind == pl.List(pl.String)]
    suffix = path.suffix
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix == ".arrow":
        frame.write_ipc(path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        texts = {
            c: [json.dumps(row[c]) if separator is None else separator.join(row[c]) for row in rows] for c in lists
        }
        frame.with_columns(**{c: pl.Series(text) for c, text in texts.items()}).write_csv(
            path, separator="\t" if suffix == ".tsv" else ","
        )


def dump(data: dict[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in data.items() if isinstance(value, dict | list)}
    yield from (f"{key} = {json.dumps(value)}" for key, value in data.items() if key not in tables)
    for key, value in tables.items():
        for part in value if isinstance(value, list) else [value]:
            yield f"[[{key}]]" if isinstance(value, list) else f"[{key}]"
            yield from (f"{k} = {json.dumps(v)}" for k, v in part.items() if v is not None)


def spec(folder: Path, file: str = "log.csv", **sections: Any) -> Path:
    """Write a spec with sets; a log's columns are id, t, ad, sold and who."""
    actions = sections.pop("action", None)
    sections.setdefault("display", {})
    display = {"id": "id", "propensity_kind": "uniform", **sections.pop("display")}
    data = spec_data(source={"files": file}, display=display, **sections)
    path = folder / "spec.toml"
    path.write_text("\n".join(dump(data | ({} if actions is None else {"action": actions}))) + "\n")
    return path


def given(folder: Path, form: str, file: str = "log.csv", rows: list[dict[str, Any]] | None = None) -> Path:
    """Write a log whose sets are given in one of the forms; return its spec."""
    suffix, rows = Path(file).suffix, displays() if rows is None else rows
    write(folder / file, rows, separator="|" if form == "text" else None)
    table = f"more{suffix}"
    if form in ("lists", "text"):
        separator = {"eligible_separator": "|"} if form == "text" and suffix in (".csv", ".tsv") else {}
        return spec(folder, file, display={"eligible": "who", **separator})
    if form == "entries":
        return spec(folder, file, action=[{"label": a, "from": s, "until": u} for a, (s, u) in FLIGHTS.items()])
    if form == "calendar":
        write(folder / table, [{"campaign": a, "starts": s, "ends": u} for a, (s, u) in FLIGHTS.items()])
        named = {"files": table, "action": "campaign", "from": "starts", "until": "ends"}
        return spec(folder, file, calendar=named)
    assert form in ("candidates", "vectors", "propensities")
    write(folder / table, candidates(p=form == "propensities"))
    named = {"files": table, "display": "of", "action": "ad"}
    if form == "vectors":
        named["features"] = ["x", "y"]
        return spec(folder, file, candidates=named, time={"ties": "file"})
    if form == "propensities":
        return spec(folder, file, display={"propensity_kind": None}, candidates={**named, "propensity": "p"})
    return spec(folder, file, candidates=named)


def without_fingerprint(log: Log) -> list[Any]:
    return [*everything(log)[:-1], log.with_meta(fingerprint="", counts={}).meta]


FORMS = ("lists", "text", "entries", "calendar", "candidates")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return load(given(tmp_path_factory.mktemp("lists"), "lists"))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_in_all_formats_are_one_log(tmp_path: Path, log: Log, form: str, file: str) -> None:
    path = given(tmp_path, form, file)
    found = load(path)
    assert without_fingerprint(found) == without_fingerprint(log)
    assert found.displays["eligible"].chunk(0).equals(log.displays["eligible"].chunk(0))
    datasets.convert(path, tmp_path / "converted")
    assert without_fingerprint(load(str(tmp_path / "converted"))) == without_fingerprint(log)


@pytest.mark.parametrize("form", ["calendar", "entries"])
def test_sets_of_many_actions_are_encoded_a_few_displays_at_a_time(
    tmp_path: Path, log: Log, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few bytes that each display is a batch of its own.
    monkeypatch.setattr("evaluator.reading.adapter._SET_BYTES", 8)
    assert without_fingerprint(load(given(tmp_path, form))) == without_fingerprint(log)


def test_the_log_says_what_the_source_says(log: Log) -> None:
    assert log.labels == ["2", "10", "spring", "summer"]  # "never" is eligible at no display
    truths = unpack(log.displays["eligible"], 4)
    for row, bits, p in zip(displays(), truths.tolist(), log.column("propensity").tolist(), strict=True):
        at = [label for label, held in zip(log.labels, bits, strict=True) if held]
        assert sorted(at) == sorted(row["who"])
        assert p == 1 / len(at)
    assert len(log.displays["eligible"].chunk(0).dictionary) == 5


@pytest.mark.parametrize("form", FORMS)
def test_neither_chunks_nor_the_order_of_the_rows_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    whole = load(given(tmp_path, form))
    monkeypatch.setattr("evaluator.reading.frames.CHUNK_ROWS", 7)
    monkeypatch.setattr("evaluator.reading.adapter.BATCH", 11)
    cut = load(tmp_path / "spec.toml")
    assert cut.displays.to_pydict() == whole.displays.to_pydict()
    assert cut.meta == whole.meta
    # Sorting keeps the order of rows of one time, and so brings back that of the file.
    backwards = sorted(displays(), key=lambda row: (-row["t"], row["id"]))
    found = load(given(tmp_path, form, rows=backwards), sort=True)
    assert found.displays.to_pydict() == whole.displays.to_pydict()


@pytest.mark.parametrize("chosen", ["10,spring", "top:2", "used"])
@pytest.mark.parametrize("form", ["lists", "entries", "vectors"])
def test_a_choice_is_the_same_while_reading_and_after(tmp_path: Path, form: str, chosen: str) -> None:
    path = given(tmp_path, form)
    datasets.convert(path, tmp_path / "converted")
    read, stored = load(path, actions=chosen), load(str(tmp_path / "converted"), actions=chosen)
    assert read.displays.to_pydict() == stored.displays.to_pydict()
    assert read.validated()
    assert stored.validated()
    assert read.meta == replace(stored.meta, counts=read.meta.counts, fingerprint=read.meta.fingerprint)
    # Those of the whole set: one over how many are kept would be right, but only for the displays that stay.
    whole = load(path)
    stay = np.isin(whole.column("action"), [whole.labels.index(label) for label in read.labels])
    np.testing.assert_array_equal(read.column("propensity"), whole.column("propensity")[stay])
    assert read.meta.propensity == ("uniform" if chosen == "used" else "logged")


def test_an_action_that_is_eligible_and_never_shown_stays_in_the_sets(tmp_path: Path) -> None:
    rows = [row for row in displays() if row["ad"] != "summer"]
    log = load(given(tmp_path, "lists", rows=rows))
    assert "summer" in log.labels
    assert load(tmp_path / "spec.toml", actions="used").labels == ["2", "10", "spring"]


@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_vectors_are_those_of_the_eligible_actions(tmp_path: Path, log: Log, file: str) -> None:
    found = load(given(tmp_path, "vectors", file))
    assert found.labels == log.labels
    vectors = found.displays["action_set"].to_pylist()
    for row, own in zip(displays(), vectors, strict=True):
        order = sorted(row["who"], key=log.labels.index)
        assert own == [[float(row["who"].index(label)), row["t"] / 8] for label in order]
    datasets.convert(tmp_path / "spec.toml", tmp_path / "converted")
    stored = load(str(tmp_path / "converted"))
    assert stored.displays.equals(found.displays)
    whole = found.column("action_set")
    assert whole.shape == (sum(map(len, vectors)), 2)
    for source in (found, stored):
        parts = [batch["action_set"] for _, batch in source.batches(["action_set"], 7)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_propensities_of_the_candidates_are_those_of_the_displays(tmp_path: Path, log: Log) -> None:
    found = load(given(tmp_path, "propensities"))
    assert found.meta.propensity == "logged"
    assert found.column("propensity").tolist() == log.column("propensity").tolist()


def test_dates_are_read_as_those_of_the_displays(tmp_path: Path) -> None:
    def day(time: int | None) -> str | None:
        return None if time is None else f"2024-01-{1 + time // 24:02} {time % 24:02}:00:00"

    rows = [{**row, "t": day(row["t"]), "sold": day(row["sold"])} for row in displays()]
    write(tmp_path / "log.csv", rows)
    entries = [{"label": a, "from": day(s), "until": day(u)} for a, (s, u) in FLIGHTS.items() if a != "never"]
    unit = {"unit": "datetime"}
    by_times = load(spec(tmp_path, action=entries, time=unit))
    by_lists = load(spec(tmp_path, display={"eligible": "who"}, time=unit))
    assert by_times.displays.equals(by_lists.displays)


def test_ids_that_come_twice_do_not_mix_up_the_labels(tmp_path: Path) -> None:
    rows = displays()
    for form in ("lists", "entries", "candidates"):
        path = given(tmp_path, form, rows=[*rows[:5], rows[4], *rows[5:]])
        log = load(path, on_error="quarantine", quarantine_at_most="50%")
        assert len(log) == N
        assert log.validated()


def broken(row: int, **cells: Any) -> list[dict[str, Any]]:
    rows = displays()
    rows[row] |= cells
    return rows


LISTED: list[tuple[Any, str]] = [
    ([], r"Column 'who': no action is eligible \(.*log\.parquet row 4: None\); list the actions"),
    (None, r"Column 'who': missing \(.*log\.parquet row 4: None\); list the actions that could have been shown"),
    (["10", None], r"Column 'who': a label is missing among the eligible actions \(.* row 4: None\)"),
    (["other"], r"Column 'who': the action that was shown is not eligible \(.* row 4: '(2|10)'\); add it to the list"),
]


@pytest.mark.parametrize(("cell", "said"), LISTED)
def test_a_row_whose_list_is_no_set_is_told(tmp_path: Path, cell: Any, said: str) -> None:
    rows = broken(3, who=cell)
    rows[3]["ad"] = rows[3]["ad"] if cell != ["10", None] else "10"
    path = given(tmp_path, "lists", "log.parquet", rows)
    with pytest.raises(LogError, match=said):
        load(path)
    left = datasets.validate(path, on_error="quarantine", quarantine_at_most="10%")
    assert (left["ok"], left["counts"]["displays"]) == (False, N - 1)


def test_a_cell_that_is_no_array_is_told_with_its_text(tmp_path: Path) -> None:
    rows = displays()
    path = given(tmp_path, "lists")
    text = (tmp_path / "log.csv").read_text().splitlines()
    text[4] = f'{rows[3]["id"]},{rows[3]["t"]},{rows[3]["ad"]},,"2;10"'
    (tmp_path / "log.csv").write_text("\n".join(text) + "\n")
    with pytest.raises(
        LogError, match=r"Column 'who': not a list of labels \(.*log\.csv line 5: '2;10'\); write a JSON"
    ):
        load(path)


def test_a_column_that_can_list_nothing_is_told(tmp_path: Path) -> None:
    rows = [{**row, "who": {"a": 1}} for row in displays()]
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(SourceError, match=r"log\.parquet: column 'who' holds Struct"):
        load(spec(tmp_path, "log.parquet", display={"eligible": "who"}))


@pytest.mark.parametrize("form", ["entries", "calendar"])
def test_an_action_out_of_its_time_is_told(tmp_path: Path, form: str) -> None:
    path = given(tmp_path, form, rows=broken(2, ad="summer"))
    time = displays()[2]["t"]
    what = "the action that was shown is not eligible at that time"
    said = rf"Column 'ad': {what} \(.* line 4: 'summer at {time}'\); correct"
    with pytest.raises(LogError, match=said):
        load(path)
    assert len(load(path, on_error="quarantine", quarantine_at_most="10%")) == N - 1
    path = given(tmp_path, form, rows=broken(2, ad="other"))
    with pytest.raises(
        LogError, match=r"Column 'ad': no entry says when this action was eligible \(.*: 'other'\); give"
    ):
        load(path)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"campaign": None}, r"Column 'campaign': missing \(.*more\.csv line 4: None\)"),
        ({"ends": 20}, r"Column 'ends': not after the time when the action starts \(.*more\.csv line 4: '20'\)"),
        ({"starts": "soon"}, r"Column 'starts': not a whole number \(.*more\.csv line 4: 'soon'\)"),
    ],
)
def test_a_row_of_the_calendar_is_never_left_out(tmp_path: Path, cells: dict[str, Any], said: str) -> None:
    path = given(tmp_path, "calendar")
    rows = [{"campaign": a, "starts": s, "ends": u} for a, (s, u) in FLIGHTS.items()]
    rows[2] |= cells
    pl.DataFrame(rows, strict=False).write_csv(tmp_path / "more.csv")
    if "starts" in cells:
        text = (tmp_path / "more.csv").read_text().splitlines()
        (tmp_path / "more.csv").write_text("\n".join([*text[:3], "spring,soon,", *text[4:]]) + "\n")
    for options in ({}, {"on_error": "quarantine"}):
        with pytest.raises(LogError, match=said):
            load(path, **options)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"label": "2", "from": "2024-01-01"}, r"`\$\.action\[0\]\.from`: got '2024-01-01'.*a whole number, in s"),
        ({"label": "2", "from": 5, "until": 5}, r"action '2' is eligible until 5, which is not after 5"),
        ({"label": "2", "til": 5}, r"unknown key `\$\.action\[0\]\.til`.*until"),
        ({"from": 5}, r"`\$\.action\[0\]\.label` is missing"),
    ],
)  # fmt: skip
def test_an_entry_that_is_none_is_told(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    write(tmp_path / "log.csv", displays())
    with pytest.raises(SpecError, match=said):
        load(spec(tmp_path, action=[entry]))


def changed_candidates(folder: Path, change: str, form: str) -> Path:
    """Write a log with a table of candidates one of whose rows, of the fourth display, is changed."""
    path = given(folder, form)
    rows, own = candidates(p=form == "propensities"), "d03"
    at = next(i for i, row in enumerate(rows) if row["of"] == own and row["ad"] != displays()[3]["ad"])
    if change == "twice":
        rows.insert(at, rows[at])
    elif change == "shown":
        rows = [row for row in rows if not (row["of"] == own and row["ad"] == displays()[3]["ad"])]
    elif change == "none":
        rows = [row for row in rows if row["of"] != own]
    elif change == "unknown":
        rows.append({**rows[at], "of": "d99"})
    else:
        column, value = change.split("=")
        rows[at] = {**rows[at], column: None if value == "" else value if column in ("of", "ad") else float(value)}
    write(folder / "more.csv", rows)
    return path


@pytest.mark.parametrize(
    ("change", "form", "said"),
    [
        (
            "twice",
            "candidates",
            r"Column 'ad': twice among the candidates of a display \(.*more\.csv line \d+: '(2|10)'\)",
        ),
        ("ad=", "candidates", r"Column 'ad': missing \(.*more\.csv line \d+: None\)"),
        (
            "shown",
            "candidates",
            r"Column 'ad': the action that was shown is not eligible \(.*log\.csv line 5: '(2|10)'\)",
        ),
        ("none", "candidates", r"Column 'id': a display without candidates \(.*log\.csv line 5: 'd03'\); give"),
        ("unknown", "candidates", r"Column 'of': candidates without display \(.*more\.csv line \d+: 'd99'\); check"),
        ("y=", "vectors", r"Column 'y': missing or not finite \(.*more\.csv line \d+: None\)"),
        ("y=inf", "vectors", r"Column 'y': missing or not finite \(.*more\.csv line \d+: 'inf'\)"),
        ("p=", "propensities", r"Column 'p': propensity missing or nan \(.*more\.csv line \d+: None\)"),
        ("p=1.5", "propensities", r"Column 'p': propensity outside \[0, 1\] \(.*more\.csv line \d+: '1.5'\)"),
        (
            "p=0.25",
            "propensities",
            r"Column 'p': propensities of a display's candidates do not sum to 1 \(.*: '0.75'\)",
        ),
    ],
)
def test_a_row_of_candidates_that_breaks_a_rule_is_told(tmp_path: Path, change: str, form: str, said: str) -> None:
    path = changed_candidates(tmp_path, change, form)
    with pytest.raises(DataError, match=said):
        load(path)
    left = load(path, on_error="quarantine", quarantine_at_most="10%")
    assert len(left) == (N if change == "unknown" else N - 1)
    assert left.validated()
    assert left.meta.counts["quarantined"] >= 1


def test_a_candidate_of_nobody_is_never_left_out(tmp_path: Path) -> None:
    path = changed_candidates(tmp_path, "of=", "candidates")
    for options in ({}, {"on_error": "quarantine"}):
        with pytest.raises(LogError, match=r"Column 'of': missing \(.*more\.csv line \d+: None\); fill the cell"):
            load(path, **options)


def test_candidates_beyond_a_limit_are_no_breach(tmp_path: Path, log: Log) -> None:
    found = load(given(tmp_path, "candidates"), limit=20)
    whole = unpack(log.displays["eligible"], 4)[:20]
    np.testing.assert_array_equal(unpack(found.displays["eligible"], found.n_actions), whole[:, : found.n_actions])


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"display": {"eligible_separator": "|"}}, "eligible_separator parts a column of labels"),
        (
            {"display": {"eligible": "who"}, "calendar": {"files": "x.csv", "action": "a"}},
            r"display\.eligible and \[calendar\] both say which actions are eligible",
        ),
        ({"display": {"id": None}, "candidates": {"files": "x.csv", "display": "of", "action": "a"}}, "joins on"),
        (
            {"candidates": {"files": "x.csv", "display": "of", "action": "a", "propensity": "p"}},
            r"candidates\.propensity says how likely each action was",
        ),
        ({"display": {"eligible": "who"}, "context": {"columns": ["who"]}}, "lists the eligible actions"),
    ],
)  # fmt: skip
def test_a_spec_that_contradicts_itself_is_told(tmp_path: Path, sections: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(spec(tmp_path, **sections))


def test_a_column_of_sets_is_kept_as_such(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'who' lists the eligible actions"):
        load(given(tmp_path, "lists"), keep=["who"])


FRAMES: dict[str, dict[str, Any]] = {
    "lists": {"eligible": "who"},
    "calendar": {"calendar_action": "campaign", "calendar_from": "starts", "calendar_until": "ends"},
    "candidates": {"candidate_display": "of"},
    "vectors": {"candidate_display": "of", "candidate_features": ["x", "y"], "ties": "file"},
    "propensities": {"candidate_display": "of", "candidate_propensity": "p", "propensity_kind": None},
}


@pytest.mark.parametrize("form", FRAMES)
def test_frames_are_the_log_of_their_rows_in_files(tmp_path: Path, form: str) -> None:
    in_files = load(given(tmp_path, form))
    frames: dict[str, pl.DataFrame] = {}
    if form != "lists":
        rows = [{"campaign": a, "starts": s, "ends": u} for a, (s, u) in FLIGHTS.items()]
        of_candidates = pl.DataFrame(candidates(p=form == "propensities"))
        frames = {"calendar": pl.DataFrame(rows)} if form == "calendar" else {"candidates": of_candidates}
    roles: dict[str, Any] = {
        "time": "t", "action": "ad", "id": "id", "conversion_time": "sold", "unit": "s", "propensity_kind": "uniform",
        "name": "mine", **FRAMES[form],
    }  # fmt: skip
    found = Log.from_frames(pl.DataFrame(displays()), **frames, **roles)
    assert without_fingerprint(found) == without_fingerprint(in_files)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (
            {"eligible": "who", "calendar": pl.DataFrame({"ad": ["2"]})},
            "eligible and `calendar` both say which actions",
        ),
        ({"candidate_propensity": "p"}, "`candidate_propensity` is a column of `candidates`, which is not there"),
        ({"candidates": pl.DataFrame({"of": ["d00"]}), "candidate_display": "of"}, "candidates: no column 'ad'"),
        (
            {"candidates": pl.DataFrame({"id": ["d99"], "ad": ["2"]})},
            r"Column 'id': a display without candidates \(displays row 1: 'd00', displays row 2: 'd01'",
        ),
        ({"calendar": pl.DataFrame({"ad": ["2"]}), "calendar_until": "x"}, "calendar: no column 'x'"),
        ({"candidates": pl.DataFrame({"id": ["d00"]}), "id": None}, "`candidates` are joined to displays by an id"),
    ],
)
def test_errors_of_frames_name_the_frame_and_the_keyword(roles: dict[str, Any], said: str) -> None:
    plain: dict[str, Any] = {"time": "t", "action": "ad", "id": "id", "conversion_time": "sold", "unit": "s"}
    with pytest.raises((DataError, UsageError), match=said):
        Log.from_frames(pl.DataFrame(displays()), **plain | roles)
