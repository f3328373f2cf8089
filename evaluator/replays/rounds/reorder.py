"""Another order of the same log: displays shuffled within blocks, so that time stays roughly in order.

A replay uses few of a log's displays, and which ones depends on the order in which they came. Displays that followed
one another closely could have come in another order as well, so a replay of another order is as good, and the mean over
several depends on the log's luck the less. A display takes along all that belongs to it: context, action, propensity,
conversions, and their delays, which stay the displays that came between in the log itself.

Blocks of 1,024 are long enough that other displays are used, and so short that rhythms and drifts over more displays
than that stay as they are: `python -m tests.bench.repeats` measures both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log.eligible import SetCodes
from evaluator.replays.rounds.batch import Batch
from evaluator.replays.rounds.stream import LogPiece, LogRounds
from evaluator.streams import Stream, random_stream

BLOCK = 1_024

Ints = npt.NDArray[np.int64]


class LogOrder:
    """The order of the displays of a log, part by part.

    Parameters
    ----------
    rng
        Random stream of its own: the result depends on it alone.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    @classmethod
    def of_repeat(cls, seed: int, repeat: int) -> LogOrder:
        """Return the order that a repeat reads a log in, other than the first, which reads it as it is."""
        return cls(random_stream(Stream.REPEAT_ORDER, seed, repeat))

    def next(self, n: int) -> Ints:
        """Return the next `n` displays in their new order, counted from 0: whole blocks, but at the end of the log."""
        keys = self._rng.random(n)
        whole = n - n % BLOCK
        out = np.empty(n, np.int64)
        out[:whole] = (
            np.argsort(keys[:whole].reshape(-1, BLOCK), axis=1) + np.arange(0, whole, BLOCK)[:, None]
        ).reshape(-1)
        out[whole:] = np.argsort(keys[whole:]) + whole
        return out


class GatheredDisplays(NamedTuple):
    """Some displays of a piece in some order: as a batch, but with their conversions' numbers among the log's own.

    Parameters
    ----------
    action
        Logged action of each display, shape (n,).
    vectors
        Vectors of the displays by each name that was asked for, shape (n, K, d), (n, 1, d) or (1, K, d).
    first_conversion
        Place in `conversion` of each display's first conversion, shape (n + 1,).
    conversion
        Number, in the log, of each conversion, shape (c,).
    eligible
        Eligible actions of each display; None where they were not read.
    first_vector
        Place of each display's first vector where displays have their own number of them, shape (n + 1,); else None.
    """

    action: npt.NDArray[np.int32]
    vectors: dict[str | None, npt.NDArray[np.floating]]
    first_conversion: Ints
    conversion: Ints
    eligible: SetCodes | None = None
    first_vector: Ints | None = None

    def batch(self, rounds: LogRounds) -> Batch:
        """Return them as a policy reads them."""
        events = rounds.events(self.first_conversion, self.conversion)
        vectors, eligible = rounds.choices(self.vectors[rounds.vectors], self.eligible, self.first_vector)
        return Batch(self.action, vectors, *events, eligible)


def gather(
    piece: LogPiece, action: npt.NDArray[np.int32], displays: Ints, vectors: Iterable[str | None]
) -> GatheredDisplays:
    """Take displays out of a piece, in the order asked for; they may come twice.

    Parameters
    ----------
    piece
        Piece of the log: displays that follow one another.
    action
        Thinned actions of the piece's displays, shape (m,).
    displays
        Displays to take, shape (n,), counted from the first of the piece.
    vectors
        Names of the vectors to take, as in `LogPiece.part`.
    """
    first = piece.first_conversion[displays]
    counts = piece.first_conversion[displays + 1] - first
    bounds = np.concatenate([[0], np.cumsum(counts)])
    conversion = np.repeat(first - bounds[:-1], counts) + np.arange(bounds[-1])
    own = {name: piece.part(name, displays) for name in vectors}
    sets, first_vector = piece.eligible(displays), piece.first_vectors(displays)
    return GatheredDisplays(action[displays], own, bounds, conversion, sets, first_vector)
