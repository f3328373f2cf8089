"""The doubly robust value is that of the choices at all displays read, and tells it better than the replay its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from evaluator.api import plan
from evaluator.log import Log
from evaluator.replays.run import execute, replay_all
from evaluator.replays.values.doubly_robust import running_value
from tests.logs import bernoulli_log, linear_log
from tests.statistical.few_rewards import nothing_withheld
from tests.statistical.frozen_runs import LOGGER, MEANS, crossed_log

RUNS = 150

CASES: dict[str, tuple[Callable[..., Log], str]] = {
    "arms, uneven": (partial(bernoulli_log, 2000, MEANS, mean_delay=20.0, logger=LOGGER), "thompson"),
    "action sets, by softmax": (
        partial(linear_log, 2000, n_actions=4, dimension=3, mean_delay=20.0, temperature=0.2), "otflinucb:alpha=0.1",
    ),
    "wrong model, by context": (partial(crossed_log, 2000, even=False), "linucb:alpha=0.3"),
}  # fmt: skip


class Run(NamedTuple):
    """Errors of both estimators against their truths, the standard error said, and whether the interval covers."""

    robust: float
    plain: float
    said: float
    covered: bool
    both: float


def one(name: str, run: int) -> Run:
    make, policy = CASES[name]
    log = make(seed=run)
    planned = plan(log, policy, window=200, seed=run, doubly_robust=True)
    (lane,) = replay_all([planned])
    found = running_value(planned, [lane.replay])
    expected = log.column("expected_reward")
    read = np.arange(lane.replay.read)
    truth = expected[read, lane.replay.choices].mean()
    shown = lane.replay.displays
    assert (lane.replay.choices[shown] == log.column("action")[shown]).all()
    of_rounds = expected[shown, log.column("action")[shown]].mean()
    plain = execute(planned).value.estimate
    return Run(
        found.value.estimate - truth,
        plain - of_rounds,
        found.standard_error,
        found.value.low <= truth <= found.value.high,
        found.value.estimate - plain,
    )


@pytest.mark.parametrize("name", CASES)
def test_unbiased_covered_and_more_precise_than_the_replay(name: str) -> None:
    with nothing_withheld(), ThreadPoolExecutor(2) as pool:
        robust, plain, said, covered, both = map(np.array, zip(*pool.map(partial(one, name), range(RUNS)), strict=True))
    for error in (robust, both):  # against the truth, and against the plain replay, of one expectation
        assert abs(error.mean()) < 4 * error.std(ddof=1) / math.sqrt(RUNS)
    # What is said holds the spread of the conditional means too, so it may be too large, never too small.
    assert math.sqrt((said**2).mean()) > robust.std(ddof=1) * (1 - 4 / math.sqrt(2 * RUNS))
    assert covered.mean() > 0.95 - 4 * math.sqrt(0.95 * 0.05 / RUNS)
    # Without contexts the model knows no more than the accepted displays' own means.
    if not name.startswith("arms"):
        assert robust.std(ddof=1) < plain.std(ddof=1)
