"""Facts of the real file, within 4 standard errors of 200,000 rows; those that are fixed, exactly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from evaluator.reading.resolve import dataset_spec
from evaluator.reading.spec import FileSpec
from evaluator.worlds.criteo.parameters import TwinParameters
from evaluator.worlds.criteo.rows import ArrivalQuantiles, durations, sizes
from tests.reading.criteo.conftest import FULL, ROWS, Twin

SIGMAS = 4
SCALE = ROWS / FULL


def spread(share: float, n: float) -> float:
    """Bound on the error of a share among n."""
    return SIGMAS * np.sqrt(share * (1 - share) / n)


@pytest.fixture(scope="module")
def laws() -> TwinParameters:
    spec = dataset_spec("criteo_twin")
    assert isinstance(spec, FileSpec)
    return spec.twin


def test_users(twin: Twin) -> None:
    rows = twin.frame.group_by("uid").len()["len"]
    assert len(rows) == round(6_142_256 * SCALE)
    assert (rows == 1).mean() == pytest.approx(0.517, abs=1 / len(rows))


def test_conversions(twin: Twin) -> None:
    keys = twin.conversions
    assert keys.height == round(435_810 * SCALE)
    # The sizes of journeys are quantiles of their law: off by one row at most where it steps, and cut in its tail.
    assert (keys["rows"] == 1).mean() == pytest.approx(0.676882, abs=1 / keys.height)
    assert keys["rows"].quantile(0.9) == 3
    assert keys["rows"].quantile(0.99) == 11


@pytest.mark.parametrize(("top", "share"), [(10, 0.186), (50, 0.452), (100, 0.608)])
def test_campaign_sizes(twin: Twin, top: int, share: float) -> None:
    largest = twin.frame.group_by("campaign").len()["len"].sort(descending=True)
    # 1 % for the fit, and for the choice of the largest, which favours those that came out large.
    assert abs(largest[:top].sum() / ROWS - share) < 0.01 * share + spread(share, ROWS)


def test_clicks(twin: Twin) -> None:
    assert abs(twin.frame["click"].mean() - 5_947_563 / FULL) < 0.001 * 0.361 + spread(0.361, ROWS)


def test_attribution(twin: Twin) -> None:
    keys = twin.conversions
    assert abs(keys["attribution"].mean() - 236_331 / 435_810) < spread(0.542, keys.height)
    weighted = (keys["attribution"] * keys["rows"]).sum() / keys["rows"].sum()
    # Rows of a conversion agree: the variance of the sum is p (1 - p) times the sum of squared sizes.
    deviation = np.sqrt(0.549 * 0.451 * (keys["rows"] ** 2).sum()) / keys["rows"].sum()
    assert abs(weighted - 442_424 / 806_196) < SIGMAS * deviation


@pytest.mark.parametrize(
    ("share", "seconds"),
    [(0.25, 7_280), (0.5, 323_535), (0.75, 1_034_210), (0.9, 1_812_515), (0.99, 2_503_507), (0.231, 3_600),
     (0.344, 86_400), (0.626, 604_800)],
)  # fmt: skip
def test_delays(twin: Twin, share: float, seconds: int) -> None:
    # Stratified: one delay in each 1/n of the law, so that shares are off by 1/n, and by the facts' rounding.
    assert abs((twin.converted["delay"] <= seconds).mean() - share) < 1 / twin.converted.height + 0.0006


@pytest.mark.parametrize(
    ("low", "high", "mean"),
    [(0, 3_600, 571.2), (3_600, 21_600, 9_955), (21_600, 86_400, 58_791), (86_400, 604_800, 306_943)],
)
def test_mean_delays_within_stretches(laws: TwinParameters, low: int, high: int, mean: float) -> None:
    delays = durations(laws.delays, (np.arange(500_000) + 0.5) / 500_000)
    assert delays[(delays > low) & (delays <= high)].mean() == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(("mode", "between"), [(113, (80, 160)), (1, (0.8, 1.5)), (17, (14, 21))])
def test_modes_of_log_delays(laws: TwinParameters, mode: float, between: tuple[float, float]) -> None:
    delays = durations(laws.delays, (np.arange(500_000) + 0.5) / 500_000)
    step, width = 0.02, 0.1
    counts, edges = np.histogram(np.log10(delays), bins=np.arange(0, 7.4, step))
    kernel = np.exp(-0.5 * (np.arange(-40, 41) * step / width) ** 2)
    density = np.convolve(counts, kernel, "same")
    peaks = np.flatnonzero((density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])) + 1
    at = 10 ** ((edges[peaks] + edges[peaks + 1]) / 2) / (1 if mode == 113 else 86_400)
    assert ((at > between[0]) & (at < between[1])).sum() == 1


def test_delays_do_not_depend_on_the_time_of_display(twin: Twin) -> None:
    """What journeys built from their conversion would break: early displays would have short delays."""
    delay = twin.converted["delay"].to_numpy()
    late = (twin.converted["timestamp"] > 2_671_199 / 2).to_numpy()
    size = (twin.conversions["rows"] ** 2).sum() / twin.converted.height  # rows of a journey are not independent
    for half in (late, ~late):
        share = (delay[half] <= 323_535).mean()
        assert abs(share - 0.5) < spread(0.5, half.sum() / size)


def test_conversion_rate_does_not_depend_on_the_time(twin: Twin) -> None:
    size = (twin.conversions["rows"] ** 2).sum() / twin.converted.height
    q = twin.converted.height / ROWS
    for third in np.array_split(twin.frame["conversion"].to_numpy(), 3):
        assert abs(third.mean() - q) < SIGMAS * np.sqrt(q * size / len(third))


def test_daily_cycle(twin: Twin, laws: TwinParameters) -> None:
    clock = ArrivalQuantiles(laws.arrivals)
    time = twin.frame["timestamp"].to_numpy()
    for hour in (0, 6, 13, 20):
        begin = np.arange(30) * 86_400 + hour * 3_600
        expected = (clock.cdf(begin + 3_600) - clock.cdf(begin)).sum()
        found = np.isin(time % 86_400 // 3_600, [hour]) & (time < 30 * 86_400)
        size = 1 + (twin.converted.height / ROWS) * 10  # journeys may fall together
        assert abs(found.mean() - expected) < SIGMAS * np.sqrt(expected * size / ROWS)
    night, noon = clock.cdf(3_600), clock.cdf(14 * 3_600) - clock.cdf(13 * 3_600)
    assert noon > 3 * night


def test_last_click_and_categories(twin: Twin) -> None:
    assert abs((twin.frame["time_since_last_click"] == -1).mean() - 0.53) < spread(0.53, ROWS)
    for column, values in zip(range(1, 10), (9, 70, 1_829, 21, 51, 30, 57_196, 11, 30), strict=True):
        found = twin.frame[f"cat{column}"].n_unique()
        assert found == values if values < 1_000 else 0.3 * values < found <= values


def test_facts_at_full_size(laws: TwinParameters) -> None:
    """The plan's totals, without its rows."""
    journeys = sizes(laws.journey_rows, 435_810)
    assert (journeys == 1).sum() == pytest.approx(294_992, rel=0.001)
    assert journeys.sum() == pytest.approx(806_196, rel=0.001)
    assert journeys[-1] == pytest.approx(164, rel=0.01)
    assert (laws.rows, laws.users, laws.conversions) == (FULL, 6_142_256, 435_810)
    assert 1 < pl.Series(sizes(laws.user_rows, 100_000)).mean() < FULL / 6_142_256
