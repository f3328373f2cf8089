"""Laws of the spec as inverse CDFs and shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.worlds.criteo.parameters import Category, DailyArrivals, KnotLaw, SizeLaw

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY_S = 86_400
GRID_S = 600


def durations(law: KnotLaw, uniform: Floats) -> Ints:
    """Return whole seconds (n,) by inversion of a `KnotLaw` at `uniform` (n,)."""
    return np.rint(np.exp(np.interp(uniform, law.cdf, np.log(law.seconds)))).astype(np.int64)


def sizes(law: SizeLaw, count: int) -> Ints:
    """Return `count` sizes, ascending: the quantiles of a `SizeLaw` at (i + 1/2) / count."""
    n = np.arange(2, law.longest + 1)
    weights = (n + law.shift) ** -law.exponent
    edges = law.single + (1 - law.single) * np.cumsum(weights / weights.sum())
    levels = (np.arange(count) + 0.5) / count
    # The last edge may round below 1.
    above = np.searchsorted(edges[:-1], levels, side="right") + 2
    return np.where(levels < law.single, 1, above)


class ArrivalQuantiles:
    """Cumulative intensity of the arrivals, as a CDF over [0, seconds)."""

    def __init__(self, arrivals: DailyArrivals) -> None:
        self.seconds = arrivals.seconds
        self._grid = np.append(np.arange(0, arrivals.seconds, GRID_S), arrivals.seconds).astype(np.float64)
        phase = 2 * np.pi * (self._grid - arrivals.trough_s) / DAY_S
        mass = self._grid - arrivals.amplitude * DAY_S / (2 * np.pi) * np.sin(phase)
        self._cdf = (mass - mass[0]) / (mass[-1] - mass[0])

    def cdf(self, seconds: npt.ArrayLike) -> Floats:
        """Return the share of the displays before each time."""
        return np.asarray(np.interp(np.asarray(seconds, dtype=np.float64), self._grid, self._cdf), dtype=np.float64)

    def times(self, uniform: Floats) -> Ints:
        """Return whole seconds by inversion."""
        drawn = np.interp(uniform, self._cdf, self._grid).astype(np.int64)
        return np.minimum(drawn, self.seconds - 1)


def category_shares(category: Category) -> Floats:
    """Return the shares (values,) of a column's ids, commonest first; the Zipf exponent is solved by bisection."""
    rank = np.arange(1, category.values + 1, dtype=np.float64)
    floor = category.even / category.values
    wanted = (category.commonest - floor) / (1 - category.even)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / (rank**-middle).sum() < wanted else (low, middle)
    weights = rank**-low
    return np.asarray(floor + (1 - category.even) * weights / weights.sum())


def draw(edges: Floats, uniform: Floats) -> Ints:
    """Return indices (n,) by inversion of cumulated shares `edges` (k,); rounding never leaves the range."""
    return np.searchsorted(edges[:-1], uniform, side="right")
