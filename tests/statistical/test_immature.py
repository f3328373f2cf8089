"""A log that ends with its last display: young displays are no failures, whichever way they are set right."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.log import Log
from evaluator.log.contract import to_numpy
from tests.logs import bernoulli_log
from tests.statistical.runs import Floats, off, replays

N, MEANS, MEAN_DELAY, ATTRIBUTION, RUNS = 4000, (0.5, 0.3), 300.0, 900, 300
TRUE_VALUE = float(np.mean(MEANS) * DelayCDF.geometric(MEAN_DELAY)(ATTRIBUTION))


UNEVEN = (0.2, 0.8)


def cut_log(seed: int, logger: tuple[float, ...] | None = None) -> Log:
    """Return a log without the conversions past the attribution window or past the last display."""
    log = bernoulli_log(N, MEANS, mean_delay=MEAN_DELAY, seed=seed, logger=logger)
    when, of = to_numpy(log.conversions["time"]), to_numpy(log.conversions["display_id"])
    seen = (when <= N - 1) & (when - of <= ATTRIBUTION)
    return replace(log, conversions=log.conversions.filter(seen))


def followed(seed: int, logger: tuple[float, ...] | None = None) -> Log:
    return cut_log(seed, logger).with_meta(observed_until=N - 1, attribution_window=ATTRIBUTION)


@cache
def values(naive: bool, logger: tuple[float, ...] | None = None, sampler: str = "keep", **options: Any) -> Floats:
    make_log = partial(cut_log if naive else followed, logger=logger)
    (results,) = replays(make_log, ["random"], runs=RUNS, sampler=sampler, **options)
    return np.array([r.value.estimate for r in results])


def test_counting_young_displays_as_failures_is_biased() -> None:
    assert off(values(naive=True), TRUE_VALUE) < -5


@pytest.mark.parametrize("rule", ["drop", "correct"])
def test_dropping_and_correcting_are_unbiased(rule: str) -> None:
    assert abs(off(values(naive=False, immature=rule), TRUE_VALUE)) < 3


@pytest.mark.parametrize("sampler", ["keep", "rejection"])
def test_under_an_uneven_logger_too_only_the_naive_count_is_biased(sampler: str) -> None:
    assert off(values(True, UNEVEN, sampler), TRUE_VALUE) < -5
    for rule in ("drop", "correct"):
        assert abs(off(values(False, UNEVEN, sampler, immature=rule), TRUE_VALUE)) < 3


def test_correcting_keeps_more_rounds_than_dropping() -> None:
    counts = {}
    for rule in ("drop", "correct"):
        ((result,),) = replays(followed, ["random"], runs=1, sampler="keep", immature=rule)
        counts[rule] = result.plan["displays_used"]
        assert result.plan["displays_immature"] == ATTRIBUTION
    assert counts["drop"] == N - ATTRIBUTION < counts["correct"] <= N


@pytest.mark.parametrize("rule", ["drop", "correct"])
def test_a_policy_window_stands_in_for_an_unknown_attribution_window(rule: str) -> None:
    # Conversions past the window are seen of early displays only: to count them would mix two rewards.
    window = 300
    options = {"sampler": "keep", "window": window, "immature": rule}
    (results,) = replays(lambda s: followed(s).with_meta(attribution_window=None), ["random"], runs=RUNS, **options)
    within = float(np.mean(MEANS) * DelayCDF.geometric(MEAN_DELAY)(window))
    assert abs(off(np.array([r.value.estimate for r in results]), within)) < 3
    assert results[0].plan["displays_immature"] == window
    assert any("within the policy's window" in a for a in results[0].assumptions)
