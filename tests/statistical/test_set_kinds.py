"""Sets that move with time are told from sets that are random or follow the context."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.log.eligible import MOVING_LEVEL, moves_with_time
from tests.worlds_with_sets import World, offers

BLOCKS, EACH = 16, 250


def counted(eligible: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return eligible.reshape(BLOCKS, EACH, -1).sum(axis=1), np.full(BLOCKS, EACH)


def drawn(sets: str, seed: int) -> npt.NDArray[np.bool_]:
    at = np.arange(BLOCKS * EACH) / (BLOCKS * EACH)
    return offers(World(sets), at, np.random.default_rng(seed))[1]


@pytest.mark.parametrize("sets", ["constant", "context", "random"])
def test_sets_drawn_anew_at_each_display_do_not_move(sets: str) -> None:
    runs = 1000
    found = sum(moves_with_time(*counted(drawn(sets, seed))) for seed in range(runs))
    assert found <= runs * MOVING_LEVEL + 4 * (runs * MOVING_LEVEL) ** 0.5


def test_calendars_move() -> None:
    assert all(moves_with_time(*counted(drawn("calendar", seed))) for seed in range(20))


def test_one_action_that_retires_late_is_enough() -> None:
    eligible = drawn("random", 1)
    assert not moves_with_time(*counted(eligible))
    eligible[-EACH:, 5] = False
    assert moves_with_time(*counted(eligible))
