"""Specs drafted from files: which column gets which part, what is left open, and that no outcome becomes a feature."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import draft, load, validate
from evaluator.errors import SourceError, UsageError
from evaluator.reading.column_profile import Draft, Question, words_of

ROWS = 600
DAY = 86_400


def shop() -> dict[str, Any]:
    """Columns of a log whose conversions stand in its own rows."""
    rng = np.random.default_rng(0)
    shown = np.sort(rng.integers(0, 20 * DAY, ROWS)) + 1_700_000_000
    sold = rng.random(ROWS) < 0.2
    return {
        "shown": shown,
        "sold": sold,
        "sold_at": shown + rng.integers(60, 5 * DAY, ROWS),
        "banner": rng.choice(["red", "green", "blue"], ROWS),
        "country": rng.choice(["de", "fr", "it", "es"], ROWS),
    }


def when_sold(log: dict[str, Any]) -> pl.Series:
    """Return the times of the sales, null where nothing was sold."""
    return pl.Series(log["sold_at"]).set(pl.Series(~log["sold"]), None)


def criteo_like(folder: Path) -> tuple[Path, None]:
    log = shop()
    sold = log["sold"]
    table = pl.DataFrame(
        {
            "timestamp": log["shown"] - 1_700_000_000,
            "uid": np.random.default_rng(1).integers(0, 700, ROWS),
            "campaign": np.random.default_rng(2).integers(10, 14, ROWS),
            "conversion": sold.astype(int),
            "conversion_timestamp": np.where(sold, log["sold_at"] - 1_700_000_000, -1),
            "conversion_id": np.where(sold, np.arange(ROWS) // 2, -1),
            "click": (sold | (np.arange(ROWS) % 3 == 0)).astype(int),
            "cost": 0.5,
            "cat1": np.random.default_rng(3).integers(0, 9, ROWS),
        }
    )
    table.write_csv(folder / "log.tsv", separator="\t")
    return folder / "log.tsv", None


def two_tables(folder: Path) -> tuple[Path, Path]:
    log = shop()
    ids = np.array([f"d{k}" for k in range(ROWS)])
    displays = {
        "display_id": ids,
        "shown_at": log["shown"],
        "banner": log["banner"],
        "probability": np.full(ROWS, 1 / 3),
    }
    (folder / "displays").mkdir()
    pl.DataFrame({**displays, "country": log["country"]}).write_parquet(folder / "displays" / "part-0.parquet")
    sales = {"shown_id": ids, "sold_at": log["sold_at"], "revenue": np.round(np.linspace(1, 20, ROWS), 2)}
    pl.DataFrame(sales).filter(log["sold"]).sort("sold_at").write_parquet(folder / "sales.parquet")
    return folder / "displays", folder / "sales.parquet"


def day_first(folder: Path) -> tuple[Path, None]:
    log = shop()
    dates = [
        pl.Series(log[name] * 10**6).cast(pl.Datetime("us")).dt.strftime("%d.%m.%Y %H:%M:%S")
        for name in ("shown", "sold_at")
    ]
    sold = [date if yes else "" for date, yes in zip(dates[1], log["sold"], strict=True)]
    rows = zip(dates[0], log["banner"], sold, log["country"], strict=True)
    lines = ['"Shown At","Banner","Sold At","Country"', *(",".join(f'"{cell}"' for cell in row) for row in rows)]
    (folder / "log.csv").write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    return folder / "log.csv", None


def json_lines(folder: Path) -> tuple[Path, None]:
    log = shop()
    lines = [
        {"ts": int(t) * 1000, "arm": str(b), "user": {"country": c}, "device": c}
        | ({"delaySeconds": 5_000, "orderValue": 3.5} if sold else {})
        for t, b, c, sold in zip(log["shown"], log["banner"], log["country"], log["sold"], strict=True)
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder / "log.jsonl", None


def obp_like(folder: Path) -> tuple[Path, None]:
    log = shop()
    table = {
        "": np.arange(ROWS),
        "timestamp": pl.Series(log["shown"] * 10**6).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d %H:%M:%S.%f+00:00"),
        "item_id": np.random.default_rng(2).integers(0, 5, ROWS),
        "position": np.random.default_rng(3).integers(1, 4, ROWS),
        "click": log["sold"].astype(int),
        "propensity_score": np.full(ROWS, 0.2),
        "user_feature_0": log["country"],
    }
    pl.DataFrame(table).write_csv(folder / "all.csv")
    return folder / "all.csv", None


def without_header(folder: Path) -> tuple[Path, None]:
    log = shop()
    table = {"a": log["shown"], "b": when_sold(log), "c": log["banner"]}
    pl.DataFrame(table).write_csv(folder / "data.txt", separator="\t", include_header=False)
    return folder / "data.txt", None


def spreadsheet(folder: Path) -> tuple[Path, None]:
    log = shop()
    lines = ["Zeit;Werbung;gekauft am conversion time;Größe"]
    for t, b, at, sold in zip(log["shown"], log["banner"], log["sold_at"], log["sold"], strict=True):
        lines.append(f"{t}.25;{b};{f'{at}.5' if sold else 'NA'};{'groß' if t % 2 else 'klein'}")
    lines[0] = lines[0].replace("Zeit", "time").replace("Werbung", "ad")
    (folder / "log.dat").write_bytes("\n".join(lines).encode("windows-1252"))
    return folder / "log.dat", None


Files = Callable[[Path], tuple[Path, Path | None]]
EXPECTED: list[tuple[Files, dict[str, Any], set[str], set[str]]] = [
    (
        criteo_like,
        {
            "display.time": "timestamp", "display.action": "campaign", "conversion.time": "conversion_timestamp",
            "source.none": {"conversion_timestamp": [-1]}, "time.unit": "s", "conversion.indicator": None,
            "conversion.key": None, "display.propensity": None, "display.id": None,
        },
        {"cat1"},
        {"conversion", "conversion_id", "click", "cost"},
    ),
    (
        two_tables,
        {
            "source.files": "displays", "conversion.source.files": "sales.parquet", "display.id": "display_id",
            "conversion.source.display": "shown_id", "display.time": "shown_at", "display.action": "banner",
            "display.propensity": "probability", "conversion.time": "sold_at", "conversion.value": "revenue",
            "time.unit": "s", "log.attribution_window": None, "log.reward_max": None,
        },
        {"country"},
        set(),
    ),
    (
        day_first,
        {
            "display.time": "Shown At", "display.action": "Banner", "conversion.time": "Sold At",
            "time.unit": "datetime", "time.format": "%d.%m.%Y %H:%M:%S", "source.delimiter": None,
        },
        {"Country"},
        set(),
    ),
    (
        json_lines,
        {
            "display.time": "ts", "display.action": "arm", "conversion.delay": "delaySeconds", "time.unit": "ms",
            "conversion.value": "orderValue",
        },
        {"device", "user.country"},
        set(),
    ),
    (
        obp_like,
        {
            "display.time": "timestamp", "display.action": "item_id", "display.propensity": "propensity_score",
            "conversion.indicator": "click", "conversion.immediate": True, "log.observed_until": "complete",
            "time.unit": "datetime", "time.format": None,
        },
        {"user_feature_0", "position"},
        set(),
    ),
    (
        without_header,
        {
            "source.header": False, "source.columns": ["column_1", "column_2", "column_3"], "display.time": "column_1",
            "conversion.time": "column_2", "display.action": "column_3", "time.unit": "s",
        },
        set(),
        set(),
    ),
    (
        spreadsheet,
        {
            "source.format": "csv", "source.delimiter": ";", "source.encoding": "windows-1252", "display.time": "time",
            "display.action": "ad", "conversion.time": "gekauft am conversion time", "time.format": "epoch",
            "source.none": {"gekauft am conversion time": ["NA"]},
        },
        {"Größe"},
        set(),
    ),
]  # fmt: skip


def said(spec: dict[str, Any], key: str) -> Any:
    """Return the value at a path such as ``display.time``, None where there is none."""
    found: Any = spec
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def written(found: Draft, folder: Path) -> Path:
    (folder / "spec.toml").write_text(found.toml(folder), encoding="utf-8")
    return folder / "spec.toml"


@pytest.mark.parametrize(("files", "roles", "context", "outcomes"), EXPECTED, ids=[one[0].__name__ for one in EXPECTED])
def test_columns_get_their_parts_and_the_draft_validates(
    tmp_path: Path, files: Files, roles: dict[str, Any], context: set[str], outcomes: set[str]
) -> None:
    displays, sales = files(tmp_path)
    found = draft(displays, conversions=sales)
    spec = tomllib.loads(found.toml(tmp_path))
    assert {key: said(spec, key) for key in roles} == roles
    assert set(said(spec, "context.columns")) == context
    assert set(said(spec, "leakage.columns") or ()) == outcomes
    report = validate(written(found, tmp_path))
    assert report["ok"]
    assert report["counts"]["displays"] == ROWS
    assert report["counts"]["conversions"] == int(shop()["sold"].sum())


def test_times_of_the_draft_are_those_of_the_file(tmp_path: Path) -> None:
    log = shop()
    found = load(written(draft(day_first(tmp_path)[0]), tmp_path))
    assert (np.sort(found.column("time")) == log["shown"] * 10**6).all()


def test_what_follows_the_conversion_is_no_feature_whatever_its_name(tmp_path: Path) -> None:
    log = shop()
    sold = log["sold"]
    table = pl.DataFrame(
        {
            "time": log["shown"],
            "banner": log["banner"],
            "sold_at": when_sold(log),
            "voucher": pl.Series(np.where(sold, "used", "")).replace("", None),  # there with a sale alone
            "stage": np.where(sold, "basket", np.where(np.arange(ROWS) % 4 == 0, "basket", "page")),  # and some others
            "shipped": np.where(sold & (np.arange(ROWS) % 2 == 0), "yes", "no"),  # half of the sales: no sign of it
            "country": log["country"],
        }
    )
    table.write_parquet(tmp_path / "log.parquet")
    spec = tomllib.loads(draft(tmp_path / "log.parquet").toml(tmp_path))
    assert {"voucher", "stage"} <= set(spec["leakage"]["columns"])
    assert not {"voucher", "stage"} & set(spec["context"]["columns"])
    # What the rows cannot show, the draft asks the reader.
    assert "known before the display?" in draft(tmp_path / "log.parquet").toml(tmp_path)


OUTCOME_NAMES = [
    "click", "isClicked", "Conversions", "n_purchases", "revenue", "reward", "Y", "label", "converted_7d", "refund",
    "attributed", "orderCount", "time_since_last_click", "dwell", "targetValue",
]  # fmt: skip


def test_a_column_named_as_an_outcome_is_no_feature(tmp_path: Path) -> None:
    log = shop()
    table = pl.DataFrame({"time": log["shown"], "banner": log["banner"], "sold_at": when_sold(log)})
    unclear = {name: np.arange(ROWS) % 3 for name in OUTCOME_NAMES}
    table.with_columns(**unclear, country=pl.Series(log["country"])).write_csv(tmp_path / "log.csv")
    spec = tomllib.loads(draft(tmp_path / "log.csv").toml(tmp_path))
    assert set(spec["context"]["columns"]) == {"country"}
    # One of them may be taken for the value of conversions.
    assert {*spec["leakage"]["columns"], spec["conversion"].get("value")} >= set(OUTCOME_NAMES)


HOSTILE = [
    'a "quoted" one',
    "new\nline",
    "tab\t",
    "größe 🎈",
    "x = 1 # no",
    "[log]",
    "back\\slash",
    "^.*$",
    "\u202eevil",
    "'",
]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_names_of_any_characters(tmp_path: Path, suffix: str) -> None:
    log = shop()
    columns = {"time": log["shown"], "banner": log["banner"], "sold_at": when_sold(log)}
    for name in HOSTILE:
        columns |= {name: np.arange(ROWS) % 3, f"{name} id": np.arange(ROWS) // 2, f"click {name}": np.arange(ROWS) % 4}
    table = pl.DataFrame(columns)
    file = tmp_path / f"log.{suffix}"
    {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}[suffix](file)  # type: ignore[operator]
    text = draft(file).toml(tmp_path)
    assert not {"\u202e", "\t"} & set(text)
    spec = tomllib.loads(text)
    assert set(spec["context"]["columns"]) == set(HOSTILE)
    assert spec["leakage"]["columns"] == [f"click {name}" for name in HOSTILE]


def test_days_or_months_first_is_asked_and_not_guessed(tmp_path: Path) -> None:
    rows = ["day,banner,sold on"] + [
        f"0{1 + k % 9}/02/2024,{'ab'[k % 2]},{'09/03/2024' if k % 3 == 0 else ''}" for k in range(40)
    ]
    (tmp_path / "log.csv").write_text("\n".join(rows).replace("day,", "date,").replace("sold on", "sold date"))
    found = draft(tmp_path / "log.csv")
    assert found.missing == ("time.format",)
    text = found.toml(tmp_path)
    assert '# format = "%d/%m/%Y"  # please check: if days come first' in text
    assert '# format = "%m/%d/%Y"  # please check: if months come first' in text
    answered = draft(tmp_path / "log.csv", ask=lambda q: "days" if q.key == "time.format" else q.guess)
    assert tomllib.loads(answered.toml(tmp_path))["time"]["format"] == "%d/%m/%Y"


def test_answers_are_taken_and_others_refused(tmp_path: Path) -> None:
    displays, sales = two_tables(tmp_path)
    asked: list[Question] = []
    answers = {"log.attribution_window": "7d", "log.reward_max": "25", "display.propensity": "uniform"}

    def ask(question: Question) -> str:
        asked.append(question)
        return answers.get(question.key, question.guess)

    spec = tomllib.loads(draft(displays, conversions=sales, ask=ask).toml(tmp_path))
    assert spec["log"] == {"attribution_window": "7d", "observed_until": "end", "reward_max": 25.0}
    assert spec["display"]["propensity_kind"] == "uniform"
    assert "propensity" not in spec["display"]
    assert len({question.key for question in asked}) == len(asked)
    with pytest.raises(UsageError, match=r"display\.action: 'bannr' is no answer\. Hint: did you mean banner"):
        draft(displays, conversions=sales, ask=lambda q: "bannr" if q.key == "display.action" else q.guess)


def test_nothing_that_decides_a_number_is_guessed_in_silence(tmp_path: Path) -> None:
    displays, sales = two_tables(tmp_path)
    found = draft(displays, conversions=sales)
    assert [line.split(":")[0] for line in found.open] == [
        "log.attribution_window", "log.observed_until", "log.reward_max", "context.columns"
    ]  # fmt: skip
    for line in found.toml(tmp_path).splitlines()[5:]:
        free = not line or line.startswith(("[", "files =", "display ="))
        assert free or "guessed: " in line or "please check: " in line or "left out: " in line, line
    # Ticks that are no dates have a unit that nobody knows.
    assert draft(criteo_like(tmp_path)[0]).open[0].startswith("time.unit: whole numbers from ")


def test_unsorted_displays_are_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,ad,sold_time\n5,a,\n3,b,9\n7,a,8\n")
    spec = written(draft(tmp_path / "log.csv"), tmp_path)
    assert tomllib.loads(spec.read_text())["source"]["sort"] is True
    assert load(spec).column("time").tolist() == [3, 5, 7]


def test_only_the_first_rows_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.reading.file_sample.SAMPLE", 100)
    displays, sales = two_tables(tmp_path)
    assert draft(displays, conversions=sales).rows == ((100, False), (100, False))
    single: list[Files] = [criteo_like, json_lines, without_header]
    for files in single:
        assert draft(files(tmp_path)[0]).rows == ((100, False),)


def test_a_file_without_conversions_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,ad\n1,a\n2,b\n3,a\n")
    found = draft(tmp_path / "log.csv")
    assert found.missing == ("conversion.time",)
    tomllib.loads(found.toml(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"PAR1"])
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    for name in ("log.csv", "log.parquet", "log.jsonl"):
        (tmp_path / name).write_bytes(content)
        if (name, content) != ("log.csv", b"PAR1"):  # a table of one column, and no rows
            with pytest.raises(SourceError):
                draft(tmp_path / name)
    with pytest.raises(SourceError, match="No file matches"):
        draft(tmp_path / "absent.csv")


def test_words_of_names() -> None:
    assert words_of("conversionTimestamp_2 UID") == ["conversion", "timestamp", "2", "uid"]
