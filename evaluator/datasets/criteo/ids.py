"""Anonymous ids: numbers without order, which never repeat within a column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Ids of the real file reach 3.24e7; multiplication modulo a prime of that size maps indices one to one.
PRIME = 32_452_843
FACTORS = {"uid": 7_654_321, "campaign": 5_432_101, "conversion": 9_876_541, "category": 3_141_593}


def ids(kind: str, index: npt.ArrayLike, *, offset: int = 0) -> npt.NDArray[np.int64]:
    """Return the ids of the indices 0 .. PRIME - 2; `offset` tells columns of one kind apart."""
    shifted = np.asarray(index, dtype=np.int64) + 1 + offset
    return np.asarray(shifted * FACTORS[kind] % PRIME, dtype=np.int64)
