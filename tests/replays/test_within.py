"""The share of the conversions within a window, or within a replay's rounds, is not that of those a log holds."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import replay
from evaluator.api import plan
from evaluator.log import Log
from tests.logs import build_log

N, MEAN = 40_000, 15_000.0
UNTIL = N - 1


def young_log(seed: int, **meta: int) -> Log:
    """A display a second, converting after exponential delays, followed until the last one: most delays are cut."""
    rng = np.random.default_rng((7, seed))
    of = np.flatnonzero(rng.random(N) < 0.3)
    when = of + rng.exponential(MEAN, len(of)).astype(np.int64)
    seen = (when <= UNTIL) & (when - of <= meta.get("attribution_window", UNTIL))
    return build_log(
        time=np.arange(N), action=rng.integers(0, 2, N), conversion_display=of[seen], conversion_time=when[seen],
        n_actions=2, tick="s", observed_until=UNTIL, **meta,
    )  # fmt: skip


def within(delay: float, follow_up: float) -> float:
    """Truth: P(D <= delay | D <= follow_up)."""
    return float(np.expm1(-delay / MEAN) / np.expm1(-follow_up / MEAN))


@pytest.mark.parametrize("window", [8_000, "8000s"])
def test_the_share_within_the_window_is_corrected_for_what_came_too_late(window: int | str) -> None:
    plans = [plan(young_log(seed), "random", window=window) for seed in range(10)]
    shares = np.array([asked.tau_window for asked in plans])
    truth = within(8_000, UNTIL)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    assert abs(shares.mean() - truth) < 4 * error
    naive = np.array([np.mean(asked.survey.delay_ticks <= 8_000) for asked in plans])
    assert naive.mean() - truth > 8 * error
    assert plans[0].to_dict()["followed"] == "11.1 h"


def test_so_is_the_share_within_the_rounds_of_the_replay() -> None:
    found = [replay(young_log(seed), "random", horizon=5_000, seed=seed) for seed in range(10)]
    shares = np.array([result.conversions_within for result in found])
    truth = within(5_000, UNTIL)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    assert abs(shares.mean() - truth) < 4 * error


def test_a_log_that_followed_its_displays_for_less_says_so() -> None:
    log = young_log(0, attribution_window=6_000)
    asked = plan(log, "random", window="1h")
    assert asked.to_dict()["followed"] == "1.67 h"
    assert asked.tau_window == pytest.approx(within(3_600, 6_000), abs=0.03)
    assert plan(log.with_meta(observed_until=None), "random").to_dict()["followed"] is None
