"""Every compiled policy chooses the displays that its slow twin chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.engine.log_replay import SamplerName, run
from evaluator.policies.base import NO_WINDOW
from evaluator.policies.registry import POLICIES, resolve
from evaluator.policies.user import UserPolicy
from tests.crossed import crossed
from tests.logged_rounds import LoggedRounds
from tests.policies.checks import layouts
from tests.policies.rounds import Layout, random_rounds, setting_for
from tests.policies.variants import (
    ANONYMOUS,
    ARRIVED,
    CDFS,
    DELAYED,
    DELAYED_DRAWS,
    DIAGONAL,
    DISCARDING,
    INDEX,
    LAYOUTS,
    LINEAR,
    ONLINE,
    PATIENT,
    QUEUED,
    REST,
    WAITING,
    WINDOWED,
    WINDOWS,
)
from tests.twins import TWINS, twin_of


def agree(spec: str, rounds: LoggedRounds, *, sampler: SamplerName, **setting: Any) -> None:
    policy = resolve(spec)
    twin = UserPolicy(cls=twin_of(policy.name), parameters=policy.parameters)
    told = setting_for(rounds, **setting)
    fast = run(policy, told, rounds, sampler=sampler, seed=5, batch_size=170)
    slow = run(twin, told, rounds, sampler=sampler, seed=5, batch_size=170)
    np.testing.assert_array_equal(fast.displays, slow.displays)
    assert len(fast.displays) > 50
    for count in ("read", "generated", "delivered", "expired", "pending", "dry"):
        assert getattr(fast, count) == getattr(slow, count)
    assert (fast.expired, fast.delivered, fast.pending) == fates(rounds, fast.displays, told.window)


def fates(rounds: LoggedRounds, displays: npt.NDArray[np.int64], window: int) -> tuple[int, int, int]:
    """Return how many conversions of the accepted displays came too late, in time, and not yet, by definition."""
    expired = delivered = pending = 0
    for t, display in enumerate(displays, start=1):
        for c in range(rounds.first_conversion[display], rounds.first_conversion[display + 1]):
            expired += int(rounds.delay[c] > window)
            delivered += int(rounds.delay[c] <= window and t + rounds.delay[c] <= len(displays))
            pending += int(rounds.delay[c] <= window and t + rounds.delay[c] > len(displays))
    return expired, delivered, pending


def test_every_policy_that_chooses_has_a_twin() -> None:
    # The logging policy follows its log: there is nothing to choose.
    for name in POLICIES:
        assert name == "logging" or twin_of(name)
    assert set(TWINS) <= set(POLICIES), "a twin of no policy: take it out of TWINS"


@pytest.mark.parametrize("sampler", ["keep", "queue"])
@pytest.mark.parametrize("spec", INDEX)
def test_index_policies(spec: str, sampler: SamplerName) -> None:
    agree(spec, random_rounds("none", seed=1), sampler=sampler, window=25)


# Under geometric delays and tiny windows, arms with equally many pulls tie up to rounding: test_states does those.
@crossed(
    "spec, cdf, window",
    DELAYED,
    CDFS,
    WINDOWS,
    unless=lambda spec, cdf, window: CDFS[cdf].geometric_ratio is not None and window < 15,
)
def test_delayed_policies(spec: str, cdf: str, window: int) -> None:
    agree(spec, random_rounds("none", seed=2), sampler="keep", window=window, delay_cdf=CDFS[cdf])


# With a window of 0 all delays seen are 0, and arms tie as often as their counts do.
@pytest.mark.parametrize("window", [w for w in WINDOWS if w > 0])
@pytest.mark.parametrize("spec", ONLINE)
def test_delayed_policies_that_estimate_the_cdf(spec: str, window: int) -> None:
    agree(spec, random_rounds("none", seed=7), sampler="keep", window=window)


@crossed("spec, cdf, sampler", ANONYMOUS, ["steps", "geometric from 0"], ["keep", "queue"])
def test_anonymous_policies(spec: str, cdf: str, sampler: SamplerName) -> None:
    # Enough displays that a phase ends.
    rounds = random_rounds("none", 6000, seed=12)
    agree(spec, rounds, sampler=sampler, window=25, delay_cdf=CDFS[cdf])


# Where no pull is ever due, test_states looks.
@crossed("spec, cdf, window", DISCARDING, CDFS, WINDOWS, unless=lambda spec, cdf, window: CDFS[cdf](window) == 0.0)
def test_discarding_policies(spec: str, cdf: str, window: int) -> None:
    agree(spec, random_rounds("none", seed=8), sampler="keep", window=window, delay_cdf=CDFS[cdf])


@crossed("spec, cdf, window", DELAYED_DRAWS, CDFS, WINDOWS)
def test_delayed_draws(spec: str, cdf: str, window: int) -> None:
    agree(spec, random_rounds("none", seed=9), sampler="keep", window=window, delay_cdf=CDFS[cdf])


@crossed("spec, sampler, window", QUEUED, ["keep", "queue"], WINDOWS)
def test_queued_policies(spec: str, sampler: SamplerName, window: int) -> None:
    agree(spec, random_rounds("none", 300, seed=10), sampler=sampler, window=window)


@pytest.mark.parametrize("n", [200, 2000])
def test_elimination(n: int) -> None:
    agree("improved-ucb", random_rounds("none", n, mean_delay=2.0, seed=11), sampler="queue", window=25)


@pytest.mark.parametrize("window", [15, NO_WINDOW])
@pytest.mark.parametrize("spec", PATIENT)
def test_patient_policies(spec: str, window: int) -> None:
    agree(spec, random_rounds("none", seed=12), sampler="keep", window=window)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spec", LINEAR)
def test_linear_policies(spec: str, layout: Layout) -> None:
    agree(spec, random_rounds(layout, seed=3), sampler="rejection", window=25)


@crossed("spec, layout", DIAGONAL, LAYOUTS)
def test_diagonal_policies(spec: str, layout: Layout) -> None:
    agree(spec, random_rounds(layout, seed=15), sampler="rejection", window=25)


@pytest.mark.parametrize("spec", DIAGONAL)
def test_a_diagonal_is_the_whole_where_each_vector_has_one_element(spec: str) -> None:
    # Of a category a context is, and of a number whose unit says where it stands.
    # As long as the vectors of other tests: each length is compiled for.
    rounds = random_rounds("contexts", seed=16)
    at = np.arange(len(rounds)) % 5
    vectors = np.where(np.arange(5) == at[:, None, None], 0.5 + rounds.vectors.max(axis=2, keepdims=True), 0.0)
    rounds = replace(rounds, vectors=vectors)
    whole, diagonal = (
        run(resolve(one), setting_for(rounds, window=25), rounds, sampler="rejection", seed=5)
        for one in (spec.replace("diagonal=true,", ""), spec)
    )
    assert len(whole.displays) > 50
    np.testing.assert_array_equal(whole.displays, diagonal.displays)


@crossed("spec, layout, window", WINDOWED, LAYOUTS, WINDOWS)
def test_windowed_policies(spec: str, layout: Layout, window: int) -> None:
    agree(spec, random_rounds(layout, seed=4), sampler="rejection", window=window)


@crossed("spec, layout, window", WAITING, LAYOUTS, [w for w in WINDOWS if w < 100])
def test_waiting_policies(spec: str, layout: Layout, window: int) -> None:
    agree(spec, random_rounds(layout, seed=6), sampler="rejection", window=window)


@crossed("spec, layout, window", ARRIVED, LAYOUTS, WINDOWS)
def test_arrived_policies(spec: str, layout: Layout, window: int) -> None:
    agree(spec, random_rounds(layout, seed=13), sampler="rejection", window=window)


@pytest.mark.parametrize("spec", REST)
def test_policies_of_no_group(spec: str) -> None:
    policy = resolve(spec)
    for layout in layouts(policy):
        for sampler in ("rejection",) if policy.contextual else ("rejection", "keep", "queue"):
            rounds = random_rounds(layout, seed=14)
            agree(spec, rounds, sampler=sampler, window=25, delay_cdf=CDFS["steps"])


def test_waiting_for_ever_plays_at_random() -> None:
    rounds = random_rounds("sets", seed=6)
    agree("waitlinucb:ties=lowest", rounds, sampler="rejection", window=10_000)
    waits = run(resolve("waitlinucb"), setting_for(rounds, window=10_000), rounds, sampler="rejection", seed=5)
    plays_at_random = run(resolve("random"), setting_for(rounds), rounds, sampler="rejection", seed=5)
    np.testing.assert_array_equal(waits.displays, plays_at_random.displays)


def test_the_logging_policy_shows_what_was_logged() -> None:
    rounds = random_rounds("none", kept=1.0)
    replay = run(resolve("logging"), setting_for(rounds), rounds, sampler="logged")
    np.testing.assert_array_equal(replay.displays, np.arange(len(rounds)))
    assert replay.generated == len(rounds.delay)
