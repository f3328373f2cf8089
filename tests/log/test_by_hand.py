"""A log made by hand is validated by every public function that takes it, once; one that was read is not read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evaluator
from evaluator import api
from evaluator.datasets import convert, load
from evaluator.errors import LogError
from evaluator.log import Log, StoredLog, breaches
from tests.logs import build_log

N = 400
FUNCTIONS: dict[str, Callable[[Log], Any]] = {
    "replay": lambda log: evaluator.replay(log, "random", window=10),
    "plan": lambda log: api.plan(log, "random", window=10),
    "compare": lambda log: evaluator.compare(log, ["random", "fixed:action=0"], windows=[10]),
    "audit": lambda log: evaluator.audit(log, ["random"], window=10, twins=20),
    "check": evaluator.check,
    "study_delays": lambda log: evaluator.study_delays(log, by=None),
}


def made(**changes: Any) -> Log:
    rng = np.random.default_rng(0)
    of = np.arange(0, N, 4)
    columns: dict[str, Any] = {
        "time": np.arange(N), "action": rng.integers(0, 2, N), "propensity": np.full(N, 0.5),
        "conversion_display": of, "conversion_time": of + 3, "n_actions": 2,
    }  # fmt: skip
    return build_log(**{**columns, **changes})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_refuses_a_broken_log_with_row_value_and_repair(name: str) -> None:
    p = np.full(N, 0.5)
    p[17] = 7.0
    with pytest.raises(LogError, match=r"displays.propensity: above 1 \(row 17: 7.0\). Hint: give the probability"):
        FUNCTIONS[name](made(propensity=p))


def test_a_log_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[str, ...]] = []
    real = breaches.find_breaches

    def counted(log: Log, *, vectors: bool = True, parts: Any = breaches.PARTS) -> Any:
        looked.append(tuple(parts))
        return real(log, vectors=vectors, parts=parts)

    monkeypatch.setattr("evaluator.log.contract.find_breaches", counted)
    log = made()
    assert log.checked() is log
    log.checked()
    assert looked == [("displays", "events")]
    # Other metadata, other rules, for the events alone; and a part of a sound log is sound.
    log.with_meta(attribution_window=5).checked()
    log.after(10).checked()
    log.with_meta(name="other").checked()
    log.with_meta(outcomes=()).checked()
    assert looked[1:] == [("events",), ("events",)]
    with pytest.raises(LogError, match="later than attribution_window = 2"):
        log.with_meta(attribution_window=2).checked()


def test_a_log_that_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted = convert("synthetic", tmp_path / "out", limit=200).log
    logs = [
        load("synthetic", limit=200), converted, load(tmp_path / "out"), load(tmp_path / "out", limit=100),
        load(tmp_path / "out", actions="top:3"), converted.after(20),
    ]  # fmt: skip
    assert isinstance(converted, StoredLog)
    monkeypatch.setattr("evaluator.log.contract.find_breaches", lambda *a, **k: pytest.fail("read again"))
    for log in logs:
        assert log.checked() is log


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conversion_display": [4, 4, 8], "conversion_time": [9, 12, 20], "conversion_value": [0.6, 0.6, 1.0],
          "reward_max": 1.0},
         r"events.value: the display earns more than reward_max = 1 in all \(row 1: 1.2\). Hint: raise"),
        ({"conversion_display": [4, 4], "conversion_time": [9, 8], "conversion_value": [0.5, 0.5]},
         r"events.time: earlier than the display's event before it \(row 1: 8\)"),
        ({"action_set": np.zeros((N, 3, 2))}, r"'action_set' has 3 entries a display, the log 2 actions"),
    ],
)  # fmt: skip
def test_what_only_a_log_by_hand_breaks(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(LogError, match=said):
        made(**changes).checked()


def test_a_sum_within_the_bound_is_sound() -> None:
    paid = {"conversion_display": [4, 4, 4], "conversion_time": [9, 9, 12], "conversion_value": [0.6, 0.9, -0.5]}
    made(**paid, reward_max=1.0).checked()


@pytest.mark.parametrize("column", ["time", "action", "display_id"])
def test_missing_cells_are_named(column: str) -> None:
    log = made()
    cells = log.displays[column].to_pylist()
    cells[3] = None
    at = log.displays.schema.get_field_index(column)
    broken = log.displays.set_column(at, column, pa.array(cells, log.displays.schema.field(column).type))
    with pytest.raises(LogError, match=rf"displays.{column}: missing \(row 3: nan\)"):
        replace(log, displays=broken).checked()


def test_missing_lists_and_mixed_up_actions_are_named() -> None:
    log = made()
    lists = pa.array([None if i == 5 else [0.0, 1.0] for i in range(N)], pa.list_(pa.float64(), 2))
    with pytest.raises(LogError, match=r"displays.context: missing \(row 5: None\)"):
        replace(log, displays=log.displays.append_column("context", lists)).checked()
    with pytest.raises(LogError, match="column 'context' is list"):
        replace(log, displays=log.displays.append_column("context", lists.cast(pa.list_(pa.float64())))).checked()
    mixed = pa.table({"action": pa.array([1, 0], pa.int32()), "label": pa.array(["a", None])})
    with pytest.raises(LogError, match=r"actions.action: not 0..K-1 in order \(row 0: 1.*actions.label: missing"):
        replace(log, actions=mixed).checked()
