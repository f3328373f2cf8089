"""Permutations of truncated delays: every delay on a row whose limit it does not exceed, all such ways equally likely.

Under one delay law, independent of rows and limits, the likelihood of the delays given the rows' limits is
prod f(D_i) / prod F(L_i), the same for every admissible assignment of the delays to the rows: the assignments are
equally likely given the set of delays (Efron, Petrosian 1999, JASA 94; Diaconis, Graham, Holmes 2001). One is drawn
exactly by letting the delays, longest first, take one of the free rows that were watched as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluator.delays.product_limit import risk_table
from evaluator.delays.usable import Floats, Ints, Ticks
from evaluator.kernels.compiling import compiled


class PermutableDelays(NamedTuple):
    """Truncated delays prepared for permutations.

    `kept` (n,) row indices whose weight the log identifies (`product_limit`); `rows` (n,) positions in `kept`, longest
    limit first; `eligible` (n,) how many of `rows` were watched as long as each delay, longest delay first; `owners`
    (n,) whose delay that is; `mass` (n,) F at the middle of each delay's step, longest first; `ends` (n,) F at each
    kept row's limit.
    """

    kept: Ints
    rows: Ints
    eligible: Ints
    owners: Ints
    mass: Floats
    ends: Floats

    def transforms(self) -> Floats:
        """Return F(D) / F(L) of each kept row, about uniform under one delay law; shape (n,)."""
        out = np.empty(self.kept.size)
        out[self.owners] = self.mass
        return out / self.ends


def permutable(delays: Ticks, limits: Ticks | None) -> PermutableDelays:
    """Prepare delays; F is their product limit, which no admissible permutation changes. O(n log n)."""
    limit = np.full(delays.shape, delays.max()) if limits is None else limits
    table = risk_table(delays, limit)
    kept = np.flatnonzero((delays >= table.support[0]) & (delays <= table.support[-1]))
    delay, limit = delays[kept], limit[kept]
    cdf = np.maximum(table.cdf(), 1e-300)
    padded = np.concatenate(([0.0], cdf))
    at = np.searchsorted(table.support, delay)
    middle = 0.5 * (padded[at] + padded[at + 1])
    ends = padded[np.searchsorted(table.support, limit, side="right")]
    owners = np.argsort(-delay, kind="stable")
    rows = np.argsort(-limit, kind="stable")
    eligible = np.searchsorted(-limit[rows], -delay[owners], side="right")
    return PermutableDelays(kept, rows, eligible, owners, middle[owners], ends)


@compiled
def permuted(rows: Ints, eligible: Ints, uniforms: Floats, pool: Ints, taken: Ints) -> None:
    """Write into `taken` (n,) the row that each delay, longest first, is put on; `pool` (n,) is work space."""
    free = 0
    added = 0
    for i in range(eligible.size):
        while added < eligible[i]:
            pool[free] = rows[added]
            free += 1
            added += 1
        pick = int(uniforms[i] * free)
        taken[i] = pool[pick]
        free -= 1
        pool[pick] = pool[free]
