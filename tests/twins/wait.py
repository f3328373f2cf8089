"""WaitLinUCB and the non-ambiguous LinUCB, Vernade et al. 2018: the displays to learn from are looked for among all."""

from __future__ import annotations

import math

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.history import Floats
from tests.twins.linear import LinearTwin
from tests.twins.otf import confidence, theorem_width


class WaitLinUCBTwin(LinearTwin):
    waits = True

    def __init__(self, setting: Setting, **parameters: object) -> None:
        super().__init__(setting, **parameters)
        self.learned = 0

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
        for s in self.closed()[self.learned :]:
            self.enter(s)
            self.credit(s, sum(value for shown, value in self.conversions if shown == s))
            self.learned += 1
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

    waits = True

    def __init__(self, setting: Setting, **parameters: object) -> None:
        super().__init__(setting, **parameters)
        self.learned: set[int] = set()

    def converted(self, vector: Floats, action: int, delay: int, value: float) -> None:
        super().converted(vector, action, delay, value)
        shown, _ = self.conversions[-1]
        self.learn(shown)
        self.credit(shown, value)

    def learn(self, shown: int) -> None:
        if shown not in self.learned:
            self.enter(shown)
            self.learned.add(shown)

    def begin(self, rng: np.random.Generator) -> None:
        for shown in self.entered():
            self.learn(shown)
        super().begin(rng)

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
