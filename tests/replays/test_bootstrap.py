"""Resampled replays: the same from memory or disk, for one policy or several, and with the spread they should have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.arguments import as_description
from evaluator.errors import ParameterError
from evaluator.estimates.standard_errors import widened_by
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.run import execute
from evaluator.replays.values import resampled as bootstrap
from evaluator.replays.values.resampled import expected_differences
from evaluator.replays.values.rewards import References, observed_rewards
from tests.logs import bernoulli_log, build_log
from tests.replays.test_scan import VARIANTS, softmax_log

LOG = softmax_log(1500)
B = 20


def planned(log: Log, policy: str, **options: Any) -> Any:
    return plan_replay(log, as_description(policy), ReplayOptions(bootstrap=B, **options))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks to a log, several parts to a block, several scans."""
    monkeypatch.setattr(bootstrap, "BLOCK", 600)
    monkeypatch.setattr(bootstrap, "_PART", 128)
    monkeypatch.setattr(bootstrap, "TOGETHER", 7)


@pytest.mark.parametrize(("policy", "options"), [*VARIANTS, ("linucb", {"propensity": "estimate", "window": 40})])
def test_disk_and_threads_change_nothing(
    policy: str, options: dict[str, Any], tmp_path: Path, small_blocks: None
) -> None:
    alone = execute(planned(LOG, policy, **options))
    write_canonical(LOG, tmp_path)
    stored = execute(planned(open_canonical(tmp_path), policy, jobs=3, **options), batch_size=97)
    assert len(set(alone.resampled)) > B / 2
    assert stored.resampled == alone.resampled
    assert stored.expected_value == alone.expected_value
    assert stored.warnings == alone.warnings


def test_several_policies_read_the_same_resampled_logs_as_each_alone(small_blocks: None) -> None:
    # A queue, a thinned stream and a plain one; windows that use different numbers of displays.
    log = LOG.with_meta(attribution_window=None)
    asked = {"bootstrap": B, "seed": 4, "repeats": 2}
    together = compare(log, ["otflinucb", "ucb1", "logging"], baseline="otflinucb", windows=[40, 400], jobs=2, **asked)
    for result in together.results:
        alone = replay(log, result.plan["policy"], window=result.plan["options"]["window"], **asked)
        assert alone.resampled == result.resampled
        assert alone.expected_value == result.expected_value


def test_the_realised_value_does_not_change() -> None:
    with_it, without = (replay(LOG, "linucb", window=40, bootstrap=n) for n in (B, 0))
    assert with_it.value == without.value
    assert with_it.trajectory.equals(without.trajectory)
    assert (without.expected_value, without.resampled) == (None, ())
    assert with_it.expected_value is not None
    assert with_it.expected_value.estimate == with_it.value.estimate
    assert "expected value" in with_it.expected_value.kind


def test_differences_cancel_what_two_policies_share() -> None:
    log = bernoulli_log(3000, [0.5, 0.5], mean_delay=3.0, seed=6)
    one, same, other = compare(
        log, ["ucb1", "klucb", "fixed:action=0"], baseline="ucb1", sampler="queue", horizon=1200, bootstrap=50
    ).results
    own, against, fixed = expected_differences([one, same, other])
    assert (own.estimate, own.low, own.high) == (0.0, 0.0, 0.0)
    assert against.estimate == same.value.estimate - one.value.estimate
    gaps = np.subtract(other.resampled, one.resampled)
    spread, wide = np.std(gaps, ddof=1), widened_by(gaps, level=0.95)
    # Student's law, 49 degrees, and what the tails need beyond it.
    assert (fixed.high - fixed.low) / 2 == pytest.approx(2.0096 * wide * spread, rel=1e-4)
    assert 1.0 <= wide < 1.5
    unpaired = np.hypot(np.std(other.resampled), np.std(one.resampled))
    assert spread < 0.9 * unpaired
    assert "difference of expected values at 1,200 rounds" in fixed.kind


def test_differences_need_common_rounds_and_resamples() -> None:
    plain, resampled = (replay(LOG, "ucb1", bootstrap=n, horizon=50) for n in (0, B))
    longer = replay(LOG, "ucb1", bootstrap=B, horizon=60)
    with pytest.raises(ParameterError, match="no common resampled"):
        expected_differences([plain, resampled])
    with pytest.raises(ParameterError, match="different numbers of rounds"):
        expected_differences([resampled, longer])


@pytest.mark.parametrize("sampler", ["keep", "queue"])
def test_replays_that_cannot_reach_their_rounds_are_counted(sampler: str) -> None:
    # Twice through a log that shows the action three times finds it fewer than three times once in sixteen.
    action = np.zeros(200, int)
    action[[20, 80, 150]] = 1
    log = build_log(time=np.arange(200), action=action, n_actions=2, propensity=np.where(action, 0.015, 0.985))
    plan = plan_replay(log, as_description("fixed:action=1"), ReplayOptions(sampler=sampler, bootstrap=200, horizon=3))
    (said,) = (w for w in execute(plan).warnings if "of 200 resampled replays ended before" in w)
    p = np.exp(-6) * (1 + 6 + 18)
    assert abs(int(said.split()[0]) - 200 * p) < 4 * (200 * p * (1 - p)) ** 0.5


