"""A policy's loop is compiled once, whoever made the arrays that it reads: seconds each time it were not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evaluator.engine.log_replay import begin
from evaluator.policies import resolve
from evaluator.replays.rounds.stream import NO_VECTORS, Batch, read_only, read_only_batch
from tests.policies.rounds import random_rounds, setting_for

ROUNDS = random_rounds("none", 50)


def written_to(batch: Batch) -> Batch:
    """Return a batch as thinning, sorting and joining make them: of new arrays."""
    return Batch(*(array.copy() for array in batch[:-1]))


def of_a_log(batch: Batch) -> Batch:
    """Return a batch as a log holds it."""
    return read_only_batch(batch)


def without_contexts(batch: Batch) -> Batch:
    return of_a_log(batch)._replace(vectors=NO_VECTORS)


@pytest.mark.parametrize("reward_max", [1.0, 64.0])
@pytest.mark.parametrize("made", [written_to, of_a_log, without_contexts])
def test_one_kind_of_arrays_reaches_the_loop(made: Callable[[Batch], Batch], reward_max: float) -> None:
    replay = begin(resolve("klucb"), setting_for(ROUNDS, window=5, reward_max=reward_max), sampler="keep")
    _, batch = next(ROUNDS.batches(50))
    call = replay.coming(made(batch))
    read = next(part for part in call.arguments if isinstance(part, Batch))
    assert [array.flags.writeable for array in read[:-1]] == [False] * (len(Batch._fields) - 1)
    kinds = [call.loop.dispatcher.typeof_pyval(argument) for argument in call.arguments]
    reading = begin(resolve("klucb"), setting_for(ROUNDS, window=5), sampler="keep").coming(batch)
    assert kinds == [reading.loop.dispatcher.typeof_pyval(argument) for argument in reading.arguments]


def test_a_read_only_array_is_the_same_numbers_and_leaves_the_array_as_it_was() -> None:
    array = np.arange(3)
    view = read_only(array)
    assert view.base is array
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
