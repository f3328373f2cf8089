"""IPS, SNIPS and DR recover the true value of the final policy, and their intervals cover it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.statistical.few_rewards import nothing_withheld
from tests.statistical.frozen_runs import CASES, runs_of

RUNS = 150


@pytest.mark.parametrize("name", CASES)
def test_the_frozen_value_is_unbiased_and_covered(name: str) -> None:
    with nothing_withheld():  # which would leave a choice of the logs
        found, truth = zip(*runs_of(name, RUNS), strict=True)
    for estimator in ("ips", "snips", "dr"):
        values = [getattr(f, estimator) for f in found]
        error = np.array([v.value.estimate for v in values]) - np.array(truth)
        assert abs(error.mean()) < 4 * error.std(ddof=1) / math.sqrt(RUNS), estimator
        covered = np.mean([v.value.low <= t <= v.value.high for v, t in zip(values, truth, strict=True)])
        assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / RUNS), (estimator, covered)
