"""Whether a weighted mean of few rewards has an interval at all: how many rewards of equal weight are as skewed.

A normal interval of a mean of rare rewards rests on the rewards, not on the displays: 38 clicks on 10,000 impressions
are 38 events. Without any, every term is alike, and the interval would be [0, 0]. The sum of m rewards of equal weight
has skewness 1 / sqrt(m); so an m can be given to any terms z_i, whatever their weights, by their skewness:

    m = (sum z_i²)³ / (sum z_i³)².

It is m for m equal terms, and less where few carry much. Three such numbers are looked at, and the least of them
counts, `equal_rewards`:

- of what was seen: z_i = w_i |Y_i - median|, the rewards that are not the usual one (conversions where these are rare,
  failures where those are), each with its weight;
- of what could have been seen: z_i = w_i, times the share of such rewards: heavy weights that by luck met no reward;
- of the estimate itself: its terms less their mean (Cochran's rule is about this one).

Below `NEEDED` the interval is withheld. `python -m tests.bench.doubly_robust` measures how often intervals hold by
these numbers, and so prints why `NEEDED` is what it is.

References
----------
Cochran. Sampling Techniques, 3rd edition, 1977, Section 2.15: n > 25 skewness² for a normal interval.
Hall. Inverting an Edgeworth expansion. Annals of Statistics 11, 1983.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Rewards of equal weight from which on intervals held their level: `python -m tests.bench.doubly_robust`.
NEEDED = 25


def equal_rewards(weight: Floats, reward: Floats, terms: Floats) -> float:
    """Return how many rewards of equal weight would be as skewed as these; 0 where no reward differs from another.

    Weights w_i >= 0 and rewards Y_i of the displays, and the terms whose mean the estimate is, have shape (n,).

    Ten rewards among 1,000 displays of equal weight are ten; make a display 100 times as heavy, and what is left is the
    share of the rewards times the little that so uneven weights are worth.

    >>> weight, reward = np.ones(1000), np.zeros(1000)
    >>> reward[:10] = 1.0
    >>> round(equal_rewards(weight, reward, weight * reward), 6)
    10.0
    >>> weight[0] = 100.0
    >>> round(equal_rewards(weight, reward, weight * reward), 2)
    0.13
    """
    own = weight > 0
    w, y = weight[own], reward[own]
    if not w.size:
        return 0.0
    off = np.abs(y - np.median(y))
    share = float(w[off > 0].sum() / w.sum())
    if share == 0.0:
        return 0.0
    # Terms that differ all the same, by rounding or by a model, are no more than the rewards behind them.
    return min(_alike(w * off), share * _alike(w), _alike(terms - terms.mean()))


def expected_rewards(rewards: Floats, displays: int, rounds: float) -> float:
    """Return how many rewards of equal weight so many rounds have on average, if they are as a log's displays.

    The rewards are those of the displays that earn something, shape (m,). Where most displays earn something, those
    count that earn nothing.

    >>> round(expected_rewards(np.ones(38), 10_000, 125.0), 3)
    0.475
    """
    if not len(rewards):
        return 0.0
    alike = _alike(rewards)
    return rounds / displays * (min(alike, displays - len(rewards)) if 2 * len(rewards) > displays else alike)


def missing(found: float) -> str:
    """Return why an interval that rests on so few rewards is not given, as a clause."""
    if found == 0.0:
        return f"no reward tells it (only displays count whose logged action it shows), and {NEEDED} are needed"
    least = math.floor(found) if found >= 1 else round(found, 2)
    times = math.ceil(NEEDED / found * 10) / 10
    return (
        f"its rewards are worth {least:,} of equal weight (only displays count whose logged action it shows), and "
        f"{NEEDED} are needed: about {times:,.3g} times as many displays"
    )


def _alike(z: Floats) -> float:
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return 0.0
    z = z / largest
    squares = z * z
    third = float(squares @ z) ** 2
    return float(squares.sum()) ** 3 / third if third > 0 else math.inf
