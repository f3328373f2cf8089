"""Paired weighted differences on worlds of known truth: no bias, ends that hold, and no width without need."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from evaluator import compare
from tests.bench.weighted_differences import WORLDS, Found, on_log
from tests.comparisons.test_weighted_pairs import logged, truth, weighted

LOGS = 120
# Half of 1 - level, and 4 standard errors of a share of so many logs.
ERROR = 0.025 + 4 * math.sqrt(0.025 * 0.975 / LOGS)
SILENT = ("heavy money",)
# The world in which intervals are compared with others.
NEAR = "near the logger"


@cache
def found_in(name: str) -> Found:
    logs = (on_log(name, seed, widths=name == NEAR) for seed in range(LOGS))
    return Found(*(np.array(column) for column in zip(*logs, strict=True)))


@pytest.mark.parametrize("name", WORLDS)
def test_an_end_that_is_concluded_from_is_seldom_wrong(name: str) -> None:
    of = found_in(name)
    assert abs(of.error.mean()) < 4 * of.error.std(ddof=1) / math.sqrt(LOGS)
    # Of all logs: those without an interval conclude nothing.
    assert np.mean((of.low > 0) & (of.low_known > 0)) < ERROR
    assert np.mean((of.high < 0) & (of.high_known > 0)) < ERROR
    assert (of.given.mean() < 0.05) == (name in SILENT)


def test_intervals_are_short_where_policies_are_alike_and_as_long_as_users_need() -> None:
    near, users = found_in(NEAR), found_in("few users")
    assert np.median(near.unpaired / near.width) > 4
    assert np.median(near.matched / near.width) > 4
    # An interval that takes displays of one user for independent ones is too short.
    assert users.plain.mean() < 0.95 - 4 * math.sqrt(0.95 * 0.05 / LOGS)
    assert np.mean((users.low <= 0) & (users.high >= 0)) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / LOGS)


@pytest.mark.parametrize("immature", ["drop", "correct"])
def test_young_displays_do_not_count_as_failures(immature: str) -> None:
    """Conversions of one action come late; an eighth of the displays are too young to be judged."""
    errors = []
    for seed in range(40):
        found = weighted(compare(logged(12_000, 100 + seed, young=True), ["columns"], immature=immature))
        errors.append((found.value.estimate - truth()) / found.standard_error)
    assert abs(np.mean(errors)) < 4 / np.sqrt(40)
    assert 0.6 < np.std(errors) < 1.4
