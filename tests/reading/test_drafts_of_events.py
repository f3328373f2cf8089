"""Drafts of typed events, of conversions that know the user alone, and of what lies within columns: each is a log."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator import Log, load
from evaluator.datasets import draft
from evaluator.reading.column_profile import Draft, Question
from evaluator.reading.roles import DISPLAY
from evaluator.reading.spec_sections import conditions, written_name, written_text

N = 400
RNG = np.random.default_rng(3)
SHOWN = np.cumsum(RNG.integers(30, 900, N)) + 1_700_000_000
BANNER = RNG.choice(["red", "green", "blue"], N)
COUNTRY = RNG.choice(["de", "fr"], N)
USER = np.array([f"u{k}" for k in RNG.integers(0, 60, N)])
SOLD, CLICKED = RNG.random(N) < 0.25, RNG.random(N) < 0.4
CAME = SHOWN + RNG.integers(1, 25, N)
GAIN = RNG.integers(2, 40, N) / 2
IDS = np.array([f"d{k}" for k in range(N)])


def events() -> pl.DataFrame:
    """Displays, clicks and sales of one table, in the order of their times; sales are the last rows of some users."""
    rows: list[tuple[Any, ...]] = []
    for i in range(N):
        own = (IDS[i], BANNER[i], COUNTRY[i], USER[i])
        rows.append((int(SHOWN[i]), "ad_shown", *own, None))
        rows += [(int(SHOWN[i]) + 1, "click", *own, None)] if CLICKED[i] else []
        rows += [(int(CAME[i]), "purchase", *own, GAIN[i])] if SOLD[i] else []
        rows += [(int(SHOWN[i]) + 2, "login", None, None, None, USER[i], None)] if i % 9 == 0 else []
    names = ["ts", "event", "impression_id", "banner", "country", "user_id", "revenue"]
    return pl.DataFrame(rows, schema=names, orient="row").sort("ts", maintain_order=True)


def write(frame: pl.DataFrame, path: Path) -> Path:
    {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[path.suffix](path)  # type: ignore[operator]
    return path


def drafted(folder: Path, *files: Path, **answers: str) -> tuple[Draft, dict[str, Any]]:
    def ask(question: Question) -> str:
        return answers.get(question.key.replace(".", "_"), question.guess)

    found = draft(files[0], conversions=files[1] if files[1:] else None, ask=ask if answers else None)
    text = found.toml(folder)
    (folder / "spec.toml").write_text(text)
    return found, tomllib.loads(text)


def flat(folder: Path) -> Log:
    """Return the log of the same displays and sales in two plain tables."""
    own = {"display_id": IDS, "shown_at": SHOWN, "banner": BANNER, "country": COUNTRY, "user_id": USER}
    pl.DataFrame(own).write_csv(folder / "flat.csv")
    sales = pl.DataFrame({"display_id": IDS, "sold_at": CAME, "revenue": GAIN}).filter(pl.Series(SOLD))
    sales.write_csv(folder / "sales.csv")
    drafted(folder, folder / "flat.csv", folder / "sales.csv")
    return load(folder / "spec.toml")


def same_log(log: Log, wanted: Log) -> None:
    assert np.array_equal(log.column("time"), wanted.column("time"))
    assert [log.labels[a] for a in log.column("action")] == [wanted.labels[a] for a in wanted.column("action")]
    assert log.conversions.to_pylist() == wanted.conversions.to_pylist()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_typed_events_are_displays_conversions_and_outcomes(tmp_path: Path, suffix: str) -> None:
    found, spec = drafted(tmp_path, write(events(), tmp_path / f"events{suffix}"))
    assert not found.missing
    assert spec["source"]["where"] == "event = 'ad_shown'"
    assert spec["display"]["id"] == "impression_id"
    files = {"files": f"events{suffix}", "display": "impression_id"}
    assert spec["conversion"]["source"] == {**files, "where": "event = 'purchase'"}
    assert spec["outcomes"] == {"click": {"time": "ts", "source": {**files, "where": "event = 'click'"}}}
    assert set(spec["context"]["columns"]) == {"country"}
    # What decides which rows count says that it is a guess, or to be checked.
    for line in found.toml().splitlines():
        assert "where = " not in line or "# guessed: " in line or "# please check: " in line
    log = load(tmp_path / "spec.toml")
    assert log.events.num_rows == SOLD.sum() + CLICKED.sum()
    same_log(log, flat(tmp_path))


def test_another_kind_can_be_the_conversion(tmp_path: Path) -> None:
    write(events(), tmp_path / "events.csv")
    _, spec = drafted(tmp_path, tmp_path / "events.csv", conversion_source_where="click")
    assert spec["conversion"]["source"]["where"] == "event = 'click'"
    assert list(spec["outcomes"]) == ["purchase"]
    assert load(tmp_path / "spec.toml").conversions.num_rows == CLICKED.sum()


def test_events_without_ids_are_joined_by_user_and_time(tmp_path: Path) -> None:
    found, spec = drafted(tmp_path, write(events().drop("impression_id"), tmp_path / "events.csv"))
    assert not found.missing
    assert (spec["display"]["user"], spec["conversion"]["source"]["user"]) == ("user_id", "user_id")
    assert "conversion.source.action" in found.commented
    assert spec["keep"] == {"user": "user_id"}
    log = load(tmp_path / "spec.toml")
    # The next display comes at least 30 seconds later, and every sale within 25.
    same_log(log, flat(tmp_path))
    assert "user" in log.displays.column_names


@pytest.mark.parametrize("name", ["user_id", "Customer ID"])
def test_sales_that_name_the_user_are_joined_by_user_and_time(tmp_path: Path, name: str) -> None:
    own = {"shown_at": SHOWN, "banner": BANNER, "country": COUNTRY, "user_id": USER}
    pl.DataFrame(own).write_csv(tmp_path / "displays.csv")
    sales = pl.DataFrame({name: USER, "sold_at": CAME, "revenue": GAIN}).filter(pl.Series(SOLD))
    sales.write_csv(tmp_path / "sales.csv")
    found, spec = drafted(tmp_path, tmp_path / "displays.csv", tmp_path / "sales.csv")
    assert spec["conversion"]["source"] == {"files": "sales.csv", "user": name}
    longest = int((CAME - SHOWN)[SOLD].max())
    assert f"the longest seen is {longest} s" in found.toml()
    same_log(load(tmp_path / "spec.toml"), flat(tmp_path))
    # With no time of their own, sales of a user are of no display.
    sales.drop("sold_at").with_columns(delay=pl.lit(5)).write_csv(tmp_path / "sales.csv")
    assert "user" not in drafted(tmp_path, tmp_path / "displays.csv", tmp_path / "sales.csv")[1]["display"]


def objects(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": str(IDS[i]), "ts": int(SHOWN[i]), "banner": str(BANNER[i]), "pages": [1, 2],
            "user": {"id": str(USER[i]), "country": str(COUNTRY[i]), "at": {"city": "ab"[i % 2]}},
            "sales": [{"at": int(CAME[i]), "amount": float(GAIN[i])}] * int(SOLD[i]),
        } | {key: of[i] for key, of in more.items()}
        for i in range(N)
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_fields_are_columns_and_listed_sales_are_conversions(tmp_path: Path, suffix: str) -> None:
    found, spec = drafted(tmp_path, write(pl.DataFrame(objects()), tmp_path / f"log{suffix}"))
    assert not found.missing
    assert set(spec["context"]["columns"]) == {"user.country", "user.at.city"}
    assert spec["keep"] == {"user": "user.id"}
    assert spec["conversion"] == {
        "time": "sales.at", "value": "sales.amount",
        "source": {"files": f"log{suffix}", "explode": "sales", "display": "id"},
    }  # fmt: skip
    assert "left out: 'pages': lists or objects" in found.toml()
    assert "'sales': lists" not in found.toml()
    same_log(load(tmp_path / "spec.toml"), flat(tmp_path))


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_lists_of_actions_may_be_the_eligible_ones(tmp_path: Path, suffix: str) -> None:
    could = [sorted({str(shown), "red"}) for shown in BANNER]
    found, _ = drafted(tmp_path, write(pl.DataFrame(objects(could=could)), tmp_path / f"log{suffix}"))
    assert found.commented[:2] == ["display.propensity_kind", "display.eligible"]
    assert any(f"only if it {DISPLAY['eligible'].what}" in line for line in found.open)
    assert "eligible" not in load(tmp_path / "spec.toml").displays.column_names
    text = (tmp_path / "spec.toml").read_text()
    (tmp_path / "spec.toml").write_text(text.replace("# eligible = ", "eligible = "))
    assert "eligible" in load(tmp_path / "spec.toml").displays.column_names


def test_listed_events_of_several_kinds_are_told_apart(tmp_path: Path) -> None:
    listed = [
        [{"type": "click", "at": int(SHOWN[i]) + 1}] * int(CLICKED[i])
        + [{"type": "purchase", "at": int(CAME[i]), "amount": float(GAIN[i])}] * int(SOLD[i])
        for i in range(N)
    ]
    rows = [{key: of for key, of in row.items() if key != "sales"} for row in objects(events=listed)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, spec = drafted(tmp_path, tmp_path / "log.jsonl")
    assert not found.missing
    assert spec["conversion"]["source"]["where"] == "events.type = 'purchase'"
    assert spec["outcomes"]["click"]["source"]["where"] == "events.type = 'click'"
    log = load(tmp_path / "spec.toml")
    assert log.events.num_rows == SOLD.sum() + CLICKED.sum()
    same_log(log, flat(tmp_path))


def test_an_action_that_stands_in_a_list_alone_makes_a_display_of_each_element(tmp_path: Path) -> None:
    slates = [
        {
            "ts": int(SHOWN[i]),
            "country": str(COUNTRY[i]),
            "shown": [{"ad": ad, "clicked": k} for k, ad in enumerate("ab")],
        }
        for i in range(N)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in slates))
    found, spec = drafted(tmp_path, tmp_path / "log.jsonl")
    assert spec["source"]["explode"] == "shown"
    assert any("is it a place of a slate?" in line for line in found.open)
    assert spec["display"]["action"] == "shown.ad"
    log = load(tmp_path / "spec.toml")
    assert (len(log), log.conversions.num_rows) == (2 * N, N)


def test_sales_that_list_their_displays(tmp_path: Path) -> None:
    pl.DataFrame({"display_id": IDS, "shown_at": SHOWN, "banner": BANNER}).write_parquet(tmp_path / "displays.parquet")
    sales = [{"order_id": f"o{i}", "sold_at": int(CAME[i]), "seen": list(IDS[max(i - 2, 0) : i + 1])} for i in range(N)]
    pl.DataFrame(sales).write_parquet(tmp_path / "sales.parquet")
    found, spec = drafted(tmp_path, tmp_path / "displays.parquet", tmp_path / "sales.parquet")
    assert spec["conversion"]["source"] == {"files": "sales.parquet", "explode": "seen", "display": "seen"}
    assert (spec["conversion"]["key"], spec["conversion"]["deduplicate"]) == (["order_id"], "last_click")
    assert any("which display gets it?" in line for line in found.open)
    log = load(tmp_path / "spec.toml")
    assert log.conversions["display_id"].to_pylist() == list(range(N))


@pytest.mark.parametrize("name", ["event", "event type", 'a "b" c', "is", "7th", "größe.x"])
@pytest.mark.parametrize("value", ["sale", "it's", "a = 'b' and c", " padded"])
def test_conditions_are_written_as_they_are_read(name: str, value: str) -> None:
    (found,) = conditions(f"{written_name(name)} = {written_text(value)}")
    assert (found.column, found.texts) == (name, (value.strip(),))
