"""Logs without defects, of every kind of logger: no check should warn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluator.log import Log
from tests.check.shops import shop
from tests.logs import bernoulli_log, linear_log


def _estimated(seed: int) -> Log:
    made = shop(seed, logger="shares", n=20_000)
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action]).with_meta(propensity="estimated")


CLEAN: dict[str, Callable[[int], Log]] = {
    "uniform, no context, not followed": lambda seed: bernoulli_log(
        20_000, [0.05, 0.1, 0.2], mean_delay=300, seed=seed
    ),
    "logged shares, no context": lambda seed: bernoulli_log(
        20_000, [0.05, 0.1, 0.2], mean_delay=300, seed=seed, logger=[0.2, 0.3, 0.5]
    ),
    "uniform, context, followed": lambda seed: shop(seed, n=20_000).log(),
    "logged by context, followed": lambda seed: shop(seed, n=20_000, logger="context").log(),
    "estimated shares, context, followed": _estimated,
    "uniform, action sets": lambda seed: linear_log(10_000, n_actions=5, dimension=4, mean_delay=100, seed=seed),
    "logged by context, action sets": lambda seed: linear_log(
        10_000, n_actions=5, dimension=4, mean_delay=100, seed=seed, temperature=0.2
    ),
}
