"""The parts of the checks against other libraries and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluator.checks.coordinates import cut_contexts, hashes
from evaluator.checks.counters import EqualRowPairs
from evaluator.checks.significance import (
    GroupTest,
    chi_square_tail,
    homogeneity,
    judge,
    normal_tail,
    pearson,
    weighted_pearson,
)
from evaluator.checks.tables import CheckInput, Tables, VectorMoments, count
from evaluator.checks.timeline import asked_of_timeline, follow_up, read_timeline
from evaluator.estimates.simultaneous import holm
from evaluator.log.contract import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.propensity import resolve_propensities
from evaluator.replays.rounds.survey import survey
from tests.checks.shops import DAY, shop


def tables_of(log: Log) -> Tables:
    surveyed = survey(log)
    timeline = read_timeline(log, asked_of_timeline(surveyed))
    follow = follow_up(surveyed, timeline, to_numpy(log.conversions["time"]), level=0.005)
    return count(CheckInput(surveyed, timeline, follow, cut_contexts(log), resolve_propensities(surveyed, None)))


def test_pearson_is_scipys() -> None:
    counts = np.array([30.0, 50, 20, 100])
    expected = np.array([40.0, 40, 20, 100])
    statistic, df = pearson(counts, expected)
    right = stats.chisquare(counts, expected)
    assert (statistic, df) == (pytest.approx(right.statistic), 3)
    assert chi_square_tail(statistic, df) == pytest.approx(right.pvalue)
    assert normal_tail(1.3) == pytest.approx(2 * stats.norm.sf(1.3))


def test_rare_actions_are_pooled_and_never_shown_ones_expected() -> None:
    statistic, df = pearson(np.array([50.0, 3, 4, 5]), np.array([50.0, 4, 4, 4]))
    assert (statistic, df) == (pytest.approx(0.0), 1)
    # What the propensities leave over should have been shown.
    statistic, df = pearson(np.array([60.0, 40]), np.array([50.0, 30]))
    assert (statistic, df) == (pytest.approx(100 / 50 + 100 / 30 + 20), 2)


def test_homogeneity_is_scipys_with_equal_groups() -> None:
    counts = np.array([[30.0, 50, 20], [40, 30, 30]])
    right = stats.chi2_contingency(counts)
    found = homogeneity(counts, what="")
    assert (found.statistic, found.df) == (pytest.approx(right.statistic), pytest.approx(right.dof))


def test_homogeneity_adds_up_what_pearson_says_of_each_group() -> None:
    rng = np.random.default_rng(3)
    for groups, actions in [(1, 3), (5, 1), (40, 12), (7, 30)]:
        counts = rng.poisson(rng.gamma(0.7, 30.0, actions) * rng.gamma(1.0, 2.0, (groups, 1)))
        sizes, shares = counts.sum(axis=1), counts.sum(axis=0) / counts.sum()
        each = [pearson(row, size * shares) for row, size in zip(counts, sizes, strict=True)]
        statistic = df = 0.0
        for (found, of), size in zip(each, sizes, strict=True):
            statistic, df = statistic + found, df + of * (1.0 - size / counts.sum())
        together = homogeneity(counts, what="")
        assert (together.statistic, together.df) == (statistic, df)


def test_judging_many_tests_compares_no_two_of_them() -> None:
    compared = 0

    class Family(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    tests = [GroupTest("", Family(f"{i // 2}"), 1.0 + i % 2 / 1000, 1.0, 10.0) for i in range(1000)]
    outcome = judge(tests, 0.05)
    assert outcome is not None
    assert outcome.effect == pytest.approx(np.sqrt(0.001 / 20))
    assert compared < 10 * len(tests)


def test_weighted_pearson_is_pearson_with_one_propensity_an_action() -> None:
    p, counts = np.array([0.2, 0.3, 0.5]), np.array([210.0, 280, 510])
    sums = [counts / p**i for i in (1, 2, 3)]
    weighted, df = weighted_pearson(1000, *sums, np.ones(3, bool))
    plain, _ = pearson(counts, 1000 * p)
    # Its variances are the larger of two estimates, so it is smaller by about the relative errors.
    assert df == 3
    assert weighted == pytest.approx(plain, rel=0.1)
    assert weighted <= plain


def test_weighted_pearson_keeps_its_level() -> None:
    rng = np.random.default_rng(0)
    logs, n, level = 2000, 2000, 0.01
    alarms = 0
    for _ in range(logs):
        x = rng.normal(size=n)
        p = 1 / (1 + np.exp(-x))
        p = np.column_stack((0.1 + 0.5 * p, 0.9 - 0.1 - 0.5 * p, np.full(n, 0.1)))
        action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        shown = p[np.arange(n), action]
        sums = [np.bincount(action, shown**-i, minlength=3) for i in (1.0, 2.0, 3.0)]
        alarms += chi_square_tail(*weighted_pearson(n, *sums, np.ones(3, bool))) <= level
    assert alarms <= logs * level + 4 * np.sqrt(logs * level * (1 - level))


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.2, 0.02, 0.9]).tolist() == pytest.approx([0.04, 0.4, 0.06, 0.9])


def test_moments_are_hotellings() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3)) + 0.1
    moments = VectorMoments(3)
    for part in np.array_split(x, 7):
        moments.add(part)
    mean = x.mean(axis=0)
    statistic, df = moments.statistic()
    assert df == 3
    assert statistic == pytest.approx(500 * mean @ np.linalg.solve(np.cov(x.T, bias=True), mean))


def test_pairs_are_counted_and_chance_ones_expected() -> None:
    time, key = np.array([1, 1, 1, 2, 2, 3, 9]), hashes(np.array([[1.0], [1], [2], [1], [1], [1], [1]]))
    found = EqualRowPairs()
    found.add(time, key)
    # At time 1 one pair, at time 2 one; one step apart 2 x 2 + 2 x 1, two steps apart 2 x 1.
    assert (found.same, found.apart, found.rows_again) == (2, (6 + 2) / 2, 2)
    rng = np.random.default_rng(1)
    z = []
    for _ in range(400):
        chance = EqualRowPairs()
        chance.add(np.sort(rng.integers(0, 20_000, 10_000)), hashes(rng.integers(0, 2, 10_000)[:, None].astype(float)))
        z.append(chance.z)
    assert abs(np.mean(z)) < 4 / np.sqrt(400)
    assert 1 - 4 * np.sqrt(1 / 800) < np.std(z) < 1 + 4 * np.sqrt(1 / 800)


def test_copies_show_on_a_clock_that_spreads_its_rows_evenly() -> None:
    rng = np.random.default_rng(2)
    time, key = np.arange(4_000) * 60, hashes(rng.integers(0, 3, 4_000)[:, None].astype(float))
    for copied, alarm in ((0, False), (200, True)):
        rows = np.sort(np.concatenate((np.arange(4_000), rng.choice(4_000, copied, replace=False))))
        for in_batches in (False, True):
            found = EqualRowPairs(in_batches=in_batches)
            found.add(time[rows], key[rows])
            assert found.same == copied
            assert (found.z > 6) == alarm


def test_a_log_that_tells_the_truth_misses_few_conversions() -> None:
    beyond = []
    for seed in range(100):
        log = shop(seed, n=4000).log()
        surveyed = survey(log)
        timeline = read_timeline(log, asked_of_timeline(surveyed))
        beyond.append(follow_up(surveyed, timeline, to_numpy(log.conversions["time"]), level=0.005).beyond)
    # Geometric: at least one has probability 1/2, at least three 1/8.
    for least in (1, 3):
        p = 0.5**least
        assert abs(np.mean(np.array(beyond) >= least) - p) < 4 * np.sqrt(p * (1 - p) / 100)


@pytest.mark.parametrize("logger", ["uniform", "context"])
def test_tables_equal_a_slow_twin_and_do_not_depend_on_batches(logger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = shop(2, n=6000, logger=logger)
    log = made.log()
    found = tables_of(log)
    batches = Log.batches
    monkeypatch.setattr(Log, "batches", lambda self, columns, size=777, **asked: batches(self, columns, 777, **asked))
    again = tables_of(log)
    for name in ("counts", "inverse", "mature", "action", "weight", "gram", "moment"):
        np.testing.assert_allclose(getattr(found, name), getattr(again, name), rtol=1e-9, atol=1e-9)
    day = made.time // DAY - made.time[0] // DAY
    for i, group in enumerate(found.groups):
        inside = np.ones(len(day), bool)
        if group.name.startswith("day"):
            inside = day == int(group.name.split()[1]) - 1
        elif group.name.startswith("context[4] >="):
            inside = made.context[:, 4] >= 2
        elif i:
            continue
        assert found.counts[i].tolist() == np.bincount(made.action[inside], minlength=6).tolist()
        if logger == "context":
            right = np.bincount(made.action[inside], made.propensity[inside] ** -2.0, minlength=6)
            np.testing.assert_allclose(found.inverse[1, i], right)
    assert sum(map(len, found.families.values())) == len(found.groups)
    end = made.meta["observed_until"]
    judged = made.time <= end - found.logged.follow_up.horizon
    assert found.mature.sum() == judged.sum() == found.logged.follow_up.mature


def test_contexts_are_cut_into_bins_whatever_their_kind() -> None:
    made = shop(1, n=5000)
    made.context[:, 3] = np.where(made.context[:, 3] < 2.3, 0.0, made.context[:, 3])
    made.context[:, 2] = 7.0
    cut = cut_contexts(made.log())
    assert cut.kept.tolist() == [0, 1, 3, 4]
    assert [len(edges) + 1 for edges in cut.edges] == [5, 5, 3, 3]
    sizes = np.bincount(cut.bins(2, made.context[:, 3].astype(float)))
    assert sizes.tolist()[1:] == [(made.context[:, 3] == 0).sum(), (made.context[:, 3] > 0).sum()]
