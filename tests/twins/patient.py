"""PatientBandits and Adapt-PatientBandits, Manegueu et al. 2020: every mean taken anew over all pulls."""

from __future__ import annotations

import math

import numpy as np

from tests.twins.history import Floats, Twin


class PatientTwin(Twin):
    first_plays = 1

    def alpha(self) -> float:
        return self.parameters["alpha"]

    def bias_scale(self) -> float:
        return self.parameters["bias_scale"]

    def scores(self, vectors: Floats) -> Floats:
        log_term = math.log(2 * self.setting.n_actions * self.setting.horizon**3)
        alpha = min(self.alpha(), 0.5)
        indices = np.full(self.setting.n_actions, math.inf)
        for k, (s, n) in enumerate(zip(self.successes(), self.pulls(), strict=True)):
            if n >= self.first_plays:
                width = self.parameters["width_scale"] * math.sqrt(2 * log_term / n)
                indices[k] = s / n + width + self.bias_scale() * 2 / n**alpha
        return indices


class AdaptPatientTwin(PatientTwin):
    first_plays = 2

    def bias_scale(self) -> float:
        return 1.0

    def mean_within(self, arm: int, limit: int) -> float:
        """Return the mean over the arm's pulls at least `limit` rounds old of the value converted within it."""
        old = {s for s, age in enumerate(self.ages) if self.actions[s] == arm and age >= limit}
        counted = [
            value for (s, value), d in zip(self.conversions, self.delays, strict=True) if s in old and d <= limit
        ]
        return sum(counted) / len(old)

    def alpha(self) -> float:
        p, k, t = self.parameters, self.setting.n_actions, self.setting.horizon
        most = int(np.argmax(self.pulls()))
        n = self.pulls()[most]
        if n < 2:
            return p["alpha_min"]
        late = math.floor(n / 2)
        early = math.floor((p["c"] / 2) ** (1 / p["alpha_min"]) * late)
        gain = self.mean_within(most, late) - self.mean_within(most, early)
        estimate = min(-math.log(gain) / math.log(n), 0.5) if gain > 0 else 0.5
        margin = math.log(24 * math.sqrt(math.log(2 * k * t**3)) / (p["c"] * p["mu_min"]))
        return max(estimate - margin / math.log(n), p["alpha_min"])
