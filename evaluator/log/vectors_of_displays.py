"""Vectors and actions as a policy needs them: which are read, whether one dwarfs others, actions in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.eligible import chosen_sets
from evaluator.log.schema import ELIGIBLE, FEATURES, chosen_lists, fixed_size_lists, is_uneven, per_action, to_numpy
from evaluator.log.stored import StoredLog

# Numbers so many times as large as others: with less, as ages beside a constant, policies learn all the same.
DWARFING = 100.0
# Displays that are looked at, of the first and of the last.
_LOOKED_AT = 250


def display_vectors(log: Log, *, first: Literal["action_set", "context"] = "action_set") -> str | None:
    """Return the column of the displays' vectors, ``action_set`` or ``context``, or None if there is none.

    Where there are both, `first` is preferred: a policy tells actions apart by their vectors; what a logger looked at
    is best told by the context.
    """
    second = "context" if first == "action_set" else "action_set"
    return next((name for name in (first, second) if name in log.schema.names), None)


def readable_vectors(log: Log) -> str | None:
    """Return the vectors that a policy or a model can read: a display's, else ``features`` of the actions; or None."""
    return display_vectors(log) or (FEATURES if FEATURES in log.actions.column_names else None)


class Dwarfing(NamedTuple):
    """The columns with the largest and the smallest numbers, how many times as large they are, and what to do."""

    largest: str
    smallest: str
    times: float
    remedy: str


def dwarfing_column(log: Log) -> Dwarfing | None:
    """Return the column that dwarfs another by `DWARFING` or more, or None if no column does.

    A column's size is the root mean square of its numbers that are not 0, so that a rare category is no small one.
    """
    name = display_vectors(log)
    if name is None or is_uneven(log.schema.field(name).type):
        return None
    n = len(log)
    at = np.unique(np.concatenate([np.arange(min(n, _LOOKED_AT)), np.arange(max(n - _LOOKED_AT, 0), n)]))
    vectors = to_numpy(log.take(at, [name])[name])
    x = vectors.reshape(-1, vectors.shape[-1]).astype(np.float64)
    filled = np.count_nonzero(x, axis=0)
    seen = np.flatnonzero(filled)
    if not len(seen):
        return None
    size = np.sqrt((x[:, seen] ** 2).sum(axis=0) / filled[seen])
    largest, smallest = int(size.argmax()), int(size.argmin())
    times = float(size[largest] / size[smallest])
    if times < DWARFING:
        return None
    encoder = log.meta.encoder if name == "context" else None
    told = encoder.coordinates() if encoder is not None and encoder.dimensions == x.shape[1] else None
    large, small = (f"{name}[{seen[j]}]" if told is None else told[seen[j]].name for j in (largest, smallest))
    if name == "action_set" or encoder is None:
        remedy = "Bring the columns to one scale before they become vectors."
    elif any(column.centre is not None for column in encoder.columns):
        remedy = f"The log's first tenth, by which numbers are scaled, has others: leave {large} out, or take ranks."
    else:
        remedy = 'Scale them: scale = "standard" in [context] of the spec (Log.from_frames: scale="standard").'
    return Dwarfing(large, small, times, remedy)


def target_vectors(target: pa.Array, labels: pa.Array) -> npt.NDArray[np.float64]:
    """Return a column with a policy as vectors, shape (n, 1, K), or (n, 1, 1) of the index of the action that it takes.

    The index is -1 where it is none of the log's.
    """
    found = to_numpy(pc.index_in(target, labels).fill_null(-1)) if pa.types.is_string(target.type) else to_numpy(target)
    return found.astype(np.float64).reshape(len(target), 1, -1)


class TakenActions:
    """The actions that a policy takes at the displays of a log, by the labels in a column, some at a time."""

    def __init__(self, log: Log, name: str) -> None:
        self._labels = pa.array(log.labels, pa.string())
        self._arrays = log.arrays(name)
        self._left = np.zeros(0, np.int32)

    def following(self, n: int) -> npt.NDArray[np.int32]:
        """Return the index of the action at each of the next displays, shape (n,); -1 where it is none of the log's."""
        while len(self._left) < n:
            codes = pc.index_in(next(self._arrays)[1], self._labels).fill_null(-1)
            self._left = np.concatenate([self._left, codes.to_numpy(zero_copy_only=False)])
        found, self._left = self._left[:n], self._left[n:]
        return found


def in_order(log: Log, labels: Sequence[str]) -> Log:
    """Return a log whose actions are numbered in the order of the labels of all K actions.

    Raises ParameterError where the log has another action or lacks one; the message names it.
    """
    own = log.labels
    if own == list(labels):
        return log
    for here, there, what in ((own, set(labels), "has"), (labels, set(own), "lacks")):
        others = [label for label in here if label not in there]
        if others:
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            raise ParameterError(
                f"Log {log.meta.name!r} {what} action {others[0]}{more}, and the policy learned of "
                f"{len(labels):,} actions: {', '.join(labels[:8])}{'...' if len(labels) > 8 else ''}.",
                remedy="read the same actions of both logs (`actions`).",
            )
    old = np.array([own.index(label) for label in labels])
    new = np.empty(len(old), np.int32)
    new[old] = np.arange(len(old), dtype=np.int32)
    actions = log.actions.take(pa.array(old))
    actions = actions.set_column(actions.schema.get_field_index("action"), "action", log.actions["action"])
    if isinstance(log, StoredLog):
        chosen = log.selection
        was, propensity = chosen.new_action, chosen.propensity
        composed = new if was is None else np.where(was >= 0, new[was], np.int32(-1))
        selection = replace(chosen, new_action=composed, propensity=None if propensity is None else propensity[old])
        return log.changed(selection=selection, actions=actions).as_sound_as(log)
    displays = log.displays
    changed = {"action": pa.array(new[to_numpy(displays["action"])])}
    for name in per_action(displays.schema):
        if is_uneven(displays[name].type):
            lists, bits = displays[name].combine_chunks(), to_numpy(displays[ELIGIBLE])
            changed[name] = chosen_lists(lists, bits, old)
        else:
            changed[name] = fixed_size_lists(to_numpy(displays[name])[:, old])
    if ELIGIBLE in displays.column_names:
        chunks = displays[ELIGIBLE].chunks
        changed[ELIGIBLE] = pa.chunked_array([chosen_sets(chunk, old) for chunk in chunks], displays[ELIGIBLE].type)
    for name, column in changed.items():
        displays = displays.set_column(displays.schema.get_field_index(name), name, column)
    return replace(log, displays=displays, actions=actions).as_sound_as(log)
