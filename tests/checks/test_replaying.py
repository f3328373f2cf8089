"""Replaying the logging policy: right propensities recover the log's mean, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import check
from tests.checks.shops import shop
from tests.logs import bernoulli_log, build_log

NAME = "replay of the logger"


def test_right_propensities_recover_the_mean() -> None:
    report = check(bernoulli_log(60_000, [0.1, 0.2, 0.6], mean_delay=20, seed=1, logger=[0.2, 0.3, 0.5]))
    found = report[NAME]
    assert found.verdict == "pass"
    assert found.numbers["low"] < 0.38 < found.numbers["high"]
    # A third and more of the displays would be accepted under uniform logging; here sum of share^2 c / p = c.
    assert found.numbers["rounds"] == pytest.approx(12_000, abs=4 * np.sqrt(60_000 * 0.2 * 0.8))


def test_a_log_wrongly_called_uniform_does_not() -> None:
    log = bernoulli_log(60_000, [0.1, 0.2, 0.6], mean_delay=20, seed=1, logger=[0.2, 0.3, 0.5])
    found = check(log, propensity="uniform")[NAME]
    assert found.verdict == "fail"
    shares, means = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.2, 0.6])
    expected = (shares**2 * means).sum() / (shares**2).sum()
    assert found.numbers["replayed"] == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(found.numbers["rounds"]))


def test_contextual_propensities_weigh_what_contexts_explain() -> None:
    made = shop(5, logger="context")
    found = check(made.log())[NAME]
    assert found.verdict == "pass"
    assert abs(found.statistic) < 4
    # Propensities of other displays of the same action: right on average, wrong for each context.
    rng = np.random.default_rng(0)
    shuffled = made.propensity.copy()
    for a in range(6):
        at = np.flatnonzero(made.action == a)
        shuffled[at] = shuffled[rng.permutation(at)]
    report = check(made.log(shuffled))
    assert report["calibration"].verdict == "fail"


def test_the_draws_depend_on_the_seed_only() -> None:
    log = shop(1, n=5000).log()
    assert check(log, seed=1).to_dict() == check(log, seed=1).to_dict()
    assert check(log, seed=1)[NAME].numbers != check(log, seed=2)[NAME].numbers


def test_logs_without_rewards_are_not_replayed() -> None:
    report = check(build_log(time=np.arange(3000), action=np.arange(3000) % 3, n_actions=3))
    assert report[NAME].verdict == "not applicable"
    assert report["rewards"].verdict == "fail"
