"""Policies that learn nothing."""

from __future__ import annotations

import numpy as np

from tests.twins.history import Floats, Twin


class RandomTwin(Twin):
    def begin(self, rng: np.random.Generator) -> None:
        self.pick = int(rng.random() * self.setting.n_actions)

    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.pick]


class FixedTwin(Twin):
    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.parameters["action"]]
