"""Conversions joined to displays by user and time, and delays that are too short to be of a display."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator import Log, datasets, load
from evaluator.errors import LogError, SpecError, UsageError
from tests.reading.sources import dataset, write_rows, write_spec
from tests.reading.test_second_tables import little_by_little

DISPLAYS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("xy"), st.sampled_from(["u", "v", "w", ""])), max_size=12
)
SALES = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from("xyz"), st.sampled_from(["u", "v", "nobody", ""])), max_size=12
)


def last_display(
    displays: list[tuple[int, str, str]], sale: tuple[int, str, str], *, by_action: bool, least: int, most: int | None
) -> int | None:
    """Return the number of the display of a sale: the slow twin of the join."""
    time, action, user = sale
    found = [
        i
        for i, (shown, of, whom) in enumerate(displays)
        if whom and whom == user and (of == action or not by_action) and least <= time - shown
    ]
    if not found or (most is not None and time - displays[found[-1]][0] > most):
        return None
    return found[-1]


@settings(max_examples=30, deadline=None)
@given(DISPLAYS, SALES, st.booleans(), st.sampled_from([0, 2]), st.sampled_from([None, 4]), st.integers(1, 6))
def test_a_conversion_is_of_the_last_display_of_its_user(
    tmp_path_factory: pytest.TempPathFactory,
    displays: list[tuple[int, str, str]],
    sales: list[tuple[int, str, str]],
    by_action: bool,
    least: int,
    most: int | None,
    rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("users")
    # Both actions, and a user who buys nothing.
    displays = sorted([*displays, (0, "x", "w"), (0, "y", "w")], key=lambda of: of[0])
    write_rows(folder / "sales.csv", ["sold,ad,user", *(",".join(map(str, of)) for of in sales)])
    source = {"files": "sales.csv", "user": "user", **({"action": "ad"} if by_action else {})}
    spec = dataset(
        folder,
        ["t,ad,user", *(",".join(map(str, of)) for of in displays)],
        time={"ties": "file"},
        display={"user": "user"},
        conversion={"source": source, **({"min_delay": least} if least else {})},
        log={"observed_until": "complete", **({} if most is None else {"attribution_window": most})},
    )
    found = [last_display(displays, sale, by_action=by_action, least=least, most=most) for sale in sales]
    expected = sorted((of, time) for of, (time, _, _) in zip(found, sales, strict=True) if of is not None)
    log = load(spec)
    assert sorted(zip(log.conversions["display_id"].to_pylist(), log.conversions["time"].to_pylist(), strict=True)) == (
        expected
    )
    lost = found.count(None)
    assert log.meta.counts["conversions_without_display"] == lost
    within = "" if most is None else " within 4"
    said = (f"{lost} conversions have no display of their user before them{within}: they count for none.",)
    assert log.meta.notes == (said if lost else ())
    with little_by_little(rows):
        assert load(spec).conversions.equals(log.conversions)


def shop(folder: Path, **sections: Any) -> Path:
    write_rows(folder / "sales.csv", ["user,at,gain", "ann,30,2", "bob,31,1", "eve,40,5", "ann,95,3"])
    rows = ["t,ad,user,id", "10,x,ann,1", "12,y,bob,2", "25,y,ann,3", "50,x,bob,4", "60,x,,5"]
    given: dict[str, Any] = {
        "display": {"user": "user"},
        "conversion": {"time": "at", "value": "gain", "source": {"files": "sales.csv", "user": "user"}},
        "log": {"attribution_window": "30s"},
    }
    return dataset(
        folder, rows, **{name: {**given.get(name, {}), **sections.get(name, {})} for name in given | sections}
    )


def test_frames_files_and_converted_folders_agree(tmp_path: Path) -> None:
    log = load(shop(tmp_path))
    assert log.conversions.to_pylist() == [
        {"display_id": 1, "time": 31, "value": 1.0},
        {"display_id": 2, "time": 30, "value": 2.0},
    ]
    assert log.meta.counts["conversions_without_display"] == 2
    displays, sales = (pl.read_csv(tmp_path / name) for name in ("log.csv", "sales.csv"))
    roles: dict[str, Any] = {
        "time": "t", "action": "ad", "user": "user", "conversion_time": "at", "value": "gain", "unit": "s",
        "attribution_window": "30s",
    }  # fmt: skip
    for more in ({}, {"conversion_user": "user"}):
        made = Log.from_frames(displays, sales, **roles, **more)
        assert (made.displays, made.conversions, made.meta.notes) == (log.displays, log.conversions, log.meta.notes)
    datasets.convert(tmp_path / "spec.toml", tmp_path / "converted")
    assert load(tmp_path / "converted").conversions.equals(log.conversions)
    clicks = {"click": {"frame": sales, "user": "user", "time": "at"}}
    roles = {"time": "t", "action": "ad", "user": "user", "conversion_time": "none", "unit": "s"}
    other = Log.from_frames(displays.with_columns(none=pl.lit(None, pl.Int64)), outcomes=clicks, **roles)
    assert other.outcomes.num_rows == 3


def test_a_shorter_window_of_the_call_leaves_conversions_out(tmp_path: Path) -> None:
    log = load(shop(tmp_path), attribution_window="10s")
    assert log.conversions["display_id"].to_pylist() == [2]
    assert log.meta.notes == (
        "3 conversions have no display of their user before them within 10s: they count for none.",
    )


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    source = {"files": "sales.csv", "user": "user"}
    for sections, said in (
        ({"conversion": {"source": {"files": "sales.csv"}}}, "give exactly one of display and user"),
        ({"conversion": {"source": {**source, "display": "id"}}}, "give exactly one of display and user"),
        ({"conversion": {"source": {"files": "s.csv", "display": "id", "action": "a"}}}, "action goes with user"),
        ({"display": {"user": None}}, r"\[conversion.source\] joins on display.user: name that column"),
        ({"conversion": {"time": None, "delay": "at"}}, "source.user joins by user and time: name the column"),
        ({"conversion": {"min_delay": "soon"}}, "mine: conversion.min_delay = 'soon' is no duration"),
        ({"conversion": {"min_delay": "1.5s"}}, "mine: conversion.min_delay = '1.5s' is 1.5 ticks of the log"),
        ({"context": {"columns": ["user"]}}, "'user', which identifies the user: no policy may see it; if it is known"),
    ):
        with pytest.raises(SpecError, match=said):
            load(shop(tmp_path, **sections))
    with pytest.raises(UsageError, match=r"`limit=3`, but \[conversion.source\] joins by user and time"):
        load(shop(tmp_path), limit=3)


def test_conversions_without_a_time_are_told(tmp_path: Path) -> None:
    spec = shop(tmp_path, conversion={"indicator": "won"})
    write_rows(tmp_path / "sales.csv", ["user,at,gain,won", "ann,30,2,1", "bob,,1,1", "eve,,1,0"])
    with pytest.raises(LogError, match=r"Column 'at': a conversion without a time \(\S*sales.csv line 3: None\)"):
        load(spec)


@pytest.mark.parametrize("how", ["time", "delay"])
def test_what_comes_too_soon_is_no_conversion(tmp_path: Path, how: str) -> None:
    times = [(0, "a", 0), (10, "b", 29), (20, "a", 30), (30, "b", 31), (40, "a", None)]
    rows = [f"{t},{ad},{'' if d is None else t + d if how == 'time' else d}" for t, ad, d in times]
    conversion = {"time": None, how: "when", "min_delay": "30s"}
    outcome = {how: "when", "min_delay": 31}
    spec = dataset(tmp_path, ["t,ad,when", *rows], conversion=conversion, outcomes={"visit": outcome})
    log = load(spec)
    assert log.conversions["display_id"].to_pylist() == [2, 3]
    assert log.outcomes["display_id"].to_pylist() == [3]
    assert log.meta.counts["conversions_before_min_delay"] == 2
    assert log.meta.notes == (
        "2 conversions sooner than 30s after their display are none of it.",
        "3 events sooner than 31 after their display are none of it.",
    )
    frame = pl.read_csv(tmp_path / "log.csv")
    roles: dict[str, Any] = {"conversion_time" if how == "time" else "delay": "when"}
    made = Log.from_frames(
        frame, time="t", action="ad", min_delay="30s", outcomes={"visit": outcome}, unit="s", **roles
    )
    assert (made.events, made.meta.notes) == (log.events, log.meta.notes)
    clock = {"time": None, "indicator": "when", "immediate": True, "min_delay": 3}
    with pytest.raises(SpecError, match="min_delay is of a time or a delay, and immediate = true has none"):
        load(write_spec(tmp_path, conversion=clock))


def test_a_click_that_came_too_soon_gets_no_sale(tmp_path: Path) -> None:
    rows = ["t,ad,sold,key", "0,a,40,k", "20,b,40,k", "35,a,40,k", "50,b,,"]
    conversion = {"key": ["key"], "deduplicate": "last_click", "min_delay": 10}
    assert load(dataset(tmp_path, rows, conversion=conversion)).conversions["display_id"].to_pylist() == [1]
