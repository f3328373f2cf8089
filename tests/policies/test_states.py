"""Round by round, a policy's numbers are its twin's: what the same displays could hide, sums and indices show.

Arms are forced, not chosen, so that states are reached that the policy itself would seldom visit. The kernels run
interpreted here; test_contract shows that they compute the same when compiled.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from evaluator.policies import dispatch
from evaluator.policies.base import NO_WINDOW, Setting
from evaluator.policies.registry import resolve
from tests.crossed import crossed
from tests.policies.rounds import Layout, random_rounds, setting_for
from tests.policies.variants import (
    ARRIVED,
    CDFS,
    DELAYED,
    DELAYED_DRAWS,
    DISCARDING,
    INDEX,
    LAYOUTS,
    LINEAR,
    ONLINE,
    PATIENT,
    QUEUED,
    WAITING,
    WINDOWED,
)
from tests.twins import TWINS
from tests.twins.delayed import DelayedTwin, DiscardingTwin
from tests.twins.elimination import ImprovedUCBTwin
from tests.twins.history import Floats, Twin, lowest_best
from tests.twins.linear import LinearTwin, LinTSTwin, inverse_of
from tests.twins.otf import OTFLinUCBTwin
from tests.twins.patient import AdaptPatientTwin, PatientTwin
from tests.twins.queues import QPMDTwin
from tests.twins.thompson import DelayedThompsonTwin

ROUNDS = 100
# Numbers up to about 100 after 100 updates of relative error 2^-53 each, and bisection to 1e-15: 1e-12 at the most.
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


def walk(spec: str, layout: Layout, compare: Any, **told: Any) -> None:
    """Feed a state and its twin the same random arms and conversions, and compare them before each display."""
    rounds = random_rounds(layout, ROUNDS, mean_delay=3.0, kept=1.0, seed=11)
    setting = setting_for(rounds, **told)
    policy = resolve(spec)
    state, twin = policy.start(setting), TWINS[policy.name](setting, **policy.parameters)
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    due: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for t in range(ROUNDS):
        vectors = rounds.vectors[t % len(rounds.vectors)]
        dispatch.begin(state, ours)
        twin.begin(theirs)
        compare(state, twin, vectors)
        dispatch.shown(state, vectors, int(rounds.action[t]))
        twin.displayed(vectors, int(rounds.action[t]))
        for c in range(rounds.first_conversion[t], rounds.first_conversion[t + 1]):
            if rounds.delay[c] <= setting.window:
                due[t + int(rounds.delay[c])].append((t, c))
        for s, c in due[t]:
            arm, value = int(rounds.action[s]), float(rounds.value[c])
            shown = rounds.vectors[s % len(rounds.vectors)]
            vector = shown[arm] if len(shown) > 1 else shown[0]
            dispatch.told(state, vector, arm, t - s, value)
            twin.converted(vector, arm, t - s, value)
    assert len(twin.conversions) > 5
    assert np.bincount(twin.actions, minlength=setting.n_actions).min() > 5


def same_indices(state: Any, twin: Twin, vectors: Floats) -> None:
    ours = [dispatch.score(state, vectors, k) for k in range(twin.setting.n_actions)]
    np.testing.assert_allclose(ours, twin.scores(vectors), **TOLERANCE)
    if isinstance(twin, DelayedTwin):
        np.testing.assert_allclose(state.exposure.effective, twin.effective(), **TOLERANCE)
        np.testing.assert_array_equal(state.exposure.pulls, twin.pulls())


def same_stored_indices(state: Any, twin: Twin, vectors: Floats) -> None:
    np.testing.assert_allclose(state.indices, twin.scores(vectors), **TOLERANCE)
    assert state.choice[0] == lowest_best(state.indices)


def same_estimates(state: Any, twin: DelayedTwin, vectors: Floats) -> None:
    same_stored_indices(state, twin, vectors)
    np.testing.assert_allclose(state.effective, twin.effective(), **TOLERANCE)
    np.testing.assert_array_equal(state.pulls, twin.pulls())


def same_closed_pulls(state: Any, twin: DiscardingTwin, vectors: Floats) -> None:
    if twin.in_turn():
        assert state.choice[0] == np.argmax(twin.scores(vectors))
    else:
        same_stored_indices(state, twin, vectors)


def same_draws(state: Any, twin: DelayedThompsonTwin, vectors: Floats) -> None:
    np.testing.assert_allclose(state.draws, twin.scores(vectors), **TOLERANCE)
    np.testing.assert_allclose(state.exposure.effective, twin.trials(), **TOLERANCE)


def same_base(state: Any, twin: QPMDTwin, vectors: Floats) -> None:
    assert state.choice[0] == twin.asked
    np.testing.assert_array_equal(state.pulls, twin.base_counts())
    np.testing.assert_allclose(state.rewards, twin.base_rewards(), **TOLERANCE)
    np.testing.assert_allclose(state.indices, twin.base_indices, **TOLERANCE)


def same_survivors(state: Any, twin: ImprovedUCBTwin, vectors: Floats) -> None:
    assert set(np.flatnonzero(state.active)) == twin.active
    assert state.choice[0] == twin.pick


def same_means_within_limits(state: Any, twin: PatientTwin, vectors: Floats) -> None:
    same_stored_indices(state, twin, vectors)
    if isinstance(twin, AdaptPatientTwin):
        np.testing.assert_allclose(state.alpha[0], twin.alpha(), **TOLERANCE)
        for i, k in np.argwhere(state.old > 0):
            mean = twin.mean_within(int(k), int(state.limits[i]))
            np.testing.assert_allclose(state.within[i, k] / state.old[i, k], mean, **TOLERANCE)


def same_regression(state: Any, twin: LinearTwin, vectors: Floats) -> None:
    part = state.optimist if hasattr(state, "optimist") else state.sampler
    np.testing.assert_allclose(part.ridge.theta.ravel(), twin.theta, **TOLERANCE)
    np.testing.assert_allclose(part.ridge.moment.ravel(), twin.moment(), **TOLERANCE)
    np.testing.assert_allclose(block_diagonal(inverse_of(part.ridge)), np.linalg.inv(twin.v), **TOLERANCE)
    assert dispatch.choose(state, vectors) == lowest_best(twin.scores(vectors))
    if isinstance(twin, LinTSTwin):
        np.testing.assert_allclose(part.draw.ravel(), twin.draw, **TOLERANCE)
    if isinstance(twin, OTFLinUCBTwin):
        np.testing.assert_allclose(part.width[0], twin.parameters["alpha"] * twin.width, **TOLERANCE)


def block_diagonal(blocks: Floats) -> Floats:
    n, d, _ = blocks.shape
    out = np.zeros((n * d, n * d))
    for b in range(n):
        out[b * d : (b + 1) * d, b * d : (b + 1) * d] = blocks[b]
    return out


@pytest.mark.parametrize("spec", [s for s in INDEX if resolve(s).name not in ("random", "fixed")])
def test_index_policies(spec: str) -> None:
    walk(spec, "none", same_indices, window=25)


@crossed("spec, cdf, window", DELAYED, CDFS, [0, 1, 2, 15, ROUNDS - 1, ROUNDS, 1000])
def test_delayed_policies(spec: str, cdf: str, window: int) -> None:
    if window < 9 and cdf == "late steps" and "uncensored" not in spec:
        walk(spec, "none", nothing_is_due, window=window, delay_cdf=CDFS[cdf])
    else:
        walk(spec, "none", same_indices, window=window, delay_cdf=CDFS[cdf])


def nothing_is_due(state: Any, twin: DelayedTwin, vectors: Floats) -> None:
    """No step of the CDF lies within the window: N~ stays 0 and pulled arms tie."""
    same_indices(state, twin, vectors)
    assert not state.exposure.effective.any()
    assert state.choice[0] == int(np.argmin(twin.pulls() > 0))


@pytest.mark.parametrize("window", [0, 1, 2, 15, ROUNDS - 1, ROUNDS, 1000])
@pytest.mark.parametrize("spec", ONLINE)
def test_delayed_policies_that_estimate_the_cdf(spec: str, window: int) -> None:
    walk(spec, "none", same_estimates, window=window)


@crossed(
    "spec, cdf, window",
    DISCARDING,
    ["geometric from 0", "steps"],
    [0, 1, 2, 15, ROUNDS - 4, ROUNDS - 1, ROUNDS, NO_WINDOW],
)
def test_discarding_policies(spec: str, cdf: str, window: int) -> None:
    walk(spec, "none", same_closed_pulls, window=window, delay_cdf=CDFS[cdf])


@crossed("spec, cdf, window", DELAYED_DRAWS, CDFS, [0, 15, 1000])
def test_delayed_draws(spec: str, cdf: str, window: int) -> None:
    walk(spec, "none", same_draws, window=window, delay_cdf=CDFS[cdf])


# The queues of a short window hold less than what arms that are forced bring.
@pytest.mark.parametrize("window", [25, ROUNDS - 1, ROUNDS, NO_WINDOW])
@pytest.mark.parametrize("spec", QUEUED)
def test_queued_policies(spec: str, window: int) -> None:
    walk(spec, "none", same_base, window=window)


def test_elimination() -> None:
    walk("improved-ucb", "none", same_survivors, window=25)


@pytest.mark.parametrize("window", [0, 1, 5, 25, NO_WINDOW])
@pytest.mark.parametrize("spec", PATIENT)
def test_patient_policies(spec: str, window: int) -> None:
    walk(spec, "none", same_means_within_limits, window=window)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spec", LINEAR)
def test_linear_policies(spec: str, layout: Layout) -> None:
    walk(spec, layout, same_regression, window=25)


@crossed("spec, layout, window", WINDOWED, LAYOUTS, [0, 15, 1000])
def test_windowed_policies(spec: str, layout: Layout, window: int) -> None:
    walk(spec, layout, same_regression, window=window)


@crossed("spec, layout, window", WAITING, LAYOUTS, [0, 1, 15])
def test_waiting_policies(spec: str, layout: Layout, window: int) -> None:
    walk(spec, layout, same_regression, window=window)


@crossed("spec, layout, window", ARRIVED, LAYOUTS, [0, 1, 15, 1000])
def test_arrived_policies(spec: str, layout: Layout, window: int) -> None:
    walk(spec, layout, same_regression, window=window)


def test_the_walk_compares_something() -> None:
    """A twin with another parameter is told apart, so that agreement above means something."""

    def with_another_window(state: Any, twin: Twin, vectors: Floats) -> None:
        twin.setting = Setting(n_actions=4, window=14, delay_cdf=CDFS["geometric from 0"])
        same_indices(state, twin, vectors)

    with pytest.raises(AssertionError):
        walk(DELAYED[0], "none", with_another_window, window=15, delay_cdf=CDFS["geometric from 0"])
