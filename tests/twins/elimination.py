"""Improved UCB, Auer and Ortner 2010."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.history import Floats, Twin


class ImprovedUCBTwin(Twin):
    def __init__(self, setting: Setting, **parameters: Any) -> None:
        super().__init__(setting, **parameters)
        self.active = set(range(setting.n_actions))
        self.tolerances = [2.0**-i for i in range(math.floor(0.5 * math.log2(setting.horizon / math.e)) + 1)]

    def begin(self, rng: np.random.Generator) -> None:
        t = self.setting.horizon
        pulls, successes = self.pulls(), self.successes()
        while self.tolerances and len(self.active) > 1:
            log_term = math.log(t * self.tolerances[0] ** 2)
            n = math.ceil(2 * log_term / self.tolerances[0] ** 2)
            short = [k for k in sorted(self.active) if pulls[k] < n]
            if short:
                self.pick = short[0]
                return
            width = math.sqrt(log_term / (2 * n))
            means = {k: successes[k] / pulls[k] for k in self.active}
            self.active = {k for k in self.active if means[k] + width >= max(means.values()) - width}
            self.tolerances.pop(0)
        self.pick = max(sorted(self.active), key=lambda k: successes[k] / max(pulls[k], 1))

    def estimates(self, vectors: Floats) -> Floats:
        of_all = super().estimates(vectors)
        return np.array([of_all[k] if k in self.active else -np.inf for k in range(len(of_all))])

    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.pick]
