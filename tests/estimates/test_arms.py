"""The best fixed action: by hand, without the bias of a largest mean, and in its interval."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.estimates import best_fixed as estimated
from evaluator.estimates.best_fixed import BestFixedAction, best_fixed_action
from evaluator.estimates.confidence import Interval, SparseRewards, mean_interval


def best_of(
    action: npt.NDArray[np.int32], reward: npt.NDArray[np.float64], k: int, **options: float
) -> BestFixedAction:
    return best_fixed_action([SparseRewards.of(reward[action == a]) for a in range(k)], **options)


def test_every_actions_interval_holds_at_once() -> None:
    rng = np.random.default_rng(1)
    action = rng.integers(-1, 3, 6000).astype(np.int32)
    reward = (rng.random(6000) < np.array([0.2, 0.5, 0.4, 0.9])[action]).astype(float)
    best = best_of(action, reward, 3, upper=1.0, alpha=0.06)
    each = [mean_interval(SparseRewards.of(reward[action == k]), upper=1.0, alpha=0.02) for k in range(3)]
    # Displays left out (-1) have the highest rewards, and do not count.
    assert best.action == 1
    np.testing.assert_allclose(best.values, [i.estimate for i in each])
    # Both halves find action 1, and their means are that of all but for one display.
    assert best.by_halves == (1, 1)
    assert best.value.estimate == pytest.approx(reward[action == 1].mean(), abs=1 / (action == 1).sum())
    assert best.value.n == each[1].n == (action == 1).sum()
    assert best.value.low == max(i.low for i in each)
    assert best.value.high == max(i.high for i in each)
    assert best.value.level == pytest.approx(0.94)


def test_intervals_of_rare_actions_are_computed_once_for_all_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    action, reward = rng.integers(0, 900, 1500), np.where(rng.random(1500) < 0.3, rng.choice([0.5, 1.0], 1500), 0.0)
    arms = [SparseRewards.of(reward[action == a]) for a in range(900)]
    known = sum(arm.n > 0 for arm in arms)
    each = [mean_interval(arm, upper=1.0, alpha=0.05 / known) for arm in arms]
    asked = []

    def counted(arm: SparseRewards, **options: float) -> Interval:
        asked.append(arm)
        return mean_interval(arm, **options)

    monkeypatch.setattr(estimated, "mean_interval", counted)
    best = best_fixed_action(arms, upper=1.0, alpha=0.05)
    assert len(asked) < 200
    np.testing.assert_array_equal(best.values, [interval.estimate for interval in each])
    shown = [interval for interval in each if interval.n]
    assert (best.value.low, best.value.high) == (max(i.low for i in shown), max(i.high for i in shown))


def test_an_action_without_displays_decides_nothing() -> None:
    best = best_of(np.zeros(500, np.int32), np.full(500, 0.5), 2, upper=2.0, alpha=0.05)
    assert best.action == 0
    assert math.isnan(best.values[1])
    # Of the action never shown nothing is known: the reference is the best of the others, and its level all theirs.
    alone = best_of(np.zeros(500, np.int32), np.full(500, 0.5), 1, upper=2.0, alpha=0.05)
    assert best.value == alone.value


def test_no_displays_at_all() -> None:
    best = best_of(np.full(3, -1, np.int32), np.ones(3), 2, upper=1.5, alpha=0.05)
    assert (best.action, best.value.n) == (-1, 0)
    assert math.isnan(best.value.estimate)
    assert (best.value.low, best.value.high) == (0.0, 1.5)


def test_the_interval_covers_the_largest_value_although_it_was_picked() -> None:
    runs, alpha, mean = 400, 0.2, 0.5
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(runs):
        action = rng.integers(0, 10, 1000).astype(np.int32)
        value = best_of(action, (rng.random(1000) < mean).astype(float), 10, upper=1.0, alpha=alpha).value
        held += value.low <= mean <= value.high
    assert held / runs >= 1 - alpha - 4 * (alpha * (1 - alpha) / runs) ** 0.5


def halves(rewards: tuple[float, ...]) -> list[tuple[list[float], list[float]]]:
    """Return every way to deal an action's displays: of each two that follow one another one to each half."""
    pairs = [list(rewards[i : i + 2]) for i in range(0, len(rewards), 2)]
    dealt = []
    for turned in product((False, True), repeat=len(pairs)):
        one, other = [], []
        for pair, turn in zip(pairs, turned, strict=True):
            (other if turn else one).append(pair[0])
            if len(pair) == 2:
                (one if turn else other).append(pair[1])
        dealt.append((one, other))
    return dealt