def test_frequencies_are_those_of_the_resampled_log() -> None:
    plan = planned(LOG, "linucb", propensity="estimate", window=40)
    assert "anytime-valid intervals take the estimated propensities as given" in plan.assumptions
    log = bootstrap._ResampledLog(3, [bootstrap._Asked(plan, [], None)])
    drawn = log.draws(0).integers(0, len(LOG), len(LOG))
    bootstrap._estimate_anew([log])
    action = LOG.column("action")
    share = np.bincount(action[drawn], minlength=3) / len(LOG)
    propensities = log.asked[0].plan.matched.propensities
    assert (propensities.of({"action": np.arange(3)}) == share).all()
    assert (log.asked[0].plan.matched.c == share.min()).all()
    assert (share != np.bincount(action, minlength=3) / len(LOG)).any()


def test_a_model_of_the_context_is_not_fitted_anew_and_says_so() -> None:
    result = replay(LOG, "linucb", propensity="estimate:context", window=40, bootstrap=B)
    assert any("takes the estimated propensities as given" in w for w in result.warnings)


def test_the_correction_of_young_displays_is_fitted_anew() -> None:
    plan = planned(LOG, "ucb1", immature="correct")
    log = bootstrap._ResampledLog(0, [bootstrap._Asked(plan, [], bootstrap._rewards(plan, References()))])
    drawn = log.draws(0).integers(0, len(LOG), len(LOG))
    bootstrap._estimate_anew([log])
    # The resampled log written out: each display's conversions as often as it was drawn.
    times = np.bincount(drawn, minlength=len(LOG))[to_numpy(LOG.conversions["display_id"])]
    own = LOG.conversions.take(np.repeat(np.arange(len(times)), times))
    written = plan_replay(replace(LOG, events=own), as_description("ucb1"), plan.options)
    anew, by_hand = log.asked[0].plan.maturity.correction, written.maturity.correction
    assert anew is not None
    assert by_hand is not None
    fitted, again, before = (of.kinds[0][1] for of in (anew, by_hand, plan.maturity.correction))
    assert fitted.common == again.common != before.common
    np.testing.assert_array_equal(fitted.table, again.table)
    assert anew.key == plan.maturity.correction.key


@pytest.mark.parametrize("options", [{"window": 40}, {"window": "30s"}, {"window": 40, "delays_from": "first:30%"}])
def test_the_delays_that_a_policy_is_told_are_fitted_anew(options: dict[str, Any]) -> None:
    plan = planned(LOG, "delayed-ucb", **options)
    log = bootstrap._ResampledLog(2, [bootstrap._Asked(plan, [], bootstrap._rewards(plan, References()))])
    draws = log.draws(0)
    bootstrap._estimate_anew([log])
    anew, told = log.asked[0].plan.setting.delay_cdf, plan.setting.delay_cdf
    assert anew is not None
    assert anew != told
    if plan.known is not None:  # of the displays before the log, of which none is drawn
        return
    # The resampled log written out: each display's conversions as often as it was drawn.
    times = np.bincount(draws.integers(0, len(LOG), len(LOG)), minlength=len(LOG))[
        to_numpy(LOG.conversions["display_id"])
    ]
    own = LOG.conversions.take(np.repeat(np.arange(len(times)), times))
    assert anew == plan_replay(replace(LOG, events=own), as_description("delayed-ucb"), plan.options).setting.delay_cdf


def test_what_was_known_of_the_delays_is_drawn_from_what_was_known() -> None:
    known = planned(LOG, "delayed-ucb", delays_from="first:30%").known
    drawn = [known.drawn(np.random.default_rng(seed)) for seed in range(400)]
    assert {(d, limit) for one in drawn[:5] for d, limit in zip(one.delay, one.limit, strict=True)} <= set(
        zip(known.delay.tolist(), known.limit.tolist(), strict=True)
    )
    means = np.array([one.delay.mean() for one in drawn])
    error = known.delay.std() / len(known.delay) ** 0.5
    assert abs(means.mean() - known.delay.mean()) < 4 * error / len(drawn) ** 0.5
    assert means.std(ddof=1) == pytest.approx(error, rel=4 / (2 * len(drawn)) ** 0.5)


def test_rewards_observed_by_the_horizon_count_every_copy_of_a_display() -> None:
    plan = planned(LOG, "ucb1", reward="observed", window=40)
    shown = np.random.default_rng(7).integers(0, len(LOG), 400)
    of, value = to_numpy(LOG.conversions["display_id"]), to_numpy(LOG.conversions["value"])
    slow = [
        sum(value[c] for c in np.flatnonzero(of == i) if plan.rounds.delay[c] <= min(40, 399 - s))
        for s, i in enumerate(shown)
    ]
    assert observed_rewards(plan, shown) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("count", [-1, 1, 19, True])
def test_too_few_resampled_logs_are_refused(count: int) -> None:
    with pytest.raises(ParameterError, match="`bootstrap"):
        ReplayOptions(bootstrap=count)


def test_an_empty_replay_has_no_interval() -> None:
    log = build_log(time=[0, 1], action=[0, 0], n_actions=2)
    result = compare(
        log, ["fixed:action=1", "fixed:action=0"], baseline="fixed:action=1", sampler="keep", bootstrap=B
    ).results[0]
    assert result.expected_value is not None
    assert np.isnan([result.expected_value.estimate, result.expected_value.low, result.expected_value.high]).all()
