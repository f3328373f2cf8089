"""What the papers' policies become where delays, windows, arms or terms are left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.log_replay import Replay, SamplerName, run
from evaluator.errors import ParameterError
from evaluator.policies import dispatch, names, resolve
from evaluator.policies.base import NO_WINDOW, Need, Setting
from evaluator.policies.user import UserPolicy
from tests.logged_rounds import LoggedRounds
from tests.policies.checks import layouts
from tests.policies.rounds import random_rounds, setting_for
from tests.policies.variants import CDFS, DISCARDING, PATIENT
from tests.twins.patient import AdaptPatientTwin

AT_ONCE = DelayCDF.fixed(0)
TIES = pytest.mark.parametrize("ties", ["lowest", "random"])
SAMPLERS = pytest.mark.parametrize("sampler", ["keep", "queue"])


def play(spec: Any, rounds: LoggedRounds, sampler: SamplerName, *, seed: int = 3, **told: Any) -> Replay:
    policy = resolve(spec) if isinstance(spec, str) else spec
    return run(policy, setting_for(rounds, **told), rounds, sampler=sampler, seed=seed)


def same_play(one: Replay, other: Replay) -> None:
    assert len(one.displays) > 50
    np.testing.assert_array_equal(one.displays, other.displays)


def undelayed(seed: int, *, units: bool = True) -> LoggedRounds:
    return random_rounds("none", 1500, mean_delay=0.0, units=units, seed=seed)


@TIES
@SAMPLERS
@pytest.mark.parametrize("model", ["censored", "uncensored"])
def test_delayed_ucb_without_delays_is_ucb1_of_half_the_exploration(
    model: str, sampler: SamplerName, ties: str
) -> None:
    # tau = 1 leaves theta^ + sqrt(log t / (2 N)) of sqrt(2 log t / N).
    rounds = undelayed(1)
    delayed = play(f"delayed-ucb:model={model},ties={ties}", rounds, sampler, delay_cdf=AT_ONCE)
    same_play(delayed, play(f"ucb1:exploration=0.5,ties={ties}", rounds, sampler))


@SAMPLERS
def test_delayed_thompson_without_delays_is_thompson(sampler: SamplerName) -> None:
    rounds = undelayed(2)
    same_play(play("delayed-thompson", rounds, sampler, delay_cdf=AT_ONCE), play("thompson", rounds, sampler))


@pytest.mark.parametrize("name", ["thompson", "delayed-thompson"])
def test_thompson_counts_a_display_as_one_success_at_most(name: str) -> None:
    def draws(conversions: int) -> np.ndarray:
        state = resolve(name).start(Setting(n_actions=2, horizon=100, delay_cdf=AT_ONCE))
        for _ in range(50):
            dispatch.shown(state, np.zeros((1, 0)), 0)
            for _ in range(conversions):
                dispatch.told(state, np.zeros(0), 0, 0, 1.0)
        dispatch.begin(state, np.random.default_rng(0))
        return state.draws

    np.testing.assert_array_equal(draws(3), draws(1))
    assert not np.array_equal(draws(0), draws(1))


@pytest.mark.parametrize("cdf", CDFS)
@pytest.mark.parametrize("name", ["delayed-ucb", "delayed-klucb"])
def test_a_window_beyond_the_horizon_censors_nothing(name: str, cdf: str) -> None:
    rounds = random_rounds("none", 900, seed=3)
    told = {"horizon": 120, "delay_cdf": CDFS[cdf]}
    uncensored = play(f"{name}:model=uncensored", rounds, "keep", window=NO_WINDOW, **told)
    for window in (120, 177, NO_WINDOW):
        same_play(uncensored, play(name, rounds, "keep", window=window, **told))
    assert not np.array_equal(uncensored.displays, play(name, rounds, "keep", window=12, **told).displays)


@SAMPLERS
@pytest.mark.parametrize("base", ["ucb1", "klucb"])
def test_qpm_d_without_delays_is_its_base(base: str, sampler: SamplerName) -> None:
    # A window of 0 makes the zeros known at once, too. Random ties would be the same in law only, not in their draws.
    rounds = undelayed(4, units=False)
    queued = play(f"qpm-d:base={base},ties=lowest", rounds, sampler, window=0)
    same_play(queued, play(f"{base}:ties=lowest", rounds, sampler, window=0))


def test_qpm_d_without_a_window_sees_conversions_only() -> None:
    rounds = random_rounds("none", 400, units=True, seed=5)
    state = resolve("qpm-d").start(setting_for(rounds))
    live(state, rounds)
    assert state.pulls.sum() > 50
    np.testing.assert_array_equal(state.rewards, state.pulls)


def test_qpm_d_refuses_arms_it_did_not_choose_rather_than_to_overrun_its_queues() -> None:
    state = resolve("qpm-d:ties=lowest").start(Setting(n_actions=2, window=0, horizon=100))

    def force(arm: int) -> None:
        for _ in range(100):
            dispatch.begin(state, np.random.default_rng(0))
            dispatch.shown(state, np.zeros((1, 0)), arm)

    with pytest.raises(ValueError, match="did not choose"):
        force(1)


def live(state: Any, rounds: LoggedRounds) -> None:
    """Show each round's choice in turn, its conversions drawn from the round of the same number, and reveal all."""
    rng, bare = np.random.default_rng(1), np.zeros((1, 0))
    due: list[list[tuple[int, int, float]]] = [[] for _ in range(len(rounds))]
    for t in range(len(rounds)):
        dispatch.begin(state, rng)
        arm = dispatch.choose(state, bare)
        dispatch.shown(state, bare, arm)
        for c in range(rounds.first_conversion[t], rounds.first_conversion[t + 1]):
            if t + rounds.delay[c] < len(rounds):
                due[t + rounds.delay[c]].append((arm, t, float(rounds.value[c])))
        for action, s, value in due[t]:
            dispatch.told(state, bare[0], action, t - s, value)


