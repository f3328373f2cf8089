"""Replay of a deployment that explores first is that deployment played live, at each event and on a schedule.

Uniformly, or as the logging policy: then a display is a round with probability c whatever it shows. Which ways of that
are wrong is a test, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare, ttest_ind

from evaluator.delays.laws import geometric
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.rounds.propensity import logger_thinning
from evaluator.replays.run import execute
from evaluator.simulations import BernoulliProblem, LinearProblem, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.world import World as Live
from tests import logs_with_sets
from tests.live_with_sets import Thompson, live
from tests.logs import bernoulli_log, linear_log
from tests.logs_with_sets import SetKind
from tests.statistical.runs import Floats, off, regrets, replays, standard_error
from tests.worlds_with_sets import World, make_displays, make_log

ARMS = BernoulliProblem(name="arms", means=(0.2, 0.6, 0.4), laws=(geometric(50),))
LINEAR = LinearProblem(name="linear", n_actions=4, dimension=3, laws=(geometric(50, start=1),))
HORIZON, EXPLORED = 400, 120
LIVE, REPLAYED = 1000, 200
LOGGER, TEMPERATURE = (0.5, 0.2, 0.3), 1.0


def arms_log(seed: int) -> Log:
    return bernoulli_log(3 * (HORIZON + 120), ARMS.means, mean_delay=50.0, seed=seed)


def uneven_log(seed: int) -> Log:
    return bernoulli_log(5 * (HORIZON + 120), ARMS.means, mean_delay=50.0, seed=seed, logger=LOGGER)


def contextual_log(seed: int) -> Log:
    return linear_log(10 * HORIZON, n_actions=4, dimension=3, mean_delay=50.0, seed=seed, temperature=TEMPERATURE)


def action_sets_log(seed: int) -> Log:
    return linear_log(4 * (HORIZON + 120), n_actions=4, dimension=3, mean_delay=50.0, seed=seed)


@pytest.mark.parametrize("learns", [{}, {"learn_every": 60, "learn_lag": 10}], ids=["event", "pushes"])
@pytest.mark.parametrize(
    ("policy", "sampler"),
    [("ucb1", "rejection"), ("ucb1", "keep"), ("thompson", "rejection"), ("delayed-klucb", "keep"), ("linucb", None)],
)
def test_a_replay_that_explores_first_is_the_live_one(policy: str, sampler: str | None, learns: dict[str, Any]) -> None:
    linear = resolve(policy).contextual
    asked = {"window": 100, "horizon": HORIZON, "explore_first": EXPLORED, **learns}
    live = simulate(LINEAR if linear else ARMS, [resolve(policy)], SimulateOptions(runs=LIVE, seed=1, **asked)).curves[
        0
    ]
    told = {} if linear else {"delays": "geometric:50"}
    [replayed] = replays(
        action_sets_log if linear else arms_log, [policy], runs=REPLAYED, sampler=sampler, **asked, **told
    )
    found = regrets(replayed, HORIZON)
    z = (found.mean() - live.regret[-1]) / np.hypot(live.regret_se[-1], standard_error(found))
    assert abs(z) < 4, z


@pytest.mark.parametrize("sampler", ["rejection", "keep"])
def test_every_action_is_shown_alike_at_first_whatever_the_logger(sampler: str) -> None:
    log = bernoulli_log(60_000, ARMS.means, mean_delay=50.0, seed=3, logger=(0.6, 0.3, 0.1))
    [[result]] = replays(lambda seed: log, ["ucb1"], runs=1, sampler=sampler, explore_first=3000, horizon=3100)
    shown = np.bincount(result.trajectory["action"].to_numpy()[:3000], minlength=3)
    assert chisquare(shown).pvalue > 1e-4, shown


@pytest.mark.parametrize(
    ("policy", "sampler", "learns"),
    [("ucb1", "rejection", {}), ("thompson", "keep", {"learn_every": 60, "learn_lag": 10}), ("linucb", None, {})],
)
def test_a_replay_that_explores_as_its_logger_is_the_live_one(
    policy: str, sampler: str | None, learns: dict[str, Any]
) -> None:
    linear = resolve(policy).contextual
    asked = {"window": 100, "horizon": HORIZON, "explore_first": f"{EXPLORED}:logger", **learns}
    problem = replace(LINEAR, temperature=TEMPERATURE) if linear else replace(ARMS, logger=LOGGER)
    [live] = simulate(problem, [resolve(policy)], SimulateOptions(runs=LIVE, seed=1, **asked)).curves
    make, told = (contextual_log, {}) if linear else (uneven_log, {"delays": "geometric:50"})
    [replayed] = replays(make, [policy], runs=REPLAYED, sampler=sampler, **asked, **told)
    found = regrets(replayed, HORIZON)
    z = (found.mean() - live.regret[-1]) / np.hypot(live.regret_se[-1], standard_error(found))
    assert abs(z) < 4, z


WRONG: dict[str, Callable[[ReplayPlan], ReplayPlan]] = {
    # What thinning by c / propensity leaves is a round: actions are shown alike, as if the policy explored uniformly.
    "matched": lambda plan: replace(plan, as_logger=plan.matched),
    # The policy learns from all displays that pass while it explores, not from its rounds alone.
    "taught": lambda plan: replace(plan, as_logger=logger_thinning(plan.log, 1.0)),
}


@pytest.mark.parametrize("way", ["right", *WRONG])
def test_only_displays_accepted_alike_are_the_loggers_rounds(way: str) -> None:
    """A wrong way is off by more than 5 standard errors: in all rounds, or in those after exploring."""
    policy, problem = resolve("thompson"), replace(ARMS, logger=LOGGER)
    lived = simulate(
        problem,
        [policy],
        SimulateOptions(runs=LIVE, seed=1, horizon=HORIZON, window=100, explore_first=f"{EXPLORED}:logger"),
    )
    explored = round(EXPLORED / min(LOGGER)) if way == "taught" else EXPLORED
    since, live = (explored, lived.curves[0]) if way == "taught" else (0, lived.curves[0])
    before = live.regret[lived.rounds.tolist().index(EXPLORED)] if since else 0.0
    means = np.array(ARMS.means)

    def regret(seed: int) -> float:
        options = ReplayOptions(
            sampler="rejection", seed=seed, window=100, explore_first=f"{explored}:logger",
            horizon=explored + HORIZON - EXPLORED,
        )  # fmt: skip
        plan = plan_replay(uneven_log(seed), policy, options)
        shown = execute(WRONG[way](plan) if way in WRONG else plan).trajectory["action"].to_numpy()
        return float((means.max() - means[shown[since:]]).sum())

    found = np.array([regret(seed) for seed in range(REPLAYED)])
    z = (found.mean() - (live.regret[-1] - before)) / np.hypot(live.regret_se[-1], standard_error(found))
    assert abs(z) < 4 if way == "right" else abs(z) > 5, z


@pytest.mark.parametrize("way", ["right", "matched"])
@pytest.mark.parametrize(
    ("sets", "logger", "name", "displays"),
    [("random", "popularity", "thompson", 6000), ("context", "softmax", "ucb1", 15_000),
     ("calendar", "popularity", "linucb", 6000)],
)  # fmt: skip
def test_rounds_of_the_logger_are_live_where_eligible_actions_vary(
    sets: str, logger: str, name: str, displays: int, way: str
) -> None:
    """Expected and seen rewards, sizes of sets and numbers of rounds are those of live runs; matched ones are not."""
    world, options, explored = World(sets, logger, contextual=1.0, k=6), {"explore_first": "100:logger"}, 100
    rows, served = [], []
    for seed in range(40):
        drawn = make_displays(world, displays, seed)
        plan = plan_replay(make_log(world, drawn), resolve(name), ReplayOptions(seed=seed, **options))
        replayed = execute(plan if way == "right" else WRONG[way](plan))
        at = replayed.trajectory["display_id"].to_numpy()
        value, size = drawn.expected[at, drawn.action[at]].mean(), drawn.eligible[at].sum(axis=1).mean()
        rows.append((value, replayed.value.estimate, size, len(at)))
        served.append(drawn.propensity.min())
    lived = live(world, name, displays, np.repeat(served, 4), 1, as_logger=explored)
    z = [ttest_ind(*both, equal_var=False).statistic for both in zip(np.array(rows).T, lived, strict=True)]
    assert max(map(abs, z)) < 4 if way == "right" else abs(z[2]) > 5, z


def at_once(log: Log) -> Log:
    """Return a log whose conversions come with their displays."""
    events, time = log.events, np.asarray(log.column("time"))
    place = events.schema.get_field_index("time")
    when = pa.array(time[events["display_id"].to_numpy()], events.schema.field("time").type)
    return log.changed(events=events.set_column(place, "time", when))


@pytest.mark.parametrize("sets", ["random", "context"])
def test_a_live_run_explores_as_the_logger_among_eligible_actions(sets: SetKind) -> None:
    """A world that is fitted to a log, played live, is a loop in plain NumPy; one that explores uniformly is not."""
    truth = Live.fit(at_once(logs_with_sets.make_log(4000, sets, "popularity", 1)))
    assert isinstance(truth.model, LogTruth)
    assert truth.model.sets is not None
    rounds, explored, runs = 300, 200, 400
    lived = truth.play("thompson", rounds, runs=runs, explore_first=f"{explored}:logger").rewards
    eligible, rates, rng = truth.model.sets.truths, truth.model.rates, np.random.default_rng(2)

    def slow(shown: Floats, n: int = 4 * runs) -> Floats:
        policy = Thompson(World(k=eligible.shape[1]), n, rounds)
        run, x, earned = np.arange(n), np.zeros((n, 5)), np.zeros(n)
        for t in range(rounds):
            at = rng.integers(0, len(rates), n)
            drawn = (rng.random((n, 1)) > np.cumsum(shown[at], axis=1)).sum(axis=1).clip(0, eligible.shape[1] - 1)
            action = drawn if t < explored else policy.choose(run, x, eligible[at], rng)
            policy.shown(run, x, action)
            sold = rng.random(n) < rates[at, action]
            policy.told(run[sold], x, action[sold])
            earned += rates[at, action]
        return earned / rounds * truth.model.mean_value

    assert abs(off(lived, slow(truth.model.logger))) < 4
    assert abs(off(lived, slow(eligible / eligible.sum(axis=1, keepdims=True)))) > 5
