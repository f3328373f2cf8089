"""A log as arrays: conversions by display, rewards, batches and prefixes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from evaluator.errors import ParameterError
from evaluator.log.contract import fixed_size_lists
from evaluator.rounds.arrays import LoggedRounds, logged_rounds
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


def rounds_of(contextual: bool = True) -> LoggedRounds:
    return logged_rounds(LOG, np.array([0, 3, 6]), contextual=contextual, policy="p")


def test_conversions_are_found_by_their_display() -> None:
    rounds = rounds_of()
    assert rounds.first_conversion.tolist() == [0, 0, 2, 2, 3, 3]
    assert rounds.display_of_conversion.tolist() == [1, 1, 3]
    assert rounds.rewards().tolist() == [0, 2.5, 0, 1, 0]
    assert rounds.rewards(np.array([0.0, 1.0, 0.5])).tolist() == [0, 0.5, 0, 0.5, 0]
    assert (len(rounds), rounds.n_actions) == (5, 2)


def test_vectors_are_contexts_action_sets_or_features() -> None:
    assert rounds_of().vectors.shape == (5, 1, 2)
    assert rounds_of(contextual=False).vectors.shape == (1, 1, 0)
    sets = np.arange(20.0).reshape(5, 2, 2)
    log = build_log(time=range(5), action=[0, 1, 1, 0, 1], n_actions=2, action_set=sets)
    none = np.zeros(0, np.int64)
    np.testing.assert_array_equal(logged_rounds(log, none, contextual=True, policy="p").vectors, sets)
    bare = build_log(time=range(5), action=[0, 1, 1, 0, 1], n_actions=2)
    features = fixed_size_lists(np.arange(4.0).reshape(2, 2))
    catalogue = replace(bare, actions=bare.actions.append_column("features", features))
    assert logged_rounds(catalogue, none, contextual=True, policy="p").vectors.tolist() == [[[0, 1], [2, 3]]]
    with pytest.raises(ParameterError, match="p needs contexts"):
        logged_rounds(bare, none, contextual=True, policy="p")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_batches_one_after_the_other_are_the_whole(size: int) -> None:
    rounds = rounds_of()
    whole = {name: [] for name in ("action", "vectors", "delay", "value")}
    for first, batch in rounds.batches(size):
        assert first == len(np.concatenate([*whole["action"], np.zeros(0)]))
        assert batch.vectors.dtype == np.float64
        assert batch.first_conversion[0] == 0
        own = rounds.first_conversion[first : first + len(batch.action) + 1]
        np.testing.assert_array_equal(np.diff(batch.first_conversion), np.diff(own))
        for name, parts in whole.items():
            parts.append(getattr(batch, name))
    for name, parts in whole.items():
        np.testing.assert_array_equal(np.concatenate(parts), getattr(rounds, name))


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5, 9])
def test_a_prefix_keeps_its_own_conversions(n: int) -> None:
    prefix = rounds_of().first(n)
    assert len(prefix) == min(n, 5)
    assert prefix.rewards().tolist() == [0, 2.5, 0, 1, 0][:n]
    assert len(prefix.delay) == prefix.first_conversion[-1]


def test_thinning_marks_and_does_not_touch_the_original() -> None:
    rounds = rounds_of()
    thinned = rounds.thinned(np.array([True, False, True, True, False]))
    assert thinned.action.tolist() == [0, -1, 1, 0, -1]
    assert rounds.action.tolist() == [0, 1, 1, 0, 1]
    assert thinned.action.dtype == np.int32


def test_columns_of_several_chunks_are_read_whole() -> None:
    halves = pa.concat_tables([LOG.displays.slice(0, 2), LOG.displays.slice(2)])
    log = replace(LOG, displays=halves)
    np.testing.assert_array_equal(log.column("context"), LOG.column("context"))
