"""Moments of the delays are those from before a CDF is told in few steps, whatever it came from."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from evaluator import load_policy, replay, simulate
from evaluator.api import plan
from evaluator.delays.cdf import DelayCDF, DelayMoments
from evaluator.delays.fit_file import save_fit
from evaluator.delays.laws import (
    CDF_STEPS,
    DelayLaw,
    empirical,
    exponential,
    fixed,
    given_cdf,
    half_normal,
    lognormal_mixture,
    packet_loss,
    pareto,
    poisson,
    told_cdf,
    uniform,
)
from evaluator.delays.study.fitting import fit_family
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.replays.rounds.clock import on_clock
from tests.logs import bernoulli_log

LAWS = {
    "half-normal": half_normal(50),
    "exponential": exponential(300),
    "poisson": poisson(50),
    "uniform": uniform(100, 3000),
    "fixed": fixed(7),
    "pareto": pareto(0.7),
    "pareto, heavy": pareto(0.3),
    "lognormal mixture": lognormal_mixture([0.3, 0.7], [4.0, 900.0], [1.5, 0.5]),
    "packet loss": packet_loss(0.5, retry=100_000),
    "packet loss, never": packet_loss(0.2),
    "empirical": empirical(np.arange(1, 2001) / 1.7, np.linspace(0.001, 0.9, 2000), source="by hand"),
}


def by_definition(tau: np.ndarray) -> DelayMoments:
    """Return the moments of the delays 0, 1, ... with this CDF, given that they are among them."""
    delays, weights = np.arange(len(tau)), np.diff(tau, prepend=0.0) / tau[-1]
    mean = delays @ weights
    return DelayMoments(mean, (delays - mean) ** 2 @ weights, np.flatnonzero(weights).max())


def of_steps(cdf: DelayCDF) -> DelayMoments:
    """Return what the told steps, held flat in between, make of them: the tempting wrong way."""
    return by_definition(cdf(np.arange(cdf.delays[-1] + 1)))


def close(found: DelayMoments, truth: DelayMoments, rel: float) -> bool:
    return found.bound == truth.bound and np.allclose(found[:2], truth[:2], rtol=rel, atol=1e-9)


@pytest.mark.parametrize("reach", [5, 400, 30_000, 300_000])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_what_is_told_has_the_laws_own_moments(law: DelayLaw, reach: int) -> None:
    tau = law.table(reach)
    if tau[-1] == 0:
        assert told_cdf(law.delay_cdf(reach), reach).moments_within(reach) == DelayMoments(0.0, 0.0, 0.0)
        return
    truth = by_definition(np.maximum.accumulate(tau))
    found = told_cdf(law.delay_cdf(reach), reach).moments_within(reach)
    if reach < 2**16:
        assert close(found, truth, rel=1e-9)
        return
    # Later delays are off by half a bin at most, which is less than 2^-13 of them long here: twice that when squared.
    assert np.allclose(found[:2], truth[:2], rtol=2.0**-13, atol=1e-9)
    # Where tau has come to rest, rounding decides which delay is the last.
    assert found.bound <= truth.bound
    assert float(law(int(found.bound))) == pytest.approx(tau[-1], abs=1e-13)


def test_few_steps_made_delays_longer() -> None:
    """The bundled half-normal: E = 50.5 and V = 1,427, where 256 steps say 51.9 and 2,232."""
    told = told_cdf(half_normal(50).delay_cdf(250_000), 250_000)
    assert len(told.delays) <= CDF_STEPS
    mean, variance, _ = told.moments_within(250_000)
    # ceil(X) of X = |Z| with E X = 50: E X + 1/2, and V X + 1/12, but for terms of the order of the density's slope.
    assert (mean, variance) == (pytest.approx(50.5, abs=0.01), pytest.approx(2500 * (np.pi / 2 - 1) + 1 / 12, rel=1e-3))
    assert told.mean == mean
    wrong = of_steps(told)
    assert wrong.mean > 51.5
    assert wrong.variance > 1.5 * variance


def test_a_limit_below_the_steps_takes_the_steps() -> None:
    told = told_cdf(half_normal(50).delay_cdf(1000), 1000)
    assert told.moments_within(60).mean == pytest.approx(by_definition(told(np.arange(61))).mean)
    assert told.moments_within(60).mean < 60 < told.moments_within(1000).bound


def test_coarsened_again_they_are_kept() -> None:
    law = half_normal(50).delay_cdf(1000)
    twice = law.coarsened(256).coarsened(16).coarsened(300)
    assert twice.moments == law.moments_within()
    assert law.coarsened(256) != DelayCDF(delays=law.coarsened(256).delays, cdf=law.coarsened(256).cdf,
                                          source=law.coarsened(256).source)  # fmt: skip


def test_scaled_they_are_those_of_the_slower_clock() -> None:
    law = pareto(0.7).delay_cdf(100_000)
    slow, truth = law.scaled(0.1).moments, by_definition(pareto(0.7).table(100_000))
    assert slow is not None
    assert (slow.mean, slow.variance) == (pytest.approx(truth.mean / 10, rel=1e-3),
                                          pytest.approx(truth.variance / 100, rel=1e-3))  # fmt: skip


@pytest.mark.parametrize("family", ["weibull", "gamma", "lognormal", "geometric"])
@pytest.mark.parametrize("ticks_per_round", [1.0, 7.5])
def test_a_fit_in_a_file_has_its_laws_moments(tmp_path: Path, family: str, ticks_per_round: float) -> None:
    rng = np.random.default_rng(1)
    limits = rng.integers(500, 3000, 4000)
    delays = np.floor(rng.lognormal(5.0, 1.5, 4000)).astype(int)
    seen = delays <= limits
    fit = fit_family(delays[seen], limits[seen], family=family)
    save_fit(tmp_path / "fit.json", fit, tick="1 s")
    for reach in (60, 250):
        given = given_cdf(str(tmp_path / "fit.json"), reach=reach, ticks_per_round=lambda tick: ticks_per_round)
        law, parameters = fit.law
        by = np.minimum((np.arange(reach + 1) + 1.0) * ticks_per_round, fit.longest + 1)
        truth = by_definition(law.cdf(by, parameters))
        found = told_cdf(given, reach).moments_within(reach)
        assert np.allclose(found[:2], truth[:2], rtol=1e-6)
        assert abs(found.bound - truth.bound) <= 1


LOG = bernoulli_log(6000, [0.5, 0.3], mean_delay=300.0, seed=1)


def test_a_replay_told_the_logs_own_fit() -> None:
    planned = plan(LOG, "odaaf", window=2000)
    told = planned.setting.delay_cdf
    assert told is not None
    assert planned.cdf is not None
    reach = min(2000, planned.setting.horizon)
    truth = by_definition(planned.cdf(np.arange(reach + 1)))
    assert len(told.delays) <= CDF_STEPS < len(planned.cdf.delays)
    assert close(told.moments_within(reach), truth, rel=1e-9)
    assert not close(of_steps(told), truth, rel=1e-3)
    # The fit is the log's: complete delays, whose mean is the sample's.
    delay = on_clock(planned.survey.delay, planned.clock)
    assert told.moments_within(reach).mean == pytest.approx(delay[delay <= reach].mean(), rel=1e-6)


def test_a_horizon_below_the_window_bounds_the_delays() -> None:
    planned = plan(LOG, "odaaf-v", window=5000, horizon=400)
    told, setting = planned.setting.delay_cdf, planned.setting
    assert told is not None
    assert planned.cdf is not None
    assert close(told.moments_within(setting.horizon), by_definition(planned.cdf(np.arange(401))), rel=1e-9)


def test_a_saved_policy_was_told_the_same(tmp_path: Path) -> None:
    learned = replay(LOG, "odaaf-v", window=2000).learned
    assert learned is not None
    told = learned.setting.delay_cdf
    assert told is not None
    assert told.moments is not None
    learned.save(tmp_path / "policy.npz")
    again = load_policy(tmp_path / "policy.npz")
    assert again.setting == learned.setting
    np.testing.assert_array_equal(again.policy.start(again.setting).lengths, learned.state.lengths)
    # One of an earlier version has none.
    with np.load(tmp_path / "policy.npz") as stored:
        arrays = dict(stored)
    about = json.loads(bytes(arrays["about"]))
    del about["delay_cdf"]["moments"]
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(tmp_path / "older.npz", **arrays)
    older = load_policy(tmp_path / "older.npz")
    assert older.setting.delay_cdf is not None
    assert older.setting.delay_cdf.moments is None
    np.testing.assert_array_equal(older.state.lengths, learned.state.lengths)


def test_phases_are_as_long_as_the_laws_moments_make_them() -> None:
    """The first lengths of ODAAF-V in the bundled half-normal scenario, from its law and from 256 of its steps."""
    law = half_normal(50)
    whole = DelayCDF(delays=np.arange(1, 1001), cdf=law(np.arange(1, 1001)), source="all steps")
    told = told_cdf(law.delay_cdf(250_000), 250_000)
    bare = DelayCDF(delays=told.delays, cdf=told.cdf, source="its steps alone")
    right, found, wrong = (
        resolve("odaaf-v").start(Setting(n_actions=2, horizon=250_000, delay_cdf=cdf)).lengths
        for cdf in (whole, told, bare)
    )
    np.testing.assert_array_equal(found, right)
    assert (wrong > 1.1 * right).all()


def test_the_bundled_scenario_is_played_with_them() -> None:
    """Regret of the two arms, which draws on luck only in which arm is eliminated, and that is sure here."""
    found = simulate("pikeburke2018-half-normal", "odaaf-v", runs=2).curves[0]
    assert found.regret[-1] == pytest.approx(11_521, abs=1)
    assert found.regret_se[-1] == 0


def test_laws_of_any_mean_have_moments_in_little_memory() -> None:
    for mean in (1e4, 1e6, 1e9):
        law = DelayCDF.geometric(mean)
        tracemalloc.start()
        whole, cut = law.moments_within(), law.moments_within(int(mean))
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < 60e6
        assert whole.mean == pytest.approx(mean, rel=1e-6)
        assert whole.variance == pytest.approx(mean * (mean + 1.0), rel=1e-6)
        # Exponential in the limit: E[D | D <= 1] of mean 1 is 1 - 1 / (e - 1).
        assert cut.mean == pytest.approx(mean * (1.0 - 1.0 / math.expm1(1.0)), rel=1e-3)
        assert cut.bound == mean
