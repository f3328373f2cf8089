"""The OTF policies' allowance for conversions still on their way: the norms of the last m displays, summed.

*Buffered*: each display's norm is taken in its own round's V_s⁻¹ and stored, O(d²) a round. *Exact*: every norm is
taken anew in the current V_t⁻¹, O(m d²) a round. Vernade et al. 2020, Section 5.

The buffered sum is larger, since V only grows. By how much OTFLinUCB's own is in the paper's setting (T = 3,000, delays
of mean 100 to 500), on average after the first m rounds, and at most before:

m                                          100         500         1000        before
norms (theorem's width)                    4 %         13 %        23 %        1.9 times
squared norms (figures' width, default)    7-8 %       25 %        43-48 %     5.4 times
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import Ridge, block, row, squared_norm
from evaluator.policies.base import Setting


class MissingFeedback(NamedTuple):
    """Ring of the last min(m, horizon) displays.

    Parameters
    ----------
    norms
        Norm of each of these displays when it was shown (buffered), shape (m,); empty when exact.
    vectors, blocks
        Vector of each of these displays, shape (m, d), and its block, shape (m,) (exact); empty when buffered.
    total
        Sum of the buffered norms, shape (1,).
    rounds
        Number of displays so far, shape (1,).
    squared
        Whether norms are squared before they are summed.
    """

    norms: npt.NDArray[np.float64]
    vectors: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.int64]
    total: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    squared: bool


def start_missing_feedback(setting: Setting, *, exact: bool, squared: bool) -> MissingFeedback:
    """Return the empty ring; a window beyond the horizon costs no more than the horizon."""
    size = min(setting.window, setting.horizon)
    held = size if exact else 0
    return MissingFeedback(
        norms=np.zeros(0 if exact else size),
        vectors=np.zeros((held, setting.dimension)),
        blocks=np.zeros(held, np.int64),
        total=np.zeros(1),
        rounds=np.zeros(1, np.int64),
        squared=squared,
    )


@inlinable
def _norm(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int, squared: bool) -> float:
    norm = squared_norm(ridge, b, vectors, r)
    return norm if squared else math.sqrt(norm)


@inlinable
def missing_total(missing: MissingFeedback, ridge: Ridge) -> float:
    """Return the sum over the last m displays for this round's decision."""
    if missing.norms.shape[0] > 0:
        return max(missing.total[0], 0.0)
    total = 0.0
    for i in range(min(missing.rounds[0], missing.blocks.shape[0])):
        total += _norm(ridge, missing.blocks[i], missing.vectors, i, missing.squared)
    return total


@inlinable
def remember_display(missing: MissingFeedback, ridge: Ridge, vectors: npt.NDArray[np.floating], action: int) -> None:
    """Put a display into the ring; call it before the display enters V."""
    r = row(vectors, action)
    b = block(ridge, action)
    n = missing.rounds[0]
    missing.rounds[0] = n + 1
    if missing.norms.shape[0] > 0:
        slot = n % missing.norms.shape[0]
        norm = _norm(ridge, b, vectors, r, missing.squared)
        missing.total[0] += norm - missing.norms[slot]
        missing.norms[slot] = norm
    elif missing.blocks.shape[0] > 0:  # a window of 0 holds nothing
        slot = n % missing.blocks.shape[0]
        missing.blocks[slot] = b
        for i in range(vectors.shape[1]):
            missing.vectors[slot, i] = vectors[r, i]
