"""What the sections replay."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from tests.logged_rounds import LoggedRounds
from tests.logs import bernoulli_log, linear_log

CONTEXTUAL = ("linucb", "lints", "waitlinucb", "otflinucb", "otflinucb:width=theorem", "otflints")
ARMS = ("random", "fixed", "ucb1", "klucb", "delayed-ucb", "delayed-klucb", "thompson")
K, D = 10, 5
# Rates of advertising, and rates at which conversions come every other display.
RATES = {"rates .03-.08": np.linspace(0.03, 0.08, K), "rates .3-.7": np.linspace(0.3, 0.7, K)}


def linear(displays: int, *, mean_delay: float = 100, n_actions: int = K) -> Log:
    """Return the scenario of Vernade et al. 2020: K = 10 vectors of d = 5, new at each display."""
    return linear_log(displays, n_actions=n_actions, dimension=D, mean_delay=mean_delay, seed=0)


def arms(displays: int, rates: str, *, mean_delay: float = 100) -> Log:
    return bernoulli_log(displays, RATES[rates], mean_delay=mean_delay, seed=0)


def planned(log: Log, policy: str, *, window: int, **options: Any) -> ReplayPlan:
    return plan_replay(log, resolve(policy), ReplayOptions(window=window, **options))


def large(shape: tuple[int, int, int], displays: int, *, n_actions: int) -> tuple[Setting, LoggedRounds]:
    """Return unit vectors of this shape and uniform displays, of which half convert, 100 rounds late on average.

    float64, so that only the replay is timed.
    """
    rng = np.random.default_rng(0)
    vectors = rng.random(shape)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    converts = rng.random(displays) < 0.5
    rounds = LoggedRounds(
        action=rng.integers(0, n_actions, displays).astype(np.int32),
        vectors=vectors,
        first_conversion=np.concatenate(([0], np.cumsum(converts))),
        delay=rng.geometric(0.01, int(converts.sum())),
        value=np.ones(int(converts.sum())),
        n_actions=n_actions,
    )
    setting = Setting(n_actions=n_actions, dimension=shape[2], rows=shape[1], window=500, horizon=displays)
    return setting, rounds
