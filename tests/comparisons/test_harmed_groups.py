"""Groups for which a candidate is worse stand beside its verdict: worlds where one device loses and another gains."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, compare
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.rule import Look
from evaluator.comparisons.verdict import Candidate
from evaluator.reports.decision_words import sentences
from tests.logs import build_log

POLICIES = ["fixed:action=0", "fixed:action=1"]


def by_device(phone: float, desktop: float, *, n: int = 4_000, seed: int = 0, few: bool = False, **meta: Any) -> Log:
    """Return a log whose second action sells with these rates, the first one with .3 to either device."""
    rng = np.random.default_rng(seed)
    action, on_phone = rng.integers(0, 2, n), rng.random(n) < (0.06 if few else 0.5)
    rate = np.where(action == 0, 0.3, np.where(on_phone, phone, desktop)) * np.where(on_phone & few, 0.1, 1.0)
    of = np.flatnonzero(rng.random(n) < rate)
    log = build_log(
        time=np.arange(n), action=action, conversion_display=of, conversion_time=of, n_actions=2, attribution_window=1,
        **meta,
    )  # fmt: skip
    device = pa.array(np.where(on_phone, "phone", "desktop"))
    return log.changed(displays=log.displays.append_column("device", device))


def candidate_of(found: Comparison) -> Candidate:
    assert found.verdict is not None
    return found.verdict.candidate


@pytest.mark.parametrize("candidate", ["fixed:action=1", "ucb1"])
def test_the_device_that_loses_is_named_and_decides_nothing(candidate: str) -> None:
    log, policies = by_device(0.1, 0.6), [POLICIES[0], candidate]
    asked: dict[str, Any] = {"baseline": POLICIES[0], "bootstrap": 40}
    found = compare(log, policies, by="device", **asked)
    of = candidate_of(found)
    (harm,) = of.harmed
    assert (harm.column, harm.group) == ("device", "phone")
    assert harm.target == ("realised" if candidate == "ucb1" else "weighted")
    assert harm.difference.high < 0.0
    assert of.harm_text.startswith("Worse for device phone (-0.")
    assert ("in these runs" in of.harm_text) == (candidate == "ucb1")
    # The same decision for the same reasons: what stands beside it is no condition.
    alone = candidate_of(compare(log, policies, **asked))
    assert (of.decision, of.conditions, of.difference) == (alone.decision, alone.conditions, alone.difference)
    assert found.verdict is not None
    assert of.harm_text in found.verdict.sentence
    assert of.harm_text in "".join(sentences(found.verdict))
    assert of.harm_text in re.sub(r"\s+", " ", str(found))


def test_the_difference_of_a_group_is_that_of_its_displays_alone() -> None:
    log = by_device(0.1, 0.6)
    found = compare(log, POLICIES, baseline=POLICIES[0], by="device").segments[0]
    phone = next(one for one in found.groups if one.label == "phone")
    assert phone.weighted is not None
    rows = np.flatnonzero(np.asarray(log.displays["device"]) == "phone")
    new = np.full(len(log), -1)
    new[rows] = np.arange(len(rows))
    of = np.asarray(log.conversions["display_id"])
    of = new[of[new[of] >= 0]]
    alone = build_log(
        time=np.arange(len(rows)), action=np.asarray(log.displays["action"])[rows], conversion_display=of,
        conversion_time=of, n_actions=2, attribution_window=1,
    )  # fmt: skip
    # Two groups: each has half of the error.
    want = compare(alone, POLICIES, baseline=POLICIES[0], level=0.975).differences[0].weighted
    assert want is not None
    got, same = phone.weighted.value, want.value
    assert abs(got.n - same.n) <= 1
    assert (got.estimate, got.low, got.high) == pytest.approx((same.estimate, same.low, same.high), abs=2e-3)
    # Of all displays, and so shorter than what the two runs tell.
    assert got.high - got.low < 0.8 * (phone.realised.high - phone.realised.low)


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.3, 0.6), (0.6, 0.6)])
def test_nobody_is_harmed_where_no_device_loses(rates: tuple[float, float]) -> None:
    of = candidate_of(compare(by_device(*rates), POLICIES, baseline=POLICIES[0], by="device"))
    assert (of.harmed, of.harm_text) == ((), "")


def test_a_group_of_few_rewards_says_nothing() -> None:
    found = compare(by_device(0.0, 0.3, few=True), POLICIES, baseline=POLICIES[0], by="device")
    phone = next(one for one in found.segments[0].groups if one.label == "phone")
    assert phone.weighted is not None
    assert phone.weighted.withheld
    assert "too few to say" in str(found)
    assert candidate_of(found).harmed == ()


def test_weighted_differences_of_groups_have_the_level_of_the_look() -> None:
    log = by_device(0.1, 0.6)
    once, second = (
        compare(log, POLICIES, baseline=POLICIES[0], by="device", look=look).segments[0].groups[0]
        for look in (None, "2 of 5")
    )
    assert once.weighted is not None
    assert second.weighted is not None
    assert (once.weighted.value.level, second.weighted.value.level) == (0.95, Look(2, 5).level(0.95))
    assert second.weighted.value.low < once.weighted.value.low < once.weighted.value.high < second.weighted.value.high
    assert once.realised == second.realised