class PlainUCB:
    """mean + width_scale sqrt(2 log(2 K T³) / n), unseen conversions counted as failures; the lowest of equals."""

    contextual = False

    def __init__(self, setting: Setting, *, width_scale: float) -> None:
        self.log_term = math.log(2 * setting.n_actions * setting.horizon**3)
        self.width_scale = width_scale
        self.sums, self.pulls = np.zeros((2, setting.n_actions))

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        if not self.pulls.all():
            return int(np.argmin(self.pulls > 0))
        width = self.width_scale * np.sqrt(2 * self.log_term / self.pulls)
        return int(np.argmax(self.sums / self.pulls + width))

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self.pulls[action] += 1

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self.sums[action] += value


@pytest.mark.parametrize("width_scale", [0.1, 1.0])
def test_patient_bandits_without_its_bias_term_is_ucb_of_its_own_width(width_scale: float) -> None:
    rounds = random_rounds("none", 1500, seed=6)
    plain = UserPolicy(cls=PlainUCB, parameters={"width_scale": width_scale})
    patient = play(f"patient-bandits:bias_scale=0,width_scale={width_scale},ties=lowest", rounds, "keep", window=30)
    same_play(patient, play(plain, rounds, "keep", window=30))
    biased = play(f"patient-bandits:width_scale={width_scale},ties=lowest", rounds, "keep", window=30)
    assert not np.array_equal(patient.displays, biased.displays)


@pytest.mark.parametrize(("width", "alpha"), [("figures", 0.25), ("theorem", 0.5)])
def test_nonambiguous_linucb_is_otflinucb_where_nothing_is_missing(width: str, alpha: float) -> None:
    # The theorem's bonus is 2 f_t for OTFLinUCB, f_t for a least squares estimate.
    rounds = random_rounds("sets", 1500, mean_delay=0.0, seed=7)
    otf = alpha / 2 if width == "theorem" else alpha
    arrived = play(f"nonambiguous-linucb:alpha={alpha},width={width},ties=lowest", rounds, "rejection", window=0)
    same_play(arrived, play(f"otflinucb:alpha={otf},width={width},ties=lowest", rounds, "rejection", window=0))


@pytest.mark.parametrize("spec", DISCARDING)
@pytest.mark.parametrize("window", [1500, 5000, NO_WINDOW])
def test_discarding_policies_whose_window_never_closes_play_in_turn(spec: str, window: int) -> None:
    rounds = random_rounds("none", 1500, kept=1.0, seed=8)
    turns = play(spec, rounds, "keep", window=window, delay_cdf=CDFS["geometric from 0"])
    assert len(turns.displays) > 200
    np.testing.assert_array_equal(rounds.action[turns.displays], np.arange(len(turns.displays)) % 4)


