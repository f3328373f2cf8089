"""DelayedUCB and DelayedKLUCB, Vernade et al. 2017: N~ summed over all pulls at every decision."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from tests.twins.divergences import index_by_bisection, poisson_divergence
from tests.twins.history import Floats, Twin


class DelayedTwin(Twin):
    """The index of arm k from S_k, N_k, N~_k and beta."""

    def effective(self) -> Floats:
        """Return N~_k, the sum of tau_min(m, age) over the pulls of arm k."""
        tau = self.setting.delay_cdf
        assert tau is not None
        ages = [min(self.setting.window, int(age)) for age in self.ages]
        weights = [tau(age) for age in ages]
        return np.bincount(self.actions, weights=weights, minlength=self.setting.n_actions)

    @abstractmethod
    def index(self, s: float, n: float, effective: float, beta: float) -> float:
        """Return the index of an arm that has been pulled."""

    def scores(self, vectors: Floats) -> Floats:
        beta = (1 + self.parameters["epsilon"]) * math.log(len(self.actions) + 1)
        arms = zip(self.successes(), self.pulls(), self.effective(), strict=True)
        return np.array([self.index(s, n, e, beta) if n else math.inf for s, n, e in arms])


class DelayedUCBTwin(DelayedTwin):
    def index(self, s: float, n: float, effective: float, beta: float) -> float:
        if effective == 0:
            return 1e300  # 1/0, yet after the arms never pulled
        return s / effective + math.sqrt(n / effective) * math.sqrt(beta / (2 * effective))


class DelayedKLUCBTwin(DelayedTwin):
    def index(self, s: float, n: float, effective: float, beta: float) -> float:
        if effective == 0:
            return 1.0
        return index_by_bisection(poisson_divergence, s / effective, beta / effective)
