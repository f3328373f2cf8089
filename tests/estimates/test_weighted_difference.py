"""Paired weighted differences: against plain loops, against known truth, and where they conclude nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.standard_errors import NEEDED
from evaluator.estimates.weighted import snips
from evaluator.estimates.weighted_difference import NEEDED_OF_MONEY, Influence, influence, paired_values
from tests.bench.weighted_differences import World

Z = 1.959963984540054


def drawn(n: int, seed: int, *, rate: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rewards, propensities, and the probabilities of two policies for what was shown."""
    rng = np.random.default_rng(seed)
    p, a, b = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7]), np.array([0.6, 0.3, 0.1])
    shown = rng.choice(3, n, p=p)
    reward = (rng.random(n) < rate * np.array([0.5, 1.0, 1.5])[shown]).astype(float)
    return reward, p[shown], a[shown], b[shown]


def skewed(n: int = 4_000, seed: int = 2) -> tuple[np.ndarray, Influence, Influence]:
    reward, p, a, _ = drawn(n, seed, rate=0.05)
    return reward, influence(reward, a / p), influence(reward, None)


@pytest.mark.parametrize("against_logger", [True, False])
def test_the_formula_in_plain_loops(against_logger: bool) -> None:
    reward, p, a, b = drawn(500, 1)
    n, of_a, of_b = 500, a / p, np.ones(500) if against_logger else b / p
    value_a = sum(of_a[i] * reward[i] for i in range(n)) / sum(of_a)
    value_b = sum(of_b[i] * reward[i] for i in range(n)) / sum(of_b)
    terms = [
        of_a[i] * (reward[i] - value_a) / (sum(of_a) / n) - of_b[i] * (reward[i] - value_b) / (sum(of_b) / n)
        for i in range(n)
    ]
    error = math.sqrt(sum(z**2 for z in terms) / (n - 1) / n)
    skewness = sum(z**3 for z in terms) / n / (sum(z**2 for z in terms) / n) ** 1.5
    shift = skewness * (1 + 2 * Z**2) / (6 * math.sqrt(n))
    found = paired_values(reward, influence(reward, of_a), influence(reward, None if against_logger else of_b))
    of = found.difference(0.95)
    assert of.value.estimate == pytest.approx(value_a - value_b, rel=1e-12)
    assert of.standard_error == pytest.approx(error, rel=1e-9)
    # Each end is the wider one of the normal interval's and of that shifted by the skewness.
    assert of.value.low == pytest.approx(value_a - value_b - error * (Z - min(shift, 0)), rel=1e-9)
    assert of.value.high == pytest.approx(value_a - value_b + error * (Z + max(shift, 0)), rel=1e-9)
    assert of.skewness == pytest.approx(skewness, rel=1e-9)
    assert of.low_known
    assert of.high_known


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_value_is_the_error_at_which_an_end_is_0(clustered: bool, sign: int) -> None:
    reward, a, b = skewed()
    found = paired_values(
        reward, *((a, b) if sign > 0 else (b, a)), clusters=np.arange(4_000) // 4 if clustered else None
    )
    p = found.difference(0.95).p
    assert 0 < p < 0.2
    of = found.difference(1 - p).value
    nearest = of.low if of.estimate > 0 else of.high
    assert abs(nearest) < 1e-6 * abs(of.estimate)


def test_a_difference_seen_from_the_other_side() -> None:
    reward, a, b = skewed()
    one, other = paired_values(reward, a, b).difference(0.9), paired_values(reward, b, a).difference(0.9)
    assert one.turned().value == other.value
    assert (one.turned().p, one.turned().skewness) == pytest.approx((other.p, other.skewness))
    assert -one.value.low + one.value.estimate != one.value.high - one.value.estimate


def test_the_same_policy_differs_by_nothing_and_a_look_alike_is_measured() -> None:
    reward, p, a, _ = drawn(2_000, 3)
    other = a.copy()
    same = paired_values(reward, influence(reward, a / p), influence(reward, other / p * (1 + 1e-13))).difference(0.95)
    assert (same.value.estimate, same.value.low, same.value.high, same.value.n, same.p) == (0, 0, 0, 0, 1)
    other[:100] *= 0.99
    near = paired_values(reward, influence(reward, a / p), influence(reward, other / p)).difference(0.95)
    assert near.value.n == 2_000
    assert near.value.low < near.value.high


