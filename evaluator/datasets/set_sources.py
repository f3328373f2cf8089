"""Where a source says which actions could have been shown: what its readers share.

Each reader checks the rows of a chunk, leaves a small column for each in the spool, and gives back the eligible actions
of some of these once all displays are known.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.labels import Labels, coded
from evaluator.datasets.row_breaches import CheckedRows
from evaluator.log.eligible import Bits, bits_of, blocks, width

Ints = npt.NDArray[np.int64]

# Columns of a chunk that its check adds, and of the spool: what says which set a display has.
SET, SET_PROPENSITY = "display.eligible", "display.eligible.propensity"
NOT_ELIGIBLE = "the action that was shown is not eligible"


class Members(NamedTuple):
    """The eligible actions of some displays, one display after the other.

    Parameters
    ----------
    first
        Place of each display's first action, shape (n + 1,).
    code
        Code of the label of each action, shape (m,).
    vectors
        Vector of each, shape (m, d); None where they have none.
    """

    first: Ints
    code: npt.NDArray[np.integer]
    vectors: npt.NDArray[np.float32] | None = None


class KeptMembers(NamedTuple):
    """The eligible actions of some displays among those that are kept.

    Parameters
    ----------
    bits
        A bit an action, shape (n, width).
    vectors
        Vector of each, in the order of the displays and then of the actions, shape (m, d); None where they have none.
    """

    bits: Bits
    vectors: npt.NDArray[np.float32] | None


class SetSource(Protocol):
    """What reads the sets of a source."""

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report the rows of a chunk whose set breaks a rule; return the chunk with what `codes` needs of it."""

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return what the spool keeps of the sets of sound rows, their labels numbered by `labels`."""

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays of the spool have in their sets, each once."""

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept; see `kept_members`."""


def local_codes(column: pl.Series, number: dict[str, int]) -> Ints:
    """Return the number of each row's label, -1 where it is missing or not numbered."""
    labels, code = coded(column)
    found = [number.get(label, -1) for label in labels.to_pylist()]
    codes: Ints = np.array([*found, -1], np.int64)[code]
    return codes


def spread(first: Ints, of: Ints) -> tuple[Ints, Ints]:
    """Return where the parts `of` some ragged rows begin, one after the other, and the places of all of their entries.

    Parameters
    ----------
    first
        Place of the first entry of each ragged row, shape (rows + 1,).
    of
        Rows that are wanted, shape (n,).
    """
    counts = first[of + 1] - first[of]
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return begins, np.repeat(first[of] - begins[:-1], counts) + np.arange(begins[-1])


def kept_members(members: Members, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
    """Return sets of the kept actions alone.

    Parameters
    ----------
    members
        Eligible actions by the codes of their labels.
    new_action
        Index of the action among the K that are kept, for each code, shape (codes,); -1 where it is dropped.
    n_actions
        Number K of actions that are kept.
    """
    n = len(members.first) - 1
    display = np.repeat(np.arange(n), np.diff(members.first))
    action = new_action[members.code]
    bits = np.empty((n, width(n_actions)), np.uint8)
    for part in blocks(n, n_actions):
        begin, end = members.first[part.start], members.first[min(part.stop, n)]
        truths = np.zeros((min(part.stop, n) - part.start, n_actions + 1), np.bool_)
        truths[display[begin:end] - part.start, action[begin:end]] = True  # -1, what is dropped, is the last
        bits[part] = bits_of(truths[:, :-1])
    if members.vectors is None:
        return KeptMembers(bits, None)
    order = np.lexsort((action, display))
    return KeptMembers(bits, members.vectors[order[action[order] >= 0]])
