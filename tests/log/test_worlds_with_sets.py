"""Worlds with sets: their logs say what the world drew."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.log.schema import to_numpy
from tests.worlds_with_sets import LOGGERS, SETS, World, make_displays, make_log, packed


@pytest.mark.parametrize("logger", LOGGERS)
@pytest.mark.parametrize("sets", SETS)
def test_actions_are_eligible_and_shown_as_often_as_their_propensities_say(sets: str, logger: str) -> None:
    drawn = make_displays(World(sets, logger), 4000, 1)
    at = np.arange(4000)
    assert drawn.eligible[at, drawn.action].all()
    np.testing.assert_allclose(drawn.probability.sum(axis=1), 1.0)
    assert (drawn.probability[~drawn.eligible] == 0.0).all()
    p = drawn.probability
    off = np.bincount(drawn.action, minlength=12) - p.sum(axis=0)
    assert (np.abs(off) < 4 * np.sqrt((p * (1 - p)).sum(axis=0)) + 1e-9).all()


def test_a_log_holds_sets_contexts_and_the_conversions_seen_in_time() -> None:
    world = World("calendar", "softmax", contextual=0.1, mean_delay=100.0, window=90)
    drawn = make_displays(world, 1000, 3)
    log = make_log(world, drawn)
    sets = log.displays["eligible"].combine_chunks()
    rows = sets.dictionary.take(sets.indices).to_pylist()
    assert rows == [row.tobytes() for row in packed(drawn.eligible)]
    assert len(sets.dictionary) == len(set(rows))
    np.testing.assert_array_equal(to_numpy(log.displays["context"]), drawn.context)
    delay = to_numpy(log.conversions["time"]) - to_numpy(log.conversions["display_id"])
    assert delay.max() <= 90
    assert len(delay) == (drawn.rewarded & (drawn.delay <= 90)).sum() < drawn.rewarded.sum()
