"""WaitLinUCB and the non-ambiguous LinUCB, Vernade et al. 2018: the displays to learn from are looked for among all."""

from __future__ import annotations

import math

import numpy as np

from tests.twins.history import Floats
from tests.twins.linear import LinearTwin
from tests.twins.otf import confidence, theorem_width


class WaitLinUCBTwin(LinearTwin):
    def closed(self) -> list[int]:
        return [s for s, age in enumerate(self.ages) if age >= self.setting.window]

    def gram(self) -> Floats:
        v = self.parameters["ridge"] * np.eye(self.dimension)
        for s in self.closed():
            v += np.outer(self.shown[s], self.shown[s])
        return v

    def entered(self) -> list[tuple[int, float]]:
        closed = set(self.closed())
        return [(s, value) for s, value in self.conversions if s in closed]

    def moment(self) -> Floats:
        return sum((value * self.shown[s] for s, value in self.entered()), np.zeros(self.dimension))

    def begin(self, rng: np.random.Generator) -> None:
        super().begin(rng)
        # Uniformly random play until the first conversion has entered.
        self.forced = None if self.entered() else int(rng.random() * self.setting.n_actions)

    def scores(self, vectors: Floats) -> Floats:
        if self.forced is not None:
            return np.eye(self.setting.n_actions)[self.forced]
        a = self.candidates(vectors)
        norms = self.squared_norms(a)
        if self.parameters["width"] == "figures":
            bonus = math.sqrt(confidence(self) + self.parameters["ridge"]) * norms
        else:
            bonus = theorem_width(self) * np.sqrt(norms)
        return a @ self.theta + self.parameters["alpha"] * bonus


class NonambiguousLinUCBTwin(LinearTwin):
    """Least squares on the displays that have converted or, unless that means censored, whose window has closed."""

    def entered(self) -> list[int]:
        in_time = {s for s, _ in self.conversions}
        zeros = self.parameters["unconverted"] == "zero"
        return [s for s, age in enumerate(self.ages) if s in in_time or (zeros and age >= self.setting.window)]

    def gram(self) -> Floats:
        v = self.parameters["ridge"] * np.eye(self.dimension)
        for s in self.entered():
            v += np.outer(self.shown[s], self.shown[s])
        return v

    def scores(self, vectors: Floats) -> Floats:
        a = self.candidates(vectors)
        norms = self.squared_norms(a)
        if self.parameters["width"] == "figures":
            bonus = math.sqrt(confidence(self) + self.parameters["ridge"]) * norms
        else:
            bonus = theorem_width(self) * np.sqrt(norms)
        return a @ self.theta + self.parameters["alpha"] * bonus
