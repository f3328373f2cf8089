"""Hours and days at which no conversion comes are no defect, wherever the log ends; and advice is never stale."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import check
from evaluator.checks.delay_groups import most_lacking
from evaluator.log import Log
from tests.checks.awkward import site, slept
from tests.checks.shops import DAY, HOUR, sleeping


def raised(log: Log) -> set[str]:
    return {f.name for f in check(log).checks if f.verdict in ("warn", "fail")}


@pytest.mark.parametrize("until", [1.15, 1.25, 2.25, 5.29])
@pytest.mark.parametrize("asleep", [(22.0, 7.0), (0.0, 6.0)])
def test_a_clean_log_may_end_at_night(until: float, asleep: tuple[float, float]) -> None:
    log = site(4, n=8000, days=until + 0.5, delay=slept(asleep, 3.0), until=until, window=12 * HOUR)
    assert raised(log) == set()
    if until < 1.25:
        found = check(log)["immature displays"]
        assert found.number.endswith("the end cannot be tested")
        # What the same log says when its spec does not say until when it was followed: that it cannot tell, and to.
        unsaid = check(log.with_meta(observed_until=None, attribution_window=None))["immature displays"]
        assert unsaid.verdict == "warn"
        assert "night" in unsaid.what
        assert unsaid.remedy.startswith("Say in the spec until when")


def test_advice_names_another_time_than_the_one_the_spec_already_says() -> None:
    made = sleeping(1, until=5.2)
    made = made.without_conversions(made.when > 4.5 * DAY + 2 * HOUR)
    found = check(made.log())["immature displays"]
    assert found.verdict == "fail"
    assert f"observed_until = {made.when.max()}" in found.remedy
    assert str(made.meta["observed_until"]) not in found.remedy
    assert "Say in the spec until when" not in found.remedy


def test_a_weekday_that_is_always_so_is_no_day_with_other_delays() -> None:
    rng = np.random.default_rng(0)
    day = rng.integers(0, 28, 6000)
    delay = rng.geometric(1 / 6000, 6000) + np.where(day % 7 == 6, 12_000, 0)
    assert most_lacking(delay, day, kin=np.arange(28) % 7).p > 0.05
    # Without weekdays it is; and so is one of them that is later than the others.
    assert most_lacking(delay, day).p < 1e-9
    delay += np.where(day == 10, 12_000, 0)
    assert most_lacking(delay, day, kin=np.arange(28) % 7).group == 10
