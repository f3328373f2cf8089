"""Cross-fitted propensities on known truth: values are not biased by context columns that say nothing, nor by c."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from evaluator.estimates.weighted import ips, snips
from evaluator.log import Log
from evaluator.replays.rounds.fitted import LOST, FittedLogger, acceptance_of, fit_logger
from tests.logs import build_log
from tests.statistical.few_rewards import nothing_withheld

RUNS = 60
TRUTH = 0.4


class Runs(NamedTuple):
    """Errors of action 0's value over some logs, shape (RUNS,), and whether intervals hold it."""

    weighted: np.ndarray
    replayed: np.ndarray
    clipped: np.ndarray
    ips: np.ndarray
    snips: np.ndarray


def confounded(n: int, columns: int, seed: int) -> tuple[Log, np.ndarray, np.ndarray]:
    """Return a log and rewards of action 0: both go with the first column of the context, the others are noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns))
    scores = np.column_stack([x[:, 0], np.zeros(n), -x[:, 0]])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    expected = TRUTH + 0.15 * np.tanh(x[:, 0])  # of action 0, 0 on average but for TRUTH
    return build_log(time=np.arange(n), action=action, n_actions=3, context=x, propensity=p[np.arange(n), action]), \
        expected, (rng.random(n) < expected).astype(float)  # fmt: skip


@cache
def runs(n: int, columns: int, corrected: bool = True) -> Runs:
    """Return the errors of action 0's values by cross-fitted propensities."""
    found = []
    for seed in range(RUNS):
        log, expected, reward = confounded(n, columns, seed)
        logger = fit_logger(log)
        if not corrected:
            logger = FittedLogger(tuple(replace(model, spread=None) for model in logger.models), n)
        at, shown = np.arange(n), log.column("action") == 0
        p = logger.of(at, log.column("context"), log.column("action"))
        p0 = np.where(shown, p, 1.0)
        c = acceptance_of(log, logger, np.ones(3, bool)).by_action[0]
        exact, clipped = (shown * np.minimum(1.0, of / p0) for of in (p0[shown].min(), max(c, p0[shown].min())))
        with nothing_withheld():
            held = [of(reward, shown.astype(float), p).value for of in (ips, snips)]
        found.append(
            (
                (shown / p0 * expected).mean() - TRUTH,
                (exact @ expected) / exact.sum() - TRUTH,
                (clipped @ expected) / clipped.sum() - (exact @ expected) / exact.sum(),
                *(v.low <= TRUTH <= v.high for v in held),
            )
        )
    return Runs(*np.array(found).T)


def far(errors: np.ndarray) -> float:
    """Return a mean error in its standard errors."""
    return abs(float(errors.mean())) / (float(errors.std(ddof=1)) / math.sqrt(len(errors)))


@pytest.mark.parametrize(("n", "columns"), [(1000, 3), (1000, 40)])
def test_values_are_not_biased_by_columns_that_say_nothing(n: int, columns: int) -> None:
    found = runs(n, columns)
    assert far(found.weighted) < 4
    assert far(found.replayed) < 4


def test_cross_fitting_alone_would_be_biased_by_them() -> None:
    assert far(runs(1000, 40, corrected=False).weighted) > 4


@pytest.mark.parametrize(("n", "columns"), [(1000, 3), (1000, 40)])
def test_what_c_costs_keeps_its_bound(n: int, columns: int) -> None:
    # No value moves by more than LOST / (1 - LOST) of the range of the expected rewards, here 0.3.
    moved = runs(n, columns).clipped
    assert abs(moved.mean()) - 4 * moved.std(ddof=1) / math.sqrt(RUNS) < 0.3 * LOST / (1 - LOST)


@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_intervals_hold_by_estimated_propensities(estimator: str) -> None:
    held = getattr(runs(1000, 3), estimator)
    assert held.mean() > 0.94 - 4 * math.sqrt(0.94 * 0.06 / RUNS)
