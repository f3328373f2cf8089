"""What a live run remembers: its last rounds, each with at most one reward on its way, which a later round reveals.

A round is kept until its own reward could no longer come: a reward is out by the time its place is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class RoundRing(NamedTuple):
    """The last rounds, round s at s mod size.

    Parameters
    ----------
    first, last, following
        Lists of the rewards that each round reveals, in the order in which they were shown, as places in the ring: the
        first and the last of each round, and what follows each; -1 for none. Each of shape (size,).
    action, value
        Action shown in each round, and its reward that is on its way, shape (size,).
    vector
        Vector of the action shown in each round, shape (size, d).
    """

    first: Ints
    last: Ints
    following: Ints
    action: Ints
    value: Floats
    vector: Floats


def empty_ring(reach: int, dimension: int) -> RoundRing:
    """Return a ring for rewards that come up to `reach` rounds later, of actions shown by vectors of this length."""
    size = reach + 1
    return RoundRing(
        first=np.full(size, -1, np.int64),
        last=np.full(size, -1, np.int64),
        following=np.full(size, -1, np.int64),
        action=np.zeros(size, np.int64),
        value=np.zeros(size),
        vector=np.zeros((size, dimension)),
    )


@inlinable
def keep(ring: RoundRing, t: int, action: int, vectors: npt.NDArray[np.floating], r: int) -> int:
    """Keep what round t showed, an action by vectors[r]; return its place. O(d)."""
    at: int = t % ring.action.shape[0]
    ring.action[at] = action
    for i in range(ring.vector.shape[1]):
        ring.vector[at, i] = vectors[r, i]
    return at


@inlinable
def reveal_later(ring: RoundRing, at: int, due: int, value: float) -> None:
    """Let round `due`, at most `reach` rounds later, reveal the reward of the round at this place. O(1)."""
    ring.value[at] = value
    ring.following[at] = -1
    then = due % ring.action.shape[0]
    if ring.first[then] < 0:
        ring.first[then] = at
    else:
        ring.following[ring.last[then]] = at
    ring.last[then] = at


@inlinable
def next_revealed(ring: RoundRing, at: int) -> int:
    """Remove the next reward that the round at this place reveals; return its place, or -1 when there is none. O(1)."""
    shown: int = ring.first[at]
    if shown >= 0:
        ring.first[at] = ring.following[shown]
    return shown


@inlinable
def rounds_since(ring: RoundRing, at: int, t: int) -> int:
    """Return how many rounds before round t the one at this place was."""
    rounds: int = (t - at) % ring.action.shape[0]
    return rounds
