"""Every 95 % interval on a hundred logs of each kind; ``python -m tests.bench.coverage`` takes more of both."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import t

from evaluator.estimates.standard_errors import widened_by
from tests.statistical.coverage import KINDS, Cell, coverage, live

LOGS, BOOTSTRAP, LIVE, LEVEL = 100, 25, 4000, 0.95
ANYTIME = 3  # the first kinds


@pytest.mark.parametrize(
    "cell",
    [Cell("arms", "uniform", "none"), Cell("linear", "estimated", "none")],
    ids=str,
)
def test_intervals_hold_as_often_as_they_say(cell: Cell) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = coverage(cell, pool, truth=live(cell.scenario, LIVE), logs=LOGS, bootstrap=BOOTSTRAP)
    n = len(found.held)
    assert n > 0.95 * LOGS
    held = dict(zip(KINDS, found.held.mean(axis=0), strict=True))
    assert min(held.values()) >= LEVEL - 4 * (LEVEL * (1 - LEVEL) / n) ** 0.5, held
    # Anytime-valid intervals hold at all times at once and may hold always at one; resampled ones are to be no wider
    # than they need: the spread of the resampled values is that of the values over logs, to 4 standard errors, but for
    # what chance adds where tails are looked for and there are none.
    bells = np.random.default_rng(0).standard_normal((1000, BOOTSTRAP))
    chance = np.mean([widened_by(bell, level=LEVEL) ** 2 for bell in bells])
    assert chance < 1.25
    middle = found.middle[:, ANYTIME:]
    spread = found.width[:, ANYTIME:] / 2 / t.ppf(0.5 + LEVEL / 2, BOOTSTRAP - 1)
    ratio = np.mean(spread**2, axis=0) / middle.var(axis=0, ddof=1) / chance
    assert (np.abs(ratio - 1) < 4 * (2 / n) ** 0.5).all(), ratio
