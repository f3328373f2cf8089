"""The truth of twins recovers what a log was drawn from, within standard errors."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from evaluator.arguments import as_description
from evaluator.errors import DataError
from evaluator.log import Log
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import read_basis
from evaluator.worlds.rates import rates_by_action
from evaluator.worlds.truth import LogTruth, fit_truth
from tests.logs import bernoulli_log, build_log, linear_log
from tests.parts import stored


def truth_of(log: Log, displays: int | None = None, **options: object) -> LogTruth:
    asked = ReplayOptions(**options)  # type: ignore[arg-type]
    return fit_truth(read_basis(log, asked), as_description("random"), asked, displays=displays)


def test_rates_of_actions_are_those_of_the_log() -> None:
    means, n = np.array([0.1, 0.3, 0.6]), 30_000
    truth = truth_of(bernoulli_log(n, means, mean_delay=20.0, seed=1))
    assert truth.rates.shape == (1, 3)
    # The departures are shrunk by less than a thousandth: noise .2/10,000 beside a variance of .04.
    error = np.sqrt(means * (1 - means) / (n / 3))
    assert (np.abs(truth.rates[0] - means) < 4 * error + 1e-3 * np.abs(means - means.mean())).all()
    assert truth.mean_value == 1.0
    assert truth.logger.tolist() == [[1 / 3] * 3]


def test_many_rare_actions_are_spread_as_the_true_rates_are() -> None:
    # Raw rates are spread by their errors: sqrt(.01 * .99 / 1000) = .0031 beside a true .002.
    rng = np.random.default_rng(2)
    k, shown, spread = 675, 1000.0, 0.002
    raw, drawn = [], []
    for _ in range(40):
        rates = np.clip(rng.normal(0.01, spread, k), 0, 1)
        converted = rng.binomial(int(shown), rates).astype(float)
        raw.append((converted / shown).std())
        drawn.append(rates_by_action(converted, np.full(k, shown)).table[0].std())
    error = np.std(drawn, ddof=1) / 40**0.5
    assert abs(np.mean(drawn) - spread) < 4 * error
    assert np.mean(raw) > 1.5 * spread


def test_actions_that_do_not_differ_are_one() -> None:
    assert np.unique(rates_by_action(np.array([5.0, 5.0, 5.0]), np.full(3, 100.0)).table).size == 1


def test_action_sets_recover_a_linear_truth() -> None:
    n, d = 40_000, 3
    log = linear_log(n, n_actions=4, dimension=d, mean_delay=10.0, seed=3)
    truth = truth_of(log)
    assert "linear" in truth.said[0]
    known = log.column("expected_reward")
    assert truth.entries == n
    # Four coefficients of a regression on n displays: the mean squared error of its predictions is about
    # (d + 1) var(y) / n; ten times the mean is beyond the 4 SE of a chi-square of four degrees.
    assert np.mean((truth.rates - known) ** 2) < 10 * (d + 1) * 0.25 / n


def logistic_log(n: int, seed: int) -> tuple[Log, np.ndarray]:
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(n, 2))
    theta = np.array([[1.0, 0.0, -1.0], [-1.0, 0.5, -1.0], [0.0, 0.0, -0.5]])
    p = expit(context @ theta[:, :2].T + theta[:, 2])
    action = rng.integers(3, size=n)
    shown = np.flatnonzero(rng.random(n) < p[np.arange(n), action])
    log = build_log(
        time=np.arange(n), action=action, conversion_display=shown,
        conversion_time=shown + rng.integers(0, 50, len(shown)), n_actions=3, context=context,
    )  # fmt: skip
    return log, p


def test_contexts_recover_a_logistic_truth() -> None:
    n = 40_000
    log, p = logistic_log(n, seed=4)
    truth = truth_of(log)
    # Three coefficients an action, each on n/3 displays: 9 var(y) / n; a prior variance of 1 adds less.
    assert np.mean((truth.rates - p) ** 2) < 10 * 9 * 0.25 / n


def test_contexts_whose_actions_are_alike_get_one_model() -> None:
    log, _ = logistic_log(3000, seed=5)
    rng = np.random.default_rng(5)
    shuffled = log.displays.set_column(
        log.schema.get_field_index("action"), "action", [rng.integers(3, size=3000).astype(np.int32)]
    )
    truth = truth_of(dataclasses.replace(log, displays=shuffled))
    assert np.ptp(truth.rates, axis=1).max() < 0.15


def test_delays_cut_off_by_the_end_of_the_log_are_corrected() -> None:
    n, mean = 6000, 1000.0
    log = bernoulli_log(n, [0.5, 0.5], mean_delay=mean, seed=6)
    when = log.conversions["time"].to_numpy()
    log = dataclasses.replace(log, events=log.conversions.filter(when < n)).with_meta(
        observed_until=n - 1, attribution_window=3000
    )
    truth = truth_of(log)
    ratio = mean / (1 + mean)
    tau = (1 - ratio ** np.array([201, 501, 1001, 2001])) / (1 - ratio**3001)
    found = truth.cdf(np.array([200, 500, 1000, 2000]))
    # About 2,700 conversions, and half as many at risk at the long delays.
    assert (np.abs(found - tau) < 4 * np.sqrt(tau * (1 - tau) / 1000)).all()
    mature = n - 3000
    rate = 0.5 * (1 - ratio**3001)
    assert abs(truth.rates.mean() - rate) < 4 * (0.25 / mature) ** 0.5
    assert (truth.beyond, truth.longest) == (0, 3000)


def test_without_an_attribution_window_the_windows_rewards_are_made_whole() -> None:
    n = 20_000
    log = bernoulli_log(n, [0.4, 0.4], mean_delay=100.0, seed=7)
    when = log.conversions["time"].to_numpy()
    log = dataclasses.replace(log, events=log.conversions.filter(when < n)).with_meta(observed_until=n - 1)
    truth = truth_of(log, window=100)
    assert any("chance to show" in said for said in truth.said)
    # Counted within the window .63 of them come, and each counts 1/.63.
    assert abs(truth.rates.mean() - 0.4) < 4 * (0.25 / 0.63 / n) ** 0.5 + 4 * 0.4 * (0.4 / (0.4 * n)) ** 0.5


def test_values_are_drawn_from_those_of_the_log() -> None:
    log = bernoulli_log(5000, [0.3, 0.3], mean_delay=5.0, seed=8)
    value = np.random.default_rng(8).choice([1.0, 4.0], log.conversions.num_rows)
    log = dataclasses.replace(log, events=log.conversions.set_column(2, "value", [value])).with_meta(reward_max=4.0)
    truth = truth_of(log)
    assert set(truth.values) == {1.0, 4.0}
    assert truth.mean_value == pytest.approx(value.mean())


def test_a_log_without_conversions_or_with_few_displays_is_refused() -> None:
    with pytest.raises(DataError, match="conversions"):
        truth_of(build_log(time=np.arange(1000), action=np.arange(1000) % 2, n_actions=2))
    with pytest.raises(DataError, match="too few"):
        truth_of(bernoulli_log(100, [0.5, 0.5], mean_delay=1.0, seed=9))


def test_twins_of_chosen_actions_are_a_sample_of_their_traffic(tmp_path: Path) -> None:
    mean, n = 200.0, 20_000
    whole = bernoulli_log(n, (0.1, 0.2, 0.3, 0.4, 0.5), mean_delay=mean, seed=9)
    log = stored(whole, tmp_path / "log", actions="a1,a4").with_meta(sampling_rate=0.5)
    truth, kept = truth_of(log), len(log) / n
    assert truth.meta.sampling_rate == pytest.approx(0.5 * kept, rel=1e-3)
    assert truth.displays == len(log)
    # Delays count the displays of a twin; the share of rounds per display makes them those of the traffic again.
    conversions = len(log.conversions)
    assert abs(truth.cdf.mean - mean * kept) < 4 * mean * kept / np.sqrt(conversions)
    assert any(f"twins are {0.5 * kept:.3g} of their traffic" in said for said in truth.said)