def test_rewards_are_counted_on_the_weights_of_the_target_not_on_the_differences() -> None:
    """A rule that shows a rare action: the log has hundreds of rewards, and few of them are the rule's."""
    rng = np.random.default_rng(4)
    rare = rng.random(20_000) < 0.01
    reward = (rng.random(20_000) < 0.05).astype(float)
    own = influence(reward, rare / 0.01)
    found = paired_values(reward, own, influence(reward, None)).difference(0.95)
    assert found.rewards < NEEDED < reward.sum()
    assert math.isnan(found.value.estimate)
    assert "25 are needed" in found.withheld
    assert found.rewards == pytest.approx(snips(reward, rare * 1.0, np.where(rare, 0.01, 0.99)).rewards, rel=1e-9)


def test_money_concludes_nothing_from_the_end_of_its_long_tail_before_it_has_rewards_enough() -> None:
    known = {}
    for n in (20_000, 400_000):
        rng = np.random.default_rng(5)
        shown = rng.integers(0, 5, n)
        reward = (rng.random(n) < 0.2) * rng.lognormal(0.0, 1.0, n)
        of = influence(reward, (shown == 0) / 0.2), influence(reward, None)
        found = paired_values(reward, *of).difference(0.95)
        assert found.skewness > 0
        known[n] = found.rewards, found.low_known, found.high_known
        turned = paired_values(reward, *reversed(of)).difference(0.95)
        assert (turned.low_known, turned.high_known) == (found.high_known, found.low_known)
        ones = (reward > 0).astype(float)
        alike = paired_values(ones, influence(ones, (shown == 0) / 0.2), influence(ones, None)).difference(0.95)
        assert alike.low_known
        assert alike.high_known
    assert NEEDED < known[20_000][0] < NEEDED_OF_MONEY < known[400_000][0]
    assert known[20_000][1:] == (True, False)
    assert known[400_000][1:] == (True, True)


def test_displays_of_one_user_count_together_and_few_users_tell_nothing() -> None:
    reward, p, a, _ = drawn(400, 6)
    copies = np.repeat(np.arange(400), 9)
    weight = a / p
    alone = paired_values(reward, influence(reward, weight), influence(reward, None), clusters=np.arange(400))
    nine = paired_values(
        reward[copies], influence(reward[copies], weight[copies], clusters=copies), influence(reward[copies], None),
        clusters=copies,
    )  # fmt: skip
    assert nine.difference(0.95).value.low == pytest.approx(alone.difference(0.95).value.low, rel=1e-9)
    assert nine.difference(0.95).value.high == pytest.approx(alone.difference(0.95).value.high, rel=1e-9)
    few = paired_values(reward, influence(reward, weight), influence(reward, None), clusters=np.arange(400) % 5)
    assert "too few clusters" in few.difference(0.95).withheld


def test_weights_that_are_not_the_policys_give_no_difference() -> None:
    reward, p, a, _ = drawn(4_000, 7)
    right = paired_values(reward, influence(reward, a / p), influence(reward, None)).difference(0.95)
    wrong = paired_values(reward, influence(reward, a / p * 0.8), influence(reward, None)).difference(0.95)
    assert right.given
    assert "the mean weight is 0.8" in wrong.withheld
    never = paired_values(reward, influence(reward, np.zeros(4_000)), influence(reward, None)).difference(0.95)
    assert "no reward tells it" in never.withheld


@pytest.mark.parametrize(
    "world", [World(n=2_000, rate=0.2, target="best"), World(n=1_500, rate=0.2, target="soft", users=6)]
)
def test_intervals_hold_on_logs_of_known_truth(world: World) -> None:
    errors, held, logs = [], 0, 300
    for seed in range(logs):
        log = world.draw(seed)
        own = influence(log.reward, log.a / log.propensity, clusters=log.clusters)
        of = paired_values(log.reward, own, influence(log.reward, None), clusters=log.clusters).difference(0.95).value
        errors.append(of.estimate - world.truth())
        held += of.low <= world.truth() <= of.high
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(logs)
    assert abs(held / logs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / logs)
