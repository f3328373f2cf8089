"""Frozen policies on logs of known truth: their estimated value on one log, and the true one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from evaluator.api import plan
from evaluator.delays.cdf import DelayCDF
from evaluator.engine.frozen import FrozenPolicy
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.stream import LogRounds
from evaluator.replays.run import replay_all
from evaluator.replays.values.doubly_robust import RewardModels
from evaluator.replays.values.final import FinalValue, frozen_value
from tests.logs import bernoulli_log, build_log, linear_log

MEANS, LOGGER = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
MEAN_DELAY, ATTRIBUTION = 100.0, 250


EXPLORING = (("final_policy", "exploring"),)


class Case(NamedTuple):
    """A kind of log, a policy, options of the replay, and the share of the rewards that the log counts at all."""

    make: Callable[[int], Log]
    policy: str
    options: tuple[tuple[str, Any], ...] = ()
    counted: float = 1.0


def crossed_log(n: int, *, seed: int, even: bool) -> Log:
    """Return a log whose rewards are no linear function of the context: each action has its own exclusive or."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 2))
    crossed = (bits[:, 0] != bits[:, 1]).astype(float)
    expected = 0.3 + np.array([0.3, 0.0, -0.2]) * (crossed - 0.5)[:, None] + np.array([0.0, 0.1, 0.2]) * bits[:, :1]
    scores = (0.0 if even else 1.0) * np.array([1.5, 0.0, -1.0]) * (crossed - 0.5)[:, None]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    at = np.arange(n)
    shown = np.flatnonzero(rng.random(n) < expected[at, action])
    return build_log(
        time=at, action=action, conversion_display=shown, conversion_time=shown + rng.geometric(0.05, len(shown)),
        n_actions=3, propensity=p[at, action], context=np.column_stack([np.ones(n), bits]), expected_reward=expected,
    )  # fmt: skip


def cut_log(n: int, *, seed: int, logger: tuple[float, ...] | None) -> Log:
    """Return a log that stopped looking at its last display, and after the attribution window before."""
    log = bernoulli_log(n, MEANS, mean_delay=MEAN_DELAY, seed=seed, logger=logger)
    when, of = to_numpy(log.conversions["time"]), to_numpy(log.conversions["display_id"])
    seen = (when <= n - 1) & (when - of <= ATTRIBUTION)
    cut = replace(log, events=log.conversions.filter(seen))
    return cut.with_meta(observed_until=n - 1, attribution_window=ATTRIBUTION)


def _arms(logger: tuple[float, ...] | None) -> Callable[[int], Log]:
    return lambda seed: bernoulli_log(2000, MEANS, mean_delay=20.0, seed=seed, logger=logger)


def _sets(temperature: float | None) -> Callable[[int], Log]:
    return lambda seed: linear_log(5000, n_actions=4, dimension=3, mean_delay=20.0, seed=seed, temperature=temperature)


def _cut(logger: tuple[float, ...] | None) -> Callable[[int], Log]:
    return lambda seed: cut_log(2500, seed=seed, logger=logger)


_SEEN = float(DelayCDF.geometric(MEAN_DELAY)(ATTRIBUTION))
CASES = {
    "arms, uniform": Case(_arms(None), "delayed-klucb:ties=lowest"),
    "arms, uneven": Case(_arms(LOGGER), "delayed-klucb:ties=lowest"),
    "arms drawn, uneven": Case(_arms(LOGGER), "thompson", (("horizon", 60), *EXPLORING)),
    "arms drawn, uneven, greedy": Case(_arms(LOGGER), "thompson", (("horizon", 60),)),
    "arms, uneven, exploring": Case(_arms(LOGGER), "delayed-klucb:ties=lowest", EXPLORING),
    "action sets, uniform": Case(_sets(None), "otflinucb:alpha=0.1,ties=lowest"),
    "action sets, by softmax": Case(_sets(0.2), "otflinucb:alpha=0.1,ties=lowest"),
    "action sets drawn, by softmax": Case(_sets(0.2), "lints", (("horizon", 60), *EXPLORING)),
    "wrong model, uniform": Case(partial(crossed_log, 2000, even=True), "linucb:ties=lowest"),
    "wrong model, by context": Case(partial(crossed_log, 2000, even=False), "linucb:ties=lowest"),
    "young displays dropped": Case(_cut(None), "delayed-klucb:ties=lowest", (("immature", "drop"),), _SEEN),
    "young displays corrected": Case(_cut(LOGGER), "delayed-klucb:ties=lowest", (("immature", "correct"),), _SEEN),
}


def one_run(case: Case, run: int) -> tuple[FinalValue, float]:
    """Return the estimated and the true value of the final policy of one replay of log number `run`."""
    log = case.make(run) if not isinstance(case.make, partial) else case.make(seed=run)
    planned = plan(log, case.policy, window=200, final="last:50%", seed=run, **dict(case.options))
    (lane,) = replay_all([planned])
    found = frozen_value(planned, [lane.replay], RewardModels())
    return found, case.counted * true_value(planned, lane.replay.state)


def true_value(planned: Any, state: Any) -> float:
    """Return the value of a frozen state over fresh displays, whose expected rewards are known."""
    if planned.rounds.vectors is None:
        frozen = _frozen(planned, state, displays=1)
        return float(np.array(MEANS) @ frozen.probabilities(np.zeros((1, 1, 0)), 1)[0])
    return _fresh_value(planned, state)


def _fresh_value(planned: Any, state: Any) -> float:
    expected, vectors = _fresh_displays(planned.rounds.vectors)
    n = len(expected)
    return float((expected * _frozen(planned, state, displays=n).probabilities(vectors, n)).sum(axis=1).mean())


@cache
def _fresh_displays(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return expected rewards and vectors of displays that no log has: the same ones for all runs."""
    n = 20_000
    fresh = (
        linear_log(n, n_actions=4, dimension=3, mean_delay=1.0, seed=10**6)
        if kind == "action_set"
        else crossed_log(n, seed=10**6, even=True)
    )
    rounds = LogRounds(fresh, n, kind, np.zeros(fresh.conversions.num_rows, np.int64))
    return fresh.column("expected_reward"), np.concatenate([batch.vectors for _, batch in rounds.batches()])


def _frozen(planned: Any, state: Any, *, displays: int) -> FrozenPolicy:
    """Return the final policy that the plan values, with another seed."""
    k, wanted = planned.log.n_actions, planned.options.final_policy
    return FrozenPolicy(planned.policy, state, n_actions=k, displays=displays, wanted=wanted, seed=1)


def runs_of(name: str, runs: int) -> Iterator[tuple[FinalValue, float]]:
    """Return estimate and truth on some logs of a case."""
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(partial(one_run, CASES[name]), range(runs))
