"""Untidy logs with sets: nights, ties, launches and clusters leave every promise about sets as it is.

The best order's interval is of the order's value on the log's own displays, so that contexts and sets that repeat, or
crowd into hours, take nothing from it. The evidence of sizes looks at the lottery alone, given all sets.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.reading.summary import set_facts
from evaluator.replays.acceptance import set_sizes
from tests.estimates.test_best_order import best_of
from tests.worlds_with_sets import Displays, World, make_displays, make_log, packed, true_order_value

N, RUNS, ALPHA = 1500, 120, 0.2
KINDS = ("nights", "ties", "launches", "clusters")
DAYS = 5


def untidy(kind: str, seed: int) -> Displays:
    """Return displays of a log that is untidy in one way."""
    world, share = World("calendar", "popularity", contextual=1.0), np.arange(N) / N
    if kind == "nights":  # a day's actions come and go by the hour, and at night there are few displays
        hour = share * DAYS % 1.0
        return make_displays(world, N, seed, at=(hour - 0.14 * np.sin(2 * np.pi * hour)) % 1.0)
    if kind == "ties":  # of one time and set are many, in the order of their actions
        at = np.floor(share * 20) / 20
        drawn = make_displays(world, N, seed, at=at)
        order = np.lexsort((drawn.action, at))
        return Displays(*(column[order] for column in drawn))
    if kind == "launches":  # few displays are left when the last actions come
        return make_displays(world, N, seed, at=share**4)
    return make_displays(World("context", "popularity", contextual=1.0), N, seed, alike=10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_order_is_unbiased_and_its_interval_holds(kind: str) -> None:
    error, standardised, held = np.zeros((3, RUNS))
    for seed in range(RUNS):
        drawn = untidy(kind, seed)
        found = best_of(drawn, alpha=ALPHA)
        truth = np.mean([true_order_value(drawn.expected, drawn.eligible, order) for order in found.orders])
        error[seed] = found.value.estimate - truth
        standardised[seed] = error[seed] / found.standard_error
        held[seed] = found.value.low <= truth <= found.value.high
    assert abs(error.mean()) < 4 * error.std(ddof=1) / RUNS**0.5
    # Given the displays, the standard error counts what differs between them as well: it is rather too large.
    assert (standardised**2).mean() < 1 + 4 * (standardised**2).std(ddof=1) / RUNS**0.5
    assert held.mean() >= 1 - ALPHA - 4 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_of_sizes_keeps_its_level_wherever_a_replay_stops_and_finds_small_sets(kind: str) -> None:
    runs, c = 400, 0.08
    rng = np.random.default_rng(KINDS.index(kind))
    size = untidy(kind, 1).eligible.sum(axis=1)

    def evidence(accepted: npt.NDArray[np.bool_], end: int) -> float:
        read, taken = size[:end], size[:end][accepted[:end]]
        counts = np.bincount(read, minlength=13), np.bincount(taken, minlength=13)
        return set_sizes(*counts, probability=c, mean=float(size.mean())).log_evidence

    ends = np.linspace(100, N, 8).astype(int).tolist()
    draws = rng.random((runs, N)) < c
    largest = np.array([max(evidence(accepted, end) for end in ends) for accepted in draws])
    for alpha in (0.05, 0.5):  # the first is hardly ever reached, the second must be
        assert (largest >= -np.log(alpha)).mean() <= alpha + 4 * (alpha * (1 - alpha) / runs) ** 0.5
    assert (largest >= -np.log(0.5)).any()
    # Of ten such logs, one after the other, what 1/K for 1/|E| accepts.
    every = np.tile(size, 10)
    taken = every[rng.random(len(every)) < 1.0 / every]
    counts = np.bincount(every, minlength=13), np.bincount(taken, minlength=13)
    assert set_sizes(*counts, probability=len(taken) / len(every), mean=float(size.mean())).alarming


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_of_sets_are_those_of_a_loop(kind: str) -> None:
    drawn = untidy(kind, 1)
    rows = [row.tobytes() for row in packed(drawn.eligible)]
    size = [int(row.sum()) for row in drawn.eligible]
    facts = set_facts(make_log(World(), drawn))
    assert facts is not None
    assert facts.distinct == len(set(rows)) > 1
    assert facts.changes == sum(one != other for one, other in pairwise(rows))
    assert (facts.smallest, facts.largest) == (min(size), max(size))
    assert facts.mean == pytest.approx(sum(size) / N)
