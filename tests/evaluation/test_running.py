"""The doubly robust value of a replay: what it changes, by hand, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.api import plan
from evaluator.errors import ParameterError
from evaluator.estimates.weighted import doubly_robust
from evaluator.evaluation.execute import execute
from evaluator.evaluation.reward_model import fit_reward_model
from evaluator.evaluation.rewards import eventual_rewards
from evaluator.evaluation.scan import replay_all
from tests.logs import bernoulli_log, linear_log

LOG = linear_log(3000, n_actions=4, dimension=3, mean_delay=10.0, seed=1, temperature=0.2)
ARMS = bernoulli_log(3000, [0.5, 0.3, 0.2], mean_delay=10.0, seed=2, logger=[0.5, 0.3, 0.2])


@pytest.mark.parametrize(("log", "spec"), [(LOG, "otflinucb"), (LOG, "lints"), (ARMS, "thompson"), (ARMS, "klucb")])
def test_recording_changes_nothing_else(log, spec: str) -> None:
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
    assert execute(planned).doubly_robust == by_hand


def test_neither_batches_nor_jobs_nor_company_matter() -> None:
    options = {"doubly_robust": True, "repeats": 2, "seed": 5}
    alone = replay(LOG, "lints", window=50, **options)
    assert alone.doubly_robust == execute(plan(LOG, "lints", window=50, **options), batch_size=70).doubly_robust
    together = compare(LOG, ["random", "lints"], windows=[50], jobs=2, **options)
    assert together.results[1].doubly_robust == alone.doubly_robust
    assert together.results[0].doubly_robust is not None


class Cautious:
    """A plain Python policy: the action whose first feature is largest."""

    contextual = True

    def __init__(self, setting) -> None:
        pass

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return int(np.argmax(vectors[:, 0]))

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        pass

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        pass


def test_of_a_policy_that_does_not_learn_it_is_the_frozen_value_but_for_the_model() -> None:
    found = replay(LOG, Cautious, window=50, doubly_robust=True).doubly_robust
    best = LOG.column("expected_reward")[np.arange(3000), LOG.column("action_set")[:, :, 0].argmax(axis=1)].mean()
    assert abs(found.value.estimate - best) < 4 * found.standard_error


def test_the_logging_policy_has_none() -> None:
    assert replay(ARMS, "logging", doubly_robust=True).doubly_robust is None


def test_other_samplers_are_refused() -> None:
    for sampler in ("keep", "queue"):
        with pytest.raises(ParameterError, match=rf"unlike --sampler {sampler}\. .*rejection"):
            replay(ARMS, "ucb1", doubly_robust=True, sampler=sampler)
    with pytest.raises(ParameterError, match="--reward observed and --doubly-robust exclude each other"):
        replay(ARMS, "ucb1", doubly_robust=True, reward="observed")
