"""A log as batches and arrays: conversions by display, vectors, prefixes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator.errors import LogError, ParameterError
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.rounds.stream import LogRounds, vectors_of
from tests.logged_rounds import in_memory
from tests.logs import build_log

LOG = build_log(
    time=[0, 1, 2, 3, 4],
    action=[0, 1, 1, 0, 1],
    conversion_display=[1, 1, 3],
    conversion_time=[1, 4, 9],
    conversion_value=[2.0, 0.5, 1.0],
    n_actions=2,
    context=np.arange(10, dtype=np.float32).reshape(5, 2),
)


def rounds_of(log: Log = LOG, *, vectors: str | None = "context", used: int = 5) -> LogRounds:
    return LogRounds(log, used, vectors, np.array([0, 3, 6])[: log.conversions.num_rows])


def test_conversions_are_found_by_their_display() -> None:
    rounds = in_memory(rounds_of())
    assert rounds.first_conversion.tolist() == [0, 0, 2, 2, 3, 3]
    assert rounds.value.tolist() == [2.0, 0.5, 1.0]
    assert (len(rounds), rounds.n_actions) == (5, 2)


def test_vectors_are_contexts_action_sets_or_features() -> None:
    assert in_memory(rounds_of()).vectors.shape == (5, 1, 2)
    assert in_memory(rounds_of(vectors=None)).vectors.shape == (1, 1, 0)
    sets = np.arange(20.0).reshape(5, 2, 2)
    log = build_log(time=range(5), action=[0, 1, 1, 0, 1], n_actions=2, action_set=sets)
    with_sets = rounds_of(log, vectors=vectors_of(log, policy="p"))
    np.testing.assert_array_equal(in_memory(with_sets).vectors, sets)
    assert (with_sets.rows, with_sets.dimension) == (2, 2)
    bare = build_log(time=range(5), action=[0, 1, 1, 0, 1], n_actions=2)
    features = fixed_size_lists(np.arange(4.0).reshape(2, 2))
    catalogue = replace(bare, actions=bare.actions.append_column("features", features))
    of_actions = rounds_of(catalogue, vectors=vectors_of(catalogue, policy="p"))
    assert in_memory(of_actions).vectors.tolist() == [[[0, 1], [2, 3]]]
    assert (of_actions.rows, of_actions.dimension) == (2, 2)
    with pytest.raises(ParameterError, match="p needs contexts"):
        vectors_of(bare, policy="p")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("used", [1, 4, 5])
@pytest.mark.parametrize("stored", [False, True])
def test_batches_one_after_the_other_are_the_whole(size: int, used: int, stored: bool, tmp_path: Path) -> None:
    log = LOG
    if stored:
        write_canonical(LOG, tmp_path)
        log = open_canonical(tmp_path)
    rounds = rounds_of(log, used=used)
    whole = in_memory(rounds_of(used=used))
    found: dict[str, list[np.ndarray]] = {name: [] for name in ("action", "vectors", "delay", "value")}
    read = 0
    for first, batch in rounds.batches(size):
        assert first == read
        assert batch.vectors.dtype == np.float32  # as the log stores them
        assert batch.first_conversion[0] == 0
        own = whole.first_conversion[first : first + len(batch.action) + 1]
        np.testing.assert_array_equal(np.diff(batch.first_conversion), np.diff(own))
        for name, parts in found.items():
            parts.append(getattr(batch, name))
        read += len(batch.action)
    assert read == used
    for name, parts in found.items():
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))


def test_contexts_that_are_not_finite_are_refused_when_read() -> None:
    context = np.ones((5, 2), np.float32)
    context[3, 1] = np.nan
    log = build_log(time=range(5), action=[0, 1, 1, 0, 1], n_actions=2, context=context)
    with pytest.raises(LogError, match=r"displays.context: not finite \(row 3\)"):
        in_memory(rounds_of(log))
    assert len(in_memory(rounds_of(log, vectors=None))) == 5


def test_thinning_marks_and_does_not_touch_the_original() -> None:
    rounds = in_memory(rounds_of())
    thinned = rounds.thinned(np.array([True, False, True, True, False]))
    assert thinned.action.tolist() == [0, -1, 1, 0, -1]
    assert rounds.action.tolist() == [0, 1, 1, 0, 1]
    assert thinned.action.dtype == np.int32


def test_columns_of_several_chunks_are_read_whole() -> None:
    halves = pa.concat_tables([LOG.displays.slice(0, 2), LOG.displays.slice(2)])
    log = replace(LOG, displays=halves)
    np.testing.assert_array_equal(log.column("context"), LOG.column("context"))
