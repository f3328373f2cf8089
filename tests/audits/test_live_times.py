"""Live runs look up their conversions among the displays within reach, and find what a search of all finds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.worlds import disk_column
from evaluator.worlds.arrivals import DisplayTimes
from evaluator.worlds.disk_column import DisplayColumn, mean_in_blocks, mean_of_columns
from evaluator.worlds.live_parts import LiveWorld
from evaluator.worlds.live_rounds import rate_of, rounds_after

RNG = np.random.default_rng(8)
N = 3_000
TIMES = np.sort(RNG.integers(0, 5_000, N))


@pytest.mark.parametrize("share", [1.0, 0.3, 0.013, 2.7])
@pytest.mark.parametrize("reach", [0, 5, 400, 10**6])
def test_what_is_within_reach_is_found_as_among_all(reach: int, share: float) -> None:
    rate = (N - 1) / (TIMES[-1] - TIMES[0])
    world = LiveWorld(
        np.zeros((1, 1, 0)), np.ones((1, 1)), np.ones(1), np.ones((1, 1)), reach, times=TIMES, rate=rate, share=share
    )
    near = 0
    for arrival, ticks in zip(RNG.integers(0, N, 400), RNG.exponential(600.0, 400).astype(np.int64), strict=True):
        due = TIMES[arrival] + ticks
        displays = int(np.searchsorted(TIMES, due, side="right")) - 1 - arrival
        displays += math.floor(max(due - TIMES[-1], 0) * rate)
        expected = round(displays * share) if share == 1.0 else int(np.rint(displays * share))
        found = rounds_after(world, int(arrival), int(ticks))
        assert found == expected if expected <= reach else found > reach
        near += expected <= reach
    assert near or reach < 400


def test_rates_follow_the_hour_in_live_runs() -> None:
    by_hour = np.linspace(0.5, 1.5, 24)
    world = LiveWorld(
        np.zeros((1, 1, 0)), np.full((1, 1), 0.8), np.ones(1), np.ones((1, 1)), 5, times=TIMES * 60, by_hour=by_hour,
        hour=3600.0,
    )  # fmt: skip
    found = [rate_of(world, world.rates[0], 0, at) for at in range(0, N, 7)]
    np.testing.assert_array_equal(found, np.minimum(0.8 * by_hour[TIMES[::7] // 60 % 24], 1.0))


@pytest.mark.parametrize("most", [0, 10**9])
def test_displays_within_are_counted_in_one_pass(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_column, "IN_MEMORY", most)
    monkeypatch.setattr(disk_column, "BATCH", 700)
    column = DisplayColumn(N, np.int64)
    for part in np.array_split(TIMES, 7):
        column.append(part)
    traffic = DisplayTimes(column, N, 0.5, int(TIMES[-1]))
    arrivals, ticks = RNG.integers(0, N, 500), RNG.integers(0, 4_000, 500)
    due = TIMES[arrivals] + ticks
    beyond = np.floor(np.maximum(due - TIMES[-1], 0) * 0.5).astype(np.int64)
    expected = np.searchsorted(TIMES, due, side="right") - 1 - arrivals + beyond
    np.testing.assert_array_equal(traffic.displays_within(arrivals, ticks), expected)
    np.testing.assert_array_equal(column.mapped(), TIMES)
    column.forget()
    np.testing.assert_array_equal(column.mapped()[::13], TIMES[::13])


@pytest.mark.parametrize("n", [1, 7, 127, 128, 129, 1_000, 4_096, 100_003, 300_000])
def test_means_in_blocks_are_numpys_to_the_bit(n: int) -> None:
    x = RNG.random((3, n)) * RNG.exponential(1.0, (3, n))
    found = mean_in_blocks(n, lambda first, end: x[:, first:end], block=1_000)
    assert found.tolist() == [row.mean() for row in x]
    for kinds in (1, 2, 17):
        wide = RNG.random((n, kinds))
        found = mean_of_columns(n, lambda first, end: wide[first:end].T, block=1_000)  # noqa: B023
        assert found.tolist() == wide.mean(axis=0).tolist()
