"""Facts of a log, found in one pass over its displays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator import datasets, load
from evaluator.log import Log, StoredLog
from evaluator.log import schema as log_schema
from evaluator.reading.summary import QUANTILES, log_facts


def _in_memory(*_: object) -> None:
    raise AssertionError("all displays are held in memory")


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts") / "promotions"
    datasets.convert("promotions", folder, limit=4_000)
    return folder


def test_facts_and_verdict_of_a_stored_log_hold_none_of_its_displays(
    converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = log_facts(load("promotions", limit=4_000)).to_dict()
    monkeypatch.setattr(StoredLog, "displays", property(_in_memory))
    monkeypatch.setattr(StoredLog, "column", _in_memory)
    found = datasets.show(converted)["log"]
    assert {**found, "notes": []} == {**whole, "notes": []}
    assert datasets.validate(converted)["ok"]


def test_facts_are_those_of_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    log = load("promotions", limit=4_000)
    # Batches of which some have no event, and in which events lie at both ends.
    pieces = [(first, log.displays.slice(first, 37)) for first in range(0, len(log), 37)]
    monkeypatch.setattr(
        Log, "batches",
        lambda self, columns, size=0, coded=False: (
            (first, {name: log_schema.read(piece[name], coded=coded) for name in columns}) for first, piece in pieces
        ),
    )  # fmt: skip
    found = log_facts(log).to_dict()
    time, action = (log.displays[name].to_numpy() for name in ("time", "action"))
    assert found["time_range"] == [time[0], time[-1]]
    shown = np.bincount(action, minlength=log.n_actions)
    sales = {name: log.conversions[name].to_numpy() for name in ("display_id", "time", "value")}
    converted = np.bincount(action[sales["display_id"]], minlength=log.n_actions)
    for of in found["top_actions"]:
        k = list(log.labels).index(of["label"])
        assert (of["displays"], of["conversions"]) == (shown[k], converted[k])
    delay = (sales["time"] - time[sales["display_id"]])[sales["value"] >= 0]
    assert found["delay_quantiles"] == {f"p{100 * q:g}": np.quantile(delay, q) for q in QUANTILES.values()}
    cost = log.displays["cost"].to_numpy()
    assert found["costs"] == pytest.approx(
        {"per_display": cost.mean(), "smallest": cost.min(), "largest": cost.max()}, rel=1e-12
    )
    events = log.of_outcome("unsubscribe").conversions
    late = events["time"].to_numpy() - time[events["display_id"].to_numpy()]
    assert found["outcomes"][0]["events"] == len(late)
    assert found["outcomes"][0]["delay_quantiles"]["p50"] == np.quantile(late, 0.5)
