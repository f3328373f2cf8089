"""Paired intervals hold what they promise against the known truth of the displays shown, and rankings err rarely."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from evaluator import compare
from evaluator.comparisons.expected import expected_difference
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import mean_interval
from evaluator.estimates.paired import difference
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.logs import bernoulli_log, linear_log
from tests.statistical.differences import KINDS, held

LEVEL = 0.9
RUNS = 150
LOGGER = [0.5, 0.3, 0.2]


def linear(seed: int) -> Log:
    return linear_log(4000, n_actions=5, dimension=3, mean_delay=50, seed=seed)


def tilted(seed: int) -> Log:
    return linear_log(4000, n_actions=3, dimension=3, mean_delay=50, seed=seed, temperature=0.3)


def arms(seed: int) -> Log:
    return bernoulli_log(3000, [0.3, 0.35, 0.25], mean_delay=30, seed=seed)


def uneven_arms(seed: int) -> Log:
    return bernoulli_log(3000, [0.3, 0.35, 0.25], mean_delay=30, seed=seed, logger=LOGGER)


def over_logs(
    make: Callable[[int], Log], policies: list[str], runs: int, **options: Any
) -> list[tuple[Log, Comparison]]:
    def one(run: int) -> tuple[Log, Comparison]:
        log = make(run)
        return log, compare(log, policies, baseline=policies[0], seed=run, level=LEVEL, **{"bootstrap": 0, **options})

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(runs)))


def truth(log: Log, found: Comparison, variant: int) -> float:
    """Return the mean expected reward of what a variant showed in the common horizon.

    The logging policy's is that of all displays that the other variant read by then.
    """
    rows = found.results[variant].trajectory.slice(0, found.horizon.rounds)
    if found.results[variant].policy == "logging":
        other = found.results[1 - variant].trajectory["display_id"][found.horizon.rounds - 1].as_py()
        read = slice(0, other + 1)
        return float(log.column("expected_reward")[np.arange(other + 1), log.column("action")[read]].mean())
    display, action = to_numpy(rows["display_id"]), to_numpy(rows["action"])
    return float(log.column("expected_reward")[display, action].mean())


@pytest.mark.parametrize(
    ("make", "policies", "sampler"),
    [
        (linear, ["otflinucb:alpha=0.3", "linucb"], "rejection"),
        (tilted, ["linucb", "lints"], "rejection"),
        (linear, ["otflinucb", "random"], None),
        (arms, ["ucb1", "thompson"], "keep"),
        (uneven_arms, ["delayed-klucb", "ucb1"], "queue"),
        (arms, ["thompson", "logging"], None),
    ],
)
def test_coverage(make: Callable[[int], Log], policies: list[str], sampler: str | None) -> None:
    covered, missed, errors, spread = 0, 0, [], []
    for log, found in over_logs(make, policies, RUNS, windows=[100], sampler=sampler):
        missed += not found.horizon.fixed
        (d,) = found.differences
        assert d.realised is not None
        true = truth(log, found, 1) - truth(log, found, 0)
        covered += d.realised.low <= true <= d.realised.high
        errors.append(d.realised.estimate - true)
        spread.append(d.realised.high - d.realised.low)
    assert covered / RUNS >= LEVEL - 4 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)
    assert missed / RUNS <= 0.00135 + 4 * math.sqrt(0.00135 / RUNS)
    # No bias; and an interval not wide for nothing: a normal one, for one time, has 1.645 standard errors a side. Where
    # it is unpaired it adds two, together up to the root of two times as long as one of the difference.
    unpaired = math.sqrt(2.0) if "logging" in policies else 1.0
    assert abs(np.mean(errors)) <= 4 * np.std(errors, ddof=1) / math.sqrt(RUNS)
    assert np.mean(spread) <= unpaired * 4 * 2 * 1.645 * np.std(errors, ddof=1)


@pytest.mark.parametrize(
    ("make", "policies", "narrower"),
    [(linear, ["otflinucb:alpha=0.9", "otflinucb"], 2 / 3), (uneven_arms, ["ucb1", "delayed-ucb"], 0.9)],
)
def test_pairing_shortens_the_interval(make: Callable[[int], Log], policies: list[str], narrower: float) -> None:
    ratios = []
    for _, found in over_logs(make, policies, 20, windows=[100]):
        t, (d,) = found.horizon.rounds, found.differences
        rewards = [to_numpy(result.trajectory["reward"])[:t] for result in found.results]
        one, other = (mean_interval(x, upper=1.0, alpha=(1 - LEVEL) / 2) for x in rewards)
        unpaired = difference(other, one)
        assert d.realised is not None
        assert d.realised.estimate == pytest.approx(unpaired.estimate)
        ratios.append((d.realised.high - d.realised.low) / (unpaired.high - unpaired.low))
    assert max(ratios) < 1
    assert np.mean(ratios) < narrower


def test_a_ranking_of_equal_policies_rarely_errs() -> None:
    # Where every action earns the same, so does every run: every difference is 0.
    runs, policies = 300, ["ucb1", "thompson", "klucb", "random", "fixed"]

    def equal(seed: int) -> Log:
        return bernoulli_log(1200, [0.4, 0.4, 0.4], mean_delay=20, seed=seed)

    found = over_logs(equal, policies, runs, windows=[50])
    wrong = sum(any(test.apart for test in one.ranking.tests) for _, one in found)
    smallest = [min(test.difference.p for test in one.ranking.tests) for _, one in found]
    assert wrong / runs <= (1 - LEVEL) + 4 * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    assert all(len(one.ranking.tests) == 10 for _, one in found)
    # Not for want of trying: the p-values do move.
    assert min(smallest) < 1.0


def test_differences_hold_on_untidy_logs_and_are_shorter_than_two_sums() -> None:
    """Rhythm, growth, drift, revenue, delays by action, small rates, rewards seen by the horizon: six policies each."""
    found = {name: list(held(name, range(8))) for name in KINDS}
    logs = sum(len(of) for of in found.values())
    missed = sum(not all(one.covered) for of in found.values() for one in of)
    wrong = sum(one.erred for of in found.values() for one in of)
    assert wrong / logs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / logs)
    # All fifteen intervals of a log at once: no more than fifteen times the error, and in fact far less.
    assert missed / logs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / logs)
    for of in found.values():
        assert np.mean([one.width for one in of]) < 0.75 * np.mean([one.width_before for one in of])


def test_expected_differences_of_policies_that_lock_in_hold_where_a_normal_interval_does_not() -> None:
    """Most of the time the greedy one finds the best action; now and then it does not, by many standard errors."""
    logs, level = 120, 0.95
    gaps, widened, normal = [], [], []
    for seed in range(logs):
        log = bernoulli_log(1000, [0.3, 0.6], mean_delay=5, seed=7000 + seed)
        policies = ["fixed:action=1", "ucb1:exploration=0"]
        found = compare(log, policies, baseline=policies[0], seed=seed, horizon=300, bootstrap=40, level=level)
        a, b = found.results
        expected = expected_difference(b, a).interval
        gaps.append(b.value.estimate - a.value.estimate)
        normal.append(student.ppf(0.975, 39) * np.subtract(b.resampled, a.resampled).std(ddof=1))
        widened.append(math.inf if expected is None else expected.high - expected.estimate)
    # The mean over the logs stands for the expected difference: known to an eleventh of one log's spread.
    off = np.abs(np.array(gaps) - np.mean(gaps))
    bound = 1 - level + 4 * math.sqrt(level * (1 - level) / logs)
    assert np.mean(off > widened) <= bound
    assert np.mean(off > normal) > bound
