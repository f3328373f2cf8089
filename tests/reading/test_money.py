"""Costs and refunds in sources: read alike from text, Parquet and frames, and refused with the row that is wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator import Log, load
from evaluator.datasets import convert, read, show
from evaluator.errors import LogError, SpecError
from tests.reading.sources import dataset, write_rows, write_spec

ROWS = ["id,t,ad,spent", "x,1,a,0.5", "y,2,b,0", "z,4,a,1.25"]
SALES = ["shown,when,paid", "x,3,6", "x,9,-7", "z,5,2"]
SECTIONS = {
    "display": {"id": "id", "cost": "spent"},
    "conversion": {"time": "when", "value": "paid", "source": {"files": "sales.csv", "display": "shown"}},
    "log": {"reward_max": 10, "reward_min": -2},
}


def shop(folder: Path, rows: list[str] = ROWS, **sections: dict[str, object]) -> Path:
    write_rows(folder / "sales.csv", SALES)
    return dataset(folder, rows, **{**SECTIONS, **sections})


def test_text_parquet_frames_and_converted_folders_are_the_same_log(tmp_path: Path) -> None:
    log = load(shop(tmp_path))
    assert log.displays["cost"].to_pylist() == [0.5, 0.0, 1.25]
    assert log.conversions["value"].to_pylist() == [6.0, -7.0, 2.0]
    assert (log.meta.reward_min, log.meta.reward_max) == (-2.0, 10.0)
    columns = {"id": ["x", "y", "z"], "t": [1, 2, 4], "ad": ["a", "b", "a"], "spent": [0.5, 0.0, 1.25]}
    sales = pa.table({"shown": ["x", "x", "z"], "when": [3, 9, 5], "paid": [6.0, -7.0, 2.0]})
    other = tmp_path / "parquet"
    other.mkdir()
    write_rows(other / "sales.csv", SALES)
    pq.write_table(pa.table(columns), other / "log.parquet")
    frames = Log.from_frames(
        pa.table(columns), sales, time="t", action="ad", id="id", cost="spent", conversion_time="when", value="paid",
        display="shown", unit="s", reward_max=10, reward_min=-2,
    )  # fmt: skip
    convert(tmp_path / "spec.toml", tmp_path / "converted")
    for same in (
        load(write_spec(other, **{**SECTIONS, "source": {"files": "log.parquet"}})),
        frames,
        load(tmp_path / "converted"),
    ):
        assert same.displays.equals(log.displays)
        assert same.conversions.equals(log.conversions)
        assert (same.meta.reward_min, same.meta.reward_max) == (-2.0, 10.0)


@pytest.mark.parametrize("cell", ["-0.5", "", "inf", "nan", "1e300"])
def test_what_is_no_cost_is_named(tmp_path: Path, cell: str) -> None:
    path = shop(tmp_path, [*ROWS[:2], f"y,2,b,{cell}", ROWS[3], "w,5,b,1"])
    with pytest.raises(LogError, match=r"Column 'spent': no cost from 0 to .*log\.csv line 3.*; give what showing"):
        load(path)
    assert len(read(path, on_error="quarantine", quarantine_at_most=1).log) == 3


def test_a_display_below_its_bound_is_named(tmp_path: Path) -> None:
    path = shop(tmp_path, log={"reward_min": -0.5})
    with pytest.raises(LogError) as raised:
        load(path)
    said = str(raised.value)
    assert "Column 'paid': the display earns less than reward_min = -0.5" in said
    assert "sales.csv line 3: '-1.0'" in said
    assert "lower reward_min in [log]" in said


def test_a_bound_from_below_is_at_most_0(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="reward_min"):
        load(shop(tmp_path, log={"reward_min": 1}))
    log = load(shop(tmp_path))
    with pytest.raises(LogError, match=r"meta: reward_min = 2 is no bound from below.* as a number of at most 0"):
        log.with_meta(reward_min=2.0).validated()
    with pytest.raises(LogError, match=r"the display earns less than reward_min = 0 in all \(row 1: -1"):
        log.with_meta(reward_min=0.0).validated()


def test_a_log_made_by_hand_keeps_its_costs_in_bounds(tmp_path: Path) -> None:
    log = load(shop(tmp_path))
    at = log.displays.schema.get_field_index("cost")
    for cost, said in (
        (pa.array([1.0, -1.0, 0.0]), r"displays.cost: no cost from 0 to .* \(row 1: -1"),
        (pa.array([1, 1, 0]), r"column 'cost' is int64. Hint: cast it to double"),
    ):
        wrong = Log(log.displays.set_column(at, "cost", cost), log.conversions, log.actions, log.meta)
        with pytest.raises(LogError, match=said):
            wrong.validated()


def test_a_cost_is_no_feature_unless_it_is_known_before(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is the cost of the action that was shown: no policy may see it; if it"):
        load(shop(tmp_path, context={"columns": ["spent"]}))


def test_shown_are_refunds_and_costs(tmp_path: Path) -> None:
    facts = show(shop(tmp_path))["log"]
    assert facts["refunds"] == {"conversions": 1, "per_display": -7 / 3, "smallest": -1.0}
    assert facts["costs"] == {"per_display": 1.75 / 3, "smallest": 0.0, "largest": 1.25}
