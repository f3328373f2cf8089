"""Replay with eligible sets is a live run: against an independent NumPy simulation, and the tempting wrong ways fail.

Nothing of the live runs is the package's: policies are written anew from their definitions. Each world has K = 8 arms
whose rates follow a context, geometric delays, and a window. A replay of n displays has T rounds, a random number; the
live run has as many as the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import evaluator
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


def pick(score: Floats, eligible: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
    """Return an eligible arm with the largest score, equals at random."""
    score = np.where(eligible, score, -np.inf)
    return int(rng.choice(np.flatnonzero(score == score.max())))


class LiveUCB:
    def __init__(self) -> None:
        self.n, self.s, self.t = np.zeros(K), np.zeros(K), 0

    def choose(self, x: Floats, eligible: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.minimum(self.s / self.n, 1.0) + np.sqrt(2.0 * np.log(self.t + 1.0) / self.n)
        return pick(np.where(self.n > 0, index, np.inf), eligible, rng)

    def shown(self, x: Floats, arm: int) -> None:
        self.n[arm] += 1
        self.t += 1

    def told(self, x: Floats, arm: int) -> None:
        self.s[arm] += 1


class LiveThompson(LiveUCB):
    def choose(self, x: Floats, eligible: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
        return pick(rng.beta(1.0 + self.s, 1.0 + self.n - self.s), eligible, rng)


class LiveLinUCB:
    def __init__(self) -> None:
        self.v, self.b = np.tile(np.eye(D), (K, 1, 1)), np.zeros((K, D))

    def choose(self, x: Floats, eligible: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
        inverse = np.linalg.inv(self.v)
        mean = np.einsum("kij,kj,i->k", inverse, self.b, x)
        return pick(mean + np.sqrt(np.einsum("i,kij,j->k", x, inverse, x)), eligible, rng)

    def shown(self, x: Floats, arm: int) -> None:
        self.v[arm] += np.outer(x, x)

    def told(self, x: Floats, arm: int) -> None:
        self.b[arm] += x


LIVE: dict[str, Callable[[], Any]] = {"ucb1": LiveUCB, "thompson": LiveThompson, "linucb": LiveLinUCB}


def live_value(policy: str, rounds: int, kind: SetKind, seed: int) -> float:
    """Return the mean reward of a live run of so many rounds; where arms come and go, over all of their calendar."""
    rng = np.random.default_rng([seed, 2])
    of, one = traffic(rounds, kind, rng), LIVE[policy]()
    due: dict[int, list[tuple[int, int]]] = {}
    earned = 0
    for i in range(rounds):
        arm = one.choose(of.context[i], of.sets[i], rng)
        one.shown(of.context[i], arm)
        earned += int(of.converts[i, arm])
        if of.converts[i, arm] and of.delay[i] <= WINDOW:
            due.setdefault(i + int(of.delay[i]), []).append((i, arm))
        for j, was in due.pop(i, []):
            one.told(of.context[j], was)
    return earned / rounds


CASES: list[tuple[str, SetKind, Logger]] = [
    ("ucb1", "random", "uniform"),
    ("ucb1", "calendar", "popularity"),
    ("thompson", "calendar", "uniform"),
    ("thompson", "context", "softmax"),
    ("thompson", "random", "popularity"),
    ("linucb", "context", "uniform"),
    ("linucb", "constant", "softmax"),
    ("linucb", "random", "softmax"),
]
RUNS, DISPLAYS = 60, 8_000


def replayed(policy: str, kind: SetKind, logger: Logger) -> tuple[Floats, Floats]:
    """Return value and rounds of replays of independent logs."""
    out = []
    for seed in range(RUNS):
        log = make_log(DISPLAYS, kind, logger, seed)
        found = evaluator.replay(log, policy=policy, window=WINDOW, seed=seed)
        assert not [line for line in found.warnings if "lean to small sets" in line]
        out.append((found.value.estimate, found.rounds))
    value, rounds = np.array(out).T
    return value, rounds


@pytest.mark.parametrize(("policy", "kind", "logger"), CASES)
def test_a_replay_earns_what_a_live_run_does(policy: str, kind: SetKind, logger: Logger) -> None:
    value, rounds = replayed(policy, kind, logger)
    live = np.array([live_value(policy, round(float(rounds.mean())), kind, seed) for seed in range(2 * RUNS)])
    error = np.sqrt(value.var(ddof=1) / len(value) + live.var(ddof=1) / len(live))
    assert abs(value.mean() - live.mean()) < 3.5 * error  # eight cases: one in 270 by chance


def test_propensities_of_one_over_k_are_found_out_by_the_sizes_of_the_sets() -> None:
    alarms = 0
    for seed in range(5):
        log = make_log(DISPLAYS, "random", "uniform", seed)
        at = log.displays.schema.get_field_index("propensity")
        wrong = np.full(len(log), 1.0 / K)
        wrong = replace(log, displays=log.displays.set_column(at, "propensity", [wrong]))
        found = evaluator.replay(wrong, policy="thompson", window=WINDOW)
        alarms += any("lean to small sets" in line for line in found.warnings)
    assert alarms == 5
