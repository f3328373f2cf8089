"""Weighted values where rewards are few: what is found on one log of known truth, whatever is withheld."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Literal, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt

from evaluator.api import plan
from evaluator.estimates import weighted
from evaluator.estimates.weighted import WeightedValue, doubly_robust, ips, snips
from evaluator.log import Log
from evaluator.replays.run import replay_all
from evaluator.replays.values.doubly_robust import running_value
from tests.logs import build_log

Logger = Literal["uniform", "uneven", "steep"]
# How unevenly the logger shares displays out: Dirichlet's parameter, and the share that is spread evenly.
_LOGGERS = {"uneven": (1.0, 0.1), "steep": (0.3, 0.02)}
CONTEXTS = 3


class World(NamedTuple):
    """A kind of log: how many actions, at what mean rate, shown by what logger, for how many displays."""

    actions: int
    rate: float
    logger: Logger
    displays: int
    revenue: bool = False
    rhythm: bool = False

    def rates(self) -> npt.NDArray[np.float64]:
        """Return the rate of each action in each context, shape (contexts, K)."""
        spread = np.random.default_rng(7).normal(0.0, 0.5, (CONTEXTS, self.actions))
        return np.minimum(self.rate * np.exp(spread), 0.95)

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the probability of each action in each context, shape (contexts, K)."""
        k = self.actions
        if self.logger == "uniform":
            return np.full((CONTEXTS, k), 1.0 / k)
        alpha, even = _LOGGERS[self.logger]
        drawn: npt.NDArray[np.float64] = np.random.default_rng(8).dirichlet(np.full(k, alpha), CONTEXTS)
        return (1.0 - even) * drawn + even / k


class Displays(NamedTuple):
    """Displays of a world, shape (n,), and the expected reward of each action, shape (n, K)."""

    context: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    propensity: npt.NDArray[np.float64]
    reward: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]


def drawn(world: World, seed: int) -> Displays:
    """Draw displays; with a rhythm contexts and rates go with the hour, revenue gives conversions values of mean 1."""
    rng = np.random.default_rng(seed)
    n, p = world.displays, world.shares()
    hour = np.sin(2.0 * np.pi * np.arange(n) / (n / 10.0)) if world.rhythm else np.zeros(n)
    context = np.where(rng.random(n) < 0.4 * np.maximum(hour, 0.0), 0, rng.integers(0, CONTEXTS, n))
    action, draws = np.empty(n, np.int64), rng.random(n)
    for c in range(CONTEXTS):
        action[context == c] = np.searchsorted(np.cumsum(p[c])[:-1], draws[context == c])
    expected = np.minimum(world.rates()[context] * (1.0 + 0.5 * hour)[:, None], 1.0)
    at = np.arange(n)
    reward = (rng.random(n) < expected[at, action]).astype(float)
    if world.revenue:
        reward *= np.exp(rng.normal(-0.125, 0.5, n))
    return Displays(context, action, p[context, action], reward, expected)


def log_of(world: World, seed: int) -> Log:
    """Return a log of a world, whose conversions come after 20 displays on average."""
    of = drawn(world, seed)
    at = np.flatnonzero(of.reward)
    later = np.random.default_rng(seed + 10**6).geometric(1 / 20.0, len(at))
    return build_log(
        time=np.arange(world.displays), action=of.action, n_actions=world.actions, propensity=of.propensity,
        conversion_display=at, conversion_time=at + later, conversion_value=of.reward[at],
        context=np.column_stack([np.ones(world.displays), np.eye(CONTEXTS)[of.context]]), expected_reward=of.expected,
    )  # fmt: skip


def nothing_withheld() -> AbstractContextManager[object]:
    """Return a context in which weighted values are given whatever they rest on."""
    return mock.patch.object(weighted, "NEEDED", 0.0)


class Found(NamedTuple):
    """A value, were nothing withheld; its target; and the value of the rounds, or of the displays, of this very log."""

    value: WeightedValue
    truth: float
    of_rounds: float

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.value.value.low <= self.truth <= self.value.value.high

    @property
    def holds_rounds(self) -> bool:
        """Whether it holds the value of the accepted rounds."""
        return self.value.value.low <= self.of_rounds <= self.value.value.high


def frozen_of(world: World, seed: int) -> dict[str, Found]:
    """Return IPS, SNIPS and DR of a fixed stochastic policy on one log."""
    of, pi = drawn(world, seed), _fixed(world)
    q = world.rates().mean(axis=1)[of.context]  # a model of the contexts alone: wrong, as models are
    first = (of.reward, pi[of.context, of.action], of.propensity)
    of_these = float((pi[of.context] * of.expected).sum(axis=1).mean())
    truth = _truth(world)
    with nothing_withheld():
        found = {"ips": ips(*first), "snips": snips(*first), "dr": doubly_robust(*first, q, q)}
    return {name: Found(value, truth, of_these) for name, value in found.items()}


def _fixed(world: World) -> npt.NDArray[np.float64]:
    drawn: npt.NDArray[np.float64] = np.random.default_rng(9).dirichlet(np.full(world.actions, 0.5), CONTEXTS)
    return drawn


@cache
def _truth(world: World) -> float:
    """Return the expected value of the fixed policy over displays."""
    n = 10_000
    hour = np.sin(2.0 * np.pi * np.arange(n) / (n / 10.0)) if world.rhythm else np.zeros(n)
    first = 0.4 * np.maximum(hour, 0.0)
    of_context = first[:, None] * np.eye(CONTEXTS)[0] + (1.0 - first[:, None]) / CONTEXTS
    # Rates are far enough from 1 for the rhythm never to cut them.
    return float((of_context * (1.0 + 0.5 * hour)[:, None]).mean(axis=0) @ (_fixed(world) * world.rates()).sum(axis=1))


def learning_of(world: World, policy: str, seed: int) -> Found:
    """Return the doubly robust value of a policy that learns, over the displays read, and what it is over these."""
    log = log_of(world, seed)
    planned = plan(log, policy, window=200, seed=seed, doubly_robust=True)
    (lane,) = replay_all([planned])
    with nothing_withheld():
        value = running_value(planned, [lane.replay])
    expected, shown = log.column("expected_reward"), lane.replay.displays
    chosen = expected[np.arange(lane.replay.read), lane.replay.choices]
    return Found(value, float(chosen.mean()), float(chosen[shown].mean()) if len(shown) else float("nan"))
