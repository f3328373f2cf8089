"""IPS, SNIPS and DR: against plain loops, against obp where it is installed, and against a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.errors import DataError, ParameterError
from evaluator.estimates.standard_errors import NEEDED, equal_rewards
from evaluator.estimates.weighted import doubly_robust, ips, mean_value, snips, weights_of

K = 5


def logged(n: int, seed: int, *, logger: str = "context") -> dict[str, np.ndarray]:
    """Return displays of one of three contexts, and all that is known about them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, n)
    rate = np.random.default_rng(1).uniform(0.1, 0.9, (3, K))
    target = np.random.default_rng(2).dirichlet(np.ones(K), 3)
    p = np.full((3, K), 1 / K) if logger == "uniform" else np.random.default_rng(3).dirichlet(np.full(K, 3.0), 3)
    a = (rng.random((n, 1)) > np.cumsum(p[x], axis=1)).sum(axis=1)
    model = rate + np.random.default_rng(4).normal(0, 0.3, rate.shape)
    return {
        "reward": (rng.random(n) < rate[x, a]).astype(float),
        "target": target[x, a],
        "propensity": p[x, a],
        "model": model[x, a],
        "model_value": (target * model).sum(axis=1)[x],
        "pi": target[x],
        "action": a,
        "q": model[x],
        "truth": np.array((target * rate).sum() / 3),
    }


def three(of: dict[str, np.ndarray]) -> tuple:
    first = (of["reward"], of["target"], of["propensity"])
    return ips(*first), snips(*first), doubly_robust(*first, of["model"], of["model_value"])


def test_the_formulas_in_plain_loops() -> None:
    of = logged(1000, 5)
    n, weighted, total, robust = 1000, 0.0, 0.0, 0.0
    terms, robust_terms = [], []
    for i in range(n):
        w = of["pi"][i][of["action"][i]] / of["propensity"][i]
        model_value = sum(of["pi"][i][k] * of["q"][i][k] for k in range(K))
        terms.append(w * of["reward"][i])
        robust_terms.append(model_value + w * (of["reward"][i] - of["q"][i][of["action"][i]]))
        weighted, total, robust = weighted + terms[-1], total + w, robust + robust_terms[-1]
    values = (weighted / n, weighted / total, robust / n)
    of_snips = [(of["target"][i] / of["propensity"][i]) * (of["reward"][i] - values[1]) / (total / n) for i in range(n)]
    for found, value, parts in zip(three(of), values, (terms, of_snips, robust_terms), strict=True):
        mean = sum(parts) / n
        error = math.sqrt(sum((part - mean) ** 2 for part in parts) / (n - 1) / n)
        assert found.value.estimate == pytest.approx(value, rel=1e-12)
        assert found.standard_error == pytest.approx(error, rel=1e-12)
        z = 1.959963984540054
        assert found.value.high - found.value.low == pytest.approx(2 * z * error, rel=1e-9)
        # Hall 1983: both ends move by the standard error times skewness (1 + 2 z²) / (6 sqrt(n)).
        second, third = (sum((part - mean) ** power for part in parts) / n for power in (2, 3))
        skewness = third / second**1.5
        middle = value + error * skewness * (1 + 2 * z**2) / (6 * math.sqrt(n))
        assert (found.value.high + found.value.low) / 2 == pytest.approx(middle, rel=1e-9)
        kind = "asymptotic normal, shifted for skewness"
        assert (found.value.n, found.value.level, found.value.kind) == (n, 0.95, kind)


def test_obp_gives_the_same_values() -> None:
    obp = pytest.importorskip("obp.ope", reason="obp is not installed: it needs Python below 3.11")
    of = logged(1000, 6)
    common = {
        "reward": of["reward"],
        "action": of["action"],
        "pscore": of["propensity"],
        "action_dist": of["pi"][:, :, None],
        "position": np.zeros(1000, int),
    }
    theirs = (
        obp.InverseProbabilityWeighting().estimate_policy_value(**common),
        obp.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**common),
        obp.DoublyRobust().estimate_policy_value(**common, estimated_rewards_by_reg_model=of["q"][:, :, None]),
    )
    for found, value in zip(three(of), theirs, strict=True):
        assert found.value.estimate == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("logger", ["uniform", "context"])
