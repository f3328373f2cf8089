"""Columns of probabilities become the displays' `target`, kept by conversion; rows that hold none are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, compare, datasets, replay
from evaluator.errors import LogError, ParameterError, SourceError, SpecError
from evaluator.replays.rounds.stream import pieces
from tests.reading.sources import dataset, write_rows

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


LABELS = ["t,ad,sold,new", "1,a,4,a", "2,b,,b", "3,a,9,b", "5,b,5,a"]
NAMED = {"new_model": {"action": "new"}}


def shop(n: int = 6000) -> tuple[pa.Table, dict[str, object]]:
    """Return displays of three actions in three segments, of which each has a best one, and their roles."""
    rng, labels = np.random.default_rng(3), np.array(["blue", "green", "red"])
    segment, action = rng.integers(3, size=(2, n))
    best = labels[segment]
    frame = pa.table({
        "t": np.arange(n), "ad": labels[action], "sold": rng.random(n) < np.where(action == segment, 0.4, 0.1),
        "new": best, "old": np.full(n, "blue"), "odd": np.where(np.arange(n) % 10 == 0, "gold", best),
        **{f"pi_{label}": (segment == i).astype(float) for i, label in enumerate(labels)},
    })  # fmt: skip
    roles = {
        "time": "t", "action": "ad", "propensity_kind": "uniform", "indicator": "sold", "immediate": True,
        "unit": "min", "observed_until": "complete",
    }  # fmt: skip
    return frame, roles


def test_actions_taken_are_the_probabilities_that_they_stand_for_to_the_bit() -> None:
    frame, roles = shop()
    targets = {"new_model": "new", "same": {"columns": "pi_{action}"}}
    log = Log.from_frames(frame, target="pi_{action}", targets=targets, **roles)  # type: ignore[arg-type]
    assert log.schema.field("target:new_model").type == pa.string()  # not N x K numbers
    found = [replay(log, spec).to_dict() for spec in ("target:new_model", "target:same", "columns")]
    assert [one["policy"] for one in found] == ["target:new_model", "target:same", "columns"]
    for one in found:
        assert abs(one["value"]["estimate"] - 0.4) < 4 * np.sqrt(0.24 / one["rounds"])
        assert (one["value"], one["final"], one["findings"]) == (
            found[2]["value"],
            found[2]["final"],
            found[0]["findings"],
        )


def test_targets_are_compared_with_each_other_and_with_an_action() -> None:
    frame, roles = shop()
    log = Log.from_frames(frame, targets={"new_model": "new", "old": "old"}, **roles)  # type: ignore[arg-type]
    found = compare(log, ["target:new_model", "target:old", "fixed:action=0"], baseline="target:new_model")
    new, old, fixed = (one.value.estimate for one in found.results)
    assert old == fixed < new
    assert found.verdict is not None
    assert {one.decision for one in found.verdict.candidates} == {"don't"}


def test_a_label_target_is_read_from_a_spec_and_kept_by_conversion(tmp_path: Path) -> None:
    spec = dataset(tmp_path, LABELS, display={"propensity_kind": "uniform"}, target=NAMED)
    converted = datasets.convert(spec, tmp_path / "log").log
    again = datasets.load(datasets.convert(tmp_path / "log", tmp_path / "again").log.paths[0].parent)
    results = [replay(log, "target:new_model", window=3).to_dict() for log in (datasets.load(spec), converted, again)]
    assert again.column("target:new_model").tolist() == ["a", "b", "b", "a"]
    assert results[0]["final"] == results[1]["final"] == results[2]["final"]


def test_a_label_target_follows_a_choice_of_actions_and_batches(tmp_path: Path) -> None:
    frame, roles = shop(3000)
    log = Log.from_frames(frame, targets={"new": "new"}, **roles)  # type: ignore[arg-type]
    index = np.array([log.labels.index(label) for label in log.column("target:new")])
    for size in (1000, 7):
        taken = [piece.vectors["target:new"][:, 0, 0] for piece in pieces(log, ["action"], ["target:new"], size)]
        np.testing.assert_array_equal(np.concatenate(taken), index)
    fewer = Log.from_frames(frame, targets={"new": "new"}, actions=["red", "blue"], **roles)  # type: ignore[arg-type]
    found = replay(fewer, "target:new").findings
    (said,) = [one for one in found if one.code == "target-never-shown"]
    assert "('green' " in said.what
    green = np.isin(frame["ad"].to_pylist(), ["red", "blue"]) & (np.array(frame["new"].to_pylist()) == "green")
    assert said.numbers["displays"] == green.sum()


def test_an_action_never_shown_is_counted_and_stands_for_one_at_random() -> None:
    frame, roles = shop(20_000)
    log = Log.from_frames(frame, targets={"odd": "odd", "new": "new"}, **roles)  # type: ignore[arg-type]
    found = replay(log, "target:odd")
    (said,) = [one for one in found.findings if one.code == "target-never-shown"]
    assert said.numbers["displays"] == 2000
    assert "an action that the log never shows ('gold' 2,000 times). The values" in said.what
    assert found.final is not None
    snips = found.final.estimates["snips"]
    assert abs(snips.value.estimate - (0.9 * 0.4 + 0.1 * 0.2)) < 4 * snips.standard_error
    assert not [one for one in replay(log, "target:new").findings if one.code.startswith("target-")]


@pytest.mark.parametrize("bad", ["c", "b"])
def test_an_action_outside_the_set_is_counted(tmp_path: Path, bad: str) -> None:
    rows = ["t,ad,sold,new,sets"] + [f"{t},{'ab'[t % 2]},,{bad if t % 5 == 0 else 'a'},a b" for t in range(100)]
    rows += [f"{t},{'abc'[t % 3]},,a,a b c" for t in range(100, 199)]
    display = {"propensity_kind": "uniform", "eligible": "sets", "eligible_separator": " "}
    log = datasets.load(dataset(tmp_path, rows, display=display, target=NAMED))
    found = {
        one.code: one.numbers["displays"]
        for one in replay(log, "target:new_model").findings
        if "displays" in one.numbers
    }
    assert found.get("target-not-eligible", 0) == (20 if bad == "c" else 0)
    assert "target-never-shown" not in found


def test_a_display_without_an_action_is_named(tmp_path: Path) -> None:
    spec = dataset(tmp_path, [*LABELS, "6,a,,"], display={"propensity_kind": "uniform"}, target=NAMED)
    with pytest.raises(LogError, match=r"'new': no action of target:new_model \(.*log.csv line 6"):
        datasets.load(spec)
    assert len(datasets.load(spec, on_error="quarantine", quarantine_at_most=1)) == 4


IDS = ["id,t,ad,sold", "k1,1,a,4", "k2,2,b,", "k3,3,a,9", "k4,5,b,5"]
BY_ID = {"new_model": {"action": "arm", "source": {"files": "arms.csv", "display": "key"}}}
ID = {"id": "id", "propensity_kind": "uniform"}


def test_labels_are_joined_from_a_table_of_their_own_in_any_order(tmp_path: Path) -> None:
    write_rows(tmp_path / "arms.csv", ["key,arm", "k3,a", "zz,b", "k1,b", "k4,gold", "k2,a"])
    spec = dataset(tmp_path, IDS, display=ID, target=BY_ID)
    log = datasets.load(spec)
    assert log.column("target:new_model").tolist() == ["b", "a", "a", "gold"]
    converted = datasets.convert(spec, tmp_path / "log").log
    assert converted.column("target:new_model").tolist() == ["b", "a", "a", "gold"]
    rows = [f"{row},{arm}" for row, arm in zip(IDS, ("new", *"baa", "gold"), strict=True)]
    (tmp_path / "in").mkdir()
    same = datasets.load(dataset(tmp_path / "in", rows, display=ID, target=NAMED))
    assert replay(log, "target:new_model", window=3).final == replay(same, "target:new_model", window=3).final


def test_ids_of_a_long_table_find_their_own_label(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ids, arms = rng.permutation(5000), rng.integers(2, size=5000)
    write_rows(tmp_path / "arms.csv", ["key,arm", *(f"{key},{'ab'[arm]}" for key, arm in zip(ids, arms, strict=True))])
    rows = ["id,t,ad,sold", *(f"{key},{t},{'ab'[t % 2]}," for t, key in enumerate(range(0, 5000, 3)))]
    log = datasets.load(dataset(tmp_path, rows, display=ID, target=BY_ID))
    of = dict(zip(ids.tolist(), arms.tolist(), strict=True))
    assert log.column("target:new_model").tolist() == ["ab"[of[key]] for key in range(0, 5000, 3)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["key,arm", "k1,a", "k2,a", "k3,b"], r"'target.new_model.action': no action of target:new_model \(.*log.csv"),
        (["key,arm", "k1,a", "k2,", "k3,b", "k4,a"], r"no action of target:new_model \(.*log.csv line 3"),
        (["key,arm", "k1,a", "k2,a", "k2,b", "k3,b", "k4,a"], r"'key': twice \(.*arms.csv line 4"),
        (["key,arm", ",a", "k2,a", "k3,b", "k4,a"], r"'key': missing \(.*arms.csv line 2"),
        (["key,arm"], r"no action of target:new_model"),
    ],
)
def test_a_table_that_does_not_fit_names_the_row(tmp_path: Path, rows: list[str], said: str) -> None:
    write_rows(tmp_path / "arms.csv", rows)
    with pytest.raises(LogError, match=said):
        datasets.load(dataset(tmp_path, IDS, display=ID, target=BY_ID))


def test_a_table_of_labels_needs_an_id(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"\[target.new_model.source\] joins on display.id"):
        datasets.load(dataset(tmp_path, IDS, display={"propensity_kind": "uniform"}, target=BY_ID))
    bad = {"new": {"columns": "pi_{action}", "source": BY_ID["new_model"]["source"]}}
    with pytest.raises(SpecError, match="source is a table of labels"):
        datasets.load(dataset(tmp_path, IDS, display=ID, target=bad))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({}, "names no policy"),
        ({"new": {}}, "either action"),
        ({"new": {"action": "new", "columns": "pi_{action}"}}, "either action"),
        ({"new": {"labels": "new"}}, "labels"),
        ({"new": {"columns": "pi"}}, "needs {action} in it once"),
    ],
)
def test_a_wrong_named_target_is_told(tmp_path: Path, target: object, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        datasets.load(dataset(tmp_path, LABELS, display={"propensity_kind": "uniform"}, target=target))


def test_a_target_that_is_not_there_names_the_nearest() -> None:
    frame, roles = shop(300)
    log = Log.from_frames(frame, targets={"new_model": "new"}, **roles)  # type: ignore[arg-type]
    for spec, said in (("target:new_modl", "new_model"), ("target", "write target:new_model")):
        with pytest.raises(ParameterError, match=said):
            replay(log, spec)
    with pytest.raises(ParameterError, match="no policy is a column"):
        replay(Log.from_frames(frame, **roles), "target:new")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="`a b`"):
        Log.from_frames(frame, targets={"a b": "new"}, **roles)  # type: ignore[arg-type]
