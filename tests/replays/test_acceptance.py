"""A replay says when it accepted other than it should, or when actions are not shown as their propensities say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.log import Log
from tests.logs import bernoulli_log, build_log, linear_log

ACCEPTED, SHOWN = "displays were accepted instead of the", "The mean of 1/propensity over all displays is"
N = 20_000


def log_of(action: Any, p: Any, **more: Any) -> Log:
    n = len(action)
    converted = np.flatnonzero(np.random.default_rng(1).random(n) < 0.1)
    return build_log(
        time=more.pop("time", np.arange(n)), action=action, propensity=p, n_actions=int(np.max(action)) + 1,
        conversion_display=converted, conversion_time=more.pop("converted", converted + 5), **more,
    )  # fmt: skip


def sorted_within_days(*, shuffled: bool) -> Log:
    """Return a log with day stamps; sorted by action within each day unless shuffled."""
    rng = np.random.default_rng(2)
    action, day = rng.integers(0, 4, N), np.sort(rng.integers(0, 20, N))
    order = np.arange(N) if shuffled else np.lexsort((action, day))
    converted = np.flatnonzero(rng.random(N) < 0.1)
    return build_log(
        time=day, action=action[order], n_actions=4, conversion_display=converted, conversion_time=day[converted] + 1
    )


def holed(*, hole: bool) -> Log:
    """Return a log whose last action is never shown in every second context, or is shown there rarely."""
    rng = np.random.default_rng(3)
    context = rng.integers(0, 2, N)
    of_context = np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0] if hole else [0.4, 0.4, 0.2]])[context]
    action = (rng.random((N, 1)) > np.cumsum(of_context, axis=1)).sum(axis=1).clip(0, 2)
    return log_of(action, of_context[np.arange(N), action], context=np.eye(5)[context])


def mistaken(*, right: bool) -> Log:
    """Return a log whose propensities are those of another policy."""
    truth = np.array([0.5, 0.3, 0.2])
    action = np.random.default_rng(4).choice(3, N, p=truth)
    return log_of(action, (truth if right else np.array([0.4, 0.3, 0.3]))[action])


def said(log: Log, policy: str, **options: Any) -> str:
    return " ".join(replay(log, policy, **options).warnings)


@pytest.mark.parametrize(("propensity", "sampler"), [("uniform", "keep"), ("uniform", "rejection"), ("absent", "keep")])
def test_order_within_ties_is_found(propensity: str, sampler: str) -> None:
    for shuffled in (False, True):
        log = sorted_within_days(shuffled=shuffled).with_meta(propensity=propensity)
        found = said(log, "random", sampler=sampler)
        assert (ACCEPTED in found and "sorted by action" in found) != shuffled


@pytest.mark.parametrize(("policy", "sampler"), [("random", "keep"), ("random", "rejection"), ("linucb", "rejection")])
def test_a_hole_in_the_overlap_is_found(policy: str, sampler: str) -> None:
    found = said(holed(hole=True), policy, sampler=sampler)
    assert ACCEPTED in found
    # Half the displays are of the contexts that never show it.
    assert abs(float(found.split(SHOWN)[1].split()[0]) - 0.5) < 4 * (0.5 * 3 / N) ** 0.5
    assert "for action a2, where right" in found
    assert said(holed(hole=False), policy, sampler=sampler) == ""


@pytest.mark.parametrize("sampler", ["keep", "rejection"])
def test_propensities_of_another_policy_are_found(sampler: str) -> None:
    found = said(mistaken(right=False), "random", sampler=sampler)
    assert ACCEPTED in found
    assert "While the policy chose action a2" in found
    assert SHOWN in found
    assert "for action a2" in found.split(SHOWN)[1]
    assert said(mistaken(right=True), "random", sampler=sampler) == ""


def test_a_queue_accepts_nothing_by_chance_but_its_propensities_are_tested() -> None:
    found = said(mistaken(right=False), "random", sampler="queue")
    assert ACCEPTED not in found
    assert SHOWN in found


def test_an_action_that_is_no_longer_shown_is_named() -> None:
    rng = np.random.default_rng(5)
    action = np.where(np.arange(N) < N // 2, rng.integers(0, 3, N), rng.integers(0, 2, N))
    found = said(log_of(action, None).with_meta(propensity="absent"), "fixed:action=2")
    # The displays after its last one were read in vain, and count.
    assert f"While the policy chose action a2, {np.sum(action == 2):,} of {N:,}" not in found
    assert ACCEPTED in found  # of its share of the log all was accepted in the end, but too much of it too soon
    found = said(log_of(action, np.full(N, 1 / 3)), "fixed:action=2")
    assert f"While the policy chose action a2, {np.sum(action == 2):,} of {N:,}" in found


def test_the_expected_acceptance_is_told() -> None:
    log = bernoulli_log(4000, [0.3, 0.5], mean_delay=5.0, seed=1, logger=[0.8, 0.2])
    result = replay(log, "random", sampler="rejection")
    assert result.acceptance_expected == pytest.approx(0.2)
    # Waits for a and b are 1/.8 and 1/.2 displays on average.
    result = replay(log, "random", sampler="keep")
    assert abs(result.acceptance_expected - 2 / (1 / 0.8 + 1 / 0.2)) < 0.02
    assert math.isnan(replay(log, "random", sampler="queue").acceptance_expected)
    assert math.isnan(replay(log, "random", sampler="rejection", accept_quantile=0.5).acceptance_expected)
    assert replay(log, "random", sampler="queue").to_dict()["acceptance_expected"] is None


def test_a_logger_that_reads_the_context_is_clean() -> None:
    log = linear_log(N, n_actions=4, dimension=5, mean_delay=5.0, seed=6, temperature=0.3)
    assert said(log, "otflinucb", window=50) == ""


@pytest.mark.parametrize("propensity", [None, "estimate"])
@pytest.mark.parametrize("policy", ["fixed:action=2", "ucb1"])
@pytest.mark.parametrize("shown", ["always", "late", "early"])
def test_an_action_of_half_the_time_is_found_although_its_share_is_right_in_the_end(
    shown: str, policy: str, propensity: str | None
) -> None:
    rng, at = np.random.default_rng(7), np.arange(N)
    there = {"always": at >= 0, "late": at >= N // 2, "early": at < N // 2}[shown]
    action = np.where(there, rng.integers(0, 3, N), rng.integers(0, 2, N))
    log = log_of(action, np.full(N, 1 / 3)).with_meta(propensity="absent")
    assert (ACCEPTED in said(log, policy, propensity=propensity)) == (shown != "always")


def test_propensities_that_follow_the_context_are_not_replaced_in_silence() -> None:
    log = holed(hole=False)
    word = "replaces logged propensities that change from display to display"
    assert word in said(log, "ucb1", propensity="estimate")
    assert word not in said(log, "ucb1")
    assert word not in said(mistaken(right=True), "ucb1", propensity="estimate")


def test_propensities_next_to_zero_are_no_sum_to_be_warned_of_by_numpy() -> None:
    log = mistaken(right=True)
    p = np.array(log.column("propensity"))
    p[17] = 1e-300
    assert replay(log_of(log.column("action"), p), "random", sampler="keep").rounds > 0
