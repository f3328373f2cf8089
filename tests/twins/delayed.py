"""DelayedUCB, DelayedKLUCB and the discarding policies, Vernade et al. 2017: sums over all pulls at every decision."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.divergences import index_by_bisection, poisson_divergence
from tests.twins.history import Floats, Twin, rates


class DelayedTwin(Twin):
    """The index of arm k from S_k, N_k, N~_k and beta."""

    def __init__(self, setting: Setting, **parameters: Any) -> None:
        super().__init__(setting, **parameters)
        self.mean_delays: list[float] = []

    def effective(self) -> Floats:
        """Return N~_k, the sum over the pulls of arm k of the probability that their conversion has been seen."""
        return np.bincount(self.actions, weights=self.weights(), minlength=self.setting.n_actions)

    def weights(self) -> Floats:
        """Return tau_min(m, age) of every pull, or tau_age when uncensored; tau known, or from the delays seen."""
        if self.parameters["cdf"] == "online" and not self.conversions:
            return np.zeros(len(self.actions))
        if self.parameters["cdf"] == "known":
            tau = self.setting.delay_cdf
            assert tau is not None
            cut_off = self.setting.window if self.parameters["model"] == "censored" else math.inf
            return np.array([tau(min(cut_off, int(age))) for age in self.ages])
        if self.parameters["model"] == "censored":
            return (np.array(self.delays) <= self.ages[:, None]).mean(axis=1)
        # O_k <- lambda (O_k + 1): a pull of round s misses the product of the lambdas of the rounds since.
        ratios = np.array([1.0 if math.isinf(mu) else mu / (1 + mu) for mu in self.mean_delays])
        return 1 - np.cumprod(ratios[len(self.actions) : 0 : -1])[::-1]

    def mean_delay(self) -> float:
        """Return mu by stochastic approximation; infinite before the first delay."""
        mu = math.inf
        for n, delay in enumerate(self.delays, start=1):
            a = n ** -self.parameters["gamma"]
            mu = (1 - a) * mu + a * delay if n > 1 else delay
        return mu

    def begin(self, rng: np.random.Generator) -> None:
        self.mean_delays.append(self.mean_delay())

    @abstractmethod
    def index(self, s: float, n: float, effective: float, beta: float) -> float:
        """Return the index of an arm that has been pulled."""

    def scores(self, vectors: Floats) -> Floats:
        beta = (1 + self.parameters["epsilon"]) * math.log(len(self.actions) + 1)
        arms = zip(self.successes(), self.pulls(), self.effective(), strict=True)
        return np.array([self.index(s, n, e, beta) if n else math.inf for s, n, e in arms])

    def estimates(self, vectors: Floats) -> Floats:
        return rates(self.successes(), self.effective())


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


class DiscardingTwin(Twin):
    def tau(self) -> float:
        if self.parameters["cdf"] == "online":
            return 1.0
        tau = self.setting.delay_cdf
        assert tau is not None
        return tau(self.setting.window)

    @abstractmethod
    def index(self, mean: float, n: float, tau: float, beta: float) -> float:
        """Return the index of an arm with n closed pulls."""

    def in_turn(self) -> bool:
        """Return whether t <= m + K."""
        return len(self.actions) + 1 <= self.setting.window + self.setting.n_actions

    def closed(self) -> tuple[Floats, Floats]:
        """Return S(t-m) and N(t-m) of each arm."""
        k = self.setting.n_actions
        old = self.ages >= self.setting.window
        s = np.zeros(k)
        for shown, value in self.conversions:
            s[self.actions[shown]] += value * old[shown]
        return s, np.bincount(np.array(self.actions, int)[old], minlength=k).astype(np.float64)

    def estimates(self, vectors: Floats) -> Floats:
        s, n = self.closed()
        return rates(s, self.tau() * n)

    def scores(self, vectors: Floats) -> Floats:
        k = self.setting.n_actions
        if self.in_turn():
            return np.eye(k)[len(self.actions) % k]
        s, n = self.closed()
        beta = (1 + self.parameters["epsilon"]) * math.log(len(self.actions) + 1)
        tau = self.tau()
        return np.array([self.index(s[a] / (tau * n[a]), n[a], tau, beta) if n[a] else math.inf for a in range(k)])


class DiscardingUCBTwin(DiscardingTwin):
    def index(self, mean: float, n: float, tau: float, beta: float) -> float:
        return mean + math.sqrt(beta / (2 * tau * n))


class DiscardingKLUCBTwin(DiscardingTwin):
    def index(self, mean: float, n: float, tau: float, beta: float) -> float:
        return index_by_bisection(lambda p, q: tau * poisson_divergence(p, q), mean, beta / n)