def test_unbiased_and_covering_over_many_logs(logger: str) -> None:
    runs = 600
    logs = [logged(1500, 100 + run, logger=logger) for run in range(runs)]
    truth = float(logs[0]["truth"])
    for found in zip(*map(three, logs), strict=True):
        estimates = np.array([f.value.estimate for f in found])
        assert abs(estimates.mean() - truth) < 4 * estimates.std(ddof=1) / math.sqrt(runs)
        # Standard errors say what the estimates' spread is, whose own relative error is 1 / sqrt(2 runs).
        said = math.sqrt(np.mean([f.standard_error**2 for f in found]))
        assert abs(said / estimates.std(ddof=1) - 1) < 4 / math.sqrt(2 * runs)
        covered = np.mean([f.value.low <= truth <= f.value.high for f in found])
        assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


def test_a_good_model_makes_dr_more_precise_and_none_makes_it_ips() -> None:
    of = logged(5000, 7)
    inverse, _, robust = three(of)
    assert robust.standard_error < inverse.standard_error
    zeros = np.zeros(5000)
    assert doubly_robust(of["reward"], of["target"], of["propensity"], zeros, zeros) == inverse


def test_weights_of_the_logger_itself_are_one() -> None:
    of = logged(300, 8)
    found = weights_of(of["propensity"], of["propensity"])
    assert (found.mean, found.effective_sample_size, found.largest, found.calibrated) == (1.0, 300.0, 1.0, True)
    assert ips(of["reward"], of["propensity"], of["propensity"]) == mean_value(of["reward"])


def test_wrong_propensities_show_in_the_mean_weight() -> None:
    of = logged(2000, 9)
    assert weights_of(of["target"], of["propensity"]).calibrated
    wrong = weights_of(of["target"], of["propensity"] / 2)
    assert not wrong.calibrated
    assert wrong.mean > 1.5


def test_no_displays_and_no_weight_are_nan_not_zero() -> None:
    nothing = ips([], [], [])
    assert math.isnan(nothing.value.estimate)
    assert math.isnan(nothing.value.low)
    assert nothing.value.n == 0
    assert weights_of([], []).effective_sample_size == 0
    assert math.isnan(snips([1.0, 1.0], [0.0, 0.0], [0.5, 0.5]).value.estimate)
    assert math.isnan(ips([1.0], [1.0], [0.5]).standard_error)


@pytest.mark.parametrize("rewards", [0, 1, 10, 24, 26, 60])
def test_below_so_many_rewards_nothing_is_given(rewards: int) -> None:
    reward = np.zeros(10_000)
    reward[:rewards] = 1.0
    half = np.full(10_000, 0.5)
    model = np.full(10_000, rewards / 10_000)
    for found in (ips(reward, half, half), snips(reward, half, half), doubly_robust(reward, half, half, model, model)):
        assert found.rewards == pytest.approx(rewards, rel=0.02)
        assert found.given == (rewards > NEEDED)
        numbers = (found.value.estimate, found.value.low, found.value.high, found.standard_error)
        assert all(map(math.isfinite, numbers)) == found.given
        assert found.given or str(NEEDED) in found.withheld


def test_what_could_have_been_seen_counts_too() -> None:
    # Four displays in 20,000 are worth 500 others each, and none of them happened to convert.
    reward, weight = np.zeros(20_000), np.ones(20_000)
    reward[:1000], weight[-4:] = 1.0, 500.0
    assert equal_rewards(np.ones(20_000), reward, reward) > 900
    found = ips(reward, weight / 1000, np.full(20_000, 1 / 1000))
    # By what was seen alone it would pass: a thousand rewards of weight 1.
    assert found.skewness**2 * NEEDED < 20_000
    assert not found.given
    assert found.rewards < 1


def test_failures_count_where_conversions_are_the_rule() -> None:
    reward, half = np.ones(10_000), np.full(10_000, 0.5)
    reward[:10] = 0.0
    assert ips(reward, half, half).rewards == pytest.approx(10, rel=0.02)
    assert equal_rewards(np.ones(100), np.ones(100), np.ones(100)) == 0.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1.0], [1.5], [0.5]), r"target\[0\] is 1.5"),
        (([1.0, 1.0], [0.5, 0.5], [0.5, 0.0]), r"propensity\[1\] is 0 \(1 such in all\)"),
        (([1.0, 1.0], [0.5, 0.5], [0.5]), r"propensity has shape \(1,\)"),
        (([1.0], [0.5, 0.5], [0.5, 0.5]), r"reward has shape \(1,\)"),
    ],
)
def test_impossible_numbers_are_refused(arguments: tuple, said: str) -> None:
    with pytest.raises(DataError, match=said):
        ips(*arguments)


def test_an_impossible_level_is_refused() -> None:
    with pytest.raises(ParameterError, match="level is 1"):
        ips([1.0, 0.0], [0.5, 0.5], [0.5, 0.5], level=1.0)
