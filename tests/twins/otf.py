"""OTFLinUCB and OTFLinTS, Vernade et al. 2020."""

from __future__ import annotations

import math

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.history import Floats
from tests.twins.linear import LinearTwin, LinTSTwin, squared_norms


class OTFTwin(LinearTwin):
    """The allowance for conversions on their way: Σ_{s=t-m}^{t-1} ||A_s||, in V_t⁻¹ (exact) or in V_s⁻¹ (buffered)."""

    def __init__(self, setting: Setting, **parameters: object) -> None:
        super().__init__(setting, **parameters)
        self.squared = parameters["width"] == "figures"
        self.v_at_play: list[Floats] = []

    def displayed(self, vectors: Floats, action: int) -> None:
        self.v_at_play.append(self.v)
        super().displayed(vectors, action)

    def missing(self) -> float:
        n = len(self.shown)
        total = 0.0
        for s in range(max(n - self.setting.window, 0), n):
            v = self.v if self.parameters["bonus"] == "exact" else self.v_at_play[s]
            norm = squared_norms(v, self.shown[s][None])[0]
            total += norm if self.squared else math.sqrt(norm)
        return total


class OTFLinUCBTwin(OTFTwin):
    def begin(self, rng: np.random.Generator) -> None:
        super().begin(rng)
        if self.squared:
            self.width = math.sqrt(confidence(self) + self.parameters["ridge"]) + self.missing()
        else:
            self.width = 2 * theorem_width(self) + self.missing()

    def scores(self, vectors: Floats) -> Floats:
        a = self.candidates(vectors)
        norms = self.squared_norms(a)
        return a @ self.theta + self.parameters["alpha"] * self.width * (norms if self.squared else np.sqrt(norms))


class OTFLinTSTwin(OTFTwin, LinTSTwin):
    def variance(self) -> float:
        if self.squared:
            return self.parameters["sigma0"] + self.missing()
        return 1 + self.missing() / theorem_width(self)


def confidence(twin: LinearTwin) -> float:
    """Return b = 2 log(1/delta) + d log((d ridge + t) / (d ridge))."""
    t, d, ridge = len(twin.actions) + 1, twin.dimension, twin.parameters["ridge"]
    return 2 * math.log(1 / twin.parameters["delta"]) + d * math.log((d * ridge + t) / (d * ridge))


def theorem_width(twin: LinearTwin) -> float:
    """Return f_t = sqrt(ridge) + sqrt(b)."""
    return math.sqrt(twin.parameters["ridge"]) + math.sqrt(confidence(twin))
