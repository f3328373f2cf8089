"""The costs, clicks and campaigns' times of the Criteo attribution format, on its twin and on real rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evaluator import replay
from evaluator.datasets import load
from evaluator.log.eligible import unpack
from evaluator.log.schema import to_numpy
from evaluator.reading.locate import bundled_folder
from tests.reading.criteo.conftest import Twin

SPECS = ("criteo_twin", "criteo_attribution")
REAL = Path("criteo_attribution") / "first_100_rows.tsv.gz"
CALENDAR = """
[calendar]
files = "campaigns.csv"
action = "campaign"
from = "first"
until = "after"
"""


def agrees(spec: str, path: Path) -> None:
    """Ask that costs and clicks of a log are those of its file."""
    rows = pl.read_csv(path, separator="\t", infer_schema_length=None)
    log = load(spec, path=path)
    np.testing.assert_array_equal(log.column("cost"), rows["cost"].to_numpy())
    clicked = np.flatnonzero(rows["click"].to_numpy())
    np.testing.assert_array_equal(to_numpy(log.outcomes["display_id"]), clicked)
    assert set(log.outcomes["outcome"].to_pylist()) == {"click"}
    assert (to_numpy(log.outcomes["time"]) == rows["timestamp"].to_numpy()[clicked]).all()


@pytest.mark.parametrize("spec", SPECS)
def test_costs_and_clicks_are_read(spec: str, twin: Twin) -> None:
    agrees(spec, twin.path)


def test_costs_and_clicks_of_real_rows(shared_data: Path) -> None:
    agrees("criteo_attribution", shared_data / REAL)


def test_conversions_and_costs_do_not_add_up_unless_asked_to(twin: Twin) -> None:
    log = load("criteo_twin", path=twin.path, actions="top:10", limit=50_000)
    plain = replay(log, "ucb1", propensity="estimate")
    assert plain.money is None
    assert any("as the log says of itself" in said for said in plain.assumptions)
    profit = replay(log, "ucb1", propensity="estimate", objective="profit")
    assert profit.money is not None
    shown = to_numpy(profit.trajectory["display_id"])
    assert profit.money.cost.estimate == pytest.approx(log.column("cost")[shown].mean())
    assert [one.outcome for one in plain.outcomes] == ["click"]


def with_calendar(folder: Path, spec: str, path: Path) -> pl.DataFrame:
    """Do as the card says, and return the calendar."""
    card = (bundled_folder() / "criteo_attribution" / "README.md").read_text()
    for line in (*CALENDAR.strip().splitlines(), 'agg(first=pl.min("timestamp"), after=pl.max("timestamp") + 1)'):
        assert line in card
    rows = pl.scan_csv(path, separator="\t", infer_schema_length=None)
    days = rows.group_by("campaign").agg(first=pl.min("timestamp"), after=pl.max("timestamp") + 1).collect()
    days.write_csv(folder / "campaigns.csv")
    text = (bundled_folder() / spec / "spec.toml").read_text()
    (folder / "spec.toml").write_text(text + CALENDAR)
    return days


def eligible_as_the_calendar_says(folder: Path, spec: str, path: Path) -> None:
    days = with_calendar(folder, spec, path)
    log = load(folder / "spec.toml", path=path, limit=20_000)
    ends = {str(campaign): (first, after) for campaign, first, after in days.rows()}
    sets, time = unpack(log.displays["eligible"], log.n_actions), log.column("time")
    for k, label in enumerate(log.labels):
        first, after = ends[label]
        assert (sets[:, k] == ((time >= first) & (time < after))).all()
    assert not sets.all()


def test_campaigns_from_their_first_display_to_their_last(twin: Twin, tmp_path: Path) -> None:
    eligible_as_the_calendar_says(tmp_path, "criteo_twin", twin.path)


def test_real_campaigns_from_their_first_display_to_their_last(shared_data: Path, tmp_path: Path) -> None:
    eligible_as_the_calendar_says(tmp_path, "criteo_attribution", shared_data / REAL)
