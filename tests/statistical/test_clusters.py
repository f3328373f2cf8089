"""Intervals for new users hold where displays of one user hang together; ``python -m tests.bench.clusters`` takes more.

Displays taken as independent fail the same bound there, and pass it, no narrower, where they are independent.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistical.users import KINDS, Crowd, coverage, realised

LOGS, BOOTSTRAP, RUNS, LEVEL = 40, 20, 40, 0.95
ERROR = 4 * (LEVEL * (1 - LEVEL) / LOGS) ** 0.5
# Those that move most with what users have in common; a difference of two policies does not.
MOVED = ("expected value", "doubly robust", "logger")


SPREAD = Crowd(name="spread", users=60, displays=50)
ONE_AFTER_THE_OTHER = Crowd(name="one after the other", users=60, displays=50, spread=False)


@pytest.mark.parametrize(
    ("crowd", "by"), [(SPREAD, "user"), (ONE_AFTER_THE_OTHER, "every:50")], ids=lambda of: getattr(of, "name", of)
)
def test_intervals_for_new_users_hold(crowd: Crowd, by: str) -> None:
    found = coverage(crowd, by=by, logs=LOGS, bootstrap=BOOTSTRAP, runs=RUNS)
    held = dict(zip(KINDS, found.held.mean(axis=0), strict=True))
    assert min(held.values()) > LEVEL - ERROR, held


def test_displays_taken_as_independent_fail_the_same_bound() -> None:
    found = coverage(SPREAD, by=None, logs=LOGS, bootstrap=BOOTSTRAP, runs=RUNS)
    held = dict(zip(KINDS, found.held.mean(axis=0), strict=True))
    assert max(held[kind] for kind in MOVED) < LEVEL - ERROR, held


def test_independent_displays_pay_little_for_clusters() -> None:
    crowd = Crowd(name="independent", users=100, displays=30, effect=0.0)
    clustered, alone = (coverage(crowd, by=by, logs=LOGS, bootstrap=BOOTSTRAP, runs=RUNS) for by in ("user", None))
    assert (clustered.held.mean(axis=0) > LEVEL - ERROR).all()
    # Of t with 99 degrees of freedom, and sqrt(100 / 99), 1.7 % wider; standard errors that are known from B resampled
    # logs, or from 100 clusters, have logarithms with variances of 1 / 2B and of 1 / 200.
    ratio = np.log(clustered.width / alone.width).mean(axis=0)
    error = 4 * (np.where(np.arange(len(KINDS)) < 2, 1 / BOOTSTRAP, 1 / 200) / LOGS) ** 0.5
    assert (np.abs(ratio - np.log(1.017)) < error).all(), ratio


def test_realised_intervals_need_no_clusters_for_the_users_of_the_log() -> None:
    held = np.mean([realised(SPREAD, seed) for seed in range(LOGS)], axis=0)
    assert (held > LEVEL - ERROR).all(), held
