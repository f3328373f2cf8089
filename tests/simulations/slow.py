"""A live run round by round in plain Python: the simulator's streams and conventions, none of its code.

Everything is remembered; both regrets are summed anew from their definitions after each round.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.policies.base import Setting
from evaluator.worlds.scenarios.problem import LinearProblem, Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SlowRun:
    """Actions, conversions by fate; rates of each round, tau of each action at ages 0 to T, what ever comes of it.

    Which actions are eligible in each round, shape (T, K).
    """

    actions: list[int]
    counts: Counter[str]
    rates: Floats
    tau: Floats
    reach: Floats
    window: int
    eligible: npt.NDArray[np.bool_]

    @property
    def best(self) -> npt.NDArray[np.int64]:
        return np.argmax(np.where(self.eligible, self.rates * self.reach, -1.0), axis=1)

    @property
    def regret(self) -> list[float]:
        """Return the regret in eventual rewards after each round."""
        rounds = np.arange(len(self.actions))
        eventual = self.rates * self.reach
        gaps = eventual[rounds, self.best] - eventual[rounds, self.actions]
        return [gaps[:t].sum() for t in rounds + 1]

    @property
    def observed(self) -> list[float]:
        """Return the regret in rewards revealed by then, after each round."""
        rounds = np.arange(len(self.actions))
        regret = []
        for t in rounds:
            s = rounds[: t + 1]
            ages = np.minimum(self.window, t - s)
            seen = [self.rates[s, a[s]] * self.tau[a[s], ages] for a in (self.best, np.array(self.actions))]
            regret.append((seen[0] - seen[1]).sum())
        return regret


def eligible_rounds(problem: Problem, rounds: int) -> npt.NDArray[np.bool_]:
    """Return which actions are eligible in each round, shape (T, K): on one of their flights, or without any."""
    over = np.arange(rounds)
    found = np.zeros((rounds, problem.n_actions), np.bool_)
    for a in range(problem.n_actions):
        own = [f for f in problem.flights if f.action == a]
        found[:, a] = not own
        for flight in own:
            found[:, a] |= (over >= flight.start) & (over < (rounds if flight.until is None else flight.until))
    return found


def slow_run(policy: Any, problem: Problem, setting: Setting, *, seed: int, run: int) -> SlowRun:
    luck = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, run)))
    own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4, run)))
    k, window = problem.n_actions, setting.window
    laws = [problem.laws[a if len(problem.laws) > 1 else 0] for a in range(k)]
    tau = np.array([law(np.arange(setting.horizon + 1)) for law in laws])
    within = [float(law(min(window, 2**53))) for law in laws]
    actions: list[int] = []
    all_rates: list[Floats] = []
    due: dict[int, list[tuple[int, Floats, float]]] = {}
    zeros = problem.zeros == "told" and getattr(policy, "takes_zeros", False)
    counts: Counter[str] = Counter()
    eligible = eligible_rounds(problem, setting.horizon)
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
        among = {"eligible": np.flatnonzero(eligible[t - 1])} if problem.flights else {}
        action = int(policy.choose(vectors, own, **among))
        policy.displayed(vectors, action)
        actions.append(action)
        all_rates.append(rates)
        one = reward_draw < rates[action]
        come_by = np.flatnonzero(tau[action] > delay_draw)
        if delay_draw >= laws[action].reach:
            fate = "lost"
        elif delay_draw >= within[action]:
            fate = "expired"
        elif not come_by.size or t + come_by[0] > setting.horizon:
            fate = "pending"
        else:
            fate = "delivered"
        if one:
            counts["generated"] += 1
            counts[fate] += 1
        if fate == "delivered" and (one or zeros):
            vector = vectors[action] if len(vectors) == k else vectors[0]
            due.setdefault(t + int(come_by[0]), []).append((t, vector, float(one)))
        for shown, vector, value in due.pop(t, []):
            policy.converted(vector, actions[shown - 1], t - shown, value)
    return SlowRun(actions, counts, np.array(all_rates), tau, np.array([law.reach for law in laws]), window, eligible)