def test_by_hand_one_half_chooses_and_the_other_values() -> None:
    # Sixteen ways to deal the displays: whichever the seed takes, the estimate is one of theirs, and each comes up.
    arms = [(1.0, 0.0, 0.75), (0.5, 0.25, 1.0, 0.0)]
    possible = {}
    for dealt in product(*map(halves, arms)):
        one, other = ([float(np.mean(own[side])) for own in dealt] for side in (0, 1))
        # Shown nearly alike, and with rewards so far apart, actions are in the order of their means here.
        first, second = int(np.argmax(one)), int(np.argmax(other))
        possible[round((other[first] + one[second]) / 2, 12)] = {first, second}
    sparse = [SparseRewards.of(arm) for arm in arms]
    found = [best_fixed_action(sparse, upper=1.0, alpha=0.05, seed=seed) for seed in range(200)]
    assert {round(best.value.estimate, 12) for best in found} == possible.keys()
    assert all(set(best.by_halves) == possible[round(best.value.estimate, 12)] for best in found)
    # The largest mean of all displays, 7/12, is higher than all of them on average.
    assert np.mean([best.value.estimate for best in found]) < 7 / 12


def test_the_halves_depend_on_the_seed_alone() -> None:
    rng = np.random.default_rng(0)
    action, reward = rng.integers(0, 20, 4000).astype(np.int32), (rng.random(4000) < 0.3).astype(float)
    one, again, other = (best_of(action, reward, 20, upper=1.0, alpha=0.05, seed=seed) for seed in (1, 1, 2))
    assert (one.value, one.by_halves) == (again.value, again.by_halves)
    assert one.value.estimate != other.value.estimate
    assert (one.value.low, one.value.high) == (other.value.low, other.value.high)


def test_it_is_the_value_of_the_actions_that_the_halves_chose_hardly_below_the_best() -> None:
    rng, runs = np.random.default_rng(3), 400
    means = np.linspace(0.2, 0.3, 8)
    sizes = [400, 60, 900, 200, 150, 700, 300, 80]
    off, chosen = [], []
    for seed in range(runs):
        arms = [SparseRewards.of((rng.random(n) < mean).astype(float)) for n, mean in zip(sizes, means, strict=True)]
        best = best_fixed_action(arms, upper=1.0, alpha=0.05, seed=seed)
        chosen.append(means[list(best.by_halves)].mean())
        off.append(best.value.estimate - chosen[-1])
    assert abs(np.mean(off)) < 4 * np.std(off, ddof=1) / runs**0.5
    assert 0.0 < means.max() - np.mean(chosen) < 0.03


def test_a_rare_action_is_not_first_for_one_conversion() -> None:
    # Two displays, one of them converted, against thousands at .3: order by means alone would put it first.
    rng = np.random.default_rng(4)
    arms = [SparseRewards.of((rng.random(3000) < rate).astype(float)) for rate in (0.25, 0.3, 0.2)]
    best = best_fixed_action([*arms, SparseRewards.of([1.0, 0.0])], upper=1.0, alpha=0.05)
    assert (best.action, best.by_halves) == (1, (1, 1))
    assert int(np.nanargmax(best.values)) == 3


def test_where_no_action_is_shown_twice_there_is_no_estimate() -> None:
    best = best_fixed_action([SparseRewards.of([x]) for x in (0.0, 1.0, 1.0)], upper=1.0, alpha=0.05)
    assert math.isnan(best.value.estimate)
    assert (best.value.low, best.value.high, best.by_halves) == (0.0, 1.0, (-1, -1))


def test_an_estimate_outside_is_moved_to_the_end_of_the_interval() -> None:
    # Of actions shown twice, the half that has the reward puts one first, and the other finds nothing there.
    sure, twice = SparseRewards.of(np.full(20_000, 0.5)), [SparseRewards.of([1.0, 0.0])] * 5
    found = [best_fixed_action([sure, *twice], upper=1.0, alpha=0.05, seed=seed) for seed in range(20)]
    assert {best.value.estimate for best in found} == {found[0].value.low}
    # The action shown for sure earns no less than that.
    assert 0.499 < found[0].value.low < 0.5
    assert 0 not in found[0].by_halves
