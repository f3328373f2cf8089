"""Drift: young days are not mistaken for quick ones, alarms come at the stated rate, changes are dated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.product_limit import Observed
from evaluator.delays.study.changes import DelayScores, delay_drift
from evaluator.errors import DataError, ParameterError
from tests.delays.lengthening import World

DAY = 100


def log_of_days(
    rng: np.random.Generator, *, days: int, displays: int, mean: float, later_mean: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return delays, limits and days of a log that ends after its last day; the mean may change half way."""
    time = rng.integers(0, days * DAY, displays)
    limits = days * DAY - 1 - time
    day = time // DAY
    means = np.where(day >= days // 2, mean if later_mean is None else later_mean, mean)
    delays = rng.exponential(means).astype(int)
    seen = delays <= limits
    return delays[seen], limits[seen], day[seen]


def test_a_change_is_flagged_and_dated() -> None:
    delays, limits, days = log_of_days(np.random.default_rng(1), days=12, displays=8000, mean=100, later_mean=200)
    drift = delay_drift(delays, limits, days=days, longest=300)
    assert drift.changed
    assert drift.p == 1 / 1000
    assert drift.change_after in (4, 5, 6)
    before, after = drift.days[2], drift.days[8]
    assert before.position < 0.5 < after.position
    truth = -100 * math.log(1 - 0.5 * (1 - math.exp(-301 / 100)))
    assert before.low[1] - 1 <= truth <= before.high[1] + 1
    assert after.quantiles[1] > before.quantiles[1]
    assert before.longest == 300
    assert drift.days[-1].longest < 300
    assert sum(day.conversions for day in drift.days) == (delays <= 300).sum()


def test_large_logs_are_subsampled() -> None:
    delays, limits, days = log_of_days(np.random.default_rng(2), days=5, displays=2000, mean=100)
    drift = delay_drift(delays, limits, days=days, rows=500, permutations=99)
    assert (drift.rows, drift.conversions) == (500, delays.size)
    assert drift.change_after is None or drift.changed


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="one day a delay"):
        delay_drift([1, 2], days=[0])
    with pytest.raises(ParameterError, match="9 permutations cannot show"):
        delay_drift([1, 2], days=[0, 1], permutations=9)


def test_a_change_in_the_last_days_alone_is_flagged() -> None:
    """The last displays show short delays only: what they show is compared, and no more."""
    rows = World("x 2 in the last week", displays=4000).rows(np.random.default_rng(4))
    assert rows.limit is not None
    assert rows.periods is not None
    drift = delay_drift(rows.delay, rows.limit, days=rows.periods.of, permutations=199)
    assert drift.changed
    assert drift.change_after in (21, 22, 23)
    assert drift.change_by is not None
    assert drift.change_after <= drift.change_by <= 25


def test_what_could_be_shown_shrinks_with_the_conversions() -> None:
    shown = []
    for displays in (200, 1000, 10_000):
        rows = World(displays=displays).rows(np.random.default_rng(5))
        assert rows.periods is not None
        drift = delay_drift(rows.delay, rows.limit, days=rows.periods.of, permutations=199)
        assert not drift.changed
        assert [change.after for change in drift.shown] == [14, 22]
        shown.append([change.ratio or np.inf for change in drift.shown])
    # New displays say less; the logarithm of the ratio goes with the square root of the conversions.
    assert all(half < quarter for half, quarter in shown)
    assert np.all(np.diff(np.array(shown), axis=0) < 0)
    assert math.log(shown[1][0]) / math.log(shown[2][0]) == pytest.approx(math.sqrt(10), rel=0.25)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.6, 3.0])
def test_the_ratio_of_stretched_delays_is_found(ratio: float) -> None:
    rng = np.random.default_rng(6)
    limits = rng.integers(200, 1000, 20_000)
    law = DelayScores.of(Observed(*_seen(rng.weibull(0.8, 20_000) * 300, limits)))
    delays, followed = _seen(ratio * rng.weibull(0.8, 20_000) * 300, limits // 2)
    mean, variance = law.moments(followed, followed.size, ratio=ratio)
    total = float(law.scores(delays).sum())
    assert abs(total - mean.sum()) <= 4 * math.sqrt(2 * variance.sum())
    assert law.ratio_of(followed, followed.size, total) == pytest.approx(ratio, rel=0.15)


def test_no_ratio_is_found_where_delays_are_too_long_for_any() -> None:
    law = DelayScores.of(Observed(np.arange(100), None))
    assert law.ratio_of(np.full(5, 60), 5, float(law.scores(np.full(5, 60)).sum())) is None


def _seen(delays: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole = delays.astype(np.int64)
    return whole[whole <= limits], limits[whole <= limits]
