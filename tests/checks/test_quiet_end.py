"""A log that was cut short on a quiet day is found; tests/statistical counts those that were not."""

from __future__ import annotations

import numpy as np

from evaluator import check
from evaluator.log import Log
from tests.logs import build_log

DAY, HOUR = 86_400, 3_600


def week(seed: int, *, until: int = 6 * DAY) -> Log:
    """Six days, the last with 0.3 of the traffic; conversions of one display in ten, an hour late on average."""
    rng = np.random.default_rng((11, seed))
    shares = np.array([1, 1, 1, 1, 1, 0.3])
    day = rng.choice(6, 24_000, p=shares / shares.sum())
    time = np.sort(day * DAY + rng.integers(0, DAY, len(day)))
    of = np.flatnonzero(rng.random(len(time)) < 0.06)
    when = time[of] + rng.exponential(HOUR, len(of)).astype(int)
    seen = when < until
    return build_log(
        time=time, action=rng.integers(0, 3, len(time)), n_actions=3, conversion_display=of[seen],
        conversion_time=when[seen], tick="s", observed_until=6 * DAY - 1, attribution_window=DAY,
    )  # fmt: skip


def test_one_that_was_cut_short_is_found_all_the_same() -> None:
    assert check(week(0, until=6 * DAY - 4 * HOUR))["immature displays"].verdict == "fail"