def test_discarding_policies_hold_nothing_without_a_window() -> None:
    setting = Setting(n_actions=3, window=NO_WINDOW, horizon=NO_WINDOW, delay_cdf=CDFS["steps"])
    state = resolve("discarding-ucb").start(setting)
    assert state.actions.size == state.values.size == 0
    assert state.tau == 0.875


@pytest.mark.parametrize("spec", [name for name in names() if name != "logging"])
def test_a_single_arm_leaves_nothing_to_regret(spec: str) -> None:
    layout = layouts(resolve(spec))[0]
    rounds = random_rounds(layout, 80, n_actions=1, kept=1.0, seed=9)
    replay = play(spec, rounds, "rejection", window=10, delay_cdf=CDFS["geometric from 0"])
    np.testing.assert_array_equal(replay.displays, np.arange(80))


@pytest.mark.parametrize("spec", ["improved-ucb", PATIENT[0], PATIENT[3]])
def test_a_horizon_is_needed(spec: str) -> None:
    with pytest.raises(ParameterError, match=r"needs a horizon\..*`horizon`"):
        resolve(spec).start(Setting(n_actions=2))


@pytest.mark.parametrize("name", ["delayed-ucb", "delayed-klucb", "discarding-ucb", "discarding-klucb"])
def test_a_cdf_is_needed_unless_it_is_estimated(name: str) -> None:
    setting = Setting(n_actions=2, window=5, horizon=9)
    assert Need.DELAY_CDF in resolve(name).needs
    with pytest.raises(ParameterError, match="needs a delay CDF"):
        resolve(name).start(setting)
    estimating = resolve(f"{name}:cdf=online")
    assert Need.DELAY_CDF not in estimating.needs
    estimating.start(setting)


def test_improved_ucb_eliminates_the_worse_arm_in_time() -> None:
    # A gap of 0.8 is found in phase 2 (tolerance 1/4 < 0.8 / 2) but with probability 2 / (T 4^-2) = 1/62 at most.
    horizon, rng = 2000, np.random.default_rng(2)
    state = resolve("improved-ucb").start(Setting(n_actions=2, horizon=horizon))
    means = np.array([0.1, 0.9])
    for _ in range(horizon):
        dispatch.begin(state, rng)
        arm = dispatch.choose(state, np.zeros((1, 0)))
        dispatch.shown(state, np.zeros((1, 0)), arm)
        if rng.random() < means[arm]:
            dispatch.told(state, np.zeros(0), arm, 0, 1.0)
    assert state.active.tolist() == [False, True]
    assert 0 < state.pulls[0] <= math.ceil(2 * 16 * math.log(horizon / 16))


def test_the_estimated_tail_index_leaves_its_floor_in_the_long_run() -> None:
    # The margin is 4.9 with c = mu_ = 1 and alpha^ at most 1/2: nothing before about exp(2 * 4.9) = 19,000 pulls.
    n, bare = 30_000, np.zeros((1, 0))
    setting = Setting(n_actions=2, horizon=n)
    policy = resolve("adapt-patient-bandits:c=1,mu_min=1,alpha_min=0.001")
    state, twin = policy.start(setting), AdaptPatientTwin(setting, **policy.parameters)
    # One pull in 20 converts at once, one in 167 forty rounds later.
    every = {0: 20, 40: 167}
    for t in range(n):
        dispatch.shown(state, bare, 0)
        twin.displayed(bare, 0)
        for delay, period in every.items():
            if t >= delay and (t - delay) % period == 0:
                dispatch.told(state, bare[0], 0, delay, 1.0)
                twin.converted(bare[0], 0, delay, 1.0)
    dispatch.begin(state, np.random.default_rng(0))
    # m_D - m_d is about .006, alpha^ = -log .006 / log 30,000 = .496, less the margin 4.93 / log 30,000 = .478.
    assert 0.005 < state.alpha[0] < 0.5 - 0.478
    assert state.alpha[0] == pytest.approx(twin.alpha(), rel=1e-9)
