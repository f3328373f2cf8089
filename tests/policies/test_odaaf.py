"""ODAAF is its Algorithm 1 on simulated sums: the sum of a round is all that reaches it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import ParameterError
from evaluator.policies import dispatch, odaaf, resolve
from evaluator.policies.base import NO_WINDOW, Policy, Setting
from tests.crossed import crossed
from tests.twins.odaaf import algorithm_1, phase_length

HORIZON = 20_000
BARE = np.zeros((1, 0))
DELAYS = {
    "none": DelayCDF.fixed(0),
    "fixed": DelayCDF.fixed(30),
    "geometric": DelayCDF.geometric(5.0),
    "uniform": DelayCDF(delays=np.arange(41), cdf=np.arange(1, 42) / 41, source="test"),
}
POLICIES = (
    odaaf.ODAAF(),
    *(cls(bridge=rule) for cls in (odaaf.ODAAFB, odaaf.ODAAFV) for rule in ("best", "first", "random")),
)


def setting(cdf: str, *, n_actions: int = 3, window: int = NO_WINDOW, horizon: int = HORIZON) -> Setting:
    return Setting(n_actions=n_actions, window=window, horizon=horizon, delay_cdf=DELAYS[cdf])


def moments(cdf: DelayCDF, window: int) -> dict[str, float]:
    """Return mean, variance and bound of the delays up to the window, from tau alone."""
    ages = np.arange(min(window, 2000) + 1)
    weights = np.diff(cdf(ages), prepend=0.0)
    weights = weights / weights.sum()
    mean = float(ages @ weights)
    return {
        "mean": mean,
        "variance": float((ages**2) @ weights) - mean**2,
        "bound": float(ages[weights > 0].max()),
    }


class Sums:
    """The sum of the conversions that arrive in each round, for whatever arms are shown."""

    def __init__(self, means: list[float], cdf: DelayCDF, window: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.means = means
        self.levels = cdf(np.arange(2001))
        self.window = window
        self.arriving = np.zeros(HORIZON + 2002)

    def play(self, t: int, arm: int) -> float:
        converts = self.rng.random() < self.means[arm]
        delay = int(np.searchsorted(self.levels, self.rng.random() * self.levels[-1]))
        if converts and delay <= self.window:
            self.arriving[t + delay] += 1.0
        return float(self.arriving[t])


def twin_of(policy: Policy, told: Setting, seed: int) -> Any:
    assert told.delay_cdf is not None
    last = 1
    while told.horizon * 4.0 ** -(last + 1) >= np.e:
        last += 1
    known = moments(told.delay_cdf, told.window)
    lengths = [phase_length(policy.name, i, told.horizon, **known) for i in range(1, last + 1)]
    bridge = policy.parameters.get("bridge")
    return algorithm_1({k: [] for k in range(told.n_actions)}, lengths, bridge=bridge, rng=np.random.default_rng(seed))


@crossed("spec, cdf, window", [policy.spec for policy in POLICIES], ["none", "geometric", "uniform"], [25, NO_WINDOW])
def test_plays_as_algorithm_1(spec: str, cdf: str, window: int) -> None:
    policy = resolve(spec)
    told = setting(cdf, window=window)
    state, rng = policy.start(told), np.random.default_rng(4)
    twin, sums = twin_of(policy, told, seed=4), Sums([0.1, 0.9, 0.6], DELAYS[cdf], window, seed=5)
    arm = next(twin)
    for t in range(HORIZON):
        dispatch.begin(state, rng)
        assert state.choice[0] == arm, f"round {t}"
        dispatch.shown(state, BARE, arm)
        total = sums.play(t, arm)
        dispatch.told_sum(state, total)
        arm = twin.send(total)
    # The worst arm is found in phase 2 at the latest, with room to spare.
    assert not state.active[0]
    assert state.active[1]


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[1], POLICIES[4]], ids=lambda policy: policy.spec)
def test_lengths_of_the_papers_experiment(policy: Policy) -> None:
    told = Setting(n_actions=2, horizon=250_000, delay_cdf=DelayCDF.geometric(50.0))
    known = moments(told.delay_cdf, NO_WINDOW)
    assert known["mean"] == pytest.approx(50.0, rel=1e-9)
    lengths = policy.start(told).lengths
    expected = [phase_length(policy.name, i, 250_000, **known) for i in range(1, len(lengths) + 1)]
    assert (np.diff(lengths) > 0).all()
    # A moment of a sum of a thousand steps is within rounding, and a length within one of the other's.
    np.testing.assert_allclose(lengths, expected, atol=1)


def test_nothing_but_the_sum_reaches_it() -> None:
    told = setting("geometric")
    state, rng = odaaf.ODAAF().start(told), np.random.default_rng(1)
    dispatch.begin(state, rng)
    dispatch.shown(state, BARE, int(state.choice[0]))
    before = [np.copy(part) for part in state]
    dispatch.told(state, np.zeros(0), 1, 3, 1.0)
    for was, part in zip(before, state, strict=True):
        np.testing.assert_array_equal(was, part)
    dispatch.told_sum(state, 1.0)
    assert state.sums.sum() == 1.0


def test_whose_conversions_a_sum_holds_makes_no_difference() -> None:
    told = setting("geometric")
    states = [odaaf.ODAAF().start(told) for _ in range(2)]
    rng, world = np.random.default_rng(1), np.random.default_rng(6)
    for _ in range(2000):
        for state in states:
            dispatch.begin(state, rng)
        assert states[0].choice[0] == states[1].choice[0]
        parts = world.integers(0, 2, 3)
        for state, split in zip(states, (parts, [parts.sum()]), strict=True):
            dispatch.shown(state, BARE, int(state.choice[0]))
            dispatch.told_sum(state, float(sum(split)))


def test_bridges_count_for_nothing() -> None:
    told = setting("fixed", n_actions=2)
    state, rng = odaaf.ODAAFB(bridge="first").start(told), np.random.default_rng(1)
    first = int(state.lengths[0])
    for t in range(3 * first):
        dispatch.begin(state, rng)
        dispatch.shown(state, BARE, int(state.choice[0]))
        # Equal arms: neither is eliminated. What comes on the bridge would make arm 0 the best by far.
        dispatch.told_sum(state, 1.0 if t < 2 * first else 50.0)
    assert state.plays.tolist() == [first, first]
    assert state.sums.tolist() == [first, first]
    assert state.left[0] == 0
    dispatch.begin(state, rng)
    assert (state.choice[0], state.left[0]) == (0, 0)


@pytest.mark.parametrize("policy", POLICIES[:2], ids=lambda policy: policy.spec)
def test_what_it_is_not_told_is_asked_for(policy: Policy) -> None:
    with pytest.raises(ParameterError, match="needs a horizon"):
        policy.start(Setting(n_actions=2, delay_cdf=DELAYS["none"]))
    with pytest.raises(ParameterError, match="needs a delay CDF"):
        policy.start(Setting(n_actions=2, horizon=100))


@pytest.mark.parametrize("horizon", [0, 1, 5, 10])
def test_horizons_too_short_for_a_phase(horizon: int) -> None:
    state = odaaf.ODAAF().start(setting("none", horizon=horizon))
    assert state.lengths.size == 0
    dispatch.begin(state, np.random.default_rng(0))
    assert state.choice[0] == 0


def test_a_window_shorter_than_every_delay_is_no_error() -> None:
    state = odaaf.ODAAFV().start(setting("fixed", window=10))
    assert (np.diff(state.lengths) > 0).all()
