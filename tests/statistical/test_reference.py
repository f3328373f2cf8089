"""The reference of the regret is no better than the best action: in whole replays, on tidy and on untidy logs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.log import Log
from tests.logs import bernoulli_log, linear_log
from tests.untidy.defects import rows_of
from tests.untidy.settings import HOUR_S, Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards, value_of_fixed
from tests.untidy.writing import as_log

RUNS = 40
K = 12
# The value of a fixed action of the linear scenario, the same for all by symmetry: E of a mean of unit vectors.
_VECTORS = np.random.default_rng(3).random((400_000, 3))
LINEAR = float((_VECTORS.sum(axis=1) / np.linalg.norm(_VECTORS, axis=1)).mean() / 3**0.5)
REVENUE = Untidy(displays=4000, means=(0.3,) * K, mean_values=(20.0,) * K, log_sd=1.0)
LAUNCHES = Untidy(displays=4000, means=(0.3,) * K, launches=(0.0,) * (K // 2) + (0.8,) * (K // 2), attribution_s=HOUR_S)


def many_alike(seed: int) -> tuple[Log, float]:
    return bernoulli_log(6000, [0.1] * 60, mean_delay=20.0, seed=seed), 0.1


def uneven_logger(seed: int) -> tuple[Log, float]:
    """Return a log whose logger follows the context, so that its displays are thinned."""
    return linear_log(4000, n_actions=K, dimension=3, mean_delay=20.0, seed=seed, temperature=0.5), LINEAR


def untidy(what: Untidy) -> Callable[[int], tuple[Log, float]]:
    def made(seed: int) -> tuple[Log, float]:
        traffic = draw_traffic(what, seed)
        log, of = as_log(traffic, rows_of(traffic, seed))
        return log, value_of_fixed(expected_rewards(traffic), of, 0)

    return made


@pytest.mark.parametrize(
    "make", [many_alike, uneven_logger, untidy(REVENUE), untidy(LAUNCHES)], ids=["alike", "logger", "revenue", "launch"]
)
def test_alike_actions_have_their_own_value_as_reference(make: Callable[[int], tuple[Log, float]]) -> None:
    off, largest, held = [], [], []
    for seed in range(RUNS):
        log, truth = make(seed)
        best = replay(log, "random", sampler="keep", seed=seed).best_fixed_action.value
        off.append(best.estimate / truth - 1.0)
        largest.append(largest_mean(log) / truth - 1.0)
        held.append(best.low <= min(truth, best.estimate) <= max(truth, best.estimate) <= best.high)
    bound = 4 * np.std(off, ddof=1) / RUNS**0.5
    assert abs(np.mean(off)) < bound
    assert np.mean(largest) > max(bound, 4 * np.std(largest, ddof=1) / RUNS**0.5)
    # At half the error of the regret's interval.
    assert np.mean(held) >= 0.975 - 4 * (0.975 * 0.025 / RUNS) ** 0.5


def largest_mean(log: Log) -> float:
    """Return the largest mean reward of any action over the log, each display weighed by 1 / propensity."""
    action, weight = log.column("action"), 1.0 / log.column("propensity")
    earned = np.zeros(len(log))
    of = log.conversions["display_id"].to_numpy()
    np.add.at(earned, of, log.conversions["value"].to_numpy())
    shown = np.bincount(action, weight)
    return float((np.bincount(action, weight * earned) / shown).max())


def test_regret_against_many_alike_actions_is_nothing() -> None:
    results = [replay(many_alike(seed)[0], "random", sampler="keep", seed=seed) for seed in range(RUNS)]
    share = np.array([r.regret.estimate / r.rounds / 0.1 for r in results])
    assert abs(share.mean()) < 4 * share.std(ddof=1) / RUNS**0.5
    assert all(r.regret.low <= 0.0 <= r.regret.high for r in results)
