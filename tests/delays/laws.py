"""Delay laws of known parameters, and truncated logs drawn from them."""

from __future__ import annotations

import numpy as np

from evaluator.delays.families import FAMILIES

TRUTHS: dict[str, tuple[float, ...]] = {
    "exponential": (300.0,),
    "geometric": (300.0, 1.0),
    "weibull": (0.6, 300.0),
    "gamma": (0.4, 600.0),
    "lognormal": (5.0, 1.5),
    "pareto": (0.8, 3.0),
    "lomax": (1.5, 200.0),
    "loglogistic": (1.3, 200.0),
    "lognormal-mixture-2": (0.4, 0.6, 3.0, 7.0, 0.8, 1.0),
    "lognormal-mixture-3": (0.3, 0.3, 0.4, 2.0, 5.0, 8.0, 0.5, 0.6, 0.5),
    "lognormal-mixture-4": (0.2, 0.3, 0.2, 0.3, 1.0, 3.5, 6.0, 8.5, 0.4, 0.5, 0.4, 0.5),
}


def truncated_draws(
    rng: np.random.Generator, name: str, *, displays: int, span: int = 4000, rounding: str = "floor"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the delays seen, and their limits, of displays spread evenly over a log of `span` ticks."""
    limits = rng.integers(100, span, displays)
    delays = FAMILIES[name].quantile(rng.random(displays), TRUTHS[name])
    if rounding == "floor":
        delays = np.floor(delays).astype(np.int64)
    seen = delays <= limits
    return delays[seen], limits[seen]
