"""The bandit problem played live, without a log: what a replay must agree with.

Nothing of the replayer is used, only the policies' own functions. A conversion of round s with delay D <= m is revealed
at the end of round s + D; conversions wait in one bucket a revealing round, so there is no heap whose error could
repeat here. A policy that serves a share of the traffic counts the same delays in its own, fewer rounds.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled
from evaluator.policies import dispatch
from evaluator.policies.base import Setting


@dataclass(frozen=True, kw_only=True)
class Bernoulli:
    """Arms with these means, delays geometric on {0, 1, ...}."""

    means: tuple[float, ...]
    mean_delay: float

    @property
    def n_actions(self) -> int:
        return len(self.means)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Vernade et al. 2020: fresh unit vectors every round, theta = 1/sqrt(d), delays geometric on {1, 2, ...}."""

    n_actions: int
    dimension: int
    mean_delay: float


def live_regrets(
    policy: Any,
    setting: Setting,
    scenario: Bernoulli | Linear,
    *,
    runs: int,
    seed: int,
    traffic_share: float = 1.0,
) -> npt.NDArray[np.float64]:
    """Return the pseudo-regret after `setting.horizon` rounds of each run, shape (runs,)."""
    linear = isinstance(scenario, Linear)
    means = np.zeros(scenario.n_actions) if linear else np.array(scenario.means)
    dimension = scenario.dimension if linear else 0

    def one(stream: np.random.SeedSequence) -> float:
        world, own = (np.random.default_rng(s) for s in stream.spawn(2))
        state = policy.start(setting)
        return float(
            _play(
                state, own, world, means, dimension, scenario.mean_delay, traffic_share, setting.window, setting.horizon
            )
        )

    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(one, np.random.SeedSequence(seed).spawn(runs))))


@compiled
def _play(
    state: Any,
    own: np.random.Generator,
    world: np.random.Generator,
    means: npt.NDArray[np.float64],
    dimension: int,
    mean_delay: float,
    traffic_share: float,
    window: int,
    horizon: int,
) -> float:
    k = means.shape[0]
    expected = means.copy()
    first = np.full(horizon + 1, -1)  # first conversion of each bucket, named by its round
    following = np.full(horizon + 1, -1)
    actions = np.zeros(horizon + 1, np.int64)
    shown = np.zeros((horizon + 1, dimension))
    regret = 0.0
    for t in range(1, horizon + 1):
        vectors = np.zeros((max(1, k * (dimension > 0)), dimension))
        if dimension > 0:
            for a in range(k):
                length = 0.0
                for i in range(dimension):
                    vectors[a, i] = world.random()
                    length += vectors[a, i] ** 2
                vectors[a] /= np.sqrt(length)
                expected[a] = vectors[a].sum() / np.sqrt(dimension)
        dispatch.begin(state, own)
        action = dispatch.choose(state, vectors)
        dispatch.shown(state, vectors, action)
        regret += expected.max() - expected[action]
        actions[t] = action
        shown[t] = vectors[action] if dimension > 0 else vectors[0]
        if world.random() < expected[action]:
            delay = (
                world.geometric(1.0 / mean_delay) if dimension > 0 else world.geometric(1.0 / (1.0 + mean_delay)) - 1
            )
            delay = int(np.rint(delay * traffic_share))
            if delay <= window and t + delay <= horizon:
                following[t] = first[t + delay]
                first[t + delay] = t
        s = first[t]
        while s >= 0:
            dispatch.told(state, shown[s], actions[s], t - s, 1.0)
            s = following[s]
    return regret
