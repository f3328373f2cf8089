"""Replays of twins are live runs on the same truth; what is not is found; the smallest difference found is that."""

from __future__ import annotations

import dataclasses
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom

import evaluator
from evaluator.audits.result import Audit
from evaluator.errors import DataError, ParameterError, PropensityError
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.replays.rounds import maturity
from evaluator.worlds.twin_log import draw_twin
from tests.audits.test_truth import logistic_log, truth_of
from tests.audits.test_twins import cut, rhythmic, timed
from tests.logs import bernoulli_log, build_log, in_rounds, linear_log
from tests.statistical.power import FITTED, promised
from tests.statistical.young_logs import DAY, Young
from tests.statistical.young_runs import ONE_LAW, held


def featured(log: Log) -> Log:
    features = fixed_size_lists(np.array([[1, 0], [0, 1], [0.5, 0.5]], np.float32))
    return dataclasses.replace(log, actions=log.actions.append_column("features", features))


# name: log, policies, options. Delays matter in each: they take a good part of the rounds.
AUDITS = {
    "arms": (
        lambda: bernoulli_log(3000, [0.2, 0.6, 0.4], mean_delay=100.0, seed=31),
        ["delayed-klucb", "ucb1", "logging"],
        {"window": 200},
    ),
    "arms, unevenly logged": (
        lambda: bernoulli_log(4000, [0.2, 0.6], mean_delay=100.0, seed=32, logger=[0.7, 0.3]),
        ["klucb", "random"],
        {"window": 150, "propensity": "estimate"},
    ),
    "action sets": (
        lambda: linear_log(3000, n_actions=4, dimension=3, mean_delay=50.0, seed=33),
        ["otflinucb", "delayed-klucb", "random"],
        {"window": 100},
    ),
    "action sets, logged by a softmax": (
        lambda: linear_log(4000, n_actions=4, dimension=3, mean_delay=50.0, seed=34, temperature=0.3),
        ["otflinucb", "linucb"],
        {"window": 100},
    ),
    "contexts, at half the traffic": (
        lambda: logistic_log(3000, seed=35)[0],
        ["linucb", "ucb1"],
        {"traffic_share": 0.5},
    ),
    "cut off at the end": (
        lambda: cut(bernoulli_log(4000, [0.3, 0.6], mean_delay=200.0, seed=36), longest=1000),
        ["ucb1", "random"],
        {"window": 400},
    ),
    "cut off at the end, corrected": (
        lambda: cut(bernoulli_log(4000, [0.3, 0.6], mean_delay=200.0, seed=36), longest=1000),
        ["ucb1", "random"],
        {"window": 400, "immature": "correct"},
    ),
    "cut off without an attribution window": (
        lambda: cut(bernoulli_log(4000, [0.3, 0.6], mean_delay=100.0, seed=37)),
        ["ucb1", "random"],
        {"window": 150},
    ),
    "rewards observed by the horizon": (
        lambda: bernoulli_log(3000, [0.2, 0.6, 0.4], mean_delay=100.0, seed=38),
        ["delayed-klucb", "random"],
        {"window": 200, "reward": "observed"},
    ),
    "delays from the first displays, told horizon": (
        lambda: bernoulli_log(4000, [0.3, 0.6], mean_delay=50.0, seed=39),
        ["delayed-ucb", "random"],
        {"window": 200, "delays_from": "first:30%", "horizon": 900},
    ),
    "in seconds, a window in hours": (
        lambda: timed(bernoulli_log(3000, [0.3, 0.6], mean_delay=50.0, seed=50), seconds=37),
        ["delayed-klucb", "random"],
        {"window": "1h"},
    ),
    "a daily rhythm, a window in time": (
        lambda: rhythmic(3000, seed=53, days=2.0),
        ["delayed-klucb", "ucb1", "random"],
        {"window": "30min"},
    ),
    "a daily rhythm, a window in rounds, half the traffic": (
        lambda: rhythmic(3000, seed=54, days=2.0),
        ["qpm-d", "thompson"],
        {"window": 40, "traffic_share": 0.5},
    ),
    "a daily rhythm, shorter twins, observed by the horizon": (
        lambda: rhythmic(4000, seed=55, days=4.0),
        ["delayed-ucb", "random"],
        {"window": "1h", "displays": 1500, "reward": "observed"},
    ),
    "vectors of the actions, of single precision": (
        lambda: featured(bernoulli_log(3000, [0.3, 0.6, 0.4], mean_delay=50.0, seed=51)),
        ["linucb", "random"],
        {"window": 100},
    ),
    "delays by action, corrected": (
        lambda: Young(rates=(0.5, 0.35), displays=4000).draw(56),
        ["delayed-klucb", "fixed:action=0", "fixed:action=1", "random"],
        {"immature": "correct"},
    ),
    "delays by action, dropped": (
        lambda: Young(rates=(0.5, 0.35), displays=2500, days=5.0).draw(57),
        ["delayed-klucb", "ucb1"],
        {},
    ),
    "delays by action, within the window only": (
        lambda: Young(rates=(0.5, 0.6), displays=2500).draw(58).with_meta(attribution_window=None),
        ["ucb1", "random"],
        {"window": "12h"},
    ),
    "delays by action in rounds, within the window only": (
        lambda: in_rounds(Young(rates=(0.5, 0.6), displays=2500).draw(59)).with_meta(attribution_window=None),
        ["ucb1", "random", "logging"],
        {"window": 600},
    ),
    "delays by action, observed by the horizon": (
        lambda: Young(rates=(0.5, 0.6), displays=2500).draw(60),
        ["ucb1", "random"],
        {"reward": "observed"},
    ),
    "rates by hour": (
        lambda: Young(
            rates=(0.5, 0.3), displays=4000, days=6.0, attribution_days=0.5, delays=(0.1, 0.2), rhythm=0.5
        ).draw(61),
        ["ucb1", "random"],  # not the logger, which has the first hours of the log at the common horizon
        {},
    ),
    "two repeats": (
        lambda: bernoulli_log(2000, [0.3, 0.6], mean_delay=50.0, seed=40),
        ["ucb1", "random"],
        {"window": 200, "repeats": 2},
    ),
}
# Bias as large as the wall clock's, one delay law's or that of uncounted young displays shows on 40 twins, below.
TWINS = 60
# Where an action lacks long or short delays, its conversions may have been lost: no twin loses any, and audits say so.
MAY_LACK_CONVERSIONS = ("delays by action, dropped", "delays by action in rounds, within the window only")


