"""A choice of actions where each display has its own eligible ones: values are of the displays at which one was."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from evaluator import check, replay
from evaluator.datasets import convert, load
from evaluator.log import Log
from tests.logs import build_log
from tests.parts import stored

N, RUNS = 40_000, 12
OFTEN = (0.5, 0.5, 0.3, 0.6, 0.6, 0.6)
SCORES = np.array([[1.0, 2.0, 0.5, 3.0, 1.0, 0.3], [2.0, 1.0, 1.0, 0.5, 0.5, 3.0]])
RATES = np.array([[0.5, 0.3, 0.2, 0.1, 0.1, 0.1], [0.4, 0.35, 0.15, 0.2, 0.1, 0.1]])


class Truth(NamedTuple):
    """What is true of the displays at which one of the first three actions was eligible."""

    order: float  # value of the order 0, 1, 2
    choosable: float  # their share
    size: float  # mean number of these three that were eligible there


def world(seed: int, *, uniform: bool = False) -> tuple[Log, Truth]:
    """A logger that prefers other actions in each of two contexts, or none, among sets drawn at random."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, N)
    eligible = rng.random((N, 6)) < OFTEN
    eligible[np.arange(N), rng.integers(3, 6, N)] = True
    p = eligible * (1.0 if uniform else SCORES[x])
    p /= p.sum(axis=1, keepdims=True)
    action = (rng.random(N)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 5)
    shown = np.flatnonzero(rng.random(N) < RATES[x, action])
    log = build_log(
        time=np.arange(N), action=action, propensity=None if uniform else p[np.arange(N), action], n_actions=6,
        eligible=eligible,
        context=np.column_stack([np.ones(N), 2.0 * x - 1.0]) / np.sqrt(2.0),
        conversion_display=shown, conversion_time=shown + rng.geometric(0.01, len(shown)),
    )  # fmt: skip
    some = eligible[:, :3].any(axis=1)
    first = eligible[some][:, :3].argmax(axis=1)
    return log, Truth(
        float(RATES[x[some], first].mean()), float(some.mean()), float(eligible[some][:, :3].sum(1).mean())
    )


def off(found: list[float]) -> float:
    """How many standard errors the mean is off 0."""
    return float(np.mean(found) / np.std(found, ddof=1) * np.sqrt(len(found)))


def test_the_best_order_is_valued_where_it_has_a_choice(tmp_path: Path) -> None:
    right, of_all, plain = [], [], []
    for seed in range(RUNS):
        log, truth = world(seed)
        chosen = stored(log, tmp_path / str(seed), actions="a0,a1,a2")
        found = replay(chosen, "random", seed=seed).best_fixed_action.value
        assert found.low < truth.order < found.high
        right.append(found.estimate - truth.order)
        # As if displays without any of the three had earned nothing.
        of_all.append(found.estimate * truth.choosable - truth.order)
        first = chosen.column("eligible") & 7
        mine = chosen.column("action") == np.array([9, 0, 1, 0, 2, 0, 1, 0])[first[:, 0]]
        rewarded = np.isin(np.arange(len(chosen)), chosen.conversions["display_id"].to_numpy())
        plain.append(float(rewarded[mine].mean()) - truth.order)
    assert abs(off(right)) < 4
    assert off(of_all) < -5
    assert abs(off(plain)) > 5


def test_a_choice_of_a_uniform_log_is_valued_on_the_traffic_too(tmp_path: Path) -> None:
    right, of_the_kept = [], []
    for seed in range(RUNS):
        log, truth = world(300 + seed, uniform=True)
        chosen = stored(log, tmp_path / str(seed), actions="a0,a1,a2")
        found = replay(chosen, "random", seed=seed)
        assert not found.warnings
        right.append(found.best_fixed_action.value.estimate - truth.order)
        # One over how many are kept is right given the displays that stayed, most often those that kept most.
        tempting = replay(chosen.with_meta(kept_share=1.0), "random", seed=seed, propensity="uniform")
        of_the_kept.append(tempting.best_fixed_action.value.estimate - truth.order)
    assert abs(off(right)) < 4
    assert off(of_the_kept) > 5


def test_nothing_is_held_against_the_propensities_of_a_choice(tmp_path: Path) -> None:
    fits = []
    for seed in range(RUNS):
        log, truth = world(100 + seed)
        chosen = stored(log, tmp_path / str(seed), actions="a0,a1,a2")
        result = replay(chosen, "linucb", seed=seed)
        assert not result.warnings
        (said,) = (line for line in result.assumptions if "of the traffic that the log stands for" in line)
        size = float(said.split(":")[1].split()[0])
        assert abs(size - truth.size) < 0.05
        fits.append(check(chosen).fit)
        assert not check(chosen.with_meta(kept_share=1.0)).fit
    # False alarms have probability 4 % at most.
    assert fits.count(False) <= 3


@pytest.mark.parametrize("actions", ["a0,a1", "a1,a2"])
def test_to_choose_again_among_chosen_actions_is_to_choose_them_at_once(tmp_path: Path, actions: str) -> None:
    ratios = []
    for seed in range(RUNS):
        log, _ = world(200 + seed)
        at_once = stored(log, tmp_path / f"{seed}", actions=actions)
        convert(tmp_path / f"{seed}", tmp_path / f"{seed} three", actions="a0,a1,a2")
        again = load(tmp_path / f"{seed} three", actions=actions)
        assert len(again) == len(at_once)
        ratios.append(np.log(again.meta.kept_share / at_once.meta.kept_share))
    # How many displays had such a set is then estimated, not counted: without bias, and closely.
    assert abs(off(ratios)) < 4
    assert np.abs(ratios).max() < 0.03
