"""Columns as logs have them, dates, incomes and ids, twice or constant: what is fitted to them is right."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, check, replay, study_delays
from evaluator.audits.rates import rates_by_context, rates_by_vector

N = 6000
RNG = np.random.default_rng(1)
X, T = RNG.random(N), np.arange(N)
A_DATE = 1.7e12 + 864e5 * X
COLUMNS = {
    "in its own unit": {"x": 1e6 * X},
    "a date": {"x": 1.7e9 + 86400 * X},
    "beside a date": {"x": X, "seconds": 1.7e9 + T, "milliseconds": 1.7e12 + 1e3 * T},
    "a date twice": {"created": A_DATE, "updated": A_DATE},
    "twice, and constants": {"x": X, "again": 2 * X, "none": np.zeros(N), "year": np.full(N, 2026.0)},
    "beside an id": {"x": X, "id": 9e18 + 1e14 * T},
}
EACH = pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)


def logged(columns: dict[str, np.ndarray], *, propensity: bool) -> Log:
    """Return a log whose logger follows x, as do the rewards of all actions alike: every policy is worth .2."""
    rng = np.random.default_rng(2)
    p = 1.0 / (1.0 + np.exp(-2.0 * (2.0 * X - 1.0)))
    action = (rng.random(N) < p).astype(int)
    hit = rng.random(N) < 0.05 + 0.3 * X
    table = {"t": T, "ad": pa.array([f"a{i}" for i in action]), "sold": pa.array(T + 5, mask=~hit), **columns}
    table |= {"p": np.where(action == 1, p, 1.0 - p)} if propensity else {}
    return Log.from_frames(
        pa.table(table), time="t", action="ad", conversion_time="sold", unit="s", attribution_window=10,
        propensity="p" if propensity else None, context=dict.fromkeys(columns, "number"),
    )  # fmt: skip


@EACH
def test_fitted_propensities_and_reward_models_are_those_of_the_standardised_columns(
    columns: dict[str, np.ndarray],
) -> None:
    asked = {"doubly_robust": True, "final": "last:20%"}
    fitted = replay(logged(columns, propensity=False), "fixed:action=1", propensity="estimate:context", **asked)
    for result in (fitted, replay(logged(columns, propensity=True), "fixed:action=1", **asked)):
        # 4 standard errors of an interval with 95 %.
        value = result.doubly_robust.value
        assert abs(value.estimate - 0.2) < 4 * (value.high - value.low) / (2 * 1.96)
        assert result.value.low < 0.2 < result.value.high
    # Shares of the actions, which know no x, would accept many more.
    plain = replay(logged({"x": X}, propensity=False), "fixed:action=1", propensity="estimate:context", **asked)
    assert fitted.value.n == pytest.approx(plain.value.n, rel=0.05)


@EACH
def test_audits_find_the_rates(columns: dict[str, np.ndarray]) -> None:
    log, x = logged(columns, propensity=False), np.column_stack(list(columns.values())).astype(np.float32)
    hit, places = np.isin(np.arange(N), log.conversions["display_id"].to_numpy()), slice(0, N, 60)
    found = rates_by_context(x, log.column("action"), hit, x[places], n_actions=2).table
    np.testing.assert_allclose(found, np.tile(0.05 + 0.3 * X[places, None], 2), atol=0.08)
    found = rates_by_vector(x.astype(np.float64), hit, x[places, None].astype(np.float64)).table
    np.testing.assert_allclose(found[:, 0], 0.05 + 0.3 * X[places], atol=0.08)


@pytest.mark.parametrize("name", ["a date", "a date twice", "twice, and constants"])
def test_checks_and_joint_delays_have_an_answer(name: str) -> None:
    columns = COLUMNS[name]
    log = logged(columns, propensity=False)
    verdicts = {f.name: f.verdict for f in check(log, propensity="estimate:context").findings}
    assert verdicts["replay of the logger"] == verdicts["calibration"] == "pass"
    study_delays(log, joint=True)
