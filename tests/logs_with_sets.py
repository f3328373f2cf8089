"""Logs with eligible actions of every kind, small and quick to draw: for tests of what is made of such logs.

K = 8 actions whose rates follow a context, and geometric delays. `tests.worlds_with_sets` has worlds whose live runs
are known.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from tests.logs import build_log

K, D, WINDOW, MEAN_DELAY = 8, 5, 60, 40
BASE = np.linspace(0.05, 0.5, K)
EFFECT = np.random.default_rng(7).normal(size=(K, D)) * 0.08
SetKind = Literal["constant", "calendar", "context", "random"]
Logger = Literal["uniform", "popularity", "softmax"]
Floats = npt.NDArray[np.float64]


class Traffic(NamedTuple):
    """Contexts, eligible actions, and what each action would earn and when, of displays in their order."""

    context: Floats
    sets: npt.NDArray[np.bool_]
    converts: npt.NDArray[np.bool_]
    delay: npt.NDArray[np.int64]
    rate: Floats


def traffic(n: int, kind: SetKind, rng: np.random.Generator) -> Traffic:
    context = rng.normal(size=(n, D))
    sets = np.ones((n, K), np.bool_)
    time = np.arange(n) / n
    if kind == "constant":
        sets[:, [2, 5]] = False
    elif kind == "calendar":  # arms come one after the other, and the first ones go
        sets = (time[:, None] >= np.linspace(0.0, 0.6, K)) & (time[:, None] < np.linspace(0.4, 1.4, K))
    elif kind == "context":
        sets = context @ np.random.default_rng(3).normal(size=(D, K)) > -0.3
    else:
        sets = rng.random((n, K)) < 0.4
    sets[np.arange(n), rng.integers(0, K, n)] |= ~sets.any(axis=1)
    rate = np.clip(BASE + context @ EFFECT.T, 0.0, 1.0)
    return Traffic(context, sets, rng.random((n, K)) < rate, rng.geometric(1.0 / MEAN_DELAY, n), rate)


def propensities(logger: Logger, of: Traffic) -> Floats:
    score = np.zeros((len(of.context), K))
    if logger == "popularity":
        score = np.tile(np.log(np.linspace(1.0, 3.0, K)), (len(of.context), 1))
    elif logger == "softmax":
        score = of.context[:, :1] * np.linspace(-0.5, 0.5, K)
    p = np.where(of.sets, np.exp(score), 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def make_log(n: int, kind: SetKind, logger: Logger, seed: int) -> Log:
    rng = np.random.default_rng([seed, 1])
    of = traffic(n, kind, rng)
    p = propensities(logger, of)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, K - 1)
    at = np.arange(n)
    shown = np.flatnonzero(of.converts[at, action])
    return build_log(
        time=at, action=action, propensity=p[at, action], context=of.context, eligible=of.sets, n_actions=K,
        conversion_display=shown, conversion_time=shown + of.delay[shown], reward_max=1.0,
    )  # fmt: skip
