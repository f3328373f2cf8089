"""Values that change along the log: a unit is named as such, an action by its label, and the advice mends the log."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from evaluator import Log, check
from evaluator.checks.value_drift import VALUE_DRIFT
from tests.checks.shops import DAY, HOUR
from tests.logs import build_log

Floats = np.ndarray


def heavy(rng: np.random.Generator, n: int) -> Floats:
    return (1.0 - rng.random(n)) ** (-1 / 1.5)


def sold(
    seed: int,
    law: Callable[[np.random.Generator, int], Floats] = heavy,
    factor: Callable[[Floats, Floats], Floats] = lambda at, action: np.ones(len(at)),
    *,
    n: int = 6000,
    days: float = 10.0,
    shares: Callable[[Floats], Floats] | None = None,
    levels: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
) -> Log:
    """Return a log of days, four actions, and conversions of a value times a factor of the day and the action.

    Parameters
    ----------
    shares
        From the day to the chance of the last action, shape (n,); a quarter unless given.
    levels
        What the four actions are worth.
    """
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(n) * days)
    last = np.full(n, 0.25) if shares is None else shares(at)
    p = np.column_stack((*[(1.0 - last) / 3.0] * 3, last))
    action = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), 3)
    paid = np.flatnonzero(rng.random(n) < 0.1)
    value = law(rng, len(paid)) * np.array(levels)[action[paid]] * factor(at[paid], action[paid])
    time = (at * DAY).astype(int)
    return build_log(
        time=time, action=action, n_actions=4, tick="s", propensity=p[np.arange(n), action], conversion_display=paid,
        conversion_time=time[paid] + rng.exponential(HOUR, len(paid)).astype(int), conversion_value=value,
    )  # fmt: skip


@pytest.mark.parametrize("factor", [100.0, 0.001])
@pytest.mark.parametrize("days", [10.0, 2.0])
def test_a_change_of_unit_is_named_and_its_advice_repairs_the_log(factor: float, days: float) -> None:
    """Also in a log of two days, of which no drift could be told from its hours."""
    log = sold(1, factor=lambda at, action: np.where(at >= 0.5 * days, factor, 1.0), days=days)
    found = check(log)[VALUE_DRIFT.name]
    assert found.verdict == "fail"
    assert "change of unit" in found.what
    assert f"from {'day 6' if days == 10 else 'tenth 6'} on" in found.what
    word, by = re.search(r"(Divide|Multiply) these values by ([\d,]+)", found.remedy).groups()
    mended = float(by.replace(",", "")) ** (-1 if word == "Divide" else 1)
    after = log.column("time")[log.conversions["display_id"].to_numpy()] >= 0.5 * days * DAY
    value = log.conversions["value"].to_numpy() * np.where(after, mended, 1.0)
    repaired = log.with_conversions(log.conversions.set_column(2, "value", [value]))
    assert check(repaired)[VALUE_DRIFT.name].verdict == "pass"


def test_values_of_one_action_are_its_own_and_those_of_all_are_no_ones() -> None:
    found = check(sold(2, factor=lambda at, action: np.where((at >= 5) & (action == 2), 3.0, 1.0)))[VALUE_DRIFT.name]
    assert found.verdict == "warn"
    assert (found.numbers["action"], found.numbers["unit"]) == ("a2", None)
    assert found.numbers["ratio"] == pytest.approx(3.0, rel=0.4)
    assert found.numbers["ratio_of_the_others"] == pytest.approx(1.0, abs=0.3)
    found = check(sold(3, factor=lambda at, action: np.where(at >= 5, 1.5, 1.0)))[VALUE_DRIFT.name]
    assert (found.verdict, found.numbers["action"], found.numbers["unit"]) == ("warn", None, None)
    one_day = check(sold(4, factor=lambda at, action: np.where(at.astype(int) == 3, 100.0, 1.0)))[VALUE_DRIFT.name]
    assert (one_day.verdict, one_day.numbers["where"]) == ("fail", "in day 4")


def test_what_is_no_drift_of_values_is_none() -> None:
    """Dear actions shown more and more, one launched, hours of the day, weekends, and values that do not vary."""
    dear = (1.0, 10.0, 100.0, 1000.0)
    assert check(sold(5, shares=lambda at: 0.1 + 0.08 * at, levels=dear))[VALUE_DRIFT.name].verdict == "pass"
    assert check(sold(6, shares=lambda at: 0.25 * (at > 4), levels=dear))[VALUE_DRIFT.name].verdict == "pass"
    assert (
        check(sold(7, factor=lambda at, action: np.exp(np.sin(2 * np.pi * at)), days=1.5))[VALUE_DRIFT.name].verdict
        == "pass"
    )
    weekends = sold(8, factor=lambda at, action: np.where(at % 7 >= 5, 2.0, 1.0), days=28.0)
    assert check(weekends)[VALUE_DRIFT.name].verdict == "pass"
    constant = check(sold(9, law=lambda rng, n: np.full(n, 7.0), levels=dear))[VALUE_DRIFT.name]
    assert (constant.verdict, constant.what) == ("not applicable", "all conversions of an action are worth the same")
    # Constant values that do change are found, too.
    dearer = sold(9, law=lambda rng, n: np.full(n, 7.0), factor=lambda at, action: np.where(at >= 5, 1.5, 1.0))
    assert check(dearer)[VALUE_DRIFT.name].numbers["ratio"] == pytest.approx(1.5)
