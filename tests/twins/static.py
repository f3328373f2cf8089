"""Policies that learn nothing."""

from __future__ import annotations

import numpy as np

from tests.twins.history import Floats, Twin


class RandomTwin(Twin):
    def begin(self, rng: np.random.Generator) -> None:
        self.pick = int(rng.random() * self.setting.n_actions)

    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.pick]

    def estimates(self, vectors: Floats) -> Floats:
        return np.zeros(self.setting.n_actions)


class ColumnsTwin(Twin):
    contextual = True

    def begin(self, rng: np.random.Generator) -> None:
        self.draw = rng.random()

    def scores(self, vectors: Floats) -> Floats:
        pick = np.searchsorted(np.cumsum(vectors[0]), self.draw, side="right")
        return np.eye(self.setting.n_actions)[min(int(pick), self.setting.n_actions - 1)]


class TargetTwin(ColumnsTwin):
    def scores(self, vectors: Floats) -> Floats:
        if vectors.shape[1] > 1:
            return super().scores(vectors)
        own, every = np.arange(self.setting.n_actions) == vectors[0, 0], np.arange(self.setting.n_actions)
        return own.astype(float) if own.any() else (every == int(self.draw * len(every))).astype(float)


class FixedTwin(Twin):
    def scores(self, vectors: Floats) -> Floats:
        return np.eye(self.setting.n_actions)[self.parameters["action"]]

    def estimates(self, vectors: Floats) -> Floats:
        return self.scores(vectors)
