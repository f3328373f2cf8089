"""Columns of numbers about each action become the displays' `action_set`; cells that hold none are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator import Log, check, datasets, replay
from evaluator.errors import LogError, SpecError, UsageError
from tests.reading.sources import dataset, write_rows

ROWS = [
    "t,ad,p,sold,near_b,near_a,price_a,price_b",
    "1,a,0.5,4,0.25,0.75,1,2",
    "2,b,0.5,,-1,0,3,4",
    "2,a,0.5,9,0,1.0,5,6",
    "5,b,0.5,5,0.1,1e3,7,8",
]
# (n, K, d), actions a, b: how near, what price.
VECTORS = np.array(
    [[[0.75, 1], [0.25, 2]], [[0.0, 3], [-1.0, 4]], [[1.0, 5], [0.0, 6]], [[1e3, 7], [0.1, 8]]], np.float32
)
SECTIONS: dict[str, Any] = {
    "display": {"propensity": "p"},
    "time": {"ties": "file"},
    "action_set": {"columns": ["near_{action}", "price_{action}"]},
}


def vectors(log: Log) -> np.ndarray:
    return log.column("action_set")


def in_parquet(folder: Path) -> Path:
    """Write the rows as Parquet, with a spec."""
    spec = dataset(folder, ROWS, **SECTIONS)
    pl.read_csv(folder / "log.csv").write_parquet(folder / "log.parquet")
    spec.write_text(spec.read_text().replace("log.csv", "log.parquet"))
    return spec


def test_columns_follow_the_order_of_the_actions_whatever_the_file(tmp_path: Path) -> None:
    (tmp_path / "parquet").mkdir()
    logs = [datasets.load(dataset(tmp_path, ROWS, **SECTIONS)), datasets.load(in_parquet(tmp_path / "parquet"))]
    for log in logs:
        assert log.labels == ["a", "b"]
        np.testing.assert_array_equal(vectors(log), VECTORS)
    assert logs[0].displays.equals(logs[1].displays)


def test_one_column_an_action_is_a_vector_of_one_number(tmp_path: Path) -> None:
    log = datasets.load(dataset(tmp_path, ROWS, **SECTIONS | {"action_set": {"columns": "price_{action}"}}))
    np.testing.assert_array_equal(vectors(log), VECTORS[:, :, 1:])


def test_conversion_keeps_them(tmp_path: Path) -> None:
    spec = dataset(tmp_path, ROWS, **SECTIONS)
    datasets.convert(spec, tmp_path / "log")
    again = datasets.convert(tmp_path / "log", tmp_path / "again").log
    for log in (datasets.load(tmp_path / "log"), again):
        np.testing.assert_array_equal(vectors(log), VECTORS)
    results = [replay(log, "linucb", window=3).to_dict() for log in (datasets.load(spec), again)]
    assert results[0]["final"] == results[1]["final"]
    facts = datasets.show(tmp_path / "log")["log"]
    assert (facts["action_vector_dimensions"], facts["context_dimensions"]) == (2, None)


def test_a_table_of_candidates_says_the_same() -> None:
    rng = np.random.default_rng(5)
    n, x = 400, rng.normal(size=(400, 3, 2))
    shown = rng.integers(3, size=n)
    rows = {"t": np.arange(n), "ad": np.array(list("abc"))[shown], "id": np.arange(n)}
    # What comes for an action goes by its first number.
    sold = rng.random(n) < 0.5 + 0.2 * np.tanh(x[np.arange(n), shown, 0])
    numbers = {
        f"{name}_{label}": x[:, k, i] for k, label in enumerate("abc") for i, name in enumerate(("near", "price"))
    }
    displays = pl.DataFrame({**rows, **numbers}).with_columns(delay=pl.when(sold).then(2))
    roles: dict[str, Any] = {
        "time": "t", "action": "ad", "id": "id", "delay": "delay", "unit": "s", "ties": "file",
        "propensity_kind": "uniform",
    }  # fmt: skip
    long = pl.DataFrame(
        {"id": np.repeat(np.arange(n), 3), "ad": list("abc") * n, "near": x[..., 0].ravel(), "price": x[..., 1].ravel()}
    )
    candidates = Log.from_frames(displays, candidates=long, candidate_features=["near", "price"], **roles)
    log = Log.from_frames(displays, action_set=["near_{action}", "price_{action}"], **roles)
    np.testing.assert_array_equal(vectors(candidates).reshape(vectors(log).shape), vectors(log))
    for options in ({"window": 3}, {"window": 3, "final": "last:30%"}, {"bootstrap": 20, "doubly_robust": True}):
        with_table, with_columns = (replay(of, "linucb", **options).to_dict() for of in (candidates, log))
        for key in ("rounds", "value", "uplift", "final", "doubly_robust"):
            assert with_table[key] == with_columns[key]
        assert with_table["rounds"] > 50
    # Sets that hold all actions turn off nothing that takes every action for eligible.
    estimated = [replay(of, "ucb1", propensity="estimate").to_dict()["value"] for of in (candidates, log)]
    assert estimated[0] == estimated[1]
    verdicts = {row["name"]: row["verdict"] for row in check(candidates).to_dict()["checks"]}
    assert verdicts["uniformity"] == "pass"


def test_sets_and_a_choice_of_actions_take_the_columns_they_need(tmp_path: Path) -> None:
    rows = [f"{row},{more}" for row, more in zip(ROWS, ["could", "a|b", "b|a", "a", "b"], strict=True)]
    display = {"display": {"propensity": None, "propensity_kind": "uniform", "eligible": "could"}}
    display["display"]["eligible_separator"] = "|"
    spec = dataset(tmp_path, rows, **SECTIONS | display)
    np.testing.assert_array_equal(vectors(datasets.load(spec)), VECTORS)
    datasets.convert(spec, tmp_path / "log")
    np.testing.assert_array_equal(vectors(datasets.load(tmp_path / "log")), VECTORS)
    several = datasets.load(spec, actions="a,b", limit=2)
    np.testing.assert_array_equal(vectors(several), VECTORS[:2])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("3,a,0.5,,0.5,,1,1", r"Column 'near_a': missing or not finite \(.*log.csv line 6: None\); fill the cell"),
        ("3,a,0.5,,inf,0,1,1", r"Column 'near_b': missing or not finite \(.*log.csv line 6: 'inf'\)"),
        ("3,a,0.5,,0,0,1e39,1", r"Column 'price_a': missing or not finite \(.*log.csv line 6: '1e\+39'\)"),
        ("3,a,0.5,,0,0,1,dear", r"Column 'price_b': not a number \(.*line 6: 'dear'\)"),
    ],
)
def test_cells_that_hold_no_number_are_named(tmp_path: Path, row: str, said: str) -> None:
    spec = dataset(tmp_path, [*ROWS, row], **SECTIONS)
    with pytest.raises(LogError, match=said):
        datasets.load(spec)
    left = datasets.load(spec, on_error="quarantine", quarantine_at_most=1)
    np.testing.assert_array_equal(vectors(left), VECTORS)


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ("far_{action}", SpecError, r"no column fits action_set.columns = 'far_{action}'. Hint: the columns are t, ad"),
        ("near", SpecError, r"'near' needs {action} in it once"),
        ([], SpecError, "names no number of the vectors"),
        ("{action}d", SpecError, r"action_set.columns = '{action}d': 'sold' is|'ad'"),
    ],
)
def test_wrong_columns_are_told(tmp_path: Path, columns: object, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        datasets.load(dataset(tmp_path, ROWS, **SECTIONS | {"action_set": {"columns": columns}}))


def test_an_action_without_a_column_is_told(tmp_path: Path) -> None:
    spec = dataset(tmp_path, [*ROWS, "6,c,0.5,,0,0,0,0"], **SECTIONS)
    with pytest.raises(LogError, match=r"\[action_set\] has no column for action 'c' of the log.*leave the action out"):
        datasets.load(spec)
    np.testing.assert_array_equal(vectors(datasets.load(spec, actions="a,b")), VECTORS)


def test_vectors_of_candidates_too_are_too_many(tmp_path: Path) -> None:
    table = {"files": "more.csv", "display": "of", "action": "ad", "features": ["near"]}
    sections = SECTIONS | {"display": {"id": "t"}, "candidates": table}
    with pytest.raises(SpecError, match="both give vectors of the actions"):
        datasets.load(dataset(tmp_path, ROWS, **sections))


def test_frames_have_them_too(tmp_path: Path) -> None:
    frame = pl.read_csv(write_rows(tmp_path / "log.csv", ROWS)).with_columns(price=pl.Series([1, 3, 5, 7]))
    roles: dict[str, Any] = {
        "time": "t", "action": "ad", "propensity": "p", "conversion_time": "sold", "unit": "s", "ties": "file"
    }  # fmt: skip
    log = Log.from_frames(frame, **roles, action_set=["near_{action}", "price_{action}"], keep={"slot": "price"})
    np.testing.assert_array_equal(vectors(log), VECTORS)
    assert log.column("slot").tolist() == [1, 3, 5, 7]
    for columns, error, said in (
        ("far_{action}", SpecError, "displays: no column fits action_set = 'far_{action}'"),
        ("near_{action}", LogError, "`action_set` has no column for action 'c'"),
    ):
        more = frame if error is SpecError else frame.with_columns(ad=pl.Series(["a", "b", "a", "c"]))
        with pytest.raises(error) as refused:
            Log.from_frames(more, **roles, action_set=columns)
        assert said in str(refused.value)
    with pytest.raises(UsageError) as refused:
        Log.from_frames(frame.with_columns(position=1), **roles, keep="position")
    assert 'give it another: keep={"own_position": "position"}.' in str(refused.value)
