"""Logs that hold a part of the traffic: replays of it earn what a live run on all of it earns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator.api import check, replay
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from tests.live import Bernoulli, live_regrets
from tests.logs import bernoulli_log, build_log
from tests.parts import converted, part_of, stored
from tests.statistical.runs import Floats, off, regrets, replayed_regrets, replays

# With a mean delay of 400 rounds a policy of 1,000 rounds learns from a part of its conversions only.
ARMS = Bernoulli(means=(0.1, 0.15, 0.2, 0.4), mean_delay=400.0)
WINDOW, HORIZON, POLICY = 2000, 1000, "thompson"
LIVE_RUNS, REPLAY_RUNS = 4000, 100
# A uniform log gives n/4 rounds, with standard deviation below sqrt(n/4): the slack is 6 of them.
DISPLAYS = 4 * (HORIZON + int(6 * HORIZON**0.5))
SAMPLED = 0.1
OPTIONS = {"window": WINDOW, "horizon": HORIZON, "sampler": "rejection"}
# Whoever draws a part of a log must not draw from the log's own stream.
_OTHER = 1_000_000


@cache
def live() -> Floats:
    setting = Setting(n_actions=4, window=WINDOW, horizon=HORIZON)
    return live_regrets(resolve(POLICY), setting, ARMS, runs=LIVE_RUNS, seed=31)


def replayed(make_log: Callable[[int], Log]) -> Floats:
    (found,) = replayed_regrets(make_log, [POLICY], runs=REPLAY_RUNS, **OPTIONS)
    return found


def sampled(seed: int, *, rate: float) -> Log:
    whole = bernoulli_log(int(DISPLAYS / SAMPLED * 1.1), ARMS.means, mean_delay=ARMS.mean_delay, seed=seed)
    keep = np.random.default_rng(_OTHER + seed).random(len(whole)) < SAMPLED
    return part_of(whole, keep).with_meta(sampling_rate=rate)


def test_a_sample_of_the_traffic_is_replayed_as_the_whole() -> None:
    assert abs(off(replayed(lambda seed: sampled(seed, rate=SAMPLED)), live())) < 3


def test_a_sample_taken_for_the_whole_learns_too_fast() -> None:
    assert off(replayed(lambda seed: sampled(seed, rate=1.0)), live()) < -5


def outcome_sampled(seed: int, *, weighted: bool) -> Log:
    """All displays that converted and a tenth of the others."""
    # Thinned by weights up to 10, a tenth of the whole is left, but for chance.
    whole = bernoulli_log(int(DISPLAYS / SAMPLED * 1.1), ARMS.means, mean_delay=ARMS.mean_delay, seed=seed)
    p = np.where(converted(whole), 1.0, SAMPLED)
    keep = np.random.default_rng(_OTHER + seed).random(len(whole)) < p
    return part_of(whole, keep, **({"weight": 1 / p} if weighted else {}))


def test_weights_undo_sampling_by_outcome() -> None:
    (results,) = replays(lambda seed: outcome_sampled(seed, weighted=True), [POLICY], runs=REPLAY_RUNS, **OPTIONS)
    truth = ARMS.means[-1] - live() / HORIZON
    assert abs(off(regrets(results, HORIZON), live())) < 3
    assert abs(off(np.array([r.value.estimate for r in results]), truth)) < 3
    assert np.mean([r.value.low <= truth.mean() <= r.value.high for r in results]) > 0.95
    mean = float(np.mean(ARMS.means))
    assert abs(off(np.array([r.logging_value.estimate for r in results]), mean)) < 3
    assert all(r.best_fixed_action.value.low < ARMS.means[-1] < r.best_fixed_action.value.high for r in results)


def test_without_their_weights_outcomes_are_counted_too_often() -> None:
    (results,) = replays(lambda seed: outcome_sampled(seed, weighted=False), [POLICY], runs=20, **OPTIONS)
    truth = ARMS.means[-1] - live() / HORIZON
    assert off(np.array([r.value.estimate for r in results]), truth) > 5
    assert not any(r.value.low <= truth.mean() <= r.value.high for r in results)


@pytest.mark.parametrize("policy", ["logging", "fixed:action=3", "random"])
@pytest.mark.parametrize("sampler", ["rejection", "keep", "queue"])
def test_weights_hold_for_every_sampler(policy: str, sampler: str) -> None:
    log = outcome_sampled(5, weighted=True)
    truth = ARMS.means[-1] if policy.startswith("fixed") else float(np.mean(ARMS.means))
    found = replay(log, policy, sampler=None if policy == "logging" else sampler).value
    assert found.low < truth < found.high
    assert abs(found.estimate - truth) < 4 * np.sqrt(truth * (1 - truth) / found.n)
    # Without the weights: a rate r becomes r / (r + (1 - r) / 10), and no interval holds.
    plain = replay(outcome_sampled(5, weighted=False), policy, sampler=None if policy == "logging" else sampler).value
    assert plain.low > truth


def chosen(seed: int, folder: Path, *, positions: bool) -> Log:
    """Four actions of ten of a uniform log: the clock is that of all ten."""
    whole = bernoulli_log(int(2.5 * DISPLAYS), (*ARMS.means, *[0.3] * 6), mean_delay=ARMS.mean_delay, seed=seed)
    log = stored(whole, folder / f"{seed}{positions}", actions="a0,a1,a2,a3")
    return log if positions else bare(log)


def bare(log: Log) -> Log:
    names = [name for name in log.schema.names if name != "position"]
    return Log(log.displays.select(names), log.conversions, log.actions, log.meta)


def test_chosen_actions_keep_the_clock_of_the_traffic(tmp_path: Path) -> None:
    assert abs(off(replayed(lambda seed: chosen(seed, tmp_path, positions=True)), live())) < 3


def test_on_their_own_clock_chosen_actions_learn_too_fast(tmp_path: Path) -> None:
    assert off(replayed(lambda seed: chosen(seed, tmp_path, positions=False)), live()) < -5


# Two contexts; the logger prefers other actions in each, and so does the conversion rate.
LOGGER = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.05, 0.05, 0.3, 0.3, 0.3]])
RATES = np.array([[0.3, 0.1, 0.2, 0.3, 0.1], [0.1, 0.15, 0.1, 0.4, 0.2]])


def contextual_log(seed: int, n: int = 40_000) -> Log:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, n)
    action = (rng.random(n)[:, None] > np.cumsum(LOGGER[x], axis=1)).sum(axis=1).clip(0, 4)
    shown = np.flatnonzero(rng.random(n) < RATES[x, action])
    context = np.column_stack([np.ones(n), 2.0 * x - 1.0]) / np.sqrt(2.0)
    return build_log(
        time=np.arange(n), action=action, propensity=LOGGER[x, action], context=context, n_actions=5,
        conversion_display=shown, conversion_time=shown + rng.geometric(1 / 100, len(shown)),
    )  # fmt: skip


@pytest.mark.parametrize("action", [0, 1, 2])
def test_contextual_propensities_of_chosen_actions_give_values_for_all_contexts(action: int, tmp_path: Path) -> None:
    truth = float(RATES[:, action].mean())
    for seed, options in enumerate(({"sampler": "rejection"}, {"sampler": "keep"})):
        log = stored(contextual_log(seed), tmp_path / str(seed), actions="a0,a1,a2")
        found = replay(log, f"fixed:action={action}", **options).value
        assert found.low < truth < found.high
        assert abs(found.estimate - truth) < 4 * np.sqrt(truth * (1 - truth) / found.n)


def test_logged_propensities_of_chosen_actions_pass_the_check(tmp_path: Path) -> None:
    verdicts = []
    for seed in range(20):
        log = stored(contextual_log(seed), tmp_path / str(seed), actions="a0,a1,a2")
        verdicts.append(check(log).fit)
        # Where the log is not said to be a part, the mean of 1 / p is 3 / .6, not 3.
        assert not check(log.with_meta(kept_share=1.0)).fit
    # False alarms come with probability 4 %, failures less often: more than 4 of 20 have probability .001.
    assert verdicts.count(False) <= 4


def test_weighted_logs_pass_the_check() -> None:
    fits = []
    for seed in range(20):
        whole = contextual_log(100 + seed)
        p = np.where(converted(whole), 1.0, SAMPLED)
        keep = np.random.default_rng(_OTHER + seed).random(len(whole)) < p
        fits.append(check(part_of(whole, keep, weight=1 / p)).fit)
        assert not check(part_of(whole, keep)).fit
    assert fits.count(False) <= 4


def test_a_share_above_1_is_a_rollout_on_more_traffic_than_was_logged() -> None:
    # Traffic twice as dense: a delay of 200 displays of the log is one of 400 of the rollout's rounds.
    def slow(seed: int) -> Log:
        return bernoulli_log(DISPLAYS, ARMS.means, mean_delay=ARMS.mean_delay / 2, seed=seed)

    (results,) = replays(slow, [POLICY], runs=REPLAY_RUNS, **OPTIONS, traffic_share=2.0)
    assert abs(off(regrets(results, HORIZON), live())) < 3
    (wrong,) = replays(slow, [POLICY], runs=REPLAY_RUNS, **OPTIONS)
    assert off(regrets(wrong, HORIZON), live()) < -5


def test_constant_propensities_of_chosen_actions_are_those_of_the_fewer(tmp_path: Path) -> None:
    logger, means = (0.1, 0.15, 0.25, 0.5), (0.1, 0.2, 0.3, 0.4)
    whole = bernoulli_log(40_000, means, mean_delay=50.0, seed=7, logger=logger)
    log = stored(whole, tmp_path / "log", actions="a0,a1")
    truth, options = float(np.mean(means[:2])), {"sampler": "rejection", "doubly_robust": True, "final": "last:30%"}
    right = replay(log, "random", **options)
    assert right.doubly_robust is not None
    assert right.final is not None
    for found in (right.doubly_robust, right.final.ips, right.final.snips, right.final.dr):
        assert abs(found.value.estimate - truth) < 4 * found.standard_error
    assert check(log).fit
    # The propensities of all four actions make every display count 4 times too much.
    p = pa.array(np.array(logger)[log.column("action")])
    at = log.displays.schema.get_field_index("propensity")
    stale = Log(log.displays.set_column(at, "propensity", p), log.conversions, log.actions, log.meta)
    wrong = replay(stale, "random", **options)
    assert wrong.final is not None
    assert abs(wrong.final.ips.value.estimate - truth) > 8 * wrong.final.ips.standard_error
    assert not check(stale).fit
