"""A log on disk gives what the same log in memory gives, whatever the batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.datasets import load
from evaluator.errors import LogError, SourceError
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import open_canonical, write_canonical
from tests.logs import build_log, linear_log

N = 400


def in_memory(**meta: Any) -> Log:
    rng = np.random.default_rng(0)
    shown = np.sort(rng.choice(N, 60, replace=False))
    return build_log(
        time=np.sort(rng.integers(0, 300, N)),
        action=rng.choice(4, N, p=[0.1, 0.4, 0.2, 0.3]),
        conversion_display=shown,
        conversion_time=[400] * 60,
        n_actions=4,
        context=rng.random((N, 2)).astype(np.float32),
        action_set=rng.random((N, 4, 3)).astype(np.float32),
        **meta,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_canonical(in_memory(), tmp_path)
    return tmp_path


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_are_the_columns(folder: Path, size: int) -> None:
    log, stored = in_memory(), open_canonical(folder)
    for name in log.schema.names:
        parts = list(stored.batches([name], size))
        assert [first for first, _ in parts] == list(range(0, N, size))
        np.testing.assert_array_equal(np.concatenate([batch[name] for _, batch in parts]), log.column(name))
    assert stored.displays.equals(log.displays)
    assert stored.schema.equals(log.schema)


@pytest.mark.parametrize("options", [{"limit": 150}, {"actions": "top:2"}, {"actions": "a3,a0", "limit": 200}])
@pytest.mark.parametrize("size", [3, 1000])
def test_parts_are_numbered_anew(folder: Path, options: dict[str, Any], size: int) -> None:
    part, whole = load(folder, **options), in_memory()
    n = options.get("limit", N)
    old = [whole.labels.index(label) for label in part.labels]
    rows = np.flatnonzero(np.isin(whole.column("action")[:n], old))
    parts = list(part.batches(["display_id", "time", "action", "propensity", "action_set"], size))
    found = {name: np.concatenate([batch[name] for _, batch in parts]) for name in parts[0][1]}
    np.testing.assert_array_equal(found["display_id"], np.arange(len(rows)))
    np.testing.assert_array_equal(found["time"], whole.column("time")[rows])
    np.testing.assert_array_equal(np.array(old)[found["action"]], whole.column("action")[rows])
    np.testing.assert_array_equal(found["propensity"], 1 / len(old))
    np.testing.assert_array_equal(found["action_set"], whole.column("action_set")[rows][:, old])
    of = part.conversions["display_id"].to_numpy()
    kept = np.isin(whole.conversions["display_id"].to_numpy(), rows)
    np.testing.assert_array_equal(rows[of], whole.conversions["display_id"].to_numpy()[kept])
    assert part.validated() is part


def test_rows_are_taken_in_the_order_asked_for(folder: Path) -> None:
    log, stored = in_memory(), open_canonical(folder)
    numbers = np.array([399, 0, 7, 7, 250])
    for columns in (["time"], ["action", "context"], ["display_id"]):
        for asked in (numbers, np.sort(numbers)):
            assert stored.take(asked, columns).equals(log.take(asked, columns))
    assert stored.take(numbers[:0], ["time"]).num_rows == 0


def test_breaches_carry_the_rows_of_the_whole_log(tmp_path: Path) -> None:
    rows = 70_000  # more than a batch
    action = np.zeros(rows, np.int32)
    action[[5, 69_999]] = 9
    write_canonical(build_log(time=np.arange(rows), action=action, n_actions=2), tmp_path)
    with pytest.raises(LogError, match=r"row 5: 9, row 69999: 9"):
        open_canonical(tmp_path)


@pytest.mark.parametrize("options", [{}, {"limit": 150}, {"actions": "a3,a0", "limit": 200}])
@pytest.mark.parametrize("first", [0, 1, 37, 60])
@pytest.mark.parametrize("size", [3, 1000])
def test_what_is_left_after_the_first_displays(folder: Path, options: dict[str, Any], first: int, size: int) -> None:
    whole = load(folder, **options)
    rest = whole.after(first)
    n = len(whole) - first
    assert len(rest) == n
    parts = list(rest.batches(["display_id", "time", "action", "context"], size))
    assert [low for low, _ in parts] == np.cumsum([0, *(len(batch["time"]) for _, batch in parts[:-1])]).tolist()
    for name in parts[0][1]:
        found = np.concatenate([batch[name] for _, batch in parts])
        np.testing.assert_array_equal(found, whole.column(name)[first:] - (first if name == "display_id" else 0))
    of = whole.conversions["display_id"].to_numpy()
    np.testing.assert_array_equal(rest.conversions["display_id"].to_numpy(), of[of >= first] - first)
    assert rest.validated() is rest
    assert rest.after(5).take(np.array([2]), ["time"]) == whole.take(np.array([first + 7]), ["time"])
    if not options:
        assert in_memory().after(first).displays.equals(rest.displays)
        assert in_memory().after(first).conversions.equals(rest.conversions)


@pytest.mark.parametrize("options", [{}, {"limit": 150}, {"actions": "top:2"}, {"actions": "top:4", "limit": 200}])
@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("passed", [0, 20])
def test_a_log_as_it_stood(folder: Path, options: dict[str, Any], size: int, passed: int) -> None:
    """The first displays of a log, of whatever part of a file, with the conversions that had come by the last."""
    part = load(folder, **options).after(passed)
    first = part.until(50)
    assert len(first) == 50
    time, names = part.column("time"), [*part.schema.names]
    assert first.schema.names == names
    for name in names:
        parts = [batch[name] for _, batch in first.batches([name], size)]
        np.testing.assert_array_equal(np.concatenate(parts), part.column(name)[:50])
    now = time[49]
    assert first.meta.observed_until == now
    of, when = (part.conversions[c].to_numpy() for c in ("display_id", "time"))
    kept = (of < 50) & (when <= now)
    assert first.conversions["display_id"].to_pylist() == of[kept].tolist()
    assert first.until(10).column("time").tolist() == time[:10].tolist()
    assert first.displays.num_rows == 50


@pytest.mark.parametrize("of", [lambda log: log, lambda log: log.after(10), lambda log: log.until(300)])
def test_a_file_put_in_its_place_is_not_read_as_this_log(folder: Path, of: Callable[[Log], Log]) -> None:
    log = of(open_canonical(folder))
    assert len(log.column("time")) == len(log)
    file = folder / "displays.parquet"
    other = folder / "other.parquet"
    other.write_bytes(file.read_bytes())
    other.rename(file)
    with pytest.raises(SourceError, match=r"displays\.parquet: it changed since the log was opened"):
        log.column("time")


def test_vectors_of_a_part_of_a_log_are_taken_as_they_are() -> None:
    """Slices of nested lists are taken right, which pyarrow alone does not."""
    log = linear_log(60, n_actions=3, dimension=2, mean_delay=5.0, seed=4)
    whole = to_numpy(log.displays["action_set"])
    for part, first in ((log.after(20), 20), (log.after(20).until(30), 20)):
        numbers = np.array([9, 0, 3])
        np.testing.assert_array_equal(
            to_numpy(part.take(numbers, ["action_set"])["action_set"]), whole[first + numbers]
        )
