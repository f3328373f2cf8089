"""Every breach of the log contract is reported with table, column, rows, values and the repair."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator.errors import LogError
from evaluator.log import EventKind, Log, find_breaches
from evaluator.log.log_tables import with_kind
from evaluator.log.schema import BATCH
from tests.logs import build_log


def sound(**changes: Any) -> Log:
    columns: dict[str, Any] = {
        "time": [0, 1, 2, 3, 4, 5],
        "action": [0, 1, 0, 1, 0, 1],
        "propensity": [0.5] * 6,
        "conversion_display": [1, 3],
        "conversion_time": [4, 3],
        "conversion_value": [1.0, 2.0],
        "n_actions": 2,
        "reward_max": 2.0,
    }
    return build_log(**{**columns, **changes})


def test_a_sound_log_is_returned_itself() -> None:
    log = sound(context=np.zeros((6, 2)), action_set=np.zeros((6, 2, 2)))
    assert log.validated() is log


@pytest.mark.parametrize(
    ("changes", "where", "rows", "values", "problem"),
    [
        ({"time": [0, 1, 5, 3, 4, 5]}, "displays.time", [3], (3,), "earlier than the row before"),
        ({"action": [0, 2, 0, -1, 0, 1]}, "displays.action", [1, 3], (2, -1), "not an action index below 2"),
        ({"propensity": [0.5, np.nan] + [0.5] * 4}, "displays.propensity", [1], None, "missing or nan"),
        ({"propensity": [0.5, 0.0] + [0.5] * 4}, "displays.propensity", [1], (0.0,), "0 although the action was shown"),
        ({"propensity": [-0.5] + [0.5] * 5}, "displays.propensity", [0], (-0.5,), "negative"),
        ({"propensity": [0.5] * 5 + [1.5]}, "displays.propensity", [5], (1.5,), "above 1"),
        ({"context": np.diag([0, 0, np.inf, 0, 0, 0])}, "displays.context", [2], (np.inf,), "not finite"),
        ({"conversion_display": [1, 6]}, "events.display_id", [1], (6,), "no display has this id"),
        ({"conversion_display": [-1, 3]}, "events.display_id", [0], (-1,), "no display has this id"),
        ({"conversion_time": [0, 3]}, "events.time", [0], (0,), "earlier than its display"),
        ({"observed_until": 3}, "events.time", [0], (4,), "later than observed_until = 3"),
        ({"attribution_window": 2}, "events.time", [0], (4,), "later than attribution_window = 2 rounds"),
        ({"conversion_value": [1.0, np.inf]}, "events.value", [1], (np.inf,), "not finite"),
        ({"conversion_value": [1.0, -1e308]}, "events.value", [1], (-1e308,), "beyond 1e+100"),
        ({"conversion_display": [3, 1], "conversion_time": [3, 4]}, "events.display_id", [1], (1,), "not sorted"),
    ],
)  # fmt: skip
def test_a_broken_row_is_found(
    changes: dict[str, Any], where: str, rows: list[int], values: tuple[Any, ...] | None, problem: str
) -> None:
    log = sound(**changes)
    (breach,) = find_breaches(log)
    assert f"{breach.table}.{breach.column}" == where
    assert breach.rows.tolist() == rows
    if values is not None:
        assert breach.values == values
    with pytest.raises(LogError) as error:
        log.validated()
    said = str(error.value)
    assert said.startswith(f"{where}: {problem}")
    assert f"row {rows[0]}: " in said
    assert "Hint: " in said


def test_null_propensities_are_missing() -> None:
    log = sound()
    column = pa.array([0.5, None, 0.5, 0.5, 0.5, 0.5])
    (breach,) = find_breaches(replace(log, displays=log.displays.set_column(3, "propensity", column)))
    assert (breach.problem, breach.rows.tolist()) == ("missing or nan", [1])


def test_absent_propensities_are_not_checked() -> None:
    assert find_breaches(sound(propensity=[np.nan] * 6).with_meta(propensity="absent")) == []


def test_displays_are_numbered_densely() -> None:
    log = sound()
    ids = pa.array([0, 1, 3, 2, 4, 5])
    (breach,) = find_breaches(replace(log, displays=log.displays.set_column(0, "display_id", ids)))
    assert (breach.problem, breach.rows.tolist(), breach.values) == ("not dense", [2, 3], (3, 2))


def test_many_rows_are_summarised_with_the_first() -> None:
    with pytest.raises(LogError, match=r"\(row 0: 2.0, row 1: 2.0, row 2: 2.0 and 3 more\)"):
        sound(propensity=[2.0] * 6).validated()


def test_all_kinds_of_breaches_are_reported_at_once() -> None:
    log = sound(time=[0, 1, 5, 3, 4, 5], action=[0, 9, 0, 1, 0, 1], conversion_value=[np.nan, 1.0])
    breaches = find_breaches(log)
    assert [b.column for b in breaches] == ["time", "action", "value"]
    with pytest.raises(LogError) as error:
        log.validated()
    assert all(b.what in error.value.what and b.remedy in error.value.remedy for b in breaches)
    assert str(error.value).count("Hint: ") == 1


def test_missing_and_mistyped_columns_come_first() -> None:
    # Row numbers mean nothing before the columns are what they should be.
    log = sound(time=[0, 1, 5, 3, 4, 5])
    displays = log.displays.drop_columns("action").set_column(1, "time", pa.array([0.5] * 6))
    breaches = find_breaches(replace(log, displays=displays))
    assert {b.problem for b in breaches} == {"column 'time' is double", "column 'action' is missing"}
    assert all("cast it to" in b.remedy or "add it as" in b.remedy for b in breaches)


def test_an_empty_log_and_a_single_action_are_refused() -> None:
    with pytest.raises(LogError, match="the log is empty"):
        build_log(time=[], action=[], n_actions=2).validated()
    with pytest.raises(LogError, match="nothing to choose"):
        build_log(time=[0], action=[0], n_actions=1).validated()


def with_events(n: int) -> Log:
    """A log of two actions whose displays all have an event of another kind."""
    click = EventKind(name="click", attribution_window=5, observed_until=None, value_max=1.0)
    log = build_log(time=np.arange(n), action=np.arange(n) % 2, n_actions=2, outcomes=(click,))
    events = {"display_id": np.arange(n), "time": np.arange(n) + 3, "value": np.ones(n)}
    return replace(log, events=with_kind(pa.table(events), "click"))


def test_sound_events_are_looked_at_in_the_memory_of_a_batch() -> None:
    log = with_events(8 * BATCH)
    tracemalloc.start()
    assert find_breaches(log, parts=["events"]) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Some numbers an event of a batch; of all events at once they were 70 bytes each, and their names as text.
    assert peak < 20 * 8 * BATCH


@pytest.mark.parametrize("rows", [[BATCH + 1], [0, BATCH, 2 * BATCH]])
def test_broken_events_of_a_long_log_are_told_by_their_rows(rows: list[int]) -> None:
    log = with_events(3 * BATCH)
    when = log.events["time"].to_numpy().copy()
    when[rows] += 1000
    (breach,) = find_breaches(replace(log, events=log.events.set_column(1, "time", pa.array(when))))
    assert (breach.table, breach.column, breach.rows.tolist()) == ("events", "time", rows)
    assert "later than attribution_window" in breach.problem
