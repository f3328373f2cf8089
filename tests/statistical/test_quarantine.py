"""Rows left out of untidy logs: an alarm where that depends on their outcome, hardly ever where chance decides."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from evaluator.log import Log
from evaluator.reading.row_rules import LEVEL, LeftOut
from tests.untidy.defects import Rows, rows_of
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Logs of each traffic, and how often each is damaged anew: the test keeps its level on every one of them.
LOGS, DAMAGES = 50, 10
TRAFFIC = {
    "tidy": Untidy(displays=3_000),
    "rare sales": Untidy(displays=3_000, means=(0.01, 0.02, 0.03)),
    "a rhythm and a drift": Untidy(displays=3_000, rhythm=0.6, growth=4.0, drift=0.4, logger=(0.5, 0.3, 0.2)),
    "users": Untidy(displays=3_000, users=300),
}  # fmt: skip


@lru_cache(maxsize=1)
def rows_with(untidy: Untidy, seed: int) -> Rows:
    return rows_of(draw_traffic(untidy, seed), seed)


def damage(untidy: Untidy, seed: int, damaged: tuple[float, float], again: int) -> tuple[Rows, Ints, Bools, Bools]:
    """Return rows, when each was sold or -1, and whether it is lost, by its time where the last says so.

    Parameters
    ----------
    damaged
        Share of the displays without and with a conversion whose action, or time, is lost.
    again
        Number of the damage to this log.
    """
    rows = rows_with(untidy, seed)
    sold = np.full(len(rows.of), -1)
    sold[rows.conversion_of] = rows.conversion_time
    rng = np.random.default_rng([seed, again])
    lost = rng.random(len(sold)) < np.where(sold >= 0, damaged[1], damaged[0])
    return rows, sold, lost, lost & (rng.random(len(sold)) < 0.5)


def by_counts(untidy: Untidy, seed: int, damaged: tuple[float, float], again: int) -> bool:
    """Return whether what is lost depends on the outcome, by counts of the rows."""
    _, sold, lost, _ = damage(untidy, seed, damaged, again)
    counts = [[np.sum(rows & (sold < 0)), np.sum(rows & (sold >= 0))] for rows in (lost, ~lost)]
    return LeftOut(np.array(counts)).depends_on_outcome()


def alarm(untidy: Untidy, seed: int, damaged: tuple[float, float]) -> bool:
    """Return whether the reader says that what is left out depends on the outcome, as it does by the counts."""
    rows, sold, lost, of_time = damage(untidy, seed, damaged, 1)
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
    assert fired == by_counts(untidy, seed, damaged, 1)
    return fired


@pytest.mark.parametrize("share", [0.005, 0.05])
def test_damage_by_chance_raises_the_alarm_at_most_at_its_level(share: float) -> None:
    alarms = 0
    for untidy in TRAFFIC.values():
        for seed in range(LOGS):
            alarms += alarm(untidy, seed, (share, share))
            alarms += sum(by_counts(untidy, seed, (share, share), again) for again in range(2, DAMAGES + 1))
    expected = len(TRAFFIC) * LOGS * DAMAGES * LEVEL
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
