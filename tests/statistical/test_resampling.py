"""The spread of resampled replays is the standard error, and that of repeats is smaller."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import compare, replay
from tests.logs import bernoulli_log


def test_where_the_standard_error_is_known_the_spread_is_it() -> None:
    # The value of the logger is a mean of n independent rewards, that of a fixed action of those where it was shown.
    many, n = 400, 1000
    log = bernoulli_log(n, [0.2, 0.4], mean_delay=3.0, seed=5)
    logging, fixed = compare(log, ["logging", "fixed:action=1"], sampler="keep", bootstrap=many).results
    for result in (logging, fixed):
        p = result.value.estimate
        spread = float(np.std(result.resampled, ddof=1))
        assert spread == pytest.approx((p * (1 - p) / result.rounds) ** 0.5, rel=4 / (2 * many) ** 0.5)
        # The mean over resampled logs is the log's own value.
        assert abs(np.mean(result.resampled) - p) < 4 * spread / many**0.5


def test_resampled_replays_of_repeats_vary_less_as_the_repeats_do() -> None:
    # Ten actions: a replay uses a tenth of the log, and several orders of it use more.
    log = bernoulli_log(3000, np.linspace(0.1, 0.3, 10), mean_delay=20.0, seed=1)
    one, six = (replay(log, "ucb1", repeats=r, horizon=240, bootstrap=100, seed=1) for r in (1, 6))
    ratio = float(np.log(np.var(six.resampled) / np.var(one.resampled)))
    # The logarithm of a variance of 100 numbers has a variance of 2 / 99; the two are independent at worst.
    assert ratio < -4 * (2 * 2 / 99) ** 0.5
    assert six.expected_value.high - six.expected_value.low < one.expected_value.high - one.expected_value.low
