"""A log that ends with its last display: young displays are no failures, whichever way they are set right."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from evaluator.api import plan as plan_of
from evaluator.delays.cdf import DelayCDF
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.values.rewards import eventual_rewards
from tests.logs import bernoulli_log
from tests.statistical.runs import Floats, off, replays
from tests.statistical.young_logs import Young
from tests.statistical.young_runs import ONE_LAW, WORLDS, Held, held

N, MEANS, MEAN_DELAY, ATTRIBUTION, RUNS = 4000, (0.5, 0.3), 300.0, 900, 300
TRUE_VALUE = float(np.mean(MEANS) * DelayCDF.geometric(MEAN_DELAY)(ATTRIBUTION))


UNEVEN = (0.2, 0.8)


def cut_log(seed: int, logger: tuple[float, ...] | None = None) -> Log:
    """Return a log without the conversions past the attribution window or past the last display."""
    log = bernoulli_log(N, MEANS, mean_delay=MEAN_DELAY, seed=seed, logger=logger)
    when, of = to_numpy(log.conversions["time"]), to_numpy(log.conversions["display_id"])
    seen = (when <= N - 1) & (when - of <= ATTRIBUTION)
    return replace(log, events=log.conversions.filter(seen))


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


LOGS, RESAMPLED, REPLAYS = 24, 20, 24
# Proved below, and in ``python -m tests.bench.immature``.
ELSEWHERE = ("delays by device too", "quick and slow, rates differ")


def most_missed(logs: int) -> float:
    """Misses of a 95 % interval that are beyond 4 standard errors of chance."""
    return 0.05 * logs + 4 * (0.05 * 0.95 * logs) ** 0.5


@cache
def young(name: str, rule: str) -> Held:
    return held(WORLDS[name], rule, range(LOGS))


@pytest.mark.parametrize("name", [name for name in WORLDS if name not in ELSEWHERE])
def test_young_displays_corrected_by_action_give_right_numbers(name: str) -> None:
    found = young(name, "correct")
    for intervals in (found.value, found.uplift, found.difference[:, None]):
        assert ((~intervals).sum(axis=0) <= most_missed(LOGS)).all()
    assert (np.abs(found.off.mean(axis=0)) < 4 * found.off.std(axis=0, ddof=1) / LOGS**0.5).all()
    if np.ptp(WORLDS[name].rewards[:2]) == 0.0:
        assert found.real.sum() <= most_missed(LOGS)


def test_one_law_for_all_actions_does_not() -> None:
    found = young("quick and slow, equal rates", ONE_LAW)
    for missed in (~found.value[:, 1], ~found.difference, found.real):
        assert missed.sum() > most_missed(LOGS)
    assert (np.abs(found.off.mean(axis=0)) > 4 * found.off.std(axis=0, ddof=1) / LOGS**0.5)[[0, 1, 3]].all()


def test_laws_of_their_own_cost_little_where_there_is_one() -> None:
    own, common = (young("one law", rule).off for rule in ("correct", ONE_LAW))
    # Squared errors on the same logs: a fifth more at most, but for chance.
    more = (own**2 - 1.2 * common**2)[:, [0, 1, 3]]
    assert (more.mean(axis=0) < 4 * more.std(axis=0, ddof=1) / LOGS**0.5).all()
    used = [young("one law", rule).used.mean() for rule in ("correct", ONE_LAW)]
    assert used[1] - used[0] < 0.02


def test_delays_by_device_are_corrected_where_asked() -> None:
    # Devices are alike for both actions, so that the values are right either way; of the phones' displays they are not.
    name = "delays by device too"
    found = young(name, "correct:device")
    assert (~found.value).sum() <= most_missed(LOGS * 3)
    assert (np.abs(found.off.mean(axis=0)) < 4 * found.off.std(axis=0, ddof=1) / LOGS**0.5).all()
    gaps: dict[str, list[float]] = {rule: [] for rule in ("correct", "correct:device")}
    for seed in range(LOGS):
        log = WORLDS[name].draw(seed)
        desktop = np.array(log.displays["device"].to_pylist()) == "desktop"
        for rule, of in gaps.items():
            plan = plan_of(log, "random", immature=rule)
            reward = eventual_rewards(plan, used=plan.maturity.used).taken(np.arange(plan.maturity.used))
            mine = desktop[: plan.maturity.used]
            of.append(reward[mine].mean() - reward[~mine].mean())
    assert abs(off(np.array(gaps["correct:device"]), 0.0)) < 4 < abs(off(np.array(gaps["correct"]), 0.0))


def test_expected_values_from_refitted_laws_hold() -> None:
    world = Young(displays=1_000)
    found = held(world, "correct", range(REPLAYS), bootstrap=RESAMPLED)
    # A spread from B resampled logs is itself uncertain by (2 B)^-1/2: a normal interval with it holds less often.
    short = 2 * (1 - float(ndtr(1.96 * (1 - (2 * RESAMPLED) ** -0.5))))
    assert ((~found.expected).sum(axis=0) <= short * REPLAYS + 4 * (short * (1 - short) * REPLAYS) ** 0.5).all()
    wrong = held(world, ONE_LAW, range(REPLAYS), bootstrap=RESAMPLED)
    assert (~wrong.expected).sum(axis=0).max() > short * REPLAYS + 4 * (short * (1 - short) * REPLAYS) ** 0.5
