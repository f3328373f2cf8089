"""Heavy values raise false alarms at the level and no more; changes of the sizes that matter are found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.checks.value_drift import value_drift
from tests.checks.test_statistics import tables_of
from tests.checks.test_value_drift import heavy, sold

RUNS, LEVEL = 150, 0.05
LAWS = {
    "Pareto 1.5": heavy,
    "lognormal 2": lambda rng, n: np.exp(rng.normal(0, 2, n)),
    "two prices, one rare": lambda rng, n: rng.choice([10.0, 50.0], n, p=[0.98, 0.02]),
}
DEAR = (1.0, 10.0, 100.0, 1000.0)
WORLDS = {
    **{name: {"law": law} for name, law in LAWS.items()},
    "few conversions": {"n": 1000},
    "dear actions shown more and more": {"shares": lambda at: 0.1 + 0.08 * at, "levels": DEAR},
    "an action launched": {"shares": lambda at: 0.25 * (at > 4), "levels": DEAR},
    "dear weekends": {"factor": lambda at, action: np.where(at % 7 >= 5, 2.0, 1.0), "days": 21.0},
}


@pytest.mark.parametrize("world", WORLDS)
def test_false_alarms_keep_the_level(world: str) -> None:
    small = [value_drift(tables_of(sold(seed, **WORLDS[world])), LEVEL, seed).p_value for seed in range(RUNS)]
    alarms = sum(p is not None and p <= LEVEL for p in small)
    assert alarms <= RUNS * LEVEL + 4 * math.sqrt(RUNS * LEVEL * (1 - LEVEL))


@pytest.mark.parametrize("law", LAWS)
def test_a_unit_and_a_half_more_and_one_action_three_times_are_found(law: str) -> None:
    """At the level that a check of the whole log has; of lognormal values, a half more is two tenths of a deviation."""
    runs, level = 20, 0.0016
    for factor, least in (
        (lambda at, action: np.where(at >= 5, 100.0, 1.0), 1.0),
        (lambda at, action: np.where(at >= 5, 1.5, 1.0), 0.9),
        (lambda at, action: np.where((at >= 5) & (action == 2), 3.0, 1.0), 0.9),
    ):
        found = [
            value_drift(tables_of(sold(seed, LAWS[law], factor, n=50_000)), level, seed).verdict for seed in range(runs)
        ]
        assert sum(v != "pass" for v in found) >= runs * least - 4 * math.sqrt(runs * least * (1 - least))
