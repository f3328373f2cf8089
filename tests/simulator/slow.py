"""A live run round by round in plain Python: the simulator's streams and conventions, none of its code.

Everything is remembered; both regrets are summed anew from their definitions after each round.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluator.policies.base import Setting
from evaluator.simulator.problem import LinearProblem, Problem


@dataclass(frozen=True)
class SlowRun:
    """Actions, regrets after each round, conversions by fate."""

    actions: list[int]
    regret: list[float]
    observed: list[float]
    counts: Counter[str]


def slow_run(policy: Any, problem: Problem, setting: Setting, *, seed: int, run: int) -> SlowRun:
    luck = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, run)))
    own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4, run)))
    k, window = problem.n_actions, setting.window
    laws = [problem.laws[a if len(problem.laws) > 1 else 0] for a in range(k)]
    actions: list[int] = []
    all_rates: list[np.ndarray] = []
    due: dict[int, list[tuple[int, np.ndarray]]] = {}
    counts: Counter[str] = Counter()
    regret, observed = [], []
    for t in range(1, setting.horizon + 1):
        vectors = np.zeros((1, 0))
        if isinstance(problem, LinearProblem):
            drawn = luck.random((k, problem.dimension))
            drawn /= np.sqrt((drawn**2).sum(axis=1, keepdims=True))
            rates = drawn @ np.full(problem.dimension, problem.dimension**-0.5)
            if setting.dimension:
                vectors = drawn
        else:
            rates = np.array(problem.means)
        reward_draw, delay_draw = luck.random(), luck.random()
        action = int(policy.choose(vectors, own))
        policy.displayed(vectors, action)
        actions.append(action)
        all_rates.append(rates)
        law = laws[action]
        if reward_draw < rates[action]:
            counts["generated"] += 1
            delay = 0
            while delay_draw < law.reach and law(delay) <= delay_draw and t + delay <= setting.horizon:
                delay += 1
            if delay_draw >= law.reach:
                counts["lost"] += 1
            elif delay_draw >= law(min(window, 2**53)):
                counts["expired"] += 1
            elif t + delay > setting.horizon:
                counts["pending"] += 1
            else:
                counts["delivered"] += 1
                due.setdefault(t + delay, []).append((t, vectors[action] if len(vectors) == k else vectors[0]))
        for shown, vector in due.pop(t, []):
            policy.converted(vector, actions[shown - 1], t - shown, 1.0)
        eventual = [[r[a] * laws[a].reach for a in range(k)] for r in all_rates]
        best = [int(np.argmax(e)) for e in eventual]
        regret.append(sum(max(e) - e[a] for e, a in zip(eventual, actions, strict=True)))
        ages = [min(window, t - s) for s in range(1, t + 1)]
        observed.append(
            sum(
                r[b] * float(laws[b](age)) - r[a] * float(laws[a](age))
                for r, b, a, age in zip(all_rates, best, actions, ages, strict=True)
            )
        )
    return SlowRun(actions, regret, observed, counts)
