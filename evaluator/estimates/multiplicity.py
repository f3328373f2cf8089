"""Many tests at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p-values adjusted for their number: rejecting those <= alpha errs at all with probability <= alpha.

    The i-th smallest of m is multiplied by m - i + 1, and never falls below a smaller one's. Valid whatever the
    dependence of the tests.

    Parameters
    ----------
    p
        P-values of all tests made, shape (m,).

    References
    ----------
    Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6(2), 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted
