"""How often intervals of delay shares and quantiles hold, on drawn logs whose law is known; also at both ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from evaluator.delays.nonparametric import NonparametricFit, fit_nonparametric
from evaluator.delays.study.window_advice import advise_window

# Spread of the displays, the law, and how coarse times are: what a log does to delays.
LOGS: dict[str, tuple[str, str, float]] = {
    "nothing cut off": ("whole", "exponential", 0.0),
    "nothing cut off, lognormal, stamps of 50": ("whole", "lognormal", 50.0),
    "cut off": ("even", "exponential", 0.0),
    "cut off, lognormal": ("even", "lognormal", 0.0),
    "cut off, daily rhythm": ("rhythm", "exponential", 0.0),
    "cut off, daily rhythm, stamps of 50": ("rhythm", "exponential", 50.0),
}
LEVELS = np.array([0.02, 0.1, 0.5, 0.9, 0.95, 0.98, 0.99])
_LAWS = {"exponential": stats.expon(scale=300), "lognormal": stats.lognorm(1.2, scale=200)}
_SPAN, _DAY = 1000.0, 100.0


class Held(NamedTuple):
    """Shares of the logs, shape (7,) at `LEVELS`: intervals of the share and of the quantile that hold; in how many the
    quantile has an upper end; how often the last delay seen bounds the quantile, and a window that is longer than every
    delay seen, and shorter than the log looks, keeps all but a part in 10,000. In how many a window is recommended for
    its share of 90 %, and in how many of these it keeps as much.
    """

    share: np.ndarray
    quantile: np.ndarray
    bounded: np.ndarray
    last_bounds: np.ndarray
    beyond_keeps_all: float
    recommended: float
    recommended_keeps: float


def drawn_fit(rng: np.random.Generator, kind: str, n: int) -> tuple[NonparametricFit, Callable[[np.ndarray], object]]:
    """Return the fit of about n conversions, and the quantile function of their true law, given what the fit is."""
    spread, name, stamp = LOGS[kind]
    law = _LAWS[name]

    def floored(x: np.ndarray) -> np.ndarray:
        return np.floor(x / stamp) * stamp if stamp else x

    if spread == "whole":
        fit = fit_nonparametric(floored(law.ppf(rng.random(n))))
    else:
        seen = np.mean(law.cdf(np.linspace(0, _SPAN, 200)))
        shown = rng.random(math.ceil(n / seen)) * _SPAN
        if spread == "rhythm":  # all displays of a day within two hours
            shown = np.minimum(shown // _DAY * _DAY + 8 + shown % _DAY / 12, _SPAN - 1)
        limit, delay = floored(_SPAN - shown), floored(law.ppf(rng.random(len(shown))))
        fit = fit_nonparametric(delay[delay <= limit], limit[delay <= limit])
    low = float(law.cdf(fit.shortest)) if fit.shortest else 0.0
    high = float(law.cdf(fit.longest + stamp))
    return fit, lambda level: floored(law.ppf(low + level * (high - low)))


def held(kind: str, n: int, logs: int, *, seed: int = 0) -> Held:
    """Draw logs and count."""
    rng = np.random.default_rng(seed)
    share, quantile, bounded, last = (np.zeros(LEVELS.size) for _ in range(4))
    beyond = recommended = keeps = 0
    _, name, stamp = LOGS[kind]
    law = _LAWS[name]
    for _ in range(logs):
        fit, quantiles = drawn_fit(rng, kind, n)
        below = float(law.cdf(fit.shortest)) if fit.shortest else 0.0
        at = np.asarray(quantiles(LEVELS))
        top = float(law.cdf(fit.longest + stamp))

        def truth(delay: np.ndarray, below: float = below, top: float = top) -> np.ndarray:
            return (law.cdf(delay + stamp) - below) / (top - below)

        low, high = fit.interval(at)
        share += (low <= truth(at) + 1e-9) & (truth(at) <= high + 1e-9)
        low, high = fit.quantile_intervals(LEVELS)
        quantile += (low <= at) & (at <= high)
        bounded += np.isfinite(high)
        last += fit.delays[-1] >= at
        advice = advise_window(fit, share=0.9)
        if advice.reason.startswith("the shortest window"):
            recommended += 1
            keeps += truth(np.array(advice.recommended)) >= 0.9
        beyond += truth(fit.delays[-1].astype(float)) >= 1 - 1e-4
    found = keeps / recommended if recommended else math.nan
    return Held(share / logs, quantile / logs, bounded / logs, last / logs, beyond / logs, recommended / logs, found)
