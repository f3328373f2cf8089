"""Algorithm 1 of Pike-Burke et al. 2018, as a coroutine: it yields an arm and is sent the round's sum."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from evaluator.policies.base import Setting
from tests.twins.history import Floats, Twin


def phase_length(variant: str, i: int, horizon: int, *, mean: float, variance: float, bound: float) -> int:
    """Return n_i."""
    e = 2**-i
    log = math.log(horizon * e**2)

    def plays(corruption: float) -> float:
        return (math.sqrt(2 * log) + math.sqrt(2 * log + 8 / 3 * e * log + corruption)) ** 2 / e**2

    general = plays(6 * e * i * mean)
    if variant == "odaaf":
        return math.ceil(general)
    if variant == "odaaf-b":
        return math.ceil(max(i * min(bound, general / i), plays(4 * e * mean)))
    return math.ceil(plays(4 * e * (mean + 2 * variance)))


Collected = dict[int, list[float]]


def means(collected: Collected) -> dict[int, float]:
    return {k: math.fsum(x) / max(len(x), 1) for k, x in collected.items()}


def best(collected: Collected) -> int:
    x = means(collected)
    return max(x, key=x.__getitem__)


def bridging(rule: str, collected: Collected, rng: np.random.Generator) -> int:
    if rule == "best":
        return best(collected)
    arms = sorted(collected)
    return arms[int(rng.random() * len(arms))] if rule == "random" else arms[0]


def algorithm_1(
    collected: Collected, lengths: list[int], *, bridge: str | None, rng: np.random.Generator
) -> Generator[int, float, None]:
    """Play the arms of `collected`, which keeps the sums of those that are left."""
    for i, n in enumerate(lengths, start=1):
        if len(collected) == 1:
            break
        for k, sums in collected.items():
            while len(sums) < n:
                sums.append((yield k))
        top = max(means(collected).values())
        for k in [k for k, mean in means(collected).items() if mean + 2**-i < top]:
            del collected[k]
        if bridge is not None:
            arm = bridging(bridge, collected, rng)
            for _ in range(n - (lengths[i - 2] if i > 1 else 0)):
                yield arm
    while True:
        yield best(collected)


class ODAAFTwin(Twin):
    """The coroutine as a policy: what it is told of single conversions goes into the round's sum, and nowhere else."""

    variant = "odaaf"

    def __init__(self, setting: Setting, **parameters: str) -> None:
        super().__init__(setting, **parameters)
        tau = setting.delay_cdf
        assert tau is not None
        ages = np.arange(min(setting.window, setting.horizon) + 1)
        weights = np.diff(tau(ages), prepend=0.0)
        weights = weights / weights.sum()
        mean = float(ages @ weights)
        last = 0
        while setting.horizon * 4.0 ** -(last + 1) >= math.e:
            last += 1
        self.lengths = [
            phase_length(
                self.variant, i, setting.horizon, mean=mean, variance=float((ages - mean) ** 2 @ weights),
                bound=float(ages[weights > 0].max()),
            )
            for i in range(1, last + 1)
        ]  # fmt: skip
        self.algorithm: Generator[int, float, None] | None = None
        self.arm, self.total = 0, 0.0
        self.collected: Collected = {k: [] for k in range(setting.n_actions)}

    def begin(self, rng: np.random.Generator) -> None:
        if self.algorithm is None:
            bridge = self.parameters.get("bridge")
            self.algorithm = algorithm_1(self.collected, self.lengths, bridge=bridge, rng=rng)
            self.arm = next(self.algorithm)
        else:
            self.arm = self.algorithm.send(self.total)
        self.total = 0.0

    def estimates(self, vectors: Floats) -> Floats:
        out = np.full(self.setting.n_actions, -np.inf)
        for k, mean in means(self.collected).items():
            out[k] = mean if self.collected[k] else -np.inf
        return out

    def scores(self, vectors: Floats) -> Floats:
        return (np.arange(self.setting.n_actions) == self.arm).astype(np.float64)

    def converted(self, vector: Floats, action: int, delay: int, value: float) -> None:
        super().converted(vector, action, delay, value)
        self.total += value


class ODAAFBTwin(ODAAFTwin):
    variant = "odaaf-b"


class ODAAFVTwin(ODAAFTwin):
    variant = "odaaf-v"
