"""The columns of a log's tables (see `evaluator.log.contract`), and their way from Arrow to NumPy and back.

Columns of vectors may be ragged: as many entries a display as actions are eligible there, in the order of the actions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import Bits, members, to_bits, to_codes

# Columns of displays as NumPy arrays, row by row together.
Columns = dict[str, npt.NDArray[Any]]

DISPLAYS = {"display_id": pa.int64(), "time": pa.int64(), "action": pa.int32(), "propensity": pa.float64()}
ACTION_SET = "action_set"
VECTORS = ("context", ACTION_SET, "expected_reward")
# A policy to be evaluated, as a column: the one without a name, and before the name of each other one.
TARGET, NAMED_TARGET = "target", "target:"
_PER_ACTION = (ACTION_SET, "expected_reward")
POSITION, WEIGHT, COST = "position", "weight", "cost"
ELIGIBLE = "eligible"
# Vectors of the actions, the same for all displays: a column of `actions`.
FEATURES = "features"
OWN_COLUMNS = (*DISPLAYS, *VECTORS, TARGET, POSITION, WEIGHT, COST, ELIGIBLE)
EVENTS = {"display_id": pa.int64(), "time": pa.int64(), "value": pa.float64()}
ACTIONS = {"action": pa.int32(), "label": pa.string()}
# Of which kind each event is; no such column where all are conversions.
KIND, KINDS = "kind", pa.dictionary(pa.int8(), pa.string())

# Displays handed over at a time: large enough that what is done once a batch costs nothing, small enough for the cache.
BATCH = 65_536


def kept_columns(columns: Iterable[str]) -> list[str]:
    """Return those columns of displays that a log keeps of its source as they were, to group by.

    >>> kept_columns(["display_id", "time", "action", "device"])
    ['device']
    """
    return [name for name in columns if name not in OWN_COLUMNS]


def is_target(name: str) -> bool:
    """Whether a column of displays of this name is a policy to be evaluated: its probabilities, or its actions."""
    return name == TARGET or name.startswith(NAMED_TARGET)


def per_action(schema: pa.Schema) -> list[str]:
    """Return the columns of displays with one entry an action: they follow the choice of actions."""
    targets = (
        name for name in schema.names if is_target(name) and pa.types.is_fixed_size_list(schema.field(name).type)
    )
    return [*(name for name in _PER_ACTION if name in schema.names), *targets]


def to_numpy(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow column as NumPy, shape (n,) or, for fixed-size lists, (n, p) or (n, K, d).

    Sets of actions are bits, shape (n, width); lists of as many vectors as actions are eligible become the
    vectors of all displays, one display after the other, shape (m, d).
    """
    if is_sets(column.type):
        return to_bits(column)
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            column = column.chunk(0)
        else:
            column = column.combine_chunks()
            if isinstance(column, pa.ChunkedArray):  # an empty column keeps its chunks in some versions
                column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)
    if is_uneven(column.type):
        column = column.flatten()
    shape = [len(column)]
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = column.flatten()
    array: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array.reshape(shape)


def read(column: pa.ChunkedArray | pa.Array, *, coded: bool) -> npt.NDArray[Any]:
    """Return an Arrow column as `to_numpy` does; sets of actions, if `coded`, by their numbers among distinct ones."""
    return to_codes(column) if coded and is_sets(column.type) else to_numpy(column)


def fixed_size_lists(array: npt.NDArray[Any]) -> pa.Array:
    """Return an array of shape (n, p) or (n, K, d) as nested Arrow fixed-size lists, sharing its memory."""
    out = pa.array(np.ascontiguousarray(array).reshape(-1))
    for size in reversed(array.shape[1:]):
        out = pa.FixedSizeListArray.from_arrays(out, size)
    return out


def take_rows(rows: pa.Table | pa.RecordBatch, numbers: npt.NDArray[np.int64]) -> pa.Table:
    """Return some rows by their numbers, in the order asked for; a slice of them where they follow each other."""
    if consecutive(numbers):
        part = rows.slice(int(numbers[0]), len(numbers))
        return part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
    return pa.table([take_values(column, numbers) for column in rows.columns], schema=rows.schema)


def take_values(column: pa.ChunkedArray | pa.Array, numbers: npt.NDArray[np.int64]) -> pa.ChunkedArray | pa.Array:
    """Return some rows of a column by their numbers, in the order asked for.

    Of slices of nested fixed-size lists pyarrow (26.0) itself takes other memory than their rows.
    """
    if _is_nested(column.type):
        return fixed_size_lists(to_numpy(column)[numbers]).cast(column.type)
    return column.take(pa.array(numbers))


def consecutive(numbers: npt.NDArray[np.int64]) -> bool:
    """Whether there are numbers, each one more than that before it: O(1) for nearly all others.

    >>> consecutive(np.array([3, 4, 5])), consecutive(np.array([3, 5, 4, 6])), consecutive(np.array([], np.int64))
    (True, False, False)
    """
    return bool(len(numbers)) and bool(
        numbers[-1] - numbers[0] == len(numbers) - 1 and (numbers[1:] > numbers[:-1]).all()
    )


def firsts(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Return where each distinct number begins among numbers that never fall; None where no two are the same.

    >>> firsts(np.array([0, 0, 3, 4, 4])).tolist(), firsts(np.array([0, 3]))
    ([0, 2, 3], None)
    """
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return None if begins.all() else np.flatnonzero(begins)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_fixed_size_list(kind.value_type))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds whole numbers or fractions."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def words(column: pa.Array) -> pa.Array:
    """Return a column that a log keeps as text, numbers without a needless fraction.

    >>> words(pa.array([3.0, 0.5, None])).to_pylist()
    ['3', '0.5', None]
    """
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def is_sets(kind: pa.DataType) -> bool:
    """Whether a column of this type holds sets of actions."""
    return bool(pa.types.is_dictionary(kind) and pa.types.is_binary(kind.value_type))


def is_uneven(kind: pa.DataType) -> bool:
    """Whether a column of this type has its own number of entries a display."""
    return bool(pa.types.is_list(kind))


def uneven_lists(vectors: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> pa.ListArray:
    """Return vectors of shape (m, d), display after display, as a column, given the number of each display's."""
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), vectors.shape[1])
    return pa.ListArray.from_arrays(pa.array(first), flat)


def first_vectors(lists: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the place of each display's first vector among all of a column, shape (n + 1,)."""
    counts = [np.diff(chunk.offsets.to_numpy()) for chunk in lists.chunks]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])


def chosen_lists(lists: pa.ListArray, bits: Bits, actions: npt.NDArray[np.integer]) -> pa.ListArray:
    """Return a column of lists with the vectors of the given actions alone, shape (k,), in this order.

    The lists hold the vectors of each display's eligible actions, and `bits` these actions, shape (n, width).
    """
    first, action = members(bits)
    new = np.full(8 * bits.shape[1], -1, np.int64)
    new[actions] = np.arange(len(actions))
    display = np.repeat(np.arange(len(bits)), np.diff(first))
    order = np.lexsort((new[action], display))
    order = order[new[action[order]] >= 0]
    ends = np.cumsum(np.bincount(display[order], minlength=len(bits)))
    first_kept = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(first_kept), lists.flatten().take(pa.array(order)))
