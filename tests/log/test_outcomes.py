"""Events of other kinds than conversions: what breaks their contract, and how parts of a log keep them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.errors import LogError, SourceError, UnknownNameError
from evaluator.log import EventKind, Log, StoredLog, find_breaches, shuffle_ties
from evaluator.log.fingerprint import content_hash
from evaluator.log.log_tables import mark_kind
from evaluator.log.vectors_of_displays import in_order
from evaluator.reading.canonical import first_displays, only_actions, open_canonical, verify, write_canonical
from evaluator.reading.log_folders import EVENTS
from tests.logs import build_log, with_outcome


def plain() -> Log:
    return build_log(
        time=range(6), action=[0, 1, 2, 0, 1, 2], n_actions=3, conversion_display=[1, 3], conversion_time=[4, 3],
        observed_until=20,
    )  # fmt: skip


def sound() -> Log:
    log = with_outcome(plain(), "click", [0, 2, 4], [0, 2, 5], observed_until=9, attribution_window=3, value_max=1.0)
    return with_outcome(log, "unsubscribe", [2, 2], [3, 12], [1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "where", "row", "value", "problem"),
    [
        ({"display": [0, 6]}, "events.display_id", 1, 6, "no display has this id"),
        ({"time": [1, 0]}, "events.time", 1, 0, "earlier than its display"),
        ({"observed_until": 1}, "events.time", 1, 2, "later than observed_until = 1 of click"),
        (
            {"time": [0, 3], "attribution_window": 1},
            "events.time",
            1,
            3,
            "later than attribution_window = 1 round of click",
        ),
        ({"value": [1.0, float("nan")]}, "events.value", 1, None, "not finite"),
        ({"value": [1.0, 1e300]}, "events.value", 1, 1e300, "beyond 1e+100"),
        ({"value": [1.0, -2.0]}, "events.value", 1, -2.0, "below 0"),
        ({"value_max": 0.5, "value": [0.5, 1]}, "events.value", 1, 1.0, "the display has more than value_max = 0.5"),
    ],
)
def test_a_broken_event_is_found(change: dict[str, Any], where: str, row: int, value: object, problem: str) -> None:
    events: dict[str, Any] = {"display": [0, 1], "time": [1, 2], "value": [1.0, 1.0], **change}
    log = with_outcome(plain(), "click", **events)
    (breach,) = find_breaches(log)
    rows = np.flatnonzero(mark_kind(log.events, "click"))
    assert (f"{breach.table}.{breach.column}", breach.rows.tolist()) == (where, [rows[row]])
    assert value is None or breach.values == (value,)
    with pytest.raises(LogError, match=rf"^{where}: {re.escape(problem)}.*row {rows[row]}: .*Hint: "):
        log.validated()


def test_what_to_do_with_a_late_event_is_said() -> None:
    log = with_outcome(plain(), "click", [0], [9], observed_until=8)
    with pytest.raises(LogError, match=r"Hint: raise observed_until, or drop the event\."):
        log.validated()


def test_events_of_no_outcome_or_out_of_order_are_found() -> None:
    log = sound()
    (unnamed,) = find_breaches(log.with_meta(outcomes=log.meta.outcomes[:1]))
    rows = np.flatnonzero(mark_kind(log.events, "unsubscribe")).tolist()
    assert (unnamed.column, unnamed.rows.tolist(), unnamed.values) == ("kind", rows, ("unsubscribe",) * 2)
    (unsorted,) = find_breaches(log.changed(events=log.events.take(pa.array([1, 0, 2, 3, 4, 5, 6]))))
    assert (unsorted.column, unsorted.problem, unsorted.rows.tolist()) == ("display_id", "not sorted by display", [1])
    (twice,) = find_breaches(log.with_meta(outcomes=(EventKind(name="click"), EventKind(name="click"))))
    assert twice.problem == "outcome 'click' is there twice"
    (missing,) = find_breaches(replace(log, events=log.events.drop_columns(["value"])))
    assert (missing.table, missing.column, missing.problem) == ("events", "value", "column 'value' is missing")


def stored(log: Log, folder: Path) -> StoredLog:
    folder.mkdir()
    write_canonical(log, folder)
    return open_canonical(folder)


def test_the_canonical_form_holds_the_events_and_notices_damage(tmp_path: Path) -> None:
    log = sound().validated()
    found = stored(log, tmp_path / "log")
    assert found.outcomes.equals(log.outcomes)
    assert found.meta == log.with_meta(fingerprint=content_hash(log)).meta
    assert verify(tmp_path / "log") == []
    again = found.changed(meta=found.meta).validated()
    assert content_hash(found) == content_hash(again)
    file = tmp_path / "log" / EVENTS
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(SourceError, match=r"events\.parquet: missing or damaged"):
        open_canonical(tmp_path / "log")


def test_a_log_without_events_of_its_outcomes_keeps_their_names(tmp_path: Path) -> None:
    log = with_outcome(plain(), "click", [], [])
    found = stored(log, tmp_path / "log")
    assert found.meta.outcomes == (EventKind(name="click"),)
    assert found.outcomes.num_rows == 0


@pytest.mark.parametrize("on_disk", [False, True])
def test_parts_of_a_log_keep_their_events(tmp_path: Path, on_disk: bool) -> None:
    log = stored(sound(), tmp_path / "log") if on_disk else sound()
    rest = log.after(2)
    assert rest.outcomes.to_pydict() == {
        "outcome": ["click", "unsubscribe", "unsubscribe", "click"], "display_id": [0, 0, 0, 2], "time": [2, 3, 12, 5],
        "value": [1.0, 1.0, 2.0, 1.0],
    }  # fmt: skip
    early = log.until(4)
    assert early.outcomes["time"].to_pylist() == [0, 2, 3]
    assert [one.observed_until for one in early.meta.outcomes] == [3, 3]
    clicks = log.of_outcome("click")
    assert clicks.conversions.to_pydict() == {"display_id": [0, 2, 4], "time": [0, 2, 5], "value": [1.0] * 3}
    assert (clicks.meta.observed_until, clicks.meta.attribution_window, clicks.meta.reward_max) == (9, 3, 1.0)
    assert clicks.outcomes.num_rows == 0
    assert clicks.validated() is clicks
    with pytest.raises(UnknownNameError, match=r"no outcome 'clik' in log 'test'\. Hint: did you mean click\?"):
        log.of_outcome("clik")
    with pytest.raises(UnknownNameError, match=r"log 'test' has none but its reward"):
        plain().of_outcome("click")
    for part in (rest, early, clicks):
        assert find_breaches(part) == []


def test_a_choice_of_actions_or_displays_renumbers_the_events(tmp_path: Path) -> None:
    log = stored(sound(), tmp_path / "log")
    some = only_actions(log, ["a1", "a2"], iter([log.events]), log.events.num_rows)
    assert some.outcomes["display_id"].to_pylist() == [1, 1, 1, 2]
    assert some.outcomes["outcome"].to_pylist() == ["click", "unsubscribe", "unsubscribe", "click"]
    assert first_displays(log, 2).outcomes["display_id"].to_pylist() == [0]
    assert some.validated() is some


def test_shuffled_ties_and_other_orders_of_actions_keep_events_with_their_displays(tmp_path: Path) -> None:
    n = 300
    made = build_log(time=np.arange(n) // 50, action=np.arange(n) % 3, n_actions=3)
    displays = made.displays.append_column("name", pa.array([f"d{i}" for i in range(n)]))
    log = with_outcome(
        made.changed(displays=displays), "click", np.arange(0, n, 7), np.arange(0, n, 7) + 10
    ).validated()
    for one in (log, stored(log, tmp_path / "log")):
        shuffled = shuffle_ties(one).validated()
        name = shuffled.displays["name"].to_pylist()
        assert name != displays["name"].to_pylist()
        of, time = (shuffled.outcomes[column].to_pylist() for column in ("display_id", "time"))
        clicked = {name[i]: when - 10 for i, when in zip(of, time, strict=True)}
        assert clicked == {f"d{i}": i for i in range(0, n, 7)}
        turned = in_order(one, ["a2", "a0", "a1"])
        assert turned.outcomes.equals(one.outcomes)
        assert turned.meta.outcomes == one.meta.outcomes


def test_the_hash_of_a_log_knows_its_events_and_not_those_it_lacks() -> None:
    log = sound()
    assert len({content_hash(log), content_hash(plain()), content_hash(with_outcome(plain(), "click", [], []))}) == 3
    moved = log.events.set_column(1, "time", pa.array([*log.events["time"].to_pylist()[:-1], 6]))
    assert content_hash(log.changed(events=moved)) != content_hash(log)
