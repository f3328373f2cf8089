"""Rows left out of untidy logs: an alarm where that depends on their outcome, hardly ever where chance decides."""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
import pytest

from evaluator.datasets.quarantine import LEVEL
from evaluator.log import Log
from tests.untidy.defects import rows_of
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic

RUNS = 500
TRAFFIC = {
    "tidy": Untidy(displays=3_000),
    "rare sales": Untidy(displays=3_000, means=(0.01, 0.02, 0.03)),
    "a rhythm and a drift": Untidy(displays=3_000, rhythm=0.6, growth=4.0, drift=0.4, logger=(0.5, 0.3, 0.2)),
    "users": Untidy(displays=3_000, users=300),
}  # fmt: skip


def alarm(untidy: Untidy, seed: int, damaged: tuple[float, float]) -> bool:
    """Return whether the reader says that what is left out depends on the outcome.

    Parameters
    ----------
    damaged
        Share of the displays without and with a conversion whose action, or time, is lost.
    """
    rows = rows_of(draw_traffic(untidy, seed), seed)
    sold = np.full(len(rows.of), -1)
    sold[rows.conversion_of] = rows.conversion_time
    rng = np.random.default_rng([seed, 1])
    lost = rng.random(len(sold)) < np.where(sold >= 0, damaged[1], damaged[0])
    of_time = lost & (rng.random(len(sold)) < 0.5)
    frame = pl.DataFrame({
        "t": pl.Series(rows.time).set(pl.Series(of_time), None),
        "ad": pl.Series(rows.action).cast(pl.String).set(pl.Series(lost & ~of_time), None),
        "sold": pl.Series(sold),
    })  # fmt: skip
    log = Log.from_frames(
        frame, time="t", action="ad", conversion_time="sold", unit="s", none=[-1], observed_until="complete",
        on_error="quarantine", quarantine_at_most=1,
    )  # fmt: skip
    assert log.meta.counts["quarantined"] == lost.sum()
    fired = bool(log.meta.counts.get("quarantined_by_outcome"))
    assert fired == ("depends on the outcome" in log.meta.left_out)
    return fired


@pytest.mark.parametrize("share", [0.005, 0.05])
def test_damage_by_chance_raises_the_alarm_at_most_at_its_level(share: float) -> None:
    alarms = sum(alarm(untidy, seed, (share, share)) for untidy in TRAFFIC.values() for seed in range(RUNS))
    expected = len(TRAFFIC) * RUNS * LEVEL
    assert alarms <= expected + 4 * sqrt(expected * (1 - LEVEL))


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("direction", [1, -1])
def test_damage_by_the_outcome_raises_the_alarm(traffic: str, direction: int) -> None:
    untidy = TRAFFIC[traffic]
    rate = float(np.mean(untidy.means))
    # So far apart that the difference is ten of its standard errors: seven beyond what the alarm asks for.
    low = 0.02
    high = next(
        high
        for high in np.arange(low, 1, 0.01)
        if high - low > 10 * sqrt(high * (1 - high) / (rate * untidy.displays) + low * (1 - low) / untidy.displays)
    )
    damaged = (low, float(high)) if direction > 0 else (float(high), low)
    assert all(alarm(untidy, seed, damaged) for seed in range(20))
