"""Twins keep the log contract, and have the log's propensities, size, rates and delays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from evaluator.arguments import as_description
from evaluator.log import Log
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.rounds.survey import survey
from evaluator.worlds.live_policy import claim_of
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.twin_log import TwinLog, draw_twin, replay_seed
from tests.audits.test_truth import logistic_log, truth_of
from tests.logs import bernoulli_log, linear_log
from tests.untidy.defects import rows_of
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.writing import as_log


def entries_of(twin: TwinLog) -> np.ndarray:
    """Return the truth's entry of each display."""
    return twin.drawn.entries(0, len(twin))


def timed(log: Log, *, seconds: int, **meta: object) -> Log:
    """Return the log with a display every so many seconds."""
    displays = log.displays.set_column(1, "time", [log.column("time") * seconds])
    conversions = log.conversions.set_column(1, "time", [log.conversions["time"].to_numpy() * seconds])
    return dataclasses.replace(log, displays=displays, events=conversions).with_meta(tick="s", **meta)


def cut(log: Log, *, longest: int | None = None) -> Log:
    """Return what was seen of a log by its last display, within the attribution window if there is one."""
    last = int(log.column("time")[-1])
    when = log.conversions["time"].to_numpy()
    seen = when <= last
    if longest is not None:
        seen &= when - log.column("time")[log.conversions["display_id"].to_numpy()] <= longest
    cut = dataclasses.replace(log, events=log.conversions.filter(seen))
    return cut.with_meta(observed_until=last, attribution_window=longest)


LOGS = {
    "uniform": lambda: bernoulli_log(8000, [0.2, 0.5, 0.3], mean_delay=30.0, seed=11),
    "uneven": lambda: bernoulli_log(8000, [0.2, 0.5, 0.3], mean_delay=30.0, seed=12, logger=[0.6, 0.3, 0.1]),
    "action sets": lambda: linear_log(4000, n_actions=4, dimension=5, mean_delay=20.0, seed=13),
    "softmax of action sets": lambda: linear_log(
        4000, n_actions=4, dimension=5, mean_delay=20.0, seed=14, temperature=0.2
    ),
    "contexts": lambda: logistic_log(4000, seed=15)[0],
    "seconds": lambda: timed(bernoulli_log(8000, [0.2, 0.5], mean_delay=30.0, seed=16), seconds=37),
    "cut off": lambda: cut(timed(bernoulli_log(8000, [0.2, 0.5], mean_delay=500.0, seed=17), seconds=37)).with_meta(
        attribution_window=37 * 3000
    ),
}


@pytest.fixture(params=LOGS)
def drawn(request: pytest.FixtureRequest) -> tuple[Log, LogTruth, TwinLog]:
    log = LOGS[request.param]()
    truth = truth_of(log)
    return log, truth, draw_twin(truth, seed=1, twin=3)


def test_twins_keep_the_contract_and_the_size(drawn: tuple[Log, LogTruth, TwinLog]) -> None:
    log, truth, twin = drawn
    twin.validated()
    assert len(twin) == len(log)
    assert {"context", "action_set"} & set(twin.schema.names) == {"context", "action_set"} & set(log.schema.names)
    assert twin.labels == log.labels
    again = draw_twin(truth, seed=1, twin=3)
    other = draw_twin(truth, seed=1, twin=4)
    assert again.displays.equals(twin.displays)
    assert not other.displays.equals(twin.displays)


def test_propensities_are_the_probabilities_that_actions_are_drawn_with(drawn: tuple[Log, LogTruth, TwinLog]) -> None:
    log, truth, twin = drawn
    action, p = twin.column("action"), twin.column("propensity")
    table = np.broadcast_to(truth.logger, (truth.entries, log.n_actions))[entries_of(twin)]
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p, table[np.arange(len(twin)), action])
    # sum over displays of 1{a}/p(a|x) has mean n, and variance sum (1/p - 1).
    for k in range(log.n_actions):
        weight = (action == k) / table[:, k]
        assert abs(weight.sum() - len(twin)) < 4 * np.sqrt((1 / table[:, k] - 1).sum())
    assert p.min() >= 0.999 * log.column("propensity").min()
    assert twin.meta.propensity == log.meta.propensity


def test_rates_and_delays_are_the_truths(drawn: tuple[Log, LogTruth, TwinLog]) -> None:
    _, truth, twin = drawn
    n = len(twin)
    rate = truth.rates[entries_of(twin), twin.column("action")]
    seen = survey(twin)
    time = twin.column("time")
    left = np.full(n, 2**53) if truth.beyond is None else time[-1] + truth.beyond - time
    law = truth.laws.of_action[twin.column("action")]
    cdfs = truth.laws.cdfs

    def tau(age: np.ndarray, law: np.ndarray) -> np.ndarray:
        return np.choose(law, [cdf(age) for cdf in cdfs])

    chance = rate * tau(left, law)
    assert abs(twin.conversions.num_rows - chance.sum()) < 4 * np.sqrt((chance * (1 - chance)).sum())
    # Delays in ticks: their law given that they could be seen.
    gap = 1 if truth.traffic is None else 37
    for a in (0, 10 * gap, 40 * gap, 200 * gap):
        of, most = law[seen.display], left[seen.display]
        told = tau(np.minimum(a, most), of) / tau(most, of)
        assert abs((seen.delay_ticks <= a).sum() - told.sum()) < 4 * np.sqrt((told * (1 - told)).sum()) + 1e-9


