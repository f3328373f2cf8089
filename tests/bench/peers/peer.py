"""What a peer is: ways to replay given displays, each prepared outside the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Displays(NamedTuple):
    """Displays logged uniformly: vectors (n, K, d), actions shown (n,) and what each earned in the end (n,)."""

    vectors: npt.NDArray[np.float64]
    action: npt.NDArray[np.int32]
    reward: npt.NDArray[np.float64]

    def first(self, n: int) -> Displays:
        return Displays(*(column[:n] for column in self))


class Outcome(NamedTuple):
    """Rounds accepted, and their mean reward."""

    accepted: int
    reward: float


Replay = Callable[[], Outcome]


class Way(NamedTuple):
    """One way to replay with a peer. `prepare` imports the peer (or raises ImportError) and converts its input."""

    words: str
    prepare: Callable[[Displays], Replay]


class Peer(NamedTuple):
    """A distribution and its ways."""

    package: str
    ways: tuple[Way, ...]
