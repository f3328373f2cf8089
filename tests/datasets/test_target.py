"""Columns of probabilities become the displays' `target`, kept by conversion; rows that hold none are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator import datasets, replay
from evaluator.errors import LogError, ParameterError, SourceError, SpecError
from tests.datasets.sources import dataset

ROWS = ["t,ad,p,sold,pi_b,pi_a", "1,a,0.5,4,0.25,0.75", "2,b,0.5,,1,0", "2,a,0.5,9,0,1.0", "5,b,0.5,5,0.5,0.5"]
TARGET = np.array([[0.75, 0.25], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
DISPLAY = {"propensity": "p"}


@pytest.mark.parametrize("columns", ["pi_{action}", {"a": "pi_a", "b": "pi_b"}])
def test_columns_follow_the_order_of_the_actions(tmp_path: Path, columns: object) -> None:
    log = datasets.load(dataset(tmp_path, ROWS, display=DISPLAY, target={"columns": columns}))
    assert log.schema.field("target").type == pa.list_(pa.float64(), 2)
    np.testing.assert_array_equal(log.column("target"), TARGET)


def test_conversion_keeps_them(tmp_path: Path) -> None:
    spec = dataset(tmp_path, ROWS, display=DISPLAY, target={"columns": "pi_{action}"})
    converted = datasets.convert(spec, tmp_path / "log").log
    again = datasets.convert(tmp_path / "log", tmp_path / "again").log
    for log in (converted, again, datasets.load(tmp_path / "again")):
        assert log.schema.field("target").type.list_size == 2
        np.testing.assert_array_equal(log.column("target"), TARGET)
    results = [replay(log, "columns", window=3).to_dict() for log in (datasets.load(spec), again)]
    assert results[0]["final"] == results[1]["final"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("3,a,0.5,,0.5,0.4", r"do not sum to 1 \(.*log.csv line 6: '0.9'\); .*\[target\]"),
        ("3,a,0.5,,0.5,", r"'pi_a': probability missing or nan \(.*line 6"),
        ("3,a,0.5,,1.5,-0.5", r"'pi_b': probability outside \[0, 1\] \(.*line 6: '1.5'"),
        ("3,a,0.5,,half,0.5", r"'pi_b': not a number \(.*line 6: 'half'"),
    ],
)
def test_rows_that_are_no_probabilities_are_named(tmp_path: Path, row: str, said: str) -> None:
    rows = [*ROWS[:4], "2,b,0.5,,0.5,0.5000001", row]
    spec = dataset(tmp_path, rows, display=DISPLAY, target={"columns": "pi_{action}"})
    with pytest.raises(LogError, match=said):
        datasets.load(spec)
    assert datasets.load(spec, on_error="quarantine", quarantine_at_most=1).column("target").shape == (4, 2)


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ("p_{action}", SpecError, "no column fits target.columns = 'p_{action}'"),
        ("pi", SpecError, "needs {action} in it once"),
        ({}, SpecError, "names no action"),
        ({"a": "pi_a", "b": "pi_c"}, SourceError, "no column 'pi_c'"),
        ({"a": "pi_a", "c": "pi_b"}, LogError, "has no column for action 'b'"),
    ],
)
def test_a_wrong_target_is_told(tmp_path: Path, columns: object, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        datasets.load(dataset(tmp_path, ROWS, display=DISPLAY, target={"columns": columns}))


def test_a_policy_that_shows_what_the_log_never_does_is_refused(tmp_path: Path) -> None:
    rows = [f"{row},{more}" for row, more in zip(ROWS, ["pi_c", "0", "0", "0", "0"], strict=True)]
    spec = dataset(tmp_path, rows, display=DISPLAY, target={"columns": "pi_{action}"})
    np.testing.assert_array_equal(datasets.load(spec).column("target"), TARGET)
    rows[2] = "2,b,0.5,,0.9,0,0.1"
    spec = dataset(tmp_path, rows, display=DISPLAY, target={"columns": "pi_{action}"})
    with pytest.raises(LogError, match=r"displays.target: the probabilities do not sum to 1 \(row 1: 0.9\)"):
        datasets.load(spec)
    # On disk, where vectors are checked when they are read.
    log = datasets.convert(spec, tmp_path / "log").log
    with pytest.raises(LogError, match=r"displays.target: the probabilities do not sum to 1 \(row 1: 0.9\)"):
        replay(log, "columns", window=3)


def test_it_is_no_column_to_group_by(tmp_path: Path) -> None:
    log = datasets.load(dataset(tmp_path, ROWS, display=DISPLAY, target={"columns": "pi_{action}"}))
    with pytest.raises(ParameterError, match=r"keeps no column 'target' \(it keeps none\)"):
        replay(log, "random", by="target")
