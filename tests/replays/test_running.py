"""The doubly robust value of a replay: what it changes, by hand, and what it refuses."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.api import plan
from evaluator.errors import ParameterError
from evaluator.estimates.weighted import doubly_robust, ips
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.policies.base import Setting
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute, replay_all
from evaluator.replays.values.doubly_robust import FIXED, LEARNING, fit_reward_model
from evaluator.replays.values.rewards import eventual_rewards
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from tests.logs import bernoulli_log, linear_log

LOG = linear_log(3000, n_actions=4, dimension=5, mean_delay=10.0, seed=1, temperature=0.2)
ARMS = bernoulli_log(3000, [0.5, 0.3, 0.2], mean_delay=10.0, seed=2, logger=[0.5, 0.3, 0.2])


@pytest.mark.parametrize(("log", "spec"), [(LOG, "otflinucb"), (LOG, "lints"), (ARMS, "thompson"), (ARMS, "klucb")])
def test_recording_changes_nothing_else(log: Log, spec: str) -> None:
    plain = replay(log, spec, window=50, sampler="rejection", seed=3)
    recorded = replay(log, spec, window=50, doubly_robust=True, seed=3)
    assert plain.trajectory.equals(recorded.trajectory)
    assert (plain.value, plain.doubly_robust) == (recorded.value, None)
    assert recorded.doubly_robust.value.n == 3000


def test_by_hand() -> None:
    planned = plan(LOG, "otflinucb", window=50, doubly_robust=True)
    (lane,) = replay_all([planned])
    rewards = eventual_rewards(planned, used=3000)
    sets, at = LOG.column("action_set"), np.arange(3000)
    model = fit_reward_model(LOG, rewards, to="earlier").values(0, 3000, sets)
    shown, chosen = LOG.column("action"), lane.replay.choices
    by_hand = doubly_robust(
        rewards.taken(at), chosen == shown, LOG.column("propensity"), model[at, shown], model[at, chosen]
    )
    result = execute(planned)
    assert result.doubly_robust == replace(by_hand, target=LEARNING)
    assert sum("which this interval need not hold" in said for said in result.assumptions) == 1


def test_neither_batches_nor_jobs_nor_company_matter() -> None:
    options = {"doubly_robust": True, "repeats": 2, "seed": 5}
    alone = replay(LOG, "lints", window=50, **options)
    assert alone.doubly_robust == execute(plan(LOG, "lints", window=50, **options), batch_size=70).doubly_robust
    together = compare(LOG, ["random", "lints"], baseline="random", windows=[50], jobs=2, **options)
    assert together.results[1].doubly_robust == alone.doubly_robust
    assert together.results[0].doubly_robust is not None


class Cautious:
    """A plain Python policy: the action whose first feature is largest."""

    contextual = True

    def __init__(self, setting: Setting) -> None:
        pass

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return int(np.argmax(vectors[:, 0]))

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        pass

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        pass


def test_of_a_policy_that_does_not_change_it_is_its_value() -> None:
    n = 6000  # rewards are so common here that the failures count, and 3,000 displays have too few
    log = linear_log(n, n_actions=4, dimension=5, mean_delay=10.0, seed=1, temperature=0.2)
    found = replay(log, Cautious, window=50, doubly_robust=True).doubly_robust
    best = log.column("expected_reward")[np.arange(n), log.column("action_set")[:, :, 0].argmax(axis=1)].mean()
    assert abs(found.value.estimate - best) < 4 * found.standard_error


@pytest.mark.parametrize("spec", ["random", "fixed:action=1", "columns"])
def test_a_policy_that_does_not_learn_has_one_value_by_its_own_probabilities(spec: str) -> None:
    target = np.random.default_rng(5).dirichlet(np.ones(3), 3000)
    log = replace(ARMS, displays=ARMS.displays.append_column("target", fixed_size_lists(target)))
    pi = {"random": np.full((3000, 3), 1 / 3), "fixed:action=1": np.tile([0.0, 1.0, 0.0], (3000, 1)), "columns": target}
    shown, at = log.column("action"), np.arange(3000)
    result = replay(log, spec, doubly_robust=True)
    assert result.doubly_robust == replace(result.final.dr, target=FIXED)
    weight = pi[spec][at, shown]
    reward = np.bincount(log.conversions["display_id"].to_numpy(), minlength=3000).astype(float)
    assert result.final.ips == ips(reward, weight, log.column("propensity"))
    assert (result.final.displays, result.final.learned, result.final.draws) == (3000, False, 0)
    # One number: the table of a learning policy has a row of its own, this one the fixed policy's alone.
    said = terminal(result)
    assert "over all displays read" not in said
    assert said.count("doubly robust") == 1
    # Without the option a policy without columns is not weighed.
    assert (replay(log, spec).final is None) == (spec != "columns")


def test_of_the_logging_policy_it_is_the_mean() -> None:
    result = replay(ARMS, "logging", doubly_robust=True)
    assert result.doubly_robust.value.estimate == result.value.estimate
    assert result.final is None


def test_without_enough_rewards_it_is_not_given_and_the_report_says_why() -> None:
    log = bernoulli_log(10_000, np.full(80, 0.0046), mean_delay=1.0, seed=4)
    result = replay(log, "thompson", doubly_robust=True)
    value = result.doubly_robust.value
    assert np.isnan([value.estimate, value.low, value.high, result.doubly_robust.standard_error]).all()
    told = result.to_dict()["doubly_robust"]
    assert (told["value"]["estimate"], told["value"]["low"], told["standard_error"]) == (None, None, None)
    assert "25 are needed" in told["withheld"]
    assert sum(said.startswith("The doubly robust value is not given") for said in result.warnings) == 1
    assert "too few rewards" in terminal(result)


def terminal(result: ReplayResult) -> str:
    console = ReportConsole(file=io.StringIO(), width=200)
    show(console, result)
    return console.file.getvalue()


def test_other_samplers_are_refused() -> None:
    for sampler in ("keep", "queue"):
        with pytest.raises(ParameterError, match=rf"unlike `sampler='{sampler}'`\. .*rejection"):
            replay(ARMS, "ucb1", doubly_robust=True, sampler=sampler)
    with pytest.raises(ParameterError, match="`reward='observed'` and `doubly_robust` exclude each other"):
        replay(ARMS, "ucb1", doubly_robust=True, reward="observed")
