"""N~ kept up round by round is the sum over all pulls of tau_min(m, age)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.kernels.exposure import Exposure, add_pull, start_exposure
from evaluator.policies.base import NO_WINDOW


@st.composite
def step_cdfs(draw: st.DrawFn) -> DelayCDF:
    delays = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=12)))
    counts = draw(st.lists(st.integers(0, 9), min_size=len(delays), max_size=len(delays)))
    total = 1 + sum(counts) + draw(st.integers(0, 3))
    return DelayCDF(delays=np.array(delays), cdf=(1 + np.cumsum(counts)) / total, source="drawn")


@st.composite
def geometric_cdfs(draw: st.DrawFn) -> DelayCDF:
    start = draw(st.sampled_from([0, 1]))
    excess = draw(st.floats(0.01, 1e6))
    return DelayCDF.geometric(start + excess, start=start)


def brute_force(actions: list[int], n_actions: int, window: int, cdf: DelayCDF) -> np.ndarray:
    effective = np.zeros(n_actions)
    for age, action in enumerate(reversed(actions)):
        effective[action] += cdf(min(window, age))
    return effective


def follow(actions: list[int], window: int, horizon: int, cdf: DelayCDF) -> Exposure:
    exposure = start_exposure(3, window, horizon, cdf)
    for t, action in enumerate(actions):
        add_pull(exposure, action)
        expected = brute_force(actions[: t + 1], 3, window, cdf)
        # A sum of at most 120 weights of at most 1, each with a few roundings of 2^-53: 1e-10 is far above.
        np.testing.assert_allclose(exposure.effective, expected, rtol=0, atol=1e-10)
        assert exposure.rounds[0] == t + 1
    return exposure


@st.composite
def runs(draw: st.DrawFn) -> list[int]:
    """Draw pulls that stay with an arm for a while, as those of a policy do."""
    pieces = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), max_size=8))
    return [arm for arm, times in pieces for _ in range(times)][:120]


pulls = st.one_of(st.lists(st.integers(0, 2), max_size=120), runs())
windows = st.one_of(st.integers(0, 60), st.just(NO_WINDOW))
laws = st.one_of(step_cdfs(), geometric_cdfs())


@settings(deadline=None, max_examples=150)
@given(actions=pulls, window=windows, cdf=laws, slack=st.integers(0, 50))
def test_equals_the_sum_over_all_pulls(actions: list[int], window: int, cdf: DelayCDF, slack: int) -> None:
    exposure = follow(actions, window, len(actions) + slack, cdf)
    np.testing.assert_array_equal(exposure.pulls, np.bincount(actions, minlength=3))


@pytest.mark.parametrize("window", [0, 1, 2, 3, 9, 10, 11, 59, 60, 61])
@pytest.mark.parametrize(
    "cdf",
    [
        DelayCDF.geometric(10.0),
        DelayCDF.geometric(10.0, start=1),
        DelayCDF.fixed(0),
        DelayCDF.fixed(10),
        DelayCDF(delays=np.array([0, 2, 10]), cdf=np.array([0.25, 0.5, 0.75]), source="test"),
    ],
    ids=["geometric from 0", "geometric from 1", "at once", "fixed", "steps"],
)
def test_edges_of_the_window(cdf: DelayCDF, window: int) -> None:
    actions = np.random.default_rng(window).integers(0, 3, 60).tolist()
    # Windows below, at and beyond the horizon of 60.
    follow(actions, window, 60, cdf)


def test_memory_is_the_reach_of_the_cdf_not_the_window() -> None:
    steps = DelayCDF(delays=np.array([0, 7]), cdf=np.array([0.5, 0.9]), source="test")
    assert start_exposure(3, NO_WINDOW, NO_WINDOW, steps).history.nbytes <= 8 * 8
    # The next power of two is less than twice as much.
    assert start_exposure(3, NO_WINDOW, 50, DelayCDF.geometric(9.0)).history.nbytes < 2 * 52 * 8


def test_a_hundred_thousand_pulls_do_not_drift() -> None:
    cdf, window, n = DelayCDF.geometric(500.0), 1000, 100_000
    actions = np.random.default_rng(1).integers(0, 3, n)
    exposure = start_exposure(3, window, n, cdf)
    for action in actions:
        add_pull(exposure, int(action))
    weights = cdf(np.minimum(window, np.arange(n)[::-1]))
    expected = [math.fsum(weights[actions == k]) for k in range(3)]
    # Old pulls are counted, and the rounding of the young decays with them: as close as after a hundred.
    np.testing.assert_allclose(exposure.effective, expected, rtol=0, atol=1e-10)


def test_a_hundred_thousand_pulls_in_runs_do_not_drift() -> None:
    n = 100_000
    cdf = DelayCDF.geometric(500.0).coarsened(256, limit=1000)
    rng = np.random.default_rng(2)
    actions = np.repeat(rng.integers(0, 3, n), rng.integers(1, 400, n))[:n]
    exposure = start_exposure(3, 1000, n, cdf)
    for action in actions:
        add_pull(exposure, int(action))
    weights = cdf(np.minimum(1000, np.arange(n)[::-1]))
    expected = [math.fsum(weights[actions == k]) for k in range(3)]
    # At most 256 additions a round, each rounded to 2^-53 of the sum: 4 standard deviations of their total.
    np.testing.assert_allclose(exposure.effective, expected, rtol=4 * math.sqrt(256 * n) * 2**-53, atol=0)
