"""Index policies and Beta sampling that count what has not been seen as a failure."""

from __future__ import annotations

import math

import numpy as np

from tests.twins.divergences import bernoulli_divergence, index_by_bisection
from tests.twins.history import Floats, Twin


class UCB1Twin(Twin):
    def scores(self, vectors: Floats) -> Floats:
        log_t = math.log(len(self.actions) + 1)
        factor = self.parameters["exploration"]
        return np.array(
            [
                min(s / n, 1.0) + math.sqrt(factor * log_t / n) if n else math.inf
                for s, n in zip(self.successes(), self.pulls(), strict=True)
            ]
        )


class KLUCBTwin(Twin):
    def scores(self, vectors: Floats) -> Floats:
        log_t = math.log(len(self.actions) + 1)
        budget = log_t + self.parameters["c"] * math.log(max(log_t, 1.0))
        return np.array(
            [
                index_by_bisection(bernoulli_divergence, min(s / n, 1.0), budget / n) if n else math.inf
                for s, n in zip(self.successes(), self.pulls(), strict=True)
            ]
        )


class ThompsonTwin(Twin):
    def trials(self) -> Floats:
        return self.pulls()

    def begin(self, rng: np.random.Generator) -> None:
        a, b = self.parameters["successes"], self.parameters["failures"]
        paid = np.minimum(self.successes(), self.pulls())
        self.draws = np.array([rng.beta(a + s, b + max(n - s, 0.0)) for s, n in zip(paid, self.trials(), strict=True)])

    def scores(self, vectors: Floats) -> Floats:
        return self.draws

    def estimates(self, vectors: Floats) -> Floats:
        a, b = self.parameters["successes"], self.parameters["failures"]
        paid = np.minimum(self.successes(), self.pulls())
        return (a + paid) / (a + paid + b + np.maximum(self.trials() - paid, 0.0))
