"""By which laws young displays are corrected, which of them are left out, and what is said and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from evaluator.api import plan, replay
from evaluator.audits.options import AuditOptions
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.maturity import LEAST_SEEN, Correction
from evaluator.replays.rounds.survey import survey
from tests.statistical.young_logs import DAY, Young

# A quick action and a slow one, and a device on which all take twice as long.
TWO = Young(delays=(0.1, 0.8), device=2.0, rates=(0.5, 0.5), displays=20_000)


def correction_of(log: Log, rule: str = "correct", **options: object) -> Correction:
    found = plan(log, "random", immature=rule, **options).maturity.correction
    assert found is not None
    return found


def chance(mean_days: float, days: float, longest: float = 2.0) -> float:
    return float(np.expm1(-days / mean_days) / np.expm1(-longest / mean_days))


def test_a_young_display_weighs_by_the_law_of_its_action() -> None:
    log = replace(TWO, device=1.0).draw(1)
    found = correction_of(log)
    action = log.column("action")
    of = np.unique(to_numpy(log.conversions["display_id"]))
    weight = found.weights(survey(log), of)
    followed = (log.meta.observed_until - log.column("time")[of]) / DAY
    for k, mean in enumerate((0.1, 0.8)):
        some = (action[of] == k) & (followed > 0.5) & (followed < 1.0)
        true = np.array([1 / chance(mean, days) for days in followed[some]])
        # 4 standard errors of a share seen of about 5,000 conversions, relative.
        assert np.abs(weight[some] / true - 1).max() < 4 * (0.25 / 5000) ** 0.5 / chance(mean, 0.5)
    assert (weight[followed >= 2.0] == 1.0).all()


@pytest.mark.parametrize("window", [None, 3_000])
def test_the_slowest_law_decides_which_displays_are_left_out(window: int | None) -> None:
    log = TWO.draw(2)
    if window is not None:  # in displays
        log = log.with_meta(attribution_window=None)
    found = correction_of(log, window=window)
    assert found.kinds[0][0].in_displays == (window is not None)
    of = np.unique(to_numpy(log.conversions["display_id"]))
    used = of[of < plan(log, "random", immature="correct", window=window).maturity.used]
    weight = found.weights(survey(log), used)
    assert weight.max() <= found.heaviest <= 1 / LEAST_SEEN
    ((of, delays),) = found.kinds
    slow, quick = (delays(of.until - found.last, k) for k in (1, 0))
    assert delays.smallest(of.until - found.last) == slow >= LEAST_SEEN
    assert quick > 2 * slow
    # A display is used for its age, whatever its action.
    action = log.column("action")
    young = np.arange(plan(log, "random", window=window).maturity.used, plan(
        log, "random", immature="correct", window=window).maturity.used)  # fmt: skip
    assert abs(action[young].mean() - 0.5) < 4 * 0.5 / len(young) ** 0.5


def test_by_a_column_the_law_is_that_of_action_and_value() -> None:
    log = TWO.draw(3)
    by_action, by_both = correction_of(log), correction_of(log, "correct:device")
    assert correction_of(log, "correct:action,device").columns == by_both.columns == ("device",)
    of = np.unique(to_numpy(log.conversions["display_id"]))
    device = np.array(log.displays["device"].to_pylist())[of] == "desktop"
    action = log.column("action")[of]
    followed = (log.meta.observed_until - log.column("time")[of]) / DAY
    some = (action == 1) & (followed > 1.0) & (followed < 1.2)
    for desktop, mean in ((False, 0.8), (True, 1.6)):
        mine = some & (device == desktop)
        true = np.mean([1 / chance(mean, days) for days in followed[mine]])
        error = 4 * (0.25 / 2500) ** 0.5 / chance(mean, 1.0)
        assert abs(by_both.weights(survey(log), of[mine]).mean() / true - 1) < error
        # The law of both devices together is wrong for each.
        assert abs(by_action.weights(survey(log), of[mine]).mean() / true - 1) > error


def test_values_of_a_column_may_be_numbers_flags_or_empty() -> None:
    log = TWO.draw(3)
    words = log.displays["device"].to_pylist()
    table = correction_of(log, "correct:device").kinds[0][1].table
    for column in (
        pa.array([int(w == "phone") for w in words]),
        pa.array([w == "phone" for w in words]),
        pa.array([None if w == "phone" else w for w in words]),
        pa.array(words).dictionary_encode(),
    ):
        other = replace(log, displays=log.displays.append_column("other", column))
        np.testing.assert_array_equal(
            np.sort(correction_of(other, "correct:other").kinds[0][1].table, axis=0), np.sort(table, axis=0)
        )


def test_columns_are_crossed_by_commas_and_by_plus_signs() -> None:
    log = TWO.draw(3)
    other = replace(log, displays=log.displays.append_column("parity", pa.array(np.arange(len(log)) % 2)))
    rules = "correct:device,parity", "correct:device+parity"
    listed, crossed = (correction_of(other, rule).kinds[0][1] for rule in rules)
    assert len(listed.weight) == 4 * log.n_actions
    np.testing.assert_allclose(np.sort(crossed.weight), np.sort(listed.weight), rtol=1e-12)


def test_the_assumption_is_printed() -> None:
    log = TWO.draw(4)

    def said(rule: str) -> str:
        return next(a for a in replay(log, "random", immature=rule).assumptions if a.startswith("`immature='correct'`"))

    assert "how late a display converts depends on its action, not on the context or the time" in said("correct")
    assert "depends on its action and device" in said("correct:device")
    assert not any("`immature='correct'`" in a for a in replay(log, "random").assumptions)


def refused(log: Log, rule: str) -> str:
    with pytest.raises(ParameterError) as error:
        plan(log, "random", immature=rule)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_corrected_by_is_refused() -> None:
    log = TWO.draw(4)
    log = replace(log, displays=log.displays.append_column("price", pa.array(np.zeros(len(log)))))
    assert "keeps no column 'country' (it keeps action, device, price)" in refused(log, "correct:country")
    assert "keeps no column 'time'" in refused(log, "correct:time")
    assert "type double, which are no groups" in refused(log, "correct:price")
    for rule in ("keep", "correct:", "correct:device,", "drop:device"):
        assert "drop, correct (delays by action), or correct:COLUMN" in refused(log, rule)
    with pytest.raises(ParameterError, match="twins have no such columns"):
        AuditOptions(immature="correct:device")
    with pytest.raises(DataError, match="no conversions to fit"):
        plan(replace(log, events=log.conversions.slice(0, 0)), "random", immature="correct")