@cache
def audited(name: str) -> Audit:
    make, policies, options = AUDITS[name]
    return evaluator.audit(make(), policies, twins=TWINS, seed=3, **options)


@pytest.fixture(scope="module", params=list(AUDITS))
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of an audit; the tests of it follow one another: another process would audit once more."""
    return str(request.param)


def test_replays_of_twins_equal_live_runs(name: str) -> None:
    for policy in audited(name).policies:
        assert abs(policy.z) < 4, policy
        assert policy.live_standard_error < policy.bias_standard_error


def test_intervals_hold(name: str) -> None:
    audit = audited(name)
    least = binom.ppf(2e-4, TWINS, 0.95)  # anytime-valid intervals hold oftener still
    for policy in audit.policies:
        for coverage in (policy.value_coverage, policy.regret_coverage, policy.uplift_coverage):
            assert coverage.held >= least
            assert (coverage.twins, coverage.level) == (TWINS, 0.95)
    for pair in audit.pairs:
        assert pair.coverage.held >= least
        error = np.hypot(pair.spread / TWINS**0.5, pair.live_standard_error)
        assert abs(pair.difference - pair.live_difference) < 4 * error
    named = [of.name for of in audit.not_in_twins]
    assert named == (["delays of each action"] if name in MAY_LACK_CONVERSIONS else [])
    assert len(audit.warnings) == len(named)


def test_an_uneven_logger_is_audited_by_rejection() -> None:
    assert {policy.sampler for policy in audited("arms, unevenly logged").policies} == {"rejection"}


def test_the_wall_clock_is_found_to_be_biased() -> None:
    log = bernoulli_log(20_000, [0.1] * 7 + [0.6], mean_delay=400.0, seed=41)
    right, wrong = (
        evaluator.audit(log, ["delayed-klucb", "random"], window=400, twins=40, clock=clock, sampler="rejection")
        for clock in ("traffic", "wall")
    )
    assert not any(policy.biased for policy in right.policies)
    learner, random = wrong.policies
    assert learner.biased
    assert learner.bias > 0  # feedback looks faster than it is
    assert not random.biased
    assert "biased for delayed-klucb" in wrong.verdict
    assert any("does not tell" in said for said in wrong.warnings)
    # Both are held to the same live runs: full traffic, the window in its rounds.
    assert wrong.policies[1].live_value == pytest.approx(right.policies[1].live_value, rel=1e-3)


def test_few_twins_say_what_they_could_not_see() -> None:
    log = bernoulli_log(2000, [0.3, 0.6], mean_delay=50.0, seed=57)
    few, many = (evaluator.audit(log, "ucb1", twins=twins, seed=1).policies[0] for twins in (10, 100))
    # Ten twins know their own standard error badly: chance alone passes three of it more often than once in 370.
    assert few.detectable_bias / few.bias_standard_error > 4.0 + 0.84
    assert many.detectable_bias / many.bias_standard_error < 3.2 + 0.85
    assert few.detectable_bias > 2 * many.detectable_bias
    for policy in (few, many):
        assert abs(policy.bias) < policy.detectable_bias


def test_young_displays_counted_as_failures_are_found() -> None:
    log = cut(bernoulli_log(3000, [0.5, 0.5], mean_delay=1000.0, seed=42))
    found = evaluator.audit(log, "random", twins=40)
    (policy,) = found.policies
    assert policy.biased
    assert policy.bias < 0


def test_one_delay_law_for_all_actions_is_found_to_be_biased() -> None:
    make, policies, options = AUDITS["delays by action, corrected"]
    with patch.object(maturity, "_groups", lambda survey, columns: np.zeros(len(survey.display), np.int64)):
        found = evaluator.audit(make(), policies, twins=40, **options)
    quick, slow = found.policies[1:3]
    assert quick.biased
    assert slow.biased
    assert quick.bias > 0 > slow.bias
    # As biased as it is on logs of the world itself.
    off = held(Young(rates=(0.5, 0.35), displays=4000), ONE_LAW, range(20)).off[:, :2]
    for policy, here in zip((quick, slow), off.T, strict=True):
        error = np.hypot(policy.bias_standard_error, here.std(ddof=1) / 20**0.5)
        # The truth is fitted to one log: its rates and chances to show are known to about 3 %.
        assert abs(policy.bias - here.mean()) < 4 * error + 0.03 * abs(here.mean()) * 4


def test_twins_have_the_delays_by_action_and_the_rates_by_hour_of_the_log() -> None:
    log = Young(rates=(0.5, 0.5), displays=20_000, days=6.0, rhythm=0.6).draw(62)
    truth = truth_of(log)
    twin = draw_twin(truth, seed=1, twin=0)
    for action, mean in enumerate((0.2, 1.0)):
        for days in (0.1, 0.5, 1.0):
            true = np.expm1(-days / mean) / np.expm1(-2.0 / mean)
            for of in (log, twin):
                display = of.conversions["display_id"].to_numpy()
                old = of.column("time")[display] < of.column("time")[-1] - 2 * DAY
                mine = old & (of.column("action")[display] == action)
                delay = (of.conversions["time"].to_numpy() - of.column("time")[display])[mine]
                # The log's own sampling, and that of the truth fitted to it.
                assert abs((delay <= days * DAY).mean() - true) < 4 * (2 * 0.25 / len(delay)) ** 0.5
    hour = twin.column("time") % DAY // 3600
    converts = np.isin(np.arange(len(twin)), twin.conversions["display_id"].to_numpy())
    old = twin.column("time") < twin.column("time")[-1] - 2 * DAY
    for h in (0, 6, 12, 18):
        mine = old & (hour == h)
        true = 0.5 * log.column("expected_reward")[mine, 0].mean() / 0.5
        assert abs(converts[mine].mean() - true) < 4 * (2 * 0.25 / mine.sum()) ** 0.5
    assert abs(converts[old & (hour == 0)].mean() - converts[old & (hour == 12)].mean()) > 0.2
    assert any("follow the hour" in said for said in truth.said)
    assert any("laws of their own" in said for said in truth.said)
    even = truth_of(Young(delays=(0.5, 0.5), displays=20_000, days=6.0).draw(63))
    assert not any("follow the hour" in said for said in even.said)
    assert np.ptp(even.laws.tau, axis=0).max() < 0.05


@pytest.mark.parametrize(
    ("base", "gap", "displays", "others"), [(0.3, 0.06, 4000, 1), (0.01, 0.0005, 20_000, 1), (0.3, 0.1, 6000, 5)]
)
def test_the_smallest_difference_is_shown_on_four_of_five_logs(
    base: float, gap: float, displays: int, others: int
) -> None:
    """A truth with a difference as large as an audit says it could detect: compare tells it from 0 on 80 % of its logs.

    At small rates, where a spread taken at the fitted truth promises too much; and in a ranking, where what suffices
    for a pair alone does not.
    """
    runs = 1000
    found = promised(base, gap, displays=displays, others=others, twins=50, runs=runs)
    # A rate of the fitted truth is known to sqrt((1 - r) K / (r n)) of itself, a spread to half that; what is planned
    # is some four spreads, and the power rises by .28 a spread.
    known = 0.28 * 4 * ((1 - base) * (others + 1) / (base * FITTED)) ** 0.5 / 2
    bound = 0.8 - 4 * np.hypot((0.16 / runs) ** 0.5, known)
    assert found.alone >= bound
    assert found.ranked >= bound
    if others > 1:
        assert found.alone_in_ranking < bound
    if base < 0.1:
        assert found.at_the_fitted_truth < bound


def test_ranking_and_verdict() -> None:
    log = bernoulli_log(6000, [0.2, 0.7], mean_delay=5.0, seed=46)
    found = evaluator.audit(log, ["fixed:action=1", "fixed", "random"], twins=20)
    apart = found.pairs[0]
    assert apart.told_apart
    assert apart.told_apart_ranked
    assert apart.ranked_rightly == 1.0
    assert found.verdict.startswith(
        "On a log like this one, `evaluate compare` of these policies tells fixed:action=1 "
    )
    assert "standard error" in found.verdict
    assert "a bias below" in found.verdict
    same = evaluator.audit(bernoulli_log(2000, [0.4, 0.4], mean_delay=5.0, seed=47), ["ucb1", "random"], twins=20)
    assert "cannot tell ucb1 from random" in same.verdict
    assert same.pairs[0].ranked_rightly is None
    assert same.pairs[0].told_apart is False
    alone = evaluator.audit(log, "random", twins=20)
    assert "name a second policy" in alone.verdict
    assert alone.pairs == ()
    assert alone.differences.num_rows == 0


@pytest.mark.parametrize("name", ["arms", "action sets, logged by a softmax"])
def test_results_do_not_depend_on_jobs(name: str) -> None:
    make, policies, options = AUDITS[name]
    one, two = (evaluator.audit(make(), policies, twins=12, jobs=jobs, **options) for jobs in (1, 2))
    for table in ("twins", "differences", "live"):
        assert getattr(one, table).equals(getattr(two, table))
    assert {**one.to_dict(), "options": None} == {**two.to_dict(), "options": None}


def test_a_twin_of_a_twin_is_replayed_like_any_log() -> None:
    from evaluator.worlds.twin_log import replay_seed

    make, policies, options = AUDITS["action sets"]
    log = make()
    found = evaluator.audit(log, policies, twins=10, seed=5, **options)
    twin = draw_twin(truth_of(log, **options), seed=5, twin=7)
    alone = evaluator.replay(twin, policies[0], seed=replay_seed(5, 7), **options)
    row = found.twins.slice(7 * len(policies), 1).to_pylist()[0]
    assert (row["policy"], row["twin"], row["rounds"]) == (policies[0], 7, alone.rounds)
    assert (row["value"], row["value_low"]) == (alone.value.estimate, alone.value.low)


def test_a_policy_of_ones_own_is_audited_as_it_is_replayed() -> None:
    class First:
        contextual = False

        def __init__(self, setting: object) -> None: ...

        def choose(self, vectors: object, rng: object) -> int:
            return 1

        def displayed(self, vectors: object, action: int) -> None: ...

        def converted(self, vector: object, action: int, delay: int, value: float) -> None: ...

    log = bernoulli_log(600, [0.3, 0.6], mean_delay=5.0, seed=52)
    own, ours = (evaluator.audit(log, policy, twins=10).policies[0] for policy in (First, "fixed:action=1"))
    assert dataclasses.replace(own, policy="") == dataclasses.replace(ours, policy="")


def refused(log: Log, *policies: str, **options: object) -> str:
    with pytest.raises((DataError, ParameterError, PropensityError)) as error:
        evaluator.audit(log, list(policies), **{"twins": 10, **options})
    assert "\n" not in str(error.value)
    return str(error.value)


def test_errors_are_one_line() -> None:
    log = bernoulli_log(1000, [0.3, 0.4], mean_delay=5.0, seed=48)
    assert "needs contexts" in refused(log, "otflinucb")
    assert "there twice" in refused(log, "ucb1", "ucb1")
    assert "Nothing to compare" in refused(log)
    assert "`twins=3`" in refused(log, "ucb1", twins=3)
    assert "`displays=10`" in refused(log, "ucb1", displays=10)
    assert "conversions" in refused(build_log(time=np.arange(900), action=np.arange(900) % 2, n_actions=2), "ucb1")
    sets = linear_log(1000, n_actions=3, dimension=2, mean_delay=5.0, seed=49)
    absent = dataclasses.replace(sets).with_meta(propensity="absent")
    assert "`propensity='uniform'`" in refused(absent, "otflinucb")
