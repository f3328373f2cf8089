"""Replays of twins with eligible sets are live runs on the same truth; one that takes 1/K for 1/|E| is found."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

import evaluator
from evaluator.audits.result import Audit
from evaluator.log.schema import Columns
from evaluator.replays.rounds import propensity
from tests.audits.test_twins import cut, timed
from tests.logs_with_sets import WINDOW, K, make_log

# name: log, policies, options.
AUDITS = {
    "random, uneven logger": (
        lambda: make_log(5_000, "random", "popularity", 71), ["thompson", "ucb1", "logging"], {"window": WINDOW}
    ),
    "random, estimated": (
        lambda: make_log(5_000, "random", "popularity", 72),
        ["klucb", "random"],
        {"window": WINDOW, "propensity": "estimate"},
    ),
    "by the context, softmax": (
        lambda: make_log(5_000, "context", "softmax", 73), ["linucb", "ucb1"], {"window": WINDOW}
    ),
    "on a calendar": (
        lambda: make_log(5_000, "calendar", "uniform", 74), ["thompson", "ucb1", "logging"], {"window": WINDOW}
    ),
    "on a calendar, wall clock": (
        lambda: make_log(5_000, "calendar", "popularity", 75), ["thompson", "random"], {"window": 20, "clock": "wall"}
    ),
    "on a calendar, in seconds, cut off, shorter twins": (
        lambda: cut(timed(make_log(6_000, "calendar", "uniform", 76), seconds=37), longest=37 * 200),
        ["delayed-klucb", "random"],
        {"window": "1h", "displays": 4_000},
    ),
    "on a calendar, observed by the horizon": (
        lambda: make_log(5_000, "calendar", "uniform", 77),
        ["thompson", "random"],
        {"window": WINDOW, "reward": "observed", "horizon": 500},
    ),
}  # fmt: skip
TWINS = 100


@pytest.fixture(scope="module", params=list(AUDITS))
def audit(request: pytest.FixtureRequest) -> Audit:
    """Return an audit for the tests of it, which follow one another: another process would audit once more."""
    make, policies, options = AUDITS[request.param]
    return evaluator.audit(make(), policies, twins=TWINS, seed=3, **options)


def test_replays_of_twins_equal_live_runs(audit: Audit) -> None:
    for policy in audit.policies:
        assert abs(policy.z) < 4, policy
        assert policy.sampler == ("logged" if policy.policy == "logging" else "rejection")


def test_intervals_hold(audit: Audit) -> None:
    # P(Binomial(100, .95) < 86) is 2e-4; anytime-valid intervals hold oftener still.
    for policy in audit.policies:
        for coverage in (policy.value_coverage, policy.regret_coverage, policy.uplift_coverage):
            assert coverage.held >= 86
    for pair in audit.pairs:
        assert pair.coverage.held >= 86
    assert not audit.warnings


def _one_of_all(displays: Columns) -> npt.NDArray[np.float64]:
    return np.full(len(displays["eligible"]), 1.0 / K)


def test_one_over_the_number_of_all_actions_is_found_to_be_biased() -> None:
    log = make_log(8_000, "random", "uniform", 78).with_meta(propensity="uniform")
    options = {"window": WINDOW, "propensity": "uniform", "twins": 60, "seed": 5}
    right = evaluator.audit(log, ["thompson", "random"], **options)
    with patch.object(propensity, "_one_of_set", _one_of_all):
        wrong = evaluator.audit(log, ["thompson", "random"], **options)
    assert not any(policy.biased for policy in right.policies)
    learner = wrong.policies[0]
    assert learner.biased
    assert learner.z < -5  # rounds lean to small sets, in which the best is seldom
    assert "biased for thompson" in wrong.verdict
