"""The best order of actions on worlds of known truth: not flattered, in its interval, where tempting ways are not."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from tests.estimates.test_best_order import best_of
from tests.worlds_with_sets import LOGGERS, SETS, Displays, Floats, Ints, World, make_displays, true_order_value

RUNS, DISPLAYS, ALPHA = 120, 1500, 0.2


class Runs(NamedTuple):
    """Errors of estimates over runs, each in units of the reward and of its standard error, and intervals that held."""

    error: Floats
    standardised: Floats
    held: Floats
    same_half: Floats
    plain: Floats


def by_one_half(drawn: Displays) -> tuple[float, Ints]:
    """Value of the order by inverse-propensity means, on the displays that ordered: the tempting way."""
    weight = 1.0 / drawn.propensity
    total = np.bincount(drawn.action, weight, drawn.eligible.shape[1])
    earned = np.bincount(drawn.action, weight * drawn.rewarded, drawn.eligible.shape[1])
    order = np.argsort(-np.where(total > 0, earned / np.maximum(total, 1e-9), -1.0), kind="stable")
    first = order[drawn.eligible[:, order].argmax(axis=1)]
    return float((drawn.rewarded * weight)[first == drawn.action].sum()) / len(first), order


def plain_mean(drawn: Displays, order: Ints) -> float:
    """Mean reward of the displays that match an order, without 1/p."""
    first = order[drawn.eligible[:, order].argmax(axis=1)]
    return float(drawn.rewarded[first == drawn.action].mean())


def runs_of(world: World) -> Runs:
    rows = []
    for seed in range(RUNS):
        drawn = make_displays(world, DISPLAYS, seed)
        found = best_of(drawn, alpha=ALPHA)
        truth = np.mean([true_order_value(drawn.expected, drawn.eligible, order) for order in found.orders])
        error = found.value.estimate - truth
        tempting, order = by_one_half(drawn)
        of_order = true_order_value(drawn.expected, drawn.eligible, order)
        rows.append(
            (
                error,
                error / found.standard_error,
                found.value.low <= truth <= found.value.high,
                tempting - of_order,
                plain_mean(drawn, order) - of_order,
            )
        )
    return Runs(*np.array(rows, float).T)


def standard_error(errors: Floats) -> float:
    return float(errors.std(ddof=1)) / len(errors) ** 0.5


@cache
def runs_with(sets: str, logger: str) -> Runs:
    return runs_of(World(sets, logger))


@pytest.mark.parametrize("logger", LOGGERS)
@pytest.mark.parametrize("sets", SETS)
def test_the_estimate_is_unbiased_and_its_interval_holds(sets: str, logger: str) -> None:
    runs = runs_with(sets, logger)
    assert abs(runs.error.mean()) < 4 * standard_error(runs.error)
    # Errors are as large as the standard error says: their mean square, of kurtosis about 3, is 1.
    assert abs((runs.standardised**2).mean() - 1.0) < 4 * standard_error(runs.standardised**2)
    assert runs.held.mean() >= 1 - ALPHA - 4 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5


def test_the_expected_flattery_is_below_a_hundredth() -> None:
    # Over all worlds, for one alone has too few runs to tell so little.
    error = np.concatenate([runs_with(sets, logger).error for sets in SETS for logger in LOGGERS])
    assert abs(error.mean()) + 4 * standard_error(error) < 0.01


@pytest.mark.parametrize("sets", SETS)
def test_the_half_that_ordered_flatters(sets: str) -> None:
    # Alike actions: whichever comes first was lucky.
    runs = runs_of(World(sets, "popularity", rates=np.full(12, 0.2)))
    assert abs(runs.error.mean()) < 4 * standard_error(runs.error)
    for tempting in (runs.same_half, runs.plain):
        assert tempting.mean() > 0.01 + 4 * standard_error(tempting)
