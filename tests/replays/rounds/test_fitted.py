"""Fitted propensities: no display by a fit that saw it, the same numbers however the log is read, c by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import replay
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.fitted import FOLDS, LOST, fit_logger, folds, largest_c
from evaluator.replays.rounds.propensity import Propensities, resolve_propensities, thinning
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log


def logged(n: int, seed: int, *, columns: int = 3) -> Log:
    """Return a log whose logger is a multinomial logistic model of the first context column; the others are noise."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(n, columns))
    scores = np.column_stack([context[:, 0], np.zeros(n), -context[:, 0]])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    shown = np.flatnonzero(rng.random(n) < 0.3)
    return build_log(time=np.arange(n), action=action, n_actions=3, propensity=p[np.arange(n), action],
                     conversion_display=shown, conversion_time=shown + 1, context=context)  # fmt: skip


def fitted(log: Log) -> Propensities:
    return resolve_propensities(survey(log), "estimate:context")


def of(found: Propensities, log: Log) -> np.ndarray:
    return found.of({name: log.column(name) for name in found.reads})


def test_groups_are_even_and_no_pattern_of_the_numbers() -> None:
    n = 200_000
    fold = folds(np.arange(n))
    error = 4 * (n / FOLDS * (1 - 1 / FOLDS)) ** 0.5
    assert np.abs(np.bincount(fold, minlength=FOLDS) - n / FOLDS).max() < error
    for period in (2, 3, 5, 7, 24):  # positions of a page, a round robin of actions
        cells = np.bincount(fold * period + np.arange(n) % period, minlength=FOLDS * period)
        assert np.abs(cells - n / FOLDS / period).max() < 4.5 * (n / FOLDS / period) ** 0.5
    assert (folds(np.array([7, 3])) == folds(np.arange(8))[[7, 3]]).all()


def test_a_display_does_not_move_its_own_propensity() -> None:
    log = logged(300, 1)
    first = fit_logger(log)
    number, context = np.arange(300), log.column("context")
    changed = log.column("action").copy()
    changed[17] = (changed[17] + 1) % 3
    displays = log.displays.set_column(log.schema.get_field_index("action"), "action", [changed])
    second = fit_logger(Log(displays, log.conversions, log.actions, log.meta))
    same = folds(number) == folds(np.array([17]))[0]
    shown = log.column("action")
    moved = np.abs(first.of(number, context, shown) - second.of(number, context, shown))
    assert (moved[same] == 0).all()
    assert (moved[~same] > 0).all()


def test_the_same_numbers_by_batches_by_copies_and_without_the_first_displays() -> None:
    log = logged(400, 2)
    found = fitted(log)
    whole = of(found, log)
    columns = {name: log.column(name) for name in found.reads}
    pieces = [found.of({name: part[low : low + 33] for name, part in columns.items()}) for low in range(0, 400, 33)]
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=1e-12)
    drawn = np.random.default_rng(3).integers(0, 400, 400)
    np.testing.assert_allclose(
        found.of({name: part[drawn] for name, part in columns.items()}), whole[drawn], rtol=1e-12
    )
    np.testing.assert_allclose(of(found.after(150), log.after(150)), whole[150:], rtol=1e-12)
    assert np.abs(of(found, log.after(150)) - whole[150:]).max() > 1e-6  # numbers that mean other displays


def test_a_final_policy_is_weighed_by_the_propensities_of_its_own_displays() -> None:
    log = logged(4000, 4)
    result = replay(log, "fixed:action=1", propensity="estimate:context", final="last:50%").final
    p = of(fitted(log), log)[2000:]
    shown = log.column("action")[2000:] == 1
    assert result.weights.mean == pytest.approx((shown / p).mean(), rel=1e-12)


def test_an_action_of_one_display_has_a_propensity_all_the_same() -> None:
    log = logged(200, 5)
    action = np.zeros(200, np.int32)
    action[60] = 2
    displays = log.displays.set_column(log.schema.get_field_index("action"), "action", [action])
    found = fitted(Log(displays, log.conversions, log.actions, log.meta))
    p = of(found, Log(displays, log.conversions, log.actions, log.meta))
    assert ((p > 0) & (p <= 1)).all()
    assert p[60] < 0.01
    assert np.isnan(found.smallest[1])


@pytest.mark.parametrize("seed", range(5))
def test_c_loses_what_it_may_and_no_more(seed: int) -> None:
    p = np.random.default_rng(seed).beta(0.5, 2.0, 1000)
    c = largest_c(p)
    assert np.maximum(1 - p / c, 0).mean() == pytest.approx(LOST, rel=1e-9)
    assert p.min() < c < p.max()
    assert largest_c(np.full(10, 0.25)) == 0.25


def test_one_display_fitted_badly_does_not_decide_how_many_rounds_there_are() -> None:
    log = logged(3000, 6, columns=5)
    context = log.column("context").copy()
    far = np.flatnonzero(log.column("action") == 2)[0]
    context[far, 0] = 12.0  # where the model is sure that action 2 is never shown
    one = build_log(time=np.arange(3000), action=log.column("action"), n_actions=3, context=context,
                    propensity=log.column("propensity"))  # fmt: skip
    found = fitted(one)
    least, c = found.least, thinning(one, found, per_action=False).c[0]
    assert least < 1e-3
    assert c > 10 * least
    assert thinning(one, found, per_action=False).clips
    of_each = thinning(one, found, per_action=True).c
    assert (of_each >= found.smallest).all()
    assert of_each[2] > 10 * found.smallest[2]
    result = replay(one, "linucb", propensity="estimate:context", window=20)
    assert any("below c" in said for said in result.warnings)
    assert any(f"more than {LOST:g} of the traffic" in said for said in result.assumptions)


def test_too_many_columns_are_said_aloud() -> None:
    assert "too many columns" in fitted(logged(600, 8, columns=120)).assumption
    assert "too many columns" not in fitted(logged(600, 8, columns=4)).assumption


def test_a_fit_that_does_not_come_to_rest_is_said_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logged(600, 8, columns=5)
    assert "come to rest" not in fitted(log).assumption
    monkeypatch.setattr("evaluator.replays.rounds.fitted._STEPS", 1)
    assert "did not come to rest" in fitted(log).assumption
    result = replay(log, "linucb", propensity="estimate:context", window=20)
    assert any("did not come to rest" in said for said in result.warnings)


def test_known_propensities_keep_the_smallest() -> None:
    log = logged(500, 7)
    known = resolve_propensities(survey(log), None)
    assert known.fitted is None
    assert thinning(log, known, per_action=False).c[0] == to_numpy(log.displays["propensity"]).min()
