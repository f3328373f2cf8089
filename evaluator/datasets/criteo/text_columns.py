"""Columns that depend on nothing but the row's campaign and context: ids, categories, amounts, last click."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.criteo.campaigns import class_bounds, spread
from evaluator.datasets.criteo.parameters import AmountLaw, TwinParameters
from evaluator.datasets.criteo.quantiles import category_shares, draw, durations

Ints = npt.NDArray[np.int64]

# Columns share no category: more than any column's number of values.
APART = 100_000
GOLDEN = (5**0.5 - 1) / 2
# Ids of the real file reach 3.24e7; multiplication modulo a prime of that size maps indices one to one.
PRIME = 32_452_843
FACTORS = {"uid": 7_654_321, "campaign": 5_432_101, "conversion": 9_876_541, "category": 3_141_593}


class Categories:
    """cat1 to cat9 given the context of each row."""

    def __init__(self, twin: TwinParameters) -> None:
        self._edges = [np.cumsum(category_shares(c)) for c in twin.categories]
        self.ids = [ids("category", np.arange(c.values), offset=APART * k) for k, c in enumerate(twin.categories)]
        self._bounds = np.asarray(class_bounds(twin))
        self._classes = len(twin.contexts.classes)

    def columns(self, context: Ints, rng: np.random.Generator) -> dict[str, Ints]:
        """Return ids (n,) of each column; `context` (n,) fixes cat1 and the class of cat4."""
        drawn = {}
        for k, edges in enumerate(self._edges):
            if k == 0:
                index = context // self._classes
            elif k == 3:
                index = self._within_class(edges, context % self._classes, rng)
            else:
                index = draw(edges, rng.random(len(context)))
            drawn[f"cat{k + 1}"] = self.ids[k][index]
        return drawn

    def of_class(self, number: int) -> Ints:
        """Return the ids of cat4 in a class."""
        return self.ids[3][self._bounds[number] : self._bounds[number + 1]]

    def _within_class(self, edges: npt.NDArray[np.float64], number: Ints, rng: np.random.Generator) -> Ints:
        below = np.append(0.0, edges)[self._bounds]
        uniform = below[number] + rng.random(len(number)) * (below[number + 1] - below[number])
        # Rounding at an edge must not leave the class.
        return np.clip(draw(edges, uniform), self._bounds[number], self._bounds[number + 1] - 1)


class Amounts:
    """cost and cpo, as text: '%.12g' is the real file's format, and no CSV writer's.

    Both take few values in the real file, too, where they are ratios of round numbers; so they are drawn from tables.
    """

    def __init__(self, cost: AmountLaw, cpo: AmountLaw, n_campaigns: int) -> None:
        self._cost = pl.Series("cost", _texts(_quantiles(cost, cost.levels), cost.floor))
        level = np.linspace(0.7, 1.3, cpo.levels)
        mean = cpo.median * np.exp(cpo.log_sd * spread(np.arange(1, n_campaigns + 1), GOLDEN))
        self._cpo = pl.Series("cpo", _texts((mean[:, None] * level).ravel(), cpo.floor))
        self._levels = cpo.levels

    def columns(self, campaign: Ints, rng: np.random.Generator) -> list[pl.Series]:
        """Return text columns (n,) for campaign indices (n,)."""
        n = len(campaign)
        cost = rng.integers(len(self._cost), size=n)
        cpo = campaign * self._levels + rng.integers(self._levels, size=n)
        return [self._cost.gather(cost), self._cpo.gather(cpo)]


def last_click(twin: TwinParameters, n: int, rng: np.random.Generator) -> Ints:
    """Return seconds since the user's last click (n,), -1 for none; it may be before the log begins."""
    waited = durations(twin.last_click, rng.random(n))
    return np.where(rng.random(n) < twin.last_click.none, -1, waited)


def _quantiles(money: AmountLaw, count: int) -> npt.NDArray[np.float64]:
    from scipy.special import ndtri

    return np.asarray(money.median * np.exp(money.log_sd * ndtri((np.arange(count) + 0.5) / count)))


def _texts(values: npt.NDArray[np.float64], floor: float) -> list[str]:
    return [f"{value:.12g}" for value in np.maximum(values, floor).tolist()]


def ids(kind: str, index: npt.ArrayLike, *, offset: int = 0) -> npt.NDArray[np.int64]:
    """Return the ids of the indices 0 .. PRIME - 2; `offset` tells columns of one kind apart."""
    shifted = np.asarray(index, dtype=np.int64) + 1 + offset
    return np.asarray(shifted * FACTORS[kind] % PRIME, dtype=np.int64)
