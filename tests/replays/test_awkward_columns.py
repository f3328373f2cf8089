"""Columns as logs have them, dates, incomes and ids, twice or constant: what is fitted to them is right."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, check, compare, replay, study_delays
from evaluator.log.vectors_of_displays import dwarfing_column
from evaluator.worlds.rates import rates_by_context, rates_by_vector

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
    verdicts = {f.name: f.verdict for f in check(log, propensity="estimate:context").checks}
    assert verdicts["replay of the logger"] == verdicts["calibration"] == "pass"
    study_delays(log, joint=True)


PAYS = 8000
WHEN_LOW, OTHER = np.random.default_rng(3).random((2, PAYS))
# Two columns each: for as many one loop of a policy is compiled.
DWARFED = {
    "a date": {"x": 1.7e12 + 864e5 * WHEN_LOW, "other": OTHER},
    "an offset": {"x": 1000 + WHEN_LOW, "other": OTHER},
    "beside a date": {"x": WHEN_LOW, "date": 1.7e12 + 1e3 * np.arange(PAYS)},
    "tiny": {"x": 1e-30 * (WHEN_LOW - 0.5), "other": OTHER},
}
UNLIKE = "regularises and explores in one unit for all"


def paying(columns: dict[str, np.ndarray], scale: Literal["standard"] | None) -> Log:
    """Return a log in which one action pays .3 and the other .05, which one goes by x: .175 for a policy that is blind.

    A policy that reads x is worth up to .3.
    """
    rng, n = np.random.default_rng(4), PAYS
    action = rng.choice(2, n)
    hit = rng.random(n) < np.where((WHEN_LOW < 0.5) == (action == 0), 0.3, 0.05)
    shown = {"t": np.arange(n), "ad": pa.array([f"a{i}" for i in action]), "p": np.full(n, 0.5)}
    table = pa.table({**shown, "sold": pa.array(np.arange(n) + 5, mask=~hit), **columns})
    return Log.from_frames(
        table, time="t", action="ad", propensity="p", conversion_time="sold", unit="s", attribution_window=10,
        context=dict.fromkeys(columns, "number"), scale=scale,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "large", "small"),
    [("a date", "x", "other"), ("an offset", "x", "other"), ("beside a date", "date", "x"), ("tiny", "intercept", "x")],
)
def test_a_column_that_dwarfs_others_is_named_and_scaling_helps(name: str, large: str, small: str) -> None:
    columns = DWARFED[name]
    raw, scaled = paying(columns, None), paying(columns, "standard")
    for policy in ("linucb", "otflinucb", "lints"):
        told = [said for said in replay(raw, policy, window=50).warnings if UNLIKE in said]
        assert len(told) == 1
        assert re.match(rf"Numbers of {large} are \S+ times as large as those of {small}, and {policy} ", told[0])
        assert 'scale = "standard"' in told[0]
        result = replay(scaled, policy, window=50)
        assert not any(UNLIKE in said for said in result.warnings)
        # The logged rewards of 4,000 rounds have a standard error of .007.
        assert result.value.estimate > 0.25
    assert not any(UNLIKE in said for said in replay(raw, "thompson", window=50).warnings)
    assert [f.verdict for log in (raw, scaled) for f in check(log).checks if f.name == "scales of columns"] == [
        "warn", "pass",
    ]  # fmt: skip


def test_all_policies_of_a_comparison_share_one_look_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Log] = []

    def counted(log: Log) -> object:
        looked.append(log)
        return dwarfing_column(log)

    monkeypatch.setattr("evaluator.replays.rounds.survey.dwarfing_column", counted)
    found = compare(paying(DWARFED["a date"], None), ["linucb", "lints"], windows=[20, 50], bootstrap=0)
    assert sum(UNLIKE in said for one in found.results for said in one.warnings) == 4
    assert len(looked) == 1


def test_beside_a_date_policies_learn_as_without_it() -> None:
    """Not scaled: what rounding errors of rank-one updates once hid."""
    for policy in ("linucb", "otflinucb"):
        alone, beside = (
            replay(paying(columns, None), policy, window=50).value.estimate
            for columns in ({"x": WHEN_LOW, "other": OTHER}, DWARFED["beside a date"])
        )
        assert min(alone, beside) > 0.25


def test_what_was_scaled_far_from_later_numbers_is_said() -> None:
    jump = np.where(np.arange(PAYS) < PAYS // 2, WHEN_LOW, 1e6 * WHEN_LOW)
    (told,) = (w for w in replay(paying({"x": jump}, "standard"), "linucb", window=50).warnings if UNLIKE in w)
    assert "leave x out" in told


def test_columns_of_ages_and_categories_are_no_cause_for_alarm() -> None:
    rng = np.random.default_rng(5)
    ages = {"x": WHEN_LOW, "age": rng.integers(18, 90, PAYS), "rare": (rng.random(PAYS) < 0.001).astype(float)}
    assert not any(UNLIKE in said for said in replay(paying(ages, None), "linucb", window=50).warnings)
