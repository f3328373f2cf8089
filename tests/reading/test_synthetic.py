from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from evaluator.datasets import generate, load
from evaluator.errors import ParameterError, UsageError
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.worlds.scenarios.scenario import BernoulliScenario, LinearScenario, Scenario

N = 40_000
SIGMAS = 4


def scenario(kind: str = "linear", **changes: Any) -> Scenario:
    return TypeAdapter(Scenario).validate_python({"kind": kind, **changes})


def converted(log: Log) -> tuple[np.ndarray, np.ndarray]:
    of = to_numpy(log.conversions["display_id"])
    flag = np.zeros(len(log))
    flag[of] = 1
    return flag, to_numpy(log.conversions["time"]) - of


def test_linear_geometry() -> None:
    log = generate(LinearScenario(kind="linear"), displays=500)
    sets = log.column("action_set")
    assert sets.shape == (500, 10, 5)
    assert sets.dtype == np.float64
    assert (sets >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(sets, axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(log.column("expected_reward"), sets @ np.full(5, 5**-0.5), rtol=1e-12)
    assert not np.array_equal(sets[0], sets[1])
    assert (log.meta.tick, log.meta.observed_until, log.meta.reward_max) == ("round", None, 1.0)
    assert log.meta.propensity == "uniform"


def test_rewards_follow_the_truth() -> None:
    log = generate(LinearScenario(kind="linear"), displays=N)
    flag, _ = converted(log)
    action = log.column("action")
    mean = log.column("expected_reward")[np.arange(N), action]
    # Sum of independent Bernoullis: variance is the sum of m(1 - m); also where the mean is above its median.
    for rows in (np.full(N, True), mean > np.median(mean)):
        error = (flag - mean)[rows].sum()
        assert abs(error) < SIGMAS * np.sqrt((mean * (1 - mean))[rows].sum())
    share = np.bincount(action, minlength=10) / N
    assert (np.abs(share - 0.1) < SIGMAS * np.sqrt(0.1 * 0.9 / N)).all()


@pytest.mark.parametrize(("support", "mean"), [(1, 100), (0, 100), (0, 0.5), (1, 1)])
def test_geometric_delays(support: int, mean: float) -> None:
    log = generate(scenario("bernoulli", means=[0.5, 0.9], delay={"mean": mean, "support": support}), displays=N)
    _, delay = converted(log)
    assert delay.min() == support
    # Variance of the geometric: (1 - p)/p^2 with p = 1/mean on {1, ...}, p = 1/(1 + mean) on {0, ...}.
    p = 1 / mean if support else 1 / (1 + mean)
    assert abs(delay.mean() - mean) <= SIGMAS * np.sqrt((1 - p) / p**2 / len(delay))
    # P(D > a) = (1 - p)^(a + 1 - support)
    a = round(mean)
    beyond = (1 - p) ** (a + 1 - support)
    assert abs((delay > a).mean() - beyond) <= SIGMAS * np.sqrt(beyond * (1 - beyond) / len(delay))


def test_conversions_past_the_last_display_are_kept() -> None:
    log = generate(scenario("bernoulli", means=[1, 1], delay={"family": "fixed", "mean": 30}), displays=100)
    assert log.conversions["time"].to_pylist() == list(range(30, 130))


def test_bernoulli_with_logged_propensities() -> None:
    p, means = np.array([0.2, 0.7, 0.1]), np.array([0.1, 0.5, 0.9])
    log = generate(scenario("bernoulli", means=means.tolist(), logger=p.tolist()), displays=N)
    flag, _ = converted(log)
    action = log.column("action")
    shown = np.bincount(action)
    assert (np.abs(shown / N - p) < SIGMAS * np.sqrt(p * (1 - p) / N)).all()
    rate = np.bincount(action, weights=flag) / shown
    assert (np.abs(rate - means) < SIGMAS * np.sqrt(means * (1 - means) / shown)).all()
    np.testing.assert_array_equal(log.column("propensity"), p[action])
    assert log.meta.propensity == "logged"
    assert "action_set" not in log.displays.column_names


def test_softmax_propensities_are_those_of_the_logger() -> None:
    log = generate(scenario(logger="softmax", temperature=0.1), displays=N)
    score = log.column("expected_reward") / 0.1
    weights = np.exp(score)
    p = weights / weights.sum(axis=1, keepdims=True)
    action = log.column("action")
    np.testing.assert_allclose(log.column("propensity"), p[np.arange(N), action], rtol=1e-9)
    # The best action of each display is shown as often as its propensities say.
    best = p.argmax(axis=1)
    chance = p[np.arange(N), best]
    assert abs(((action == best) - chance).sum()) < SIGMAS * np.sqrt((chance * (1 - chance)).sum())


def test_same_seed_same_log_to_the_bit() -> None:
    one, two = (load("synthetic", limit=1000) for _ in range(2))
    assert one.displays.equals(two.displays)
    assert one.conversions.equals(two.conversions)
    assert one.meta == two.meta
    other = load("synthetic", limit=1000, seed=1)
    assert not one.displays.equals(other.displays)
    assert one.meta.fingerprint != other.meta.fingerprint


def test_a_shorter_log_is_the_beginning_of_a_longer_one() -> None:
    short, long = (load("synthetic", limit=n) for n in (300, 1000))
    assert short.displays.equals(long.displays.slice(0, 300))
    assert short.conversions.equals(long.conversions.slice(0, short.conversions.num_rows))


def test_stream_is_apart_from_a_replays() -> None:
    # A replay that spawned its generator from the same seed must not repeat the log's draws.
    log = generate(BernoulliScenario(kind="bernoulli", means=[0.5, 0.5]), displays=1000, seed=3)
    action = log.column("action")
    for rng in (np.random.default_rng(3), *map(np.random.default_rng, np.random.SeedSequence(3).spawn(4))):
        same = (rng.integers(2, size=1000) == action).mean()
        drawn = ((rng.random(1000) >= 0.5) == action).mean()
        assert max(abs(same - 0.5), abs(drawn - 0.5)) < SIGMAS * np.sqrt(0.25 / 1000)


def test_default_scenario() -> None:
    log = load("synthetic")
    assert (len(log), log.n_actions) == (100_000, 10)


@pytest.mark.parametrize("options", [{"actions": "top:2"}, {"features": "none"}, {"path": "x"}, {"sort": True}])
def test_file_options_do_not_apply(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="does not apply to the synthetic"):
        load("synthetic", **options)


@pytest.mark.parametrize("options", [{"limit": 0}, {"seed": -1}])
def test_impossible_parameters(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        load("synthetic", **options)


@pytest.mark.parametrize("actions", [2**20, 2**62])
def test_more_than_memory_holds_is_refused_before_it_is_made(actions: int) -> None:
    with pytest.raises(ParameterError, match="more than a generated log may hold"):
        generate(LinearScenario(kind="linear", actions=actions), displays=1000)


IN_TIME = {"displays_per_day": 20_000, "amplitude": 0.5, "growth": 1.1, "step": 3.0, "step_at_s": 129_600}


def in_time(displays: int = N, **arrivals: Any) -> Log:
    made = scenario(
        "bernoulli",
        means=[0.5, 0.7],
        delay={"family": "uniform", "high": 55},
        arrivals={"displays_per_day": 20_000, "delay_unit": "min", **arrivals},
    )
    return generate(made, displays=displays)


def test_arrivals_follow_the_hour_the_growth_and_the_step() -> None:
    from scipy.integrate import quad

    log = in_time(**IN_TIME)
    second = log.column("time") / 1000
    assert log.meta.tick == "ms"
    assert (np.diff(second) >= 0).all()

    def rate(t: float) -> float:
        rhythm = 1 - 0.5 * np.cos(2 * np.pi * (t - 14_400) / 86_400)
        return 20_000 / 86_400 * 1.1 ** (t / 86_400) * rhythm * (3 if t >= 129_600 else 1)

    # Poisson counts by hour over the first 30 hours, and on either side of the step.
    for hour in range(40):
        mean = quad(rate, 3600 * hour, 3600 * (hour + 1), points=[129_600] if hour == 36 else None)[0]
        if second[-1] > 3600 * (hour + 1):
            count = np.searchsorted(second, 3600 * (hour + 1)) - np.searchsorted(second, 3600 * hour)
            assert abs(count - mean) < 4.5 * np.sqrt(mean), hour  # 40 hours: a tail of 7e-6 each
    even = np.histogram(in_time().column("time") / 1000, np.arange(0, 172_801, 7200))[0][:12]
    assert np.ptp(even) < 6 * np.sqrt(20_000 / 12) < np.ptp(np.histogram(second, np.arange(0, 86_401, 7200))[0])


def test_delays_are_durations_whatever_the_traffic() -> None:
    log = in_time(amplitude=0.9)
    at = log.column("time")[to_numpy(log.conversions["display_id"])]
    delay = to_numpy(log.conversions["time"]) - at
    assert (delay % 60_000 == 0).all()
    minutes = delay // 60_000
    assert (minutes.min(), minutes.max()) == (0, 55)
    for quick in (True, False):  # in the hours of most and of least traffic alike
        hour = at / 3_600_000 % 24
        some = minutes[np.abs(hour - 16) < 4] if quick else minutes[np.abs(hour - 4) < 4]
        assert abs(some.mean() - 27.5) < SIGMAS * np.sqrt((56**2 - 1) / 12 / len(some))


def test_arrivals_change_nothing_but_the_times() -> None:
    made = scenario("bernoulli", means=[0.5, 0.7], delay={"family": "uniform", "high": 55})
    timed, counted = in_time(), generate(made, displays=N)
    for name in ("action", "propensity", "expected_reward"):
        np.testing.assert_array_equal(timed.column(name), counted.column(name))
    assert timed.conversions["display_id"].equals(counted.conversions["display_id"])
    short = in_time(500, **IN_TIME)
    np.testing.assert_array_equal(short.column("time"), in_time(**IN_TIME).column("time")[:500])
    assert counted.meta.fingerprint == generate(made, displays=N).meta.fingerprint != timed.meta.fingerprint


def test_arrivals_that_never_come_or_are_half_said() -> None:
    with pytest.raises(ParameterError, match="do not come within"):
        in_time(growth=0.5)
    with pytest.raises(ValueError, match="go together"):
        in_time(step=2.0)
    with pytest.raises(ValueError, match="not with arrivals"):
        scenario("linear", window=100, arrivals={"displays_per_day": 100})


def test_a_simulation_refuses_arrivals(tmp_path: Path) -> None:
    from evaluator.worlds.world import load_problem

    file = tmp_path / "timed.toml"
    file.write_text(
        'name = "timed"\ntitle = "t"\nlicence = "l"\n[scenario]\nkind = "bernoulli"\nmeans = [0.1, 0.2]\n'
        'arrivals = { displays_per_day = 1000, amplitude = 0.5, delay_unit = "h" }\n'
    )
    assert load(file, limit=100).meta.tick == "ms"
    with pytest.raises(UsageError, match="arrivals in time"):
        load_problem(file)
