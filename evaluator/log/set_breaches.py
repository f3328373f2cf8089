"""What is wrong with sets of eligible actions: their form, and what they say of the display."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import SETS, beyond, holds, set_bytes, sizes
from evaluator.log.log_tables import LogTables
from evaluator.log.ragged_vectors import first_vectors
from evaluator.log.schema import ACTION_SET, ELIGIBLE, Columns

# How far a propensity that is uniform by design may be from one over the size of its set.
_ROUNDING = 1e-6


class WrongForm(NamedTuple):
    """Rows whose sets cannot be read, the values of the first ones, what is wrong with them and the repair."""

    rows: npt.NDArray[np.int64]
    values: tuple[object, ...]
    problem: str
    repair: str


class WrongSets(NamedTuple):
    """Column, which displays of a batch are wrong, shape (n,), their values, what is wrong and the repair."""

    column: str
    wrong: npt.NDArray[np.bool_]
    values: npt.NDArray[Any]
    problem: str
    repair: str


def missing_sets(sets: pa.ChunkedArray) -> WrongForm:
    """Return the displays without a set."""
    rows = np.flatnonzero(sets.is_null().to_numpy())
    return WrongForm(rows, (None,) * len(rows), "missing", "give every display its set, or drop the rows")


def uneven_sets(sets: pa.ChunkedArray, size: int) -> WrongForm:
    """Return the displays whose set has not `size` bytes; none is missing."""
    held = np.concatenate([*(set_bytes(chunk) for chunk in sets.chunks if len(chunk)), np.zeros(0, np.int32)])
    rows = np.flatnonzero(held != size)
    values = tuple(f"{count} bytes" for count in held[rows[:3]].tolist())
    problem = f"not the {size} bytes of the log's actions"
    return WrongForm(rows, values, problem, "give a bit an action (evaluator.log.eligible.pack)")


def set_breaches(batch: Columns, n_actions: int, *, uniform: bool) -> Iterator[WrongSets]:
    """Yield what is wrong with the sets of some displays.

    Parameters
    ----------
    batch
        Columns of the displays: ``eligible``, ``action`` and, where the log has some, ``propensity``.
    n_actions
        Number of actions K of the log.
    uniform
        Whether propensities are uniform by design: then they are one over the size of the set.
    """
    bits, action = batch[ELIGIBLE], np.nan_to_num(batch["action"], nan=-1).astype(np.int64)
    extra, size = beyond(bits, n_actions), sizes(bits)
    yield WrongSets(
        ELIGIBLE, extra >= 0, extra, f"a bit that is no action below {n_actions}", "leave the bits beyond K unset"
    )
    yield WrongSets(
        ELIGIBLE, size == 0, size, "no action is eligible", "give the actions that could have been shown, or drop rows"
    )
    known = (extra < 0) & (size > 0) & (action >= 0) & (action < n_actions)
    yield WrongSets(
        ELIGIBLE, known & ~holds(bits, action), action, "the action that was shown is not eligible",
        "add it to the set, or drop the rows",
    )  # fmt: skip
    if uniform:
        p = batch["propensity"].astype(np.float64)
        off = known & (p > 0) & (np.abs(p * size - 1.0) > _ROUNDING)
        yield WrongSets(
            "propensity", off, p, "not one over the number of eligible actions, uniform as it is",
            "give 1 / |E| of the display's own set E",
        )  # fmt: skip


def wrong_lists(log: LogTables) -> WrongForm | None:
    """Return the displays in memory that have not as many vectors as eligible actions; None where all have."""
    lists = log.displays[ACTION_SET]
    if lists.null_count:
        rows = np.flatnonzero(lists.is_null().to_numpy())
        return WrongForm(rows, (None,) * len(rows), "missing", "fill or drop the rows")
    if not pa.types.is_fixed_size_list(lists.type.value_type):
        nothing = np.zeros(0, np.int64)
        return WrongForm(nothing, (), f"column {ACTION_SET!r} is {lists.type}", "make it lists of fixed-size lists")
    if log.displays[ELIGIBLE].type != SETS:
        return None
    held = np.diff(first_vectors(lists))
    of_set = [sizes(batch[ELIGIBLE]) for _, batch in log.batches([ELIGIBLE])]
    rows = np.flatnonzero(held != np.concatenate([*of_set, np.zeros(0, np.int64)]))
    if len(rows) == 0:
        return None
    values = tuple(f"{count} vectors" for count in held[rows[:3]].tolist())
    return WrongForm(rows, values, "not a vector for each eligible action", "give one, in the order of the actions")


def worst_of_lists(vectors: npt.NDArray[Any], bits: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Return a number of each display's vectors, one that is not finite if there is any, shape (n,).

    Parameters
    ----------
    vectors
        Vectors of the eligible actions, one display after the other, shape (m, d).
    bits
        Eligible actions, shape (n, width).
    """
    worst = np.where(np.isfinite(vectors).all(axis=1), 0.0, vectors.sum(axis=1)) if len(vectors) else np.zeros(0)
    display = np.repeat(np.arange(len(bits)), sizes(bits))[: len(worst)]
    found = np.zeros(len(bits))
    bad = np.flatnonzero(~np.isfinite(worst[: len(display)]))
    found[display[bad]] = worst[bad]
    return found
