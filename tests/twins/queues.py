"""QPM-D, Joulani et al. 2013: the base's numbers are summed anew from the displays that have been fed to it."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.divergences import bernoulli_divergence, index_by_bisection
from tests.twins.history import Floats, Twin, rates


class QPMDTwin(Twin):
    takes_zeros = True

    def __init__(self, setting: Setting, **parameters: Any) -> None:
        super().__init__(setting, **parameters)
        self.queues: list[deque[int]] = [deque() for _ in range(setting.n_actions)]
        self.observed: set[int] = set()
        self.fed: list[int] = []
        self.asked: int | None = None
        self.base_indices = np.zeros(setting.n_actions)

    def base_counts(self) -> Floats:
        return np.bincount([self.actions[s] for s in self.fed], minlength=self.setting.n_actions).astype(float)

    def base_rewards(self) -> Floats:
        """Return the value seen so far of the displays fed."""
        fed = set(self.fed)
        rewards = np.zeros(self.setting.n_actions)
        for s, value in self.conversions:
            rewards[self.actions[s]] += value * (s in fed)
        return rewards

    def ask(self) -> int:
        counts, rewards = self.base_counts(), self.base_rewards()
        log_n = math.log(counts.sum() + 1)
        self.base_indices = np.full(self.setting.n_actions, math.inf)
        for k in np.flatnonzero(counts):
            mean = min(rewards[k] / counts[k], 1.0)
            if self.parameters["base"] == "ucb1":
                self.base_indices[k] = mean + math.sqrt(2 * log_n / counts[k])
            else:
                self.base_indices[k] = index_by_bisection(bernoulli_divergence, mean, log_n / counts[k])
        return int(np.argmax(self.base_indices))

    def observe(self, s: int) -> None:
        if s not in self.observed:
            self.observed.add(s)
            self.queues[self.actions[s]].append(s)

    def converted(self, vector: Floats, action: int, delay: int, value: float) -> None:
        super().converted(vector, action, delay, value)
        self.observe(self.conversions[-1][0])

    def begin(self, rng: np.random.Generator) -> None:
        for s, age in enumerate(self.ages):
            if age >= self.setting.window:
                self.observe(s)
        if self.asked is None:
            self.asked = self.ask()
        while self.queues[self.asked]:
            self.fed.append(self.queues[self.asked].popleft())
            self.asked = self.ask()

    def estimates(self, vectors: Floats) -> Floats:
        return rates(self.base_rewards(), self.base_counts())

    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.asked]