def test_rates_are_the_logs(drawn: tuple[Log, LogTruth, TwinLog]) -> None:
    log, _, twin = drawn
    a, b = log.conversions.num_rows, twin.conversions.num_rows
    assert abs(a - b) < 4 * np.sqrt(a + b)


def test_a_softmax_logger_is_recovered() -> None:
    n = 20_000
    log = linear_log(n, n_actions=4, dimension=5, mean_delay=5.0, seed=18, temperature=0.2)
    expected = log.column("expected_reward")
    p = np.exp(expected / 0.2)
    p /= p.sum(axis=1, keepdims=True)
    # Three coefficients: the mean squared error of the probabilities is about 3/n times their variance, below 1/4.
    assert np.mean((truth_of(log).logger - p) ** 2) < 10 * 3 * 0.25 / n


def test_a_log_without_propensities_has_twins_without() -> None:
    log = bernoulli_log(5000, [0.3, 0.4], mean_delay=5.0, seed=19, logger=[0.7, 0.3]).with_meta(propensity="absent")
    truth = truth_of(log)
    twin = draw_twin(truth, seed=0, twin=0).validated()
    assert twin.displays["propensity"].null_count == len(twin)
    assert abs((twin.column("action") == 0).mean() - 0.7) < 4 * (2 * 0.21 / 5000) ** 0.5


def test_another_size_and_other_seeds() -> None:
    truth = truth_of(bernoulli_log(2000, [0.3, 0.4], mean_delay=5.0, seed=20), displays=700)
    assert len(draw_twin(truth, seed=0, twin=0)) == 700
    assert len({replay_seed(seed, twin) for seed in range(5) for twin in range(5)}) == 25


def rhythmic(n: int = 8000, *, seed: int, days: float = 5.0) -> Log:
    """Return a log in seconds, busy in the afternoon, whose conversions come within 55 minutes."""
    untidy = Untidy(displays=n, days=days, rhythm=0.8, attribution_s=None)
    traffic = draw_traffic(untidy, seed)
    return as_log(traffic, rows_of(traffic, seed))[0]


def test_displays_of_twins_come_at_the_times_of_the_logs() -> None:
    log = rhythmic(seed=21)
    truth = truth_of(log, window="1h")
    twin = draw_twin(truth, seed=0, twin=0)
    assert (twin.meta.tick, twin.meta.observed_until) == ("s", log.meta.observed_until)
    np.testing.assert_array_equal(twin.column("time"), log.column("time"))
    # Whatever the hour, conversions come within 55 minutes and at the same delays.
    seen = survey(twin)
    assert seen.delay_ticks.max() <= 55 * 60
    hour = seen.shown_at // 3600 % 24
    busy, quiet = (seen.delay_ticks[np.isin(hour, hours)] for hours in ((10, 11, 12, 13), (22, 23, 0, 1)))
    error = 55 * 60 / 12**0.5 * (1 / len(busy) + 1 / len(quiet)) ** 0.5
    assert abs(busy.mean() - quiet.mean()) < 4 * error
    # In displays they differ: by the mean rate they would not.
    assert seen.delay[np.isin(hour, (10, 11, 12, 13))].mean() > 3 * seen.delay[np.isin(hour, (22, 23, 0, 1))].mean()


def test_shorter_twins_are_stretches_of_the_traffic_and_longer_ones_repeat_it() -> None:
    log = rhythmic(2000, seed=22)
    short, long = (truth_of(log, displays=n, window="1h") for n in (500, 5000))
    time = log.column("time")
    starts = set()
    for twin in range(5):
        drawn = draw_twin(short, seed=0, twin=twin).validated().column("time")
        first = int(np.searchsorted(time, drawn[0]))
        assert any(np.array_equal(drawn, time[at : at + 500]) for at in (first, first + 1))
        starts.add(first)
    assert len(starts) > 1
    drawn = draw_twin(long, seed=0, twin=0).validated().column("time")
    np.testing.assert_array_equal(drawn[:2000], time)
    np.testing.assert_array_equal(np.diff(drawn[2000:4000]), np.diff(time))
    assert drawn[2000] > drawn[1999]


def test_windows_in_time_are_as_long_in_displays() -> None:
    log = LOGS["cut off"]()
    twin = draw_twin(truth_of(log), seed=0, twin=0)
    assert survey(twin).rate == pytest.approx(survey(log).rate, rel=1e-9)
    assert (twin.meta.attribution_window, twin.meta.observed_until) == (37 * 3000, log.meta.observed_until)


def test_delays_in_rounds_are_those_of_the_twins() -> None:
    log = rhythmic(seed=23)
    for window in ("30min", 60):
        options = ReplayOptions(window=window)
        truth = truth_of(log, window=window)
        plan = plan_replay(draw_twin(truth, seed=0, twin=0), as_description("random"), options)
        cdf = claim_of(truth, plan).cdf
        found = plan.rounds.delay[: np.searchsorted(plan.survey.display, plan.rounds.used)]
        for a in (5, 20, 60, 120):
            share = float(cdf(a))
            # The truth's law is the mean over the traffic, twice as many conversions know it.
            assert abs((found <= a).mean() - share) < 4.5 * (share * (1 - share) / len(found)) ** 0.5 + 1e-3
