"""The eligible actions of twins: those of the log's displays, drawn with them, on their calendar where they have one.

Each entry of a truth's pool is a display of the log, with its set. Where sets do not move with time, a twin's display
is any of them. Where they do, the pool is cut into blocks of successive displays, and the display at a given share of
the twin is one of the block at this share of the log: campaigns start and stop in a twin, and in a live run of it, when
they do in the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import Log
from evaluator.log.eligible import Bits, pack, to_bits, unpack
from evaluator.log.ragged_vectors import is_uneven
from evaluator.log.schema import ELIGIBLE, to_numpy
from evaluator.replays.rounds.batch import EligibleSets

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

# Entries of a block: enough for contexts to be drawn anew, few enough for a calendar to keep its dates.
BLOCK = 20


@dataclass(frozen=True, eq=False)
class TwinSets:
    """Eligible actions of each entry of a truth's pool.

    Parameters
    ----------
    column
        Sets of the entries, P of them, as a log holds them.
    truths
        Sets of the entries as truths, shape (P, K). An action that the log never showed is in none.
    blocks
        Number of blocks of successive entries that a twin passes through; 1 where sets do not move with time.
    """

    column: pa.DictionaryArray
    truths: Truths
    blocks: int

    @property
    def moving(self) -> bool:
        """Whether sets move with time."""
        return self.blocks > 1

    @property
    def bits(self) -> Bits:
        """Sets of the entries as bits, shape (P, width)."""
        return to_bits(self.column)

    @property
    def said(self) -> str:
        """What is said of twins."""
        if not self.moving:
            return "eligible actions are drawn with the log's displays, whatever the time"
        return f"eligible actions follow the log's calendar, drawn within {self.blocks:,} blocks of successive displays"

    def block(self, share: Floats) -> Ints:
        """Return the block at some shares of a twin, each in [0, 1), shape (n,)."""
        return np.minimum((share * self.blocks).astype(np.int64), self.blocks - 1)

    def entries(self, share: Floats, uniform: Floats) -> Ints:
        """Return the entry of displays at some shares of a twin, given a uniform number of each, shape (n,)."""
        block, size = self.block(share), len(self.truths)
        low = block * size // self.blocks
        high = (block + 1) * size // self.blocks
        found: Ints = low + ((high - low) * uniform).astype(np.int64)
        return found

    def by_block(self, of_entry: Floats) -> Floats:
        """Return the means of some numbers of each entry over the blocks, (P, R) to (B, R)."""
        first = np.arange(self.blocks) * len(of_entry) // self.blocks
        size = np.diff(np.append(first, len(of_entry)))
        means: Floats = np.add.reduceat(of_entry, first, axis=0) / size[:, None]
        return means

    @property
    def entry_shares(self) -> Floats:
        """Share of a twin's displays that each entry has, shape (P,): blocks are of the same length."""
        first = np.arange(self.blocks + 1) * len(self.truths) // self.blocks
        size = np.diff(first)
        return np.repeat(1.0 / (self.blocks * size), size)

    def of_displays(self, entry: Ints) -> pa.DictionaryArray:
        """Return the column of displays with these entries."""
        return pa.DictionaryArray.from_arrays(self.column.indices.take(pa.array(entry)), self.column.dictionary)


def read_twin_sets(log: Log, sets: EligibleSets, entries: Ints, shown: Ints) -> TwinSets:
    """Return the sets of some displays of a log, without actions that it never showed.

    Parameters
    ----------
    log, sets
        The log, and how its sets vary.
    entries
        Numbers of the displays, shape (P,), increasing.
    shown
        Number of displays of each action, shape (K,).
    """
    column = log.take(entries, [ELIGIBLE])[ELIGIBLE]
    truths = unpack(column, log.n_actions) & (shown > 0)
    blocks = max(len(entries) // BLOCK, 1) if sets.moving >= 0 else 1
    return TwinSets(pack(truths), truths, blocks)


def all_vectors(column: pa.ChunkedArray, truths: Truths) -> npt.NDArray[np.floating]:
    """Return the vectors of all actions at some displays, shape (n, K, d): 0 where a list has none, of its sets."""
    vectors = to_numpy(column)
    if not is_uneven(column.type):
        return vectors
    found = np.zeros((*truths.shape, vectors.shape[1]), vectors.dtype)
    found[truths] = vectors
    return found


def best_order_value(rates: Floats, truths: Truths, worth: Floats, cost: Floats, factor: Floats) -> float:
    """Return the mean over entries of the best order of actions: at each, its first eligible action is shown.

    As in a replay (`evaluator.estimates.best_fixed`), actions are ordered by their means where they are eligible.

    Parameters
    ----------
    rates, truths
        Conversion probability of each action in each entry, and whether it is eligible there, shape (P, K).
    worth
        What a conversion of each action counts, shape (K,).
    cost
        What a display of each action costs, shape (K,).
    factor
        Factor of all rates at each entry, shape (P,).
    """
    earned = np.minimum(rates * factor[:, None], 1.0) * worth - cost
    eligible = truths.sum(axis=0)
    means = np.where(eligible > 0, (earned * truths).sum(axis=0) / np.maximum(eligible, 1), -np.inf)
    order = np.argsort(-means, kind="stable")
    first = order[truths[:, order].argmax(axis=1)]
    return float(earned[np.arange(len(first)), first].mean())
